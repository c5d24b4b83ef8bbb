package host

import (
	"context"
	"errors"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/session"
	"github.com/reeve-run/reeve/worker"
)

// opening is what a session is opened with.
type opening struct {
	workspace string
	by        event.Actor
	reason    event.ResetReason // of the generation; empty: what the stream says
}

// ensureWorker starts a generation when none lives, opening the session first when
// it does not exist. It waits as the restart policy says; ctx ends the wait and
// the start.
func (l *lane) ensureWorker(ctx context.Context, o opening) error {
	if l.worker != nil {
		select {
		case <-l.worker.Done():
			l.bury(l.worker.Exit())
		default:
			return nil
		}
	}
	select {
	case <-l.core.stopping:
		return stoppingError(l.id)
	default:
	}
	if err := l.mayStart(ctx, o); err != nil {
		return err
	}
	if l.state.Phase == session.Unopened {
		if err := checkWorkspace(o.workspace); err != nil {
			return err
		}
	} else {
		o.workspace = l.state.Workspace
	}
	if err := l.settings(o.workspace); err != nil {
		return err
	}
	return l.start(ctx, o)
}

// mayStart obeys the restart policy.
func (l *lane) mayStart(ctx context.Context, o opening) error {
	if o.reason == event.ResetOperator {
		l.failed = nil
		l.setGaveUp("")
		return nil
	}
	d := worker.Decide(l.policy(), l.deaths())
	if d.GiveUp {
		l.setGaveUp(d.Reason)
		return fault.New(fault.WorkerLost, "start worker", l.id, "reeve has stopped trying: %s", d.Reason).
			WithNext("run reeve ns reset %s to try once more; reeve events --session %s shows what happened", l.id, l.id)
	}
	if d.Wait == 0 {
		return nil
	}
	l.core.log.Info("worker start is delayed", "session", l.id, "wait", d.Wait, "cause", d.Reason)
	t := time.NewTimer(d.Wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.core.stopping:
		return stoppingError(l.id)
	}
}

func (l *lane) setGaveUp(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaveUp = why
}

func (l *lane) policy() worker.Policy {
	p := worker.DefaultPolicy()
	p.Max = l.limits.Restarts
	return p
}

// deaths is the history for the restart policy: what the stream holds, then starts
// that failed since.
func (l *lane) deaths() []worker.Death { return append(streamDeaths(l.state), l.failed...) }

func streamDeaths(s session.State) []worker.Death {
	all := make([]worker.Death, 0, len(s.Deaths))
	for _, d := range s.Deaths {
		lived := time.Duration(d.AtMS-d.StartedAtMS) * time.Millisecond
		all = append(all, worker.Death{Cause: d.Cause.Kind, Lived: lived})
	}
	return all
}

// settings reads the project's file, which may tighten limits (config.ForProject).
func (l *lane) settings(dir string) error {
	c, err := l.core.config.ForProject(config.ProjectFile(dir))
	if err != nil {
		return err
	}
	l.timing = c.Worker.Timing
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits = c.Limits
	return nil
}

func (l *lane) start(ctx context.Context, o opening) error {
	number := l.state.Number + 1
	generation := session.Generation(number)
	s := newSink(l)
	l.setStarting(true)
	defer l.setStarting(false)
	w, python, err := l.core.workers.Start(ctx, supervise.Spec{
		Session: l.id, Generation: generation, Dir: o.workspace, Env: l.core.env,
		Timing: l.timing, Sink: s, OnRung: l.onRung, Verbs: l.core.catalogue,
	})
	if err != nil {
		if ctx.Err() == nil {
			l.failed = append(l.failed, worker.Death{Cause: event.CauseStart})
		}
		return err
	}
	hello := w.Hello()
	_, took := w.Started()
	st := step{events: []event.Payload{event.KernelResetV1{
		Generation: generation, Number: number, Python: python, Isolation: "off", SkillsRevision: hello.Skills,
		Reason: l.resetReason(o.reason), PID: w.PID(), StartMS: took.Milliseconds(),
	}}}
	if l.state.Phase == session.Unopened {
		opened := event.SessionOpenedV1{Session: l.id, Workspace: o.workspace, By: o.by}
		st.events = append([]event.Payload{opened}, st.events...)
	}
	err = l.intend(l.core.hard, st, func() step {
		return step{events: []event.Payload{l.stoppedEvent(ending{l.core.self(), "the journal could not record its start"}, l.state)}}
	})
	if err != nil {
		w.Kill()
		<-w.Done()
		return err
	}
	l.failed, l.rawTold = nil, supervise.RawCount{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker, l.sink, l.gaveUp, l.ending = w, s, "", nil
	return nil
}

func (l *lane) setStarting(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starting = on
}

func (l *lane) resetReason(asked event.ResetReason) event.ResetReason {
	switch {
	case asked != "":
		return asked
	case l.state.Number == 0:
		return event.ResetStart
	case l.state.Loss != nil && l.state.Loss.How == session.EndedLost:
		return event.ResetLost
	default:
		return event.ResetStopped
	}
}

// onRung notes how far the ladder of the running cell has gone, and tells its
// caller before the next rung is taken.
func (l *lane) onRung(execution string, r worker.Rung) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.current; t != nil && t.execution == execution {
		t.rung = r
		t.feed.rung(r)
	}
}

