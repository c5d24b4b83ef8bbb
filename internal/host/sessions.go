package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/session"
	"github.com/reeve-run/reeve/worker"
)

// lane returns the session's lane, reading the session from the store when the
// core has not met it yet. A session that does not exist has an empty state.
func (c *Core) lane(ctx context.Context, id string) (*lane, error) {
	if !identifier(id) {
		return nil, badSession("find session", id)
	}
	c.mu.Lock()
	l := c.lanes[id]
	c.mu.Unlock()
	if l != nil {
		return l, nil
	}
	from, err := load(ctx, c.store, id)
	var broken *brokenError
	if err != nil && !errors.As(err, &broken) {
		return nil, err
	}
	fresh := newLane(c, id, from)
	if broken != nil {
		fresh.broken = broken
		fresh.state.Session = id
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lanes[id]; l != nil { // somebody was quicker
		return l, nil
	}
	c.lanes[id] = fresh
	return fresh, nil
}

// known returns the lane of a session that exists.
func (c *Core) known(ctx context.Context, id string) (*lane, error) {
	if !identifier(id) {
		return nil, badSession("find session", id)
	}
	c.mu.Lock()
	l := c.lanes[id]
	c.mu.Unlock()
	if l == nil {
		heads, err := c.store.Events(ctx, stream(id), 0, 1)
		if err != nil {
			return nil, err
		}
		if len(heads) == 0 {
			return nil, noSession(id)
		}
		return c.lane(ctx, id)
	}
	if l.phase() == session.Unopened && l.quarantined() == nil {
		return nil, noSession(id)
	}
	return l, nil
}

func (c *Core) knows(ctx context.Context, id string) bool {
	_, err := c.known(ctx, id)
	return err == nil
}

func (l *lane) quarantined() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

func noSession(id string) error {
	return fault.New(fault.NotFound, "find session", id, "there is none of this id").WithNext("reeve session list")
}

func (c *Core) allLanes() []*lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*lane, 0, len(c.lanes))
	for _, l := range c.lanes {
		all = append(all, l)
	}
	return all
}

// Session implements control.Sessions.
func (c *Core) Session(ctx context.Context, id string) (control.Session, error) {
	l, err := c.known(ctx, id)
	if err != nil {
		return control.Session{}, err
	}
	return l.row(), nil
}

// row is the session as lists show it.
func (l *lane) row() control.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	row := control.Session{
		Session: l.id, Workspace: s.Workspace, SinceMS: s.SinceMS, Generation: s.Generation, Python: s.Python.Version,
		Cells: s.Cells, Queue: l.waiting(), Names: s.Names.Len(), OpenedAtMS: s.OpenedAtMS, LastAtMS: s.LastAtMS,
		OpenedBy: s.OpenedBy, Head: s.Seq, RestartsLeft: restartsLeft(l.policy(), streamDeaths(s)),
	}
	row.State, row.Reason = l.stateText()
	if s.Generation == "" {
		row.Python = ""
	}
	return row
}

// stateText is the state of a session and why it is in it. mu is held.
func (l *lane) stateText() (state, reason string) {
	s := l.state
	switch {
	case l.broken != nil:
		return "quarantined", l.broken.Error()
	case s.Phase == session.Closed:
		return "closed", s.CloseWhy + ", by " + actorText(s.CloseBy)
	case l.starting:
		return "starting", "a worker is being started"
	case s.Phase == session.Running:
		return "running", "cell " + s.Open.Cell
	case s.Phase == session.Ready && l.ending != nil:
		return "stopping", l.ending.text
	case s.Phase == session.Ready:
		return "idle", "it waits for a cell"
	case l.gaveUp != "":
		return "stopped", "no worker is started any more: " + l.gaveUp
	case s.Loss != nil && s.Loss.How == session.EndedLost:
		return "stopped", "its worker was lost: " + s.Loss.Cause.Text
	case s.Loss != nil:
		return "stopped", s.Loss.Cause.Text
	default:
		return "stopped", "no worker has been started"
	}
}

// restartsLeft is how many more quick deaths the policy bears.
func restartsLeft(p worker.Policy, deaths []worker.Death) int {
	for left := range p.Max {
		if worker.Decide(p, deaths).GiveUp {
			return left
		}
		deaths = append(deaths, worker.Death{Cause: event.CauseExit})
	}
	return p.Max
}

