package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/worker"
)

// cellTask is a cell from its request to its answer.
type cellTask struct {
	request control.ExecuteRequest
	queued  time.Time
	began   time.Time // when its code was sent
	feed    *feed
	row     *event.AuditDispatchV1 // committed with the intent, nil when nobody was asked

	// ctx ends when the cell is to stop; its cause is a *stopError.
	ctx   context.Context
	stop  context.CancelCauseFunc
	limit *time.Timer // of the request's timeout, nil without one

	running chan struct{} // closed when its code is about to be sent
	done    chan struct{} // closed when result and err are set
	result  control.CellResult
	err     error

	// Guarded by the lane's mutex.
	handle     string
	execution  string // empty until its intent
	generation string
	startedMS  int64
	rung       worker.Rung
}

// stopError is why a cell is stopped, as the cause of its context.
type stopError struct{ stopReason }

func (s *stopError) Error() string { return s.text }

func (c *Core) newCellTask(r control.ExecuteRequest) *cellTask {
	now := time.Now()
	t := &cellTask{
		request: r, queued: now, began: now, feed: newFeed(),
		running: make(chan struct{}), done: make(chan struct{}), handle: c.handles.next(now),
	}
	t.ctx, t.stop = context.WithCancelCause(c.hard)
	return t
}

func (t *cellTask) nowRunning(l *lane) {
	l.mu.Lock()
	t.began = time.Now()
	l.mu.Unlock()
	t.feed.started()
	close(t.running)
}

// why says whether and why the cell was asked to stop.
func (t *cellTask) why() (stopReason, bool) {
	var s *stopError
	if errors.As(context.Cause(t.ctx), &s) {
		return s.stopReason, true
	}
	return stopReason{}, false
}

// stopped is the error of a cell that was asked to stop before its code was sent.
func (t *cellTask) stopped() error {
	if t.ctx.Err() == nil {
		return nil
	}
	why, ok := t.why()
	if !ok {
		return stoppingError(t.request.Session)
	}
	code := fault.Cancelled
	if why.kind == noticeTimeout {
		code = fault.Timeout
	}
	return fault.New(code, "run cell", t.request.Session, "%s before its code was sent; nothing was run", why.text)
}

func (t *cellTask) finish(result control.CellResult, err error) {
	t.result, t.err = result, err
	t.stop(context.Canceled)
	if t.limit != nil {
		t.limit.Stop()
	}
	close(t.done)
}

// refuse implements task.
func (t *cellTask) refuse(err error) { t.finish(control.CellResult{}, err) }

// act is a task without a result of its own.
type chore struct {
	run  func(l *lane) error
	done chan struct{}
	err  error
}

func newChore(run func(l *lane) error) *chore { return &chore{run: run, done: make(chan struct{})} }

func (a *chore) do(l *lane) { a.refuse(a.run(l)) }

func (a *chore) refuse(err error) {
	a.err = err
	close(a.done)
}

// feed carries a cell's progress to its caller. It is bounded by what a worker may
// send live, so that a caller who does not read slows nobody.
type feed struct {
	mu    sync.Mutex // guards queue and done
	queue []control.CellProgress
	news  chan struct{} // one nudge
}

func newFeed() *feed { return &feed{news: make(chan struct{}, 1)} }

func (f *feed) add(p control.CellProgress) {
	f.mu.Lock()
	f.queue = append(f.queue, p)
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

func (f *feed) take() []control.CellProgress {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue
	f.queue = nil
	return q
}

func (f *feed) waiting(ahead int) { f.add(control.CellProgress{Kind: "queued", Ahead: ahead}) }
func (f *feed) started()          { f.add(control.CellProgress{Kind: "started"}) }
func (f *feed) rung(r worker.Rung) {
	f.add(control.CellProgress{Kind: "interrupting", Rung: string(r)})
}
func (f *feed) output(stream, text string) {
	f.add(control.CellProgress{Kind: "output", Stream: stream, Text: text})
}
