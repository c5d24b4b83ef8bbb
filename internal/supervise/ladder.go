package supervise

import (
	"context"
	"fmt"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise/shim"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// ladder is one interrupt on its way. There is at most one an operation.
type ladder struct {
	rung worker.Rung // guarded by Process.mu: the last one taken
	kept bool        // set before done is closed
	done chan struct{}
}

// Interrupt climbs the ladder until the named operation has ended and says which
// rung was needed and whether the worker, and with it the namespace, lives on. Two
// interrupts of one operation share a ladder. An operation that is not running is
// not_found. When ctx ends Interrupt returns early; the ladder goes on.
func (p *Process) Interrupt(ctx context.Context, id string) (worker.Rung, bool, error) {
	op := p.running(id)
	var l *ladder
	if op != nil {
		l = p.climb(op)
	}
	if l == nil {
		p.counters.ignored.Add(1)
		return "", false, fault.New(fault.NotFound, "interrupt", id, "it is not running")
	}
	select {
	case <-l.done:
		return l.rung, l.kept, nil
	case <-ctx.Done():
		return "", false, fault.Wrap(context.Cause(ctx), fault.Timeout, "interrupt", id).
			WithNext("ask for its status; the interrupt goes on")
	}
}

// climb starts op's ladder or returns the one that is climbing; nil when op has
// ended.
func (p *Process) climb(op *operation) *ladder {
	p.mu.Lock()
	defer p.mu.Unlock()
	if op.ladder != nil {
		return op.ladder
	}
	if p.op != op {
		return nil
	}
	// A worker that is being stopped has its own end coming; the ladder only adds
	// its rungs to it.
	if next, err := worker.Next(p.phase, worker.Cut); err == nil {
		p.phase = next
	}
	op.ladder = &ladder{done: make(chan struct{})}
	go p.run(op, op.ladder)
	return op.ladder
}

// run takes rung after rung until op has ended.
func (p *Process) run(op *operation, l *ladder) {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, step := range p.spec.Timing.Ladder {
		if !p.step(op, l, step.Rung) {
			break
		}
		if p.spec.OnRung != nil {
			p.spec.OnRung(op.id, step.Rung)
		}
		p.take(op, step)
		timer.Reset(step.Wait)
		select {
		case <-op.ended:
		case <-timer.C:
		}
	}
	<-op.ended
	l.kept = op.err == nil && p.alive()
}

// step notes the rung unless op has ended.
func (p *Process) step(op *operation, l *ladder, r worker.Rung) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.op != op {
		return false
	}
	l.rung = r
	return true
}

func (p *Process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase != worker.Stopping && p.phase != worker.Dead
}

// take does what a rung says.
func (p *Process) take(op *operation, step worker.Step) {
	switch step.Rung {
	case worker.RungCancel:
		ctx, cancel := context.WithTimeout(context.Background(), step.Wait)
		defer cancel()
		// A worker that does not read cannot be asked; the next rung needs no asking.
		if broken, err := p.conn.send(ctx, wire.Interrupt{ID: op.id}, step.Wait); broken {
			p.breakOff(protocolCause("the worker stopped reading: %v", err), false)
		}
	case worker.RungSignal:
		p.order(shim.Interrupt)
	case worker.RungClose:
		p.force(step.Rung, false)
		_ = p.conn.net.Close()
	case worker.RungTerminate:
		p.force(step.Rung, false)
		p.order(shim.Terminate)
	case worker.RungKill:
		p.force(step.Rung, true)
	}
}

// force ends the generation for an interrupt's sake. The cause names the last rung
// that was needed.
func (p *Process) force(r worker.Rung, kill bool) {
	p.breakOff(event.Cause{Kind: event.CauseInterrupt}, kill)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason.Kind == event.CauseInterrupt {
		p.reason.Text = fmt.Sprintf("the interrupt had to go as far as %s", r)
	}
}