// bury records that the worker has ended, on request or against it.
func (l *lane) bury(exit supervise.Exit) {
	l.fileLate(true)
	l.settle(step{events: []event.Payload{l.endEvent(exit, l.state)}})
	l.dropWorker()
}

// dropWorker forgets the generation that has ended.
func (l *lane) dropWorker() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker, l.ending, l.sink = nil, nil, nil
	clear(l.lateUsed)
}

// endEvent is what the end of a generation is recorded as; s has its names.
func (l *lane) endEvent(exit supervise.Exit, s session.State) event.Payload {
	l.mu.Lock()
	e := l.ending
	l.mu.Unlock()
	if e != nil {
		return l.stoppedEvent(*e, s)
	}
	return event.KernelLostV1{
		Generation: s.Generation, Cause: validCause(exit.Cause), Names: append([]string{}, s.Names.Known...), NamesMore: s.Names.More,
		Stdout: validTail(exit.Stdout), Stderr: validTail(exit.Stderr),
	}
}

func (l *lane) stoppedEvent(e ending, s session.State) event.KernelStoppedV1 {
	return event.KernelStoppedV1{
		Generation: s.Generation, By: e.by, Cause: event.Cause{Kind: event.CauseShutdown, Text: e.text},
		Names: append([]string{}, s.Names.Known...), NamesMore: s.Names.More,
	}
}

func validCause(c event.Cause) event.Cause { c.Text = valid(c.Text); return c }
func validTail(t event.Tail) event.Tail    { t.Text = valid(t.Text); return t }

// stopWorker ends the idle worker and records it, with the names it held.
func (l *lane) stopWorker(e ending) {
	w := l.worker
	if w == nil {
		return
	}
	l.mu.Lock()
	if l.ending == nil {
		l.ending = &e
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.core.hard, l.timing.Shutdown+time.Second)
	defer cancel()
	l.bury(w.Stop(ctx))
}

// endOnRecord ends the idle worker, its end and more recorded first. On error
// nothing has happened, unless the store did not say whether it has them: then the
// state has moved on and the worker is ended.
func (l *lane) endOnRecord(e ending, more ...event.Payload) error {
	w, events := l.worker, more
	if w != nil {
		select {
		case <-w.Done():
			l.bury(w.Exit())
			w = nil
		default:
			l.fileLate(true)
			events = append([]event.Payload{l.stoppedEvent(e, l.state)}, more...)
		}
	}
	if len(events) == 0 {
		return nil
	}
	err := l.intend(l.core.hard, step{events: events}, nil)
	if w == nil || err != nil && l.state.Live() {
		return err
	}
	ctx, cancel := context.WithTimeout(l.core.hard, l.timing.Shutdown+time.Second)
	defer cancel()
	w.Stop(ctx)
	l.fileLate(true)
	l.dropWorker()
	return err
}

// halfDone says of a failed change that the namespace has gone on its way: that of
// a running cell goes at once, whatever the journal then takes.
func (l *lane) halfDone(err error, op, rest string) error {
	gone := l.state.Loss
	if err == nil || l.state.Live() || gone == nil || gone.How != session.EndedStopped {
		return err
	}
	f := fault.Wrap(err, fault.CodeOf(err), op, l.id)
	f.Message = "the namespace of " + gone.Generation + " has ended, but " + rest
	if f.Err = errors.Unwrap(err); f.Err == nil { // without the words of work that was not begun
		f.Err = err
	}
	return f
}

// enqueueEnding adds a task that needs the worker gone, before all others. What
// runs is ended at once and what waits is refused: both were meant for the
// namespace that goes.
func (l *lane) enqueueEnding(t task, e ending) error {
	var w Worker
	var current *cellTask
	err := l.admit(t, func() {
		l.queue = append([]task{t}, l.queue...)
		w, current = l.worker, l.current
		if current != nil && w != nil && l.ending == nil {
			l.ending = &e
		}
	})
	if err != nil {
		return err
	}
	l.refuseCells(fault.New(fault.Cancelled, "run cell", l.id, "it had not started when %s", e.text))
	if current == nil {
		return nil
	}
	current.stop(&stopError{stopReason{noticeInterrupted, e.text}})
	if w != nil {
		w.Kill()
	}
	return nil
}
