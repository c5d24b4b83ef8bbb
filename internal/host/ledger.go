package host

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/verbs"
)

// Record kinds of the ledger.
const (
	recordAct     = "act"
	recordReceipt = "receipt" // of a host request, by its identity (CP-132)
	recordHeld    = "held"
)

// States of the record of an act.
const (
	actIntended = "intended"
	actDone     = "done"
	actFailed   = "failed"
	actUnknown  = "unknown"
	actSettled  = "settled"
)

// States of what is held.
const (
	heldWaiting  = "held"
	heldApproved = "approved"
	heldDenied   = "denied"
)

// actRow is the body of an act's record.
type actRow struct {
	Verb        string            `json:"verb"`
	Effect      string            `json:"effect"`
	By          event.Actor       `json:"by"`
	Asked       *event.Asked      `json:"asked"`
	StartedAtMS int64             `json:"started_at_ms"`
	DurationUS  int64             `json:"duration_us"`
	Disposition event.Disposition `json:"disposition"` // empty while it runs
	Code        string            `json:"code"`
	Files       []string          `json:"files"` // paths it changed
	Note        string            `json:"note"`
}

func actRecord(id, session, state string, rev int64, row actRow) (journal.Record, error) {
	body, err := json.Marshal(row)
	if err != nil {
		return journal.Record{}, fault.Wrap(err, fault.Internal, "record act", id)
	}
	return journal.Record{Kind: recordAct, Key: id, Session: session, State: state, Rev: rev, Body: body}, nil
}

func readAct(r journal.Record) (actRow, error) {
	var row actRow
	if err := json.Unmarshal(r.Body, &row, json.RejectUnknownMembers(true)); err != nil {
		return row, fault.Wrap(err, fault.Unavailable, "read record of act", r.Key)
	}
	return row, nil
}

// ledger is the journal as dispatch writes it.
type ledger struct{ core *Core }

var _ dispatch.Ledger = ledger{}

// Owe implements dispatch.Ledger.
func (g ledger) Owe(row event.AuditDispatchV1) <-chan error { return g.core.auditor.owe(row) }

// Recall implements dispatch.Ledger.
func (g ledger) Recall(ctx context.Context, session string, asked event.Asked) (dispatch.Receipt, bool, error) {
	key := dispatch.AskedKey(session, asked)
	r, found, err := g.core.findRecord(ctx, recordReceipt, key)
	if err != nil || !found {
		return dispatch.Receipt{}, false, err
	}
	if r.State == actIntended {
		return dispatch.Receipt{}, false, fault.New(fault.Unknown, "repeat request", asked.Request, "an earlier attempt has no outcome yet").
			WithNext("act.list tells what has become of it")
	}
	var receipt dispatch.Receipt
	if err := json.Unmarshal(r.Body, &receipt); err != nil {
		return dispatch.Receipt{}, false, fault.Wrap(err, fault.Unavailable, "read receipt", key)
	}
	return receipt, true, nil
}

// findRecord reads one record by its whole key.
func (c *Core) findRecord(ctx context.Context, kind, key string) (journal.Record, bool, error) {
	rows, err := c.store.Find(ctx, journal.Query{Kind: kind, KeyPrefix: key, Max: 1})
	if err != nil || len(rows) == 0 || rows[0].Key != key {
		return journal.Record{}, false, err
	}
	return rows[0], true, nil
}

// sessionOf is the lane of the session that a scene is in.
func (c *Core) sessionOf(ctx context.Context, id string) (*lane, error) {
	if id == "" {
		return nil, fault.New(fault.InvalidRequest, "dispatch", "", "this verb takes place in a session and none is named").WithNext("name a session")
	}
	return c.lane(ctx, id)
}

// Intend implements dispatch.Ledger: the intent, the act's record and the claim on
// the receipt are one batch.
func (g ledger) Intend(ctx context.Context, scene verbs.Scene, e event.ActIntendedV1) error {
	l, err := g.core.sessionOf(ctx, scene.Session)
	if err != nil {
		return err
	}
	row := actRow{Verb: e.Verb, Effect: e.Effect, By: e.By, Asked: e.Asked, StartedAtMS: time.Now().UnixMilli(), Files: []string{}}
	act, err := actRecord(e.Act, scene.Session, actIntended, 0, row)
	if err != nil {
		return err
	}
	st := step{events: []event.Payload{e}, put: []journal.Record{act}}
	if e.Asked != nil {
		st.put = append(st.put, journal.Record{
			Kind: recordReceipt, Key: dispatch.AskedKey(scene.Session, *e.Asked), Session: scene.Session, State: actIntended,
		})
	}
	n := &note{step: st, open: opening{workspace: scene.Workspace, by: scene.By}, undone: func() step {
		return g.notRun(scene, e, row)
	}}
	if err := l.record(n); err != nil {
		return err
	}
	g.core.acts.Store(e.Act, row)
	if e.Asked != nil {
		l.noteEffect(e.Asked.Execution, e.Act)
	}
	return nil
}

