package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
)

// maxReaders bounds open reading connections, and with them the memory of their
// caches (16 MiB each at most).
const maxReaders = 4

// pool lends reading connections, the one used last first: its cache is warm, and a
// lone reader needs no second one. A connection is opened when it is first needed,
// so that recycling them after a disk failure costs nothing.
type pool struct {
	open  func() (*conn, error)
	slots chan struct{} // one for each connection that may be lent
	quit  chan struct{}

	mu   sync.Mutex
	idle []*conn
}

func newPool(open func() (*conn, error)) *pool {
	p := &pool{open: open, slots: make(chan struct{}, maxReaders), quit: make(chan struct{})}
	for range maxReaders {
		p.slots <- struct{}{}
	}
	return p
}

// take returns a connection that was used before, or nil.
func (p *pool) take() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	c := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return c
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

func (s *Store) openReader() (*conn, error) {
	if !s.opt.ReadOnly {
		return open(s.path, lite.OpenReadWrite, s.synchronous(), "query_only=ON")
	}
	if durable.Writable(filepath.Dir(s.path)) {
		return open(s.path, lite.OpenReadOnly, s.synchronous(), "query_only=ON")
	}
	// Where no file can be made a log can be joined only with its index. A store that
	// was closed in order has neither, and is read as the one file it is.
	if !hasWAL(s.path) {
		return openStill(s.path)
	}
	c, err := open(s.path, lite.OpenReadOnly, s.synchronous(), "query_only=ON")
	if err != nil {
		return nil, fault.Wrap(err, fault.CodeOf(err), "read log beside", s.path).
			WithNext("copy the directory to where files can be made, and look there")
	}
	return c, nil
}

// with lends a connection to use for the time of the call.
func (p *pool) with(ctx context.Context, op string, use func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Cancelled, op, "")
	}
	select {
	case <-p.quit:
		return closed(op, "")
	default:
	}
	select {
	case <-p.slots:
	case <-p.quit:
		return closed(op, "")
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Cancelled, op, "")
	}
	defer func() { p.slots <- struct{}{} }()
	c := p.take()
	if c == nil {
		opened, err := p.open()
		if err != nil {
			return err
		}
		c = opened
	}
	defer p.put(c)
	return use(c)
}

// recycle waits for every reader to end and closes them all; the next use opens
// anew. Only when no connection is left does SQLite read the log from the disk.
func (p *pool) recycle(between func() error) error {
	var errs []error
	for range maxReaders {
		<-p.slots
	}
	for c := p.take(); c != nil; c = p.take() {
		errs = append(errs, c.Close())
	}
	errs = append(errs, between())
	for range maxReaders {
		p.slots <- struct{}{}
	}
	return errors.Join(errs...)
}

func (p *pool) close() error {
	close(p.quit)
	return p.recycle(func() error { return nil })
}
