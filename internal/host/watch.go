package host

import "sync"

// watch tells followers that the journal has grown. It carries no events: a
// follower reads them itself, so one that is slow costs nobody anything.
type watch struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

func (w *watch) init() { w.next = make(chan struct{}) }

// grown is closed at the next growth. Take it before reading, wait after.
func (w *watch) grown() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next
}

func (w *watch) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.next)
	w.next = make(chan struct{})
}
