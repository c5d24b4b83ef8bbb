package sqlite

import (
	"context"
	"errors"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
)

// maxReaders bounds open reading connections, and with them the memory of their
// caches (16 MiB each at most).
const maxReaders = 4

// pool lends reading connections. A slot is opened when it is first needed, so
// that recycling them after a disk failure costs nothing.
type pool struct {
	open  func() (*conn, error)
	slots chan *conn // nil: not open
	quit  chan struct{}
}

func newPool(open func() (*conn, error)) *pool {
	p := &pool{open: open, slots: make(chan *conn, maxReaders), quit: make(chan struct{})}
	for range maxReaders {
		p.slots <- nil
	}
	return p
}

func (s *Store) openReader() (*conn, error) {
	flags := lite.OpenReadWrite
	if s.opt.ReadOnly {
		flags = lite.OpenReadOnly
	}
	return open(s.path, flags, s.synchronous(), "query_only=ON")
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
	var c *conn
	select {
	case c = <-p.slots:
	case <-p.quit:
		return closed(op, "")
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Cancelled, op, "")
	}
	if c == nil {
		opened, err := p.open()
		if err != nil {
			p.slots <- nil
			return err
		}
		c = opened
	}
	err := use(c)
	p.slots <- c
	return err
}

// recycle waits for every reader to end and closes them all; the next use opens
// anew. Only when no connection is left does SQLite read the log from the disk.
func (p *pool) recycle(between func() error) error {
	var errs []error
	for range maxReaders {
		if c := <-p.slots; c != nil {
			errs = append(errs, c.Close())
		}
	}
	errs = append(errs, between())
	for range maxReaders {
		p.slots <- nil
	}
	return errors.Join(errs...)
}

func (p *pool) close() error {
	close(p.quit)
	return p.recycle(func() error { return nil })
}
