package host

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/session"
)

const (
	// outcomeWait is how long an answer waits for its outcome to be committed. A
	// commit takes under a millisecond; past this the store has a fault of its own.
	outcomeWait = 2 * time.Second
	// intentWait is how long a cell waits for its intent: nothing has happened yet,
	// so a slow store may be waited for.
	intentWait = 10 * time.Second
	// snapshotEvery is after how many events the session record is written anew, so
	// that a session is read with few events after its record.
	snapshotEvery = 128
)

// Record kinds.
const (
	recordSession = "session"
	recordCell    = "cell"
)

// States of a session record.
const (
	stateOpen   = "open"
	stateClosed = "closed"
)

// snapshot is the body of a session record.
type snapshot struct {
	Rule  int           `json:"rule"` // of the fold that made it; another rule reads the stream from its start
	State session.State `json:"state"`
}

const foldRule = 2

// outbox is what a lane has decided and the store has not yet acknowledged, in
// order. Its batches build on each other: each expects the head that the one
// before leaves. Only the lane's goroutine touches it.
type outbox struct {
	pending []journal.Batch
	attempt *attempt // at the first of them, whose answer has not come
}

// attempt is a commit that is on its way. The wait for it may end before it does.
type attempt struct {
	id   string
	done chan struct{}
	err  error
}

// step is what a write changes besides the stream.
type step struct {
	put     []journal.Record
	events  []event.Payload
	audit   []event.AuditDispatchV1 // for the stream of this host
	lane    []event.Payload         // for the operator's
	deliver []journal.Input
}

// compose makes the batch that takes the session from s to the state returned.
func (l *lane) compose(s session.State, st step) (journal.Batch, session.State, error) {
	at := time.Now().UnixMilli()
	a := journal.Append{Stream: stream(l.id), Head: s.Seq}
	lifecycle := false
	for _, p := range st.events {
		version, payload, err := event.Encode(p)
		if err != nil {
			return journal.Batch{}, s, err
		}
		next, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, AtMS: at, Payload: p})
		if err != nil {
			return journal.Batch{}, s, fault.Wrap(err, fault.Internal, "record", l.id)
		}
		lifecycle = lifecycle || lifecycleKind(p.Kind())
		s = next
		a.Events = append(a.Events, journal.Event{Kind: string(p.Kind()), Version: version, AtMS: at, Payload: payload})
	}
	b := journal.Batch{ID: l.core.newID(l.id), Append: []journal.Append{a}, Put: st.put, Deliver: st.deliver}
	more, err := l.core.beside(st, at)
	if err != nil {
		return journal.Batch{}, s, err
	}
	b.Append = append(b.Append, more...)
	if lifecycle || s.Seq-l.snapSeq >= snapshotEvery {
		r, err := sessionRecord(s, l.snapRev)
		if err != nil {
			return journal.Batch{}, s, err
		}
		b.Put = append(b.Put, r)
	}
	return b, s, nil
}

// lifecycleKind reports whether an event begins or ends a session or a generation:
// the session's record is then written anew.
func lifecycleKind(k event.Kind) bool {
	switch k {
	case event.SessionOpened, event.SessionClosed, event.KernelReset, event.KernelLost, event.KernelStopped:
		return true
	}
	return false
}

// beside are the appends to streams that many sessions write.
func (c *Core) beside(st step, at int64) ([]journal.Append, error) {
	var all []journal.Append
	for _, to := range []struct {
		stream string
		events []event.Payload
	}{{c.auditStream(), payloads(st.audit)}, {operatorStream, st.lane}} {
		if len(to.events) == 0 {
			continue
		}
		a := journal.Append{Stream: to.stream, Head: journal.AnyHead}
		for _, p := range to.events {
			version, payload, err := event.Encode(p)
			if err != nil {
				return nil, err
			}
			a.Events = append(a.Events, journal.Event{Kind: string(p.Kind()), Version: version, AtMS: at, Payload: payload})
		}
		all = append(all, a)
	}
	return all, nil
}

func payloads[P event.Payload](list []P) []event.Payload {
	all := make([]event.Payload, len(list))
	for i, p := range list {
		all[i] = p
	}
	return all
}

func sessionRecord(s session.State, rev int64) (journal.Record, error) {
	body, err := json.Marshal(snapshot{Rule: foldRule, State: s})
	if err != nil {
		return journal.Record{}, fault.Wrap(err, fault.Internal, "record session", s.Session)
	}
	state := stateOpen
	if s.Phase == session.Closed {
		state = stateClosed
	}
	return journal.Record{Kind: recordSession, Key: s.Session, Session: s.Session, State: state, Rev: rev, Body: body}, nil
}

