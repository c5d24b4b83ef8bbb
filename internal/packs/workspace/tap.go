package workspace

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// tap keeps the beginning and the end of a stream, half of its room each.
type tap struct {
	mu    sync.Mutex // guards the rest: a reader may outlive the program
	room  int64
	head  []byte
	tail  []byte // a ring once it is full
	at    int
	total int64
}

func newTap(room int64) *tap { return &tap{room: room} }

// Write implements io.Writer and never fails.
func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	t.total += int64(n)
	if free := t.room/2 + t.room%2 - int64(len(t.head)); free > 0 {
		k := min(free, int64(len(b)))
		t.head, b = append(t.head, b[:k]...), b[k:]
	}
	size := int(t.room / 2)
	if over := len(b) - size; over > 0 {
		b = b[over:]
		t.tail, t.at = t.tail[:0], 0
	}
	for len(b) > 0 {
		if len(t.tail) < size {
			k := min(size-len(t.tail), len(b))
			t.tail, b = append(t.tail, b[:k]...), b[k:]
			continue
		}
		k := copy(t.tail[t.at:], b)
		t.at, b = (t.at+k)%size, b[k:]
	}
	return n, nil
}

func (t *tap) text() stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := int64(len(t.head) + len(t.tail))
	s := stream{Total: t.total, Dropped: t.total - kept}
	ordered := append(append([]byte{}, t.tail[t.at:]...), t.tail[:t.at]...)
	if s.Dropped == 0 {
		s.Text = strings.ToValidUTF8(string(append(append([]byte{}, t.head...), ordered...)), "\uFFFD")
		return s
	}
	s.Text = strings.ToValidUTF8(string(t.head), "\uFFFD") + "\n[…]\n" + strings.ToValidUTF8(string(ordered), "\uFFFD")
	return s
}

// ends are the pipes between a program and its taps.
type ends struct{ readers, writers []*os.File }

func connect(cmd *exec.Cmd, out, errs *tap, wg *sync.WaitGroup) (*ends, error) {
	e := &ends{}
	for _, c := range []struct {
		to  *tap
		set func(*os.File)
	}{{out, func(f *os.File) { cmd.Stdout = f }}, {errs, func(f *os.File) { cmd.Stderr = f }}} {
		r, w, err := os.Pipe()
		if err != nil {
			e.close()
			return nil, err
		}
		e.readers, e.writers = append(e.readers, r), append(e.writers, w)
		c.set(w)
		wg.Go(func() {
			// A pipe that is closed from our side, and every other end of it, is the end.
			_, _ = io.Copy(c.to, r)
		})
	}
	return e, nil
}

func (e *ends) closeWriters() {
	for _, w := range e.writers {
		_ = w.Close() // the program has its own
	}
}

func (e *ends) close() {
	e.closeWriters()
	for _, r := range e.readers {
		_ = r.Close()
	}
}

// drain reads what is left, and gives up on a pipe that somebody still holds.
func (e *ends) drain(wg *sync.WaitGroup) {
	for _, r := range e.readers {
		if err := r.SetReadDeadline(time.Now().Add(drainTime)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
			_ = r.Close()
		}
	}
	wg.Wait()
	e.close()
}
