package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/session"
	"github.com/reeve-run/reeve/worker"
)

// lane is one session in the core: its state, what waits to be done, and while
// there is work or a living worker the one goroutine that does it. A session at
// rest costs no goroutine.
type lane struct {
	core *Core
	id   string

	mu       sync.Mutex // guards what follows; never held during I/O
	state    session.State
	queue    []task
	notes    []*note   // to be recorded beside the cells
	current  *cellTask // the cell that is prepared or runs
	owned    bool      // a goroutine runs own
	starting bool      // a worker is being started
	worker   Worker
	ending   *ending // somebody has asked for the worker's end
	broken   error   // why the session takes no work: its stream is set aside
	gaveUp   string  // why no worker is started any more
	limits   config.Limits
	sink     *sink               // of the worker
	effects  map[string][]string // of cells that run, by execution
	wake     chan struct{}       // one nudge

	// Only the goroutine that runs own touches what follows.
	out      outbox
	lease    *journal.Lease
	snapSeq  int64
	snapRev  int64
	timing   worker.Timing
	failed   []worker.Death // starts that failed since the last that did not
	lateUsed map[string]lateUse
	lateFrom time.Time          // when late output was first seen, zero when there is none
	rawTold  supervise.RawCount // of the worker's raw streams, as far as answers have told
}

// task is one thing a lane does.
type task interface {
	do(l *lane)
	refuse(err error) // it will not be done
}

// ending is a wish that the worker ends.
type ending struct {
	by   event.Actor
	text string // of the cause
}

// newLane puts a session that was read from the store into the core.
func newLane(c *Core, id string, from loaded) *lane {
	return &lane{
		core: c, id: id, state: from.state, snapSeq: from.snapSeq, snapRev: from.snapRev,
		limits: c.config.Limits, timing: c.config.Worker.Timing,
		wake: make(chan struct{}, 1), lateUsed: map[string]lateUse{},
	}
}

// nudge makes the goroutine look again.
func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// enqueue adds a task at the end. Cells are refused when too many wait.
func (l *lane) enqueue(t task) error {
	return l.admit(t, func() { l.queue = append(l.queue, t) })
}

// enqueueFirst adds a task before all others.
func (l *lane) enqueueFirst(t task) error {
	return l.admit(t, func() { l.queue = slices.Insert(l.queue, 0, t) })
}

// admit runs add under mu when the session takes t.
func (l *lane) admit(t task, add func()) error {
	l.core.gate.RLock()
	defer l.core.gate.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admits(t); err != nil {
		return err
	}
	add()
	l.ensureOwned()
	return nil
}

// ensureOwned starts the goroutine when there is none. mu and the gate are held.
func (l *lane) ensureOwned() {
	if l.owned {
		l.nudge()
		return
	}
	l.owned = true
	l.core.owners.Go(l.own)
}

func (l *lane) admits(t task) error {
	select {
	case <-l.core.stopping:
		return stoppingError(l.id)
	default:
	}
	if l.broken != nil {
		return quarantined(l.id, l.broken)
	}
	if l.state.Phase == session.Closed {
		return closedError(l.id, l.state.CloseBy)
	}
	if _, ok := t.(*cellTask); !ok {
		return nil
	}
	if waiting := l.waiting(); waiting >= l.limits.Queue {
		return fault.New(fault.Unavailable, "queue cell", l.id, "%d cells wait already, which is the limit", waiting).
			Retryable().WithNext("wait for one to end, interrupt one, or raise limits.queue")
	}
	return nil
}

func closedError(id string, by event.Actor) error {
	return fault.New(fault.Conflict, "use session", id, "it was closed by %s", actorText(by)).WithNext("use another session id")
}

func stoppingError(id string) error {
	return fault.New(fault.Unavailable, "use session", id, "reeve is stopping").Retryable().WithNext("try again, which starts it anew")
}

func quarantined(id string, cause error) error {
	f := fault.Wrap(cause, fault.Unavailable, "use session", id)
	f.Message = "it is set aside"
	return f.WithNext("run reeve verify, and use another session meanwhile")
}

