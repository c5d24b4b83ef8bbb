package mcpserve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// Dial reaches the core of a data directory and starts it when none runs.
type Dial func(ctx context.Context) (control.Service, error)

const (
	// reachFor bounds how long a call looks for a core before it says that there is
	// none: a start takes well under a second, a recovery of a big store a few.
	reachFor = 9 * time.Second
	// reachEvery is the pause between two tries.
	reachEvery = 150 * time.Millisecond
)

// core is the way to the core, found again after the core was lost.
type core struct {
	dial Dial

	mu  sync.Mutex // guards svc; never held while dialling
	svc control.Service
}

func (c *core) get(ctx context.Context) (control.Service, error) {
	c.mu.Lock()
	svc := c.svc
	c.mu.Unlock()
	if svc != nil {
		return svc, nil
	}
	svc, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.svc = svc
	c.mu.Unlock()
	return svc, nil
}

// lost forgets svc unless somebody has already found another one.
func (c *core) lost(svc control.Service) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.svc == svc {
		c.svc = nil
	}
}

// gone reports whether err may mean that the core is not there any more.
func gone(err error) bool {
	return fault.HasCode(err, fault.Unavailable) || fault.HasCode(err, fault.Unknown)
}

// unsent reports whether err means that the core has not acted on the call and may
// on the next. A core that cannot start, or cannot start a worker, says so without
// that prospect, and trying it for seconds would only hide why.
func unsent(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Code == fault.Unavailable && e.Retry
}

// doubtful adds the calls of which it is not known whether the core has acted.
func doubtful(err error) bool { return unsent(err) || fault.HasCode(err, fault.Unknown) }

// read calls f with the core, again with the next one when the core went away in
// between, until reachFor is over. f must be harmless to repeat.
func (c *core) read(ctx context.Context, f func(context.Context, control.Service) error) error {
	return c.try(ctx, doubtful, f)
}

// try is read for an f that may be called again only after an error that again
// accepts.
func (c *core) try(ctx context.Context, again func(error) bool, f func(context.Context, control.Service) error) error {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	for {
		svc, err := c.get(ctx)
		if err == nil {
			if err = f(ctx, svc); err == nil {
				return nil
			}
			if gone(err) {
				c.lost(svc)
			}
		}
		if !again(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(reachEvery):
		}
	}
}
