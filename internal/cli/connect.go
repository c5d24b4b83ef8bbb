package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// core connects to the core and starts one when there is none.
func (a *app) core(ctx context.Context) (*control.Client, error) {
	dir, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	a.trace("looking for the core of %s, to be started when there is none", dir)
	c, err := control.Launch(ctx, dir)
	if err != nil {
		return nil, err
	}
	a.skew(c.Core())
	return c, nil
}

// running connects to the core and starts none.
func (a *app) running(ctx context.Context) (*control.Client, string, error) {
	dir, err := a.dataDir()
	if err != nil {
		return nil, "", err
	}
	a.trace("looking for the core of %s", dir)
	c, err := control.Connect(ctx, dir)
	if err != nil {
		return nil, dir, err
	}
	a.skew(c.Core())
	return c, dir, nil
}

// skew tells of a core that is of another build and speaks the same protocol.
func (a *app) skew(h control.Hello) {
	a.trace("core %d answers, version %s, protocol %d", h.PID, h.Version, h.Protocol)
	if h.Version != control.Version {
		a.note("the running core is version %s, this reeve is %s; reeve down and reeve up changes it", h.Version, control.Version)
	}
}

// asks runs f with a core, within --timeout.
func (a *app) asks(f func(ctx context.Context, c *control.Client, args []string) answer) func(context.Context, []string) answer {
	return func(ctx context.Context, args []string) answer {
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		c, err := a.core(ctx)
		if err != nil {
			return failed(err)
		}
		return f(ctx, c, args)
	}
}

const (
	// findWithin is how long past --timeout finding or starting a core may take for a
	// cell: the time is the cell's, and a start takes well under a second.
	findWithin = 3 * time.Second
	// answerWithin is how long past --timeout a core may take before it is asked for
	// the cell, after which the client waits once more as long as an interrupt takes.
	// A core that works has ended the cell by then.
	answerWithin = time.Second
)

// overdue bounds the call for a cell to some time past its --timeout, so that a core
// that has stopped does not hold the command for ever.
func (a *app) overdue(ctx context.Context, past time.Duration, what string) (context.Context, context.CancelFunc) {
	if a.set.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, a.set.timeout+past, fmt.Errorf("--timeout %s was reached and %s", a.set.timeout, what))
}

// session is the session that a command is about: named, else the directory's, which
// a dot names too.
func (a *app) session(ctx context.Context, c control.Service, name string) (string, error) {
	if name == "" || name == "." {
		return DefaultSession(a.io.WorkDir), nil
	}
	return a.wholeSession(ctx, c, name)
}

// wholeSession completes a unique beginning of a session's id.
func (a *app) wholeSession(ctx context.Context, c control.Service, id string) (string, error) {
	_, err := c.Session(ctx, id)
	if err == nil || !fault.HasCode(err, fault.NotFound) {
		return id, err
	}
	all, listErr := c.ListSessions(ctx)
	if listErr != nil {
		return "", listErr
	}
	var found []string
	for _, s := range all {
		if strings.HasPrefix(s.Session, id) {
			found = append(found, s.Session)
		}
	}
	switch len(found) {
	case 0:
		return "", fault.New(fault.NotFound, "find session", id, "no session has this id or begins with it").WithNext("reeve session list")
	case 1:
		return found[0], nil
	}
	return "", fault.New(fault.Ambiguous, "find session", id, "%d sessions begin with it: %s", len(found), strings.Join(found, ", ")).
		WithNext("give more of the id")
}