// intend commits a step before anything follows from it. On error nothing
// followed; when the store could not say whether it was written, the step stays in
// the outbox, and undone (if not nil) is queued behind it, so that the stream
// stays true whichever it was.
func (l *lane) intend(ctx context.Context, st step, undone func() step) error {
	b, next, err := l.compose(l.state, st)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, intentWait)
	defer cancel()
	if err := l.flush(ctx); err != nil {
		return l.refused(err)
	}
	err = l.commit(ctx, b, standsAlone)
	switch {
	case err == nil:
		l.adopt(next, b)
		return nil
	case fault.HasCode(err, fault.Unknown):
		l.adopt(next, b)
		l.out.pending = append(l.out.pending, b)
		if undone != nil {
			l.queueOutcome(undone())
		}
	}
	return l.refused(err)
}

// refused says for the caller that new work cannot be taken.
func (l *lane) refused(err error) error {
	if fault.HasCode(err, fault.Conflict) {
		return err
	}
	code := fault.Unavailable
	if fault.HasCode(err, fault.StoreFull) {
		code = fault.StoreFull
	}
	f := fault.Wrap(err, code, "take new work", l.id)
	f.Message = "the journal cannot record it, so nothing was run"
	if f.Next == "" {
		f.Next = "look at the store with reeve status, then try again"
	}
	return f.Retryable()
}

// settle records what has happened. It reports whether it was committed in time;
// if not, the lane keeps it and tries again.
func (l *lane) settle(st step) bool {
	if !l.queueOutcome(st) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.core.hard), outcomeWait)
	defer cancel()
	if err := l.flush(ctx); err != nil {
		l.core.log.Error("an outcome is not recorded yet", "session", l.id, "cause", err)
		return false
	}
	return true
}

// queueOutcome advances the state by a step that must not be lost.
func (l *lane) queueOutcome(st step) bool {
	b, next, err := l.compose(l.state, st)
	if err != nil {
		// The event cannot be recorded as it is: the stream would no longer say what
		// happened, so the session takes no more work in this life.
		l.quarantine(err)
		return false
	}
	l.adopt(next, b)
	l.out.pending = append(l.out.pending, b)
	return true
}

// adopt makes next the state, and notes what b writes of the session record.
func (l *lane) adopt(next session.State, b journal.Batch) {
	for _, r := range b.Put {
		if r.Kind == recordSession {
			l.snapSeq, l.snapRev = next.Seq, r.Rev+1
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = next
}

// flush commits what is pending, oldest first.
func (l *lane) flush(ctx context.Context) error {
	for len(l.out.pending) > 0 {
		if err := l.commit(ctx, l.out.pending[0], permanent); err != nil {
			return err
		}
		l.out.pending = l.out.pending[1:]
	}
	return nil
}

// commit commits b. When ctx ends first the error is unknown and the attempt goes
// on; the next commit of the same batch takes its answer.
//
// hopeless says which errors mean that the stream can never be written on.
func (l *lane) commit(ctx context.Context, b journal.Batch, hopeless func(error) bool) error {
	a := l.out.attempt
	if a == nil || a.id != b.ID {
		a = &attempt{id: b.ID, done: make(chan struct{})}
		go func() {
			defer close(a.done)
			a.err = l.write(b)
		}()
	}
	l.out.attempt = a
	select {
	case <-a.done:
		l.out.attempt = nil
	case <-ctx.Done():
		return fault.New(fault.Unknown, "record", l.id, "the store has not answered yet")
	}
	switch {
	case a.err == nil:
		l.core.watch.notify()
	case hopeless(a.err):
		l.quarantine(a.err)
	}
	return a.err
}

func (l *lane) write(b journal.Batch) error {
	if err := l.acquire(l.core.hard); err != nil {
		return err
	}
	b.Lease = l.lease
	_, err := l.core.store.Commit(l.core.hard, b)
	return err
}

// acquire takes the session for this core, before the first thing it writes. Only
// the one attempt on its way calls it.
func (l *lane) acquire(ctx context.Context) error {
	leaser, ok := l.core.store.(journal.Leaser)
	if !ok || l.lease != nil {
		return nil
	}
	lease, err := leaser.Acquire(ctx, l.id, l.core.host)
	if err != nil {
		return err
	}
	l.lease = &lease
	return nil
}

// permanent reports whether a batch that must be written can never be.
func permanent(err error) bool {
	switch fault.CodeOf(err) {
	case fault.StaleEpoch, fault.InvalidRequest, fault.LimitExceeded, fault.Conflict:
		return true
	default:
		return false
	}
}

// standsAlone is permanent for a batch of new work, which may find that another has
// taken its key: a cell's handle is then exchanged, and a receipt or a held act that
// has moved is the caller's to hear of.
func standsAlone(err error) bool {
	var moved *journal.ConflictError
	if !errors.As(err, &moved) {
		return permanent(err)
	}
	if moved.What == journal.HeadIs || moved.Key == "" {
		return true
	}
	kind, _, ok := journal.SplitKey(moved.Key)
	return !ok || kind == recordSession
}