// waiting is how many cells wait. mu is held.
func (l *lane) waiting() int {
	n := 0
	for _, t := range l.queue {
		if _, ok := t.(*cellTask); ok {
			n++
		}
	}
	return n
}

// remove takes a waiting task back. It reports whether it was still there.
func (l *lane) remove(t task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, t)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// refuseCells refuses the cells that wait.
func (l *lane) refuseCells(err error) {
	l.mu.Lock()
	var refused []task
	l.queue = slices.DeleteFunc(l.queue, func(t task) bool {
		_, cell := t.(*cellTask)
		if cell {
			refused = append(refused, t)
		}
		return cell
	})
	l.mu.Unlock()
	for _, t := range refused {
		t.refuse(err)
	}
}

// quarantine takes the session out of use: what it would record cannot be
// recorded. Its worker is ended.
func (l *lane) quarantine(cause error) {
	l.core.log.Error("session set aside", "session", l.id, "cause", cause)
	l.mu.Lock()
	l.broken = cause
	w := l.worker
	l.mu.Unlock()
	l.out.pending = nil
	if w != nil {
		w.Kill()
	}
	l.refuseCells(quarantined(l.id, cause))
}

// own does what there is to do, one task at a time, until nothing is left that
// needs a goroutine.
func (l *lane) own() {
	for {
		t, ok := l.next()
		if !ok {
			return
		}
		t.do(l)
		l.mu.Lock()
		l.current = nil
		l.mu.Unlock()
	}
}

// next waits for a task, and keeps the session in order meanwhile. Without work, a
// worker, or anything unrecorded it gives the goroutine up.
func (l *lane) next() (task, bool) {
	idle := l.idleTimer()
	defer idle.Stop()
	retry := backoff{first: 50 * time.Millisecond, most: 5 * time.Second}
	for {
		l.takeNotes()
		if t := l.pop(); t != nil {
			return t, true
		}
		if l.release() {
			return nil, false
		}
		var tick <-chan time.Time
		if wait, ok := l.chores(&retry); ok {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			tick = timer.C
		}
		var died <-chan struct{}
		if l.worker != nil {
			died = l.worker.Done()
		}
		stopping := l.core.stopping
		if l.worker == nil {
			stopping = nil
		}
		select {
		case <-l.wake:
		case <-died:
			l.bury(l.worker.Exit())
		case <-idle.C:
			l.stopWorker(ending{l.core.self(), "it was idle for " + l.limits.IdleStop.String()})
		case <-stopping:
			l.stopWorker(ending{l.core.stopBy, "reeve was stopped by " + actorText(l.core.stopBy)})
		case <-l.core.hard.Done():
			return nil, false
		case <-tick:
		}
	}
}

// self is the core as an actor.
func (c *Core) self() event.Actor { return event.Actor{Kind: "host", Name: c.host.ID, Surface: "core"} }

// pop takes the first task and makes it the current one.
func (l *lane) pop() task {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	t := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	if cell, ok := t.(*cellTask); ok {
		l.current = cell
	}
	return t
}

// release gives the goroutine up when nothing needs it.
func (l *lane) release() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 || len(l.notes) > 0 || l.worker != nil || len(l.out.pending) > 0 {
		return false
	}
	l.owned = false
	return true
}

// chores records what waits to be recorded and says when to look again.
func (l *lane) chores(retry *backoff) (time.Duration, bool) {
	wait, ok := l.fileLate(false)
	if len(l.out.pending) == 0 {
		return wait, ok
	}
	ctx, cancel := context.WithTimeout(l.core.hard, outcomeWait)
	defer cancel()
	if err := l.flush(ctx); err != nil {
		again := retry.next()
		if !ok || again < wait {
			wait = again
		}
		return wait, true
	}
	l.core.log.Info("outcomes that waited are recorded", "session", l.id)
	return wait, ok
}

// idleTimer fires when the worker has had nothing to do for too long.
func (l *lane) idleTimer() *time.Timer {
	if l.worker == nil || l.limits.IdleStop == 0 {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTimer(l.limits.IdleStop)
}

// backoff is a wait that doubles.
type backoff struct{ first, most, last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}
