package host

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/packs/audit"
	"github.com/reeve-run/reeve/internal/packs/catalogue"
	"github.com/reeve-run/reeve/internal/packs/runtime"
	"github.com/reeve-run/reeve/internal/packs/workbench"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/verbs"
)

// desk is the core as the packs that run and tell see it.
type desk struct{ core *Core }

var (
	_ runtime.Sessions = desk{}
	_ workbench.Bench  = desk{}
	_ audit.Log        = desk{}
	_ catalogue.Source = desk{}
)

// Execute implements workbench.Bench.
func (d desk) Execute(ctx context.Context, call *verbs.Call, session, code string, timeoutMS int64) (any, error) {
	r := control.ExecuteRequest{Session: session, Code: code, TimeoutMS: timeoutMS, Workspace: call.Scene.Workspace, By: call.Scene.By}
	res, err := d.core.execute(ctx, r, call.Admitted, nil)
	if res.Cell != "" { // its intent, and the row with it, is in the journal
		call.Admitted = nil
	}
	return res, err
}

// Interrupt implements workbench.Bench.
func (d desk) Interrupt(ctx context.Context, target string, by event.Actor) (any, error) {
	r, err := d.core.interrupt(ctx, target, by)
	return r, err
}

// outputRange is a range of what a cell printed.
type outputRange struct {
	Cell   string       `json:"cell"`
	Offset int64        `json:"offset"`
	Total  int64        `json:"total"`
	Text   string       `json:"text"`
	Next   *int64       `json:"next_offset"` // null at the end
	Gap    *control.Gap `json:"gap"`
}

// Output implements workbench.Bench.
func (d desk) Output(ctx context.Context, cell string, offset, limit int64) (any, error) {
	o, err := d.core.Output(ctx, cell, offset)
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(o.Body, limit))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read output", cell)
	}
	text := head(string(b), len(b))
	r := outputRange{Cell: cell, Offset: o.Offset, Total: o.Total, Text: valid(text), Gap: o.Gap}
	if end := o.Offset + int64(len(text)); end < o.Total && len(text) > 0 {
		r.Next = &end
	}
	return r, nil
}

// Inspect implements runtime.Sessions.
func (d desk) Inspect(ctx context.Context, id string) (runtime.Report, error) {
	l, err := d.core.known(ctx, id)
	if err != nil {
		return runtime.Report{}, err
	}
	row := l.row()
	r := runtime.Report{
		Session: id, Workspace: row.Workspace, State: row.State, Reason: row.Reason, Generation: row.Generation, Python: row.Python,
		Isolation: "off", Cells: row.Cells, Queue: row.Queue, Names: l.namespace().Names, OpenedAtMS: row.OpenedAtMS, Head: row.Head,
		Held: []string{}, Acts: []runtime.Act{}, Inbox: []runtime.Input{},
	}
	l.mu.Lock()
	for _, a := range l.state.Acts {
		r.Acts = append(r.Acts, runtime.Act{Act: a.Act, Verb: a.Verb, Unknown: a.Unknown})
	}
	l.mu.Unlock()
	items, err := queue(d).List(ctx, heldWaiting, id)
	if err != nil {
		return r, err
	}
	for _, it := range items {
		r.Held = append(r.Held, it.ID)
	}
	r.Inbox, err = d.inbox(ctx, id)
	return r, err
}

// inboxShown is how many of the latest inputs a report has.
const inboxShown = 20

func (d desk) inbox(ctx context.Context, id string) ([]runtime.Input, error) {
	all := []runtime.Input{}
	for after := int64(0); ; {
		page, err := d.core.store.Inbox(ctx, id, after, journal.MaxPage)
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, in := range page {
			after = in.N
			all = append(all, runtime.Input{Input: in.ID, Source: "operator", Text: string(in.Body)})
		}
		if len(all) > inboxShown {
			all = append(all[:0], all[len(all)-inboxShown:]...)
		}
	}
}

// Change implements runtime.Sessions.
func (d desk) Change(ctx context.Context, id string, change runtime.Change, by event.Actor) error {
	var err error
	switch change {
	case runtime.Resume:
		_, err = d.core.resume(ctx, id, by)
	case runtime.Reset:
		_, err = d.core.resetNamespace(ctx, id, by)
	default:
		_, err = d.core.closeSession(ctx, id, by)
	}
	return err
}

// Query implements audit.Log. It reads from the end, so that it costs what lies
// between there and the oldest row of the answer.
func (d desk) Query(ctx context.Context, q audit.Query) ([]audit.Row, error) {
	rows := []audit.Row{} // the latest first
	for e, err := range journal.Backward(ctx, d.core.store, d.core.auditStream()) {
		if err != nil {
			return nil, err
		}
		if e.ID <= q.AfterID {
			break
		}
		row, ok, err := auditRow(e)
		if err != nil {
			return nil, err
		}
		if !ok || !matches(q, row) {
			continue
		}
		rows = append(rows, audit.Row{EventID: e.ID, AuditDispatchV1: row})
		if q.AfterID == 0 && len(rows) == q.Limit {
			break
		}
		if len(rows) >= 2*q.Limit { // the first ones after AfterID are wanted
			rows = append(rows[:0], rows[len(rows)-q.Limit:]...)
		}
	}
	slices.Reverse(rows)
	return rows[:min(len(rows), q.Limit)], nil
}

func matches(q audit.Query, row event.AuditDispatchV1) bool {
	is := func(want string, have *string) bool { return want == "" || have != nil && *have == want }
	outcome := string(row.Outcome)
	return strings.HasPrefix(row.ID, q.ID) && is(q.Act, row.Act) && is(q.Effect, row.Effect) && is(q.Verb, &row.Verb) && is(q.Actor, &row.Actor) && is(q.Session, row.SessionID) &&
		is(q.Outcome, &outcome) && is(q.RequestID, row.Resource.RequestID)
}
