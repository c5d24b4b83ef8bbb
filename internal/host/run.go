package host

import (
	"context"
	"errors"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// Run serves the control API until ctx ends or a client asks for an end. Then it
// takes no new work, gives running cells their grace, interrupts them, stops the
// workers with their names recorded, and returns.
func (c *Core) Run(ctx context.Context) error {
	sockets, err := control.Listen(c.dirs.root)
	if err != nil {
		return err
	}
	c.socket = sockets.Core.Socket
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- control.NewServer(c, c.log).Serve(serving, sockets) }()
	c.log.Info("core is ready", "dir", c.dirs.root, "socket", c.socket, "recovery", c.recovered)

	if p, ok := c.workers.(interface{ Prepare(context.Context) }); ok {
		c.owners.Go(func() { p.Prepare(c.hard) })
	}
	err = nil
	select {
	case <-ctx.Done():
		c.beginStop(event.Actor{Kind: "operator", Name: "signal", Surface: "core"})
	case <-c.stopping:
	case err = <-served:
		served <- nil
		c.beginStop(c.self())
	}
	err = errors.Join(err, c.drain())
	stopServing()
	err = errors.Join(err, <-served, sockets.Retire())
	c.log.Info("core has stopped", "by", actorText(c.stopBy))
	return err
}

// drain waits until every lane has given up its goroutine.
func (c *Core) drain() error {
	limit := c.config.Limits.StopGrace + c.config.Worker.Timing.Bound() + c.config.Worker.Timing.Shutdown + 2*outcomeWait + 5*time.Second
	gone := make(chan struct{})
	go func() { c.owners.Wait(); close(gone) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-gone:
		return nil
	case <-timer.C:
	}
	// What is left hangs: workers are ended and outcomes that the store does not
	// take are given up, as they would be by a crash.
	c.abandon(errAbandoned)
	for _, l := range c.allLanes() {
		l.mu.Lock()
		w := l.worker
		l.mu.Unlock()
		if w != nil {
			w.Kill()
		}
	}
	<-gone
	return fault.New(fault.Timeout, "stop core", c.dirs.root, "sessions did not come to rest within %s", limit)
}
