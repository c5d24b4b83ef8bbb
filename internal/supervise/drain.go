package supervise

import (
	"errors"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/wire"
)

// rawStream is one raw stream of a worker: it keeps the last bytes and counts the
// rest (CP-004).
type rawStream struct {
	pipe *os.File // our end; nil until the worker is spawned

	mu    sync.Mutex // guards the rest; under it the pipe is read, which never blocks
	buf   [4 << 10]byte
	ring  [wire.TailBytes]byte
	total int64
}

func (t *rawStream) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(p)
}

// keep adds to the ring. mu is held.
func (t *rawStream) keep(p []byte) {
	skip := max(0, len(p)-len(t.ring))
	t.total += int64(skip)
	for p = p[skip:]; len(p) > 0; {
		n := copy(t.ring[t.total%int64(len(t.ring)):], p)
		t.total += int64(n)
		p = p[n:]
	}
}

// since gives what came after the first seen bytes as text, as far as it is kept,
// and how many bytes have come in all. Bytes that are not UTF-8 become U+FFFD, and
// a sequence that the ring cut in two counts as dropped.
func (t *rawStream) since(seen int64) (event.Tail, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total <= seen {
		return event.Tail{}, t.total
	}
	size := int64(len(t.ring))
	from := max(seen, t.total-size)
	kept := make([]byte, 0, t.total-from)
	if at, end := from%size, (t.total-1)%size+1; at < end {
		kept = append(kept, t.ring[at:end]...)
	} else {
		kept = append(append(kept, t.ring[at:]...), t.ring[:end]...)
	}
	cut := 0
	for from > seen && cut < utf8.UTFMax-1 && !utf8.RuneStart(kept[cut]) {
		cut++
	}
	return event.Tail{
		Text:    strings.ToValidUTF8(string(kept[cut:]), "\uFFFD"),
		Dropped: from - seen + int64(cut),
	}, t.total
}

// drain reads the stream until its last writer is gone or the owner gives up on it,
// and then closes it.
func (t *rawStream) drain() {
	defer t.pipe.Close()
	conn, err := t.pipe.SyscallConn()
	for n := 1; err == nil && n > 0; {
		var failed error
		err = conn.Read(func(fd uintptr) bool {
			n, failed = t.take(int(fd))
			return !errors.Is(failed, unix.EAGAIN)
		})
		err = errors.Join(err, failed)
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.add([]byte("\nreeve: reading this stream failed: " + err.Error() + "\n"))
	}
}

// take moves what one read gives into the ring. Reading and counting are one step,
// so that nothing is between the pipe and the count.
func (t *rawStream) take(fd int) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		n, err := unix.Read(fd, t.buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n > 0 {
			t.keep(t.buf[:n])
		}
		return n, err
	}
}

// pipeSize is the most that a pipe holds unless its owner has raised the limit
// (pipe(7)), so that pull ends under a writer who does not.
const pipeSize = 1 << 20

// pull takes what the pipe holds now. A stream that the drain has closed is whole.
func (t *rawStream) pull() {
	conn, err := t.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { // its one error is that the pipe is closed
		for left := pipeSize; left > 0; {
			n, err := t.take(int(fd))
			if n <= 0 || err != nil {
				return // the drain sees the same
			}
			left -= n
		}
	})
}

// lastLines is the end of a tail for an error's text: at most n lines.
func lastLines(t event.Tail, n int) string {
	lines := strings.Split(strings.TrimRight(t.Text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