// ListSessions implements control.Sessions: the open ones by id, then the closed.
func (c *Core) ListSessions(ctx context.Context) ([]control.Session, error) {
	rows, seen := []control.Session{}, map[string]bool{}
	for r, err := range journal.Records(ctx, c.store, journal.Query{Kind: recordSession}) {
		if err != nil {
			return nil, err
		}
		l, err := c.lane(ctx, r.Key)
		if err != nil {
			return nil, err
		}
		seen[r.Key] = true
		rows = append(rows, l.row())
	}
	for _, l := range c.allLanes() { // opened, and the store has not taken it yet
		if !seen[l.id] && l.phase() != session.Unopened {
			rows = append(rows, l.row())
		}
	}
	slices.SortFunc(rows, func(a, b control.Session) int {
		if closed := compareBool(a.State == "closed", b.State == "closed"); closed != 0 {
			return closed
		}
		return strings.Compare(a.Session, b.Session)
	})
	return rows, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func (c *Core) resume(ctx context.Context, id string, by event.Actor) (control.Session, error) {
	l, err := c.known(ctx, id)
	if err != nil {
		return control.Session{}, err
	}
	l.mu.Lock()
	living := l.worker != nil && l.current != nil
	l.mu.Unlock()
	if living {
		return l.row(), nil
	}
	a := newChore(func(l *lane) error {
		return l.ensureWorker(c.hard, opening{by: validActor(by)})
	})
	return l.perform(ctx, a, func() error { return l.enqueueFirst(a) })
}

// perform waits for an act that enqueue has queued.
func (l *lane) perform(ctx context.Context, a *chore, enqueue func() error) (control.Session, error) {
	if err := enqueue(); err != nil {
		return control.Session{}, err
	}
	select {
	case <-a.done:
		return l.row(), a.err
	case <-ctx.Done():
		if l.remove(a) {
			return control.Session{}, fault.Wrap(context.Cause(ctx), fault.Cancelled, "change session", l.id)
		}
		return control.Session{}, fault.Wrap(context.Cause(ctx), fault.Unknown, "change session", l.id).
			WithNext("reeve session show %s tells how it ended", l.id)
	}
}

// closeSession closes a session. The close is on record before the worker
// is asked to leave.
func (c *Core) closeSession(ctx context.Context, id string, by event.Actor) (control.Session, error) {
	l, err := c.known(ctx, id)
	if err != nil {
		return control.Session{}, err
	}
	if err := l.actsOver("close session"); err != nil {
		return control.Session{}, err
	}
	by = validActor(by)
	e := ending{by, "the session was closed by " + actorText(by)}
	a := newChore(func(l *lane) error {
		err := l.endOnRecord(e, event.SessionClosedV1{By: by, Reason: "closed on request"})
		return l.halfDone(err, "close session", "its close is not on record")
	})
	return l.perform(ctx, a, func() error { return l.enqueueEnding(a, e) })
}

// actsOver refuses what ends a session while an act of it has no outcome, which would
// have no place afterwards. The fold refuses it too, but only once the worker is gone.
func (l *lane) actsOver(op string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.state.Acts {
		if !a.Unknown {
			return fault.New(fault.Conflict, op, l.id, "act %s (%s) has no outcome yet", a.Act, a.Verb).
				WithNext("wait for it: reeve act show %s", a.Act).Retryable()
		}
	}
	return nil
}

// resetNamespace starts a session over: what runs is ended at once, and a
// new generation is started. While the journal refuses the end of an idle one, it
// lives on.
func (c *Core) resetNamespace(ctx context.Context, id string, by event.Actor) (control.Session, error) {
	l, err := c.known(ctx, id)
	if err != nil {
		return control.Session{}, err
	}
	by = validActor(by)
	e := ending{by, resetText + " by " + actorText(by)}
	a := newChore(func(l *lane) error {
		err := l.endOnRecord(e)
		if err == nil {
			err = l.ensureWorker(c.hard, opening{by: by, reason: event.ResetOperator})
		}
		return l.halfDone(err, "start over", "no fresh one has been started")
	})
	return l.perform(ctx, a, func() error { return l.enqueueEnding(a, e) })
}

// Namespace implements control.Sessions.
func (c *Core) Namespace(ctx context.Context, id string) (control.Namespace, error) {
	l, err := c.known(ctx, id)
	if err != nil {
		return control.Namespace{}, err
	}
	return l.namespace(), nil
}

func (l *lane) namespace() control.Namespace {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := control.Namespace{Session: l.id, Generation: l.state.Generation, Names: l.state.Names.Known, Live: l.state.Live()}
	if gone := l.state.Loss; !n.Live && gone != nil {
		n.Generation, n.Names = gone.Generation, gone.Names.Known
	}
	n.Names = append([]string{}, n.Names...)
	return n
}

// ListNamespaces implements control.Sessions: those that live, and those that are
// gone and of which no reply has told yet.
func (c *Core) ListNamespaces(context.Context) ([]control.Namespace, error) {
	rows := []control.Namespace{}
	for _, l := range c.allLanes() {
		if n := l.namespace(); n.Generation != "" {
			rows = append(rows, n)
		}
	}
	slices.SortFunc(rows, func(a, b control.Namespace) int { return strings.Compare(a.Session, b.Session) })
	return rows, nil
}

// beginStop takes no new work from now on: what waits is refused, what runs has a
// grace and is then interrupted.
func (c *Core) beginStop(by event.Actor) {
	c.stopOnce.Do(func() {
		c.stopBy = by
		c.gate.Lock()
		close(c.stopping)
		c.gate.Unlock()
		why := stopReason{noticeInterrupted, "reeve was stopped by " + actorText(by)}
		for _, l := range c.allLanes() {
			l.refuseCells(stoppingError(l.id))
			l.mu.Lock()
			t := l.current
			l.mu.Unlock()
			if t != nil {
				time.AfterFunc(c.config.Limits.StopGrace, func() { t.stop(&stopError{why}) })
			}
		}
	})
}