// notRun is the outcome of an act whose intent may or may not be in the store: in
// both cases it was not done.
func (g ledger) notRun(scene verbs.Scene, e event.ActIntendedV1, row actRow) step {
	code, message := string(fault.Unavailable), "the journal did not confirm the intent, so it was not done"
	row.Disposition, row.Code = event.NotCommitted, code
	st := step{events: []event.Payload{event.ActFinishedV1{
		Act: e.Act, Disposition: event.NotCommitted, Code: &code, Message: &message, Files: []event.FileChange{},
	}}}
	if r, err := actRecord(e.Act, scene.Session, actFailed, 1, row); err == nil {
		st.put = append(st.put, r)
	}
	return st
}

// Conclude implements dispatch.Ledger.
func (g ledger) Conclude(ctx context.Context, scene verbs.Scene, c dispatch.Conclusion) error {
	in := scene.Session
	if c.Changes.In != "" {
		in = c.Changes.In
	}
	l, err := g.core.sessionOf(ctx, in)
	if err != nil {
		return err
	}
	st := step{
		events: append([]event.Payload{}, c.Changes.Session...), lane: c.Changes.Operator,
		put: append([]journal.Record{}, c.Changes.Put...), deliver: c.Changes.Deliver, audit: []event.AuditDispatchV1{c.Row},
	}
	n := &note{open: opening{workspace: scene.Workspace, by: scene.By}, word: !scene.Agent}
	if c.Finished != nil {
		n.kept = true
		if err := g.finish(&st, scene, c); err != nil {
			return err
		}
	}
	if c.Receipt != nil && scene.Asked != nil {
		r, err := g.receipt(scene, c)
		if err != nil {
			return err
		}
		st.put = append(st.put, r)
	}
	if len(st.events) == 0 {
		return fault.New(fault.Internal, "record", c.Verb, "a change without an event leaves no trace")
	}
	for _, p := range c.Changes.Session {
		r, id, err := heldRecord(in, p)
		if err != nil {
			return err
		}
		if r != nil {
			st.put = append(st.put, *r)
		}
		if id != "" && scene.Asked != nil {
			defer l.noteEffect(scene.Asked.Execution, id)
		}
	}
	n.step = st
	return l.record(n)
}

// finish adds the outcome of an act to a step.
func (g ledger) finish(st *step, scene verbs.Scene, c dispatch.Conclusion) error {
	f := *c.Finished
	st.events = append(st.events, f)
	kept, running := g.core.acts.LoadAndDelete(f.Act)
	row, ok := kept.(actRow)
	if !running || !ok {
		return fault.New(fault.Internal, "record outcome of", f.Act, "its intent is not of this core")
	}
	row.DurationUS, row.Disposition = f.DurationUS, f.Disposition
	for _, change := range f.Files {
		row.Files = append(row.Files, change.Path)
	}
	state := actDone
	switch {
	case f.Disposition == event.Undetermined:
		state = actUnknown
		st.events = append(st.events[:len(st.events)-1], event.ActUnknownV1{Act: f.Act, Cause: unknownCause(f)})
	case !f.OK:
		state = actFailed
	}
	if f.Code != nil {
		row.Code = *f.Code
	}
	done, err := actRecord(f.Act, scene.Session, state, 1, row)
	if err != nil {
		return err
	}
	st.put = append(st.put, done)
	return nil
}

// unknownCause says why nobody knows what became of an act.
func unknownCause(f event.ActFinishedV1) event.Cause {
	text := "its outcome is not known"
	if f.Message != nil {
		text = *f.Message
	}
	return event.Cause{Kind: event.CauseEffect, Text: valid(text)}
}

func (g ledger) receipt(scene verbs.Scene, c dispatch.Conclusion) (journal.Record, error) {
	body, err := json.Marshal(c.Receipt)
	if err != nil {
		return journal.Record{}, fault.Wrap(err, fault.Internal, "keep receipt", scene.Asked.Request)
	}
	r := journal.Record{
		Kind: recordReceipt, Key: dispatch.AskedKey(scene.Session, *scene.Asked), Session: scene.Session, State: actDone, Body: body,
	}
	if c.Finished != nil { // its intent has claimed the key
		r.Rev = 1
	}
	return r, nil
}
