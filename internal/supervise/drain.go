package supervise

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/wire"
)

// tail keeps the last bytes of a raw stream and counts the rest (CP-004).
type tail struct {
	mu    sync.Mutex // guards the rest; held only for a copy
	ring  [wire.TailBytes]byte
	total int64
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	skip := max(0, len(p)-len(t.ring))
	t.total += int64(skip)
	for p = p[skip:]; len(p) > 0; {
		n := copy(t.ring[t.total%int64(len(t.ring)):], p)
		t.total += int64(n)
		p = p[n:]
	}
}

// snapshot gives the tail as text. Bytes that are not UTF-8 become U+FFFD, and a
// sequence that the ring cut in two counts as dropped.
func (t *tail) snapshot() event.Tail {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := int64(len(t.ring))
	if t.total <= size {
		return event.Tail{Text: strings.ToValidUTF8(string(t.ring[:t.total]), "\uFFFD")}
	}
	at := t.total % size
	kept := make([]byte, 0, size)
	kept = append(append(kept, t.ring[at:]...), t.ring[:at]...)
	cut := 0
	for cut < utf8.UTFMax-1 && !utf8.RuneStart(kept[cut]) {
		cut++
	}
	return event.Tail{
		Text:    strings.ToValidUTF8(string(kept[cut:]), "\uFFFD"),
		Dropped: t.total - size + int64(cut),
	}
}

// drain reads one raw stream of the worker until its last writer is gone or the
// owner gives up on it, and then closes it.
func drain(f *os.File, into *tail) {
	defer f.Close()
	buf := make([]byte, 4<<10)
	for {
		n, err := f.Read(buf)
		into.add(buf[:n])
		if err != nil {
			if err != io.EOF && !os.IsTimeout(err) {
				into.add([]byte("\nreeve: reading this stream failed: " + err.Error() + "\n"))
			}
			return
		}
	}
}

// lastLines is the end of a tail for an error's text: at most n lines.
func lastLines(t event.Tail, n int) string {
	lines := strings.Split(strings.TrimRight(t.Text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
