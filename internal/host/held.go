package host

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/internal/packs/held"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// heldRow is the body of the record of what is held.
type heldRow struct {
	held.Item
	Namespace  string `json:"namespace"`
	Namespaced bool   `json:"namespaced"`
}

// heldRecord is the record that an event of holding makes, and the id of the effect
// it stands for, if any.
func heldRecord(session string, p event.Payload) (*journal.Record, string, error) {
	var row heldRow
	switch e := p.(type) {
	case event.ActHeldV1:
		row = heldRow{held.Item{
			ID: e.Held, Kind: held.Act, Session: session, Verb: e.Verb, Args: e.Args, Reason: e.Reason, By: e.By, Asked: e.Asked,
		}, e.Namespace, e.Namespaced}
	case event.SendHeldV1:
		row = heldRow{Item: held.Item{
			ID: e.Effect, Kind: held.Send, Session: session, Verb: "local.send", Text: e.Text, Reason: e.Reason, By: e.By, Asked: e.Asked,
		}}
	case event.SendConfirmedV1:
		return nil, e.Effect, nil
	default:
		return nil, "", nil
	}
	row.State, row.AtMS = heldWaiting, time.Now().UnixMilli()
	r, err := row.record(0)
	return &r, row.ID, err
}

func (row heldRow) record(rev int64) (journal.Record, error) {
	body, err := json.Marshal(row)
	if err != nil {
		return journal.Record{}, fault.Wrap(err, fault.Internal, "record held", row.ID)
	}
	return journal.Record{Kind: recordHeld, Key: row.ID, Session: row.Session, State: row.State, Rev: rev, Body: body}, nil
}

func readHeld(r journal.Record) (heldRow, error) {
	var row heldRow
	if err := json.Unmarshal(r.Body, &row); err != nil {
		return row, fault.Wrap(err, fault.Unavailable, "read record of held", r.Key)
	}
	return row, nil
}

// queue is the operator's queue over the journal.
type queue struct{ core *Core }

var _ held.Queue = queue{}

// List implements held.Queue.
func (q queue) List(ctx context.Context, state, session string) ([]held.Item, error) {
	items := []held.Item{}
	for r, err := range journal.Records(ctx, q.core.store, journal.Query{Kind: recordHeld, State: state, Session: session}) {
		if err != nil {
			return nil, err
		}
		row, err := readHeld(r)
		if err != nil {
			return nil, err
		}
		items = append(items, row.Item)
	}
	return items, nil
}

// Show implements held.Queue.
func (q queue) Show(ctx context.Context, id string) (held.Item, error) {
	row, _, err := q.find(ctx, id)
	return row.Item, err
}

func (q queue) find(ctx context.Context, id string) (heldRow, int64, error) {
	r, err := q.core.byPrefix(ctx, recordHeld, id)
	if err != nil {
		return heldRow{}, 0, err
	}
	row, err := readHeld(r)
	return row, r.Rev, err
}

// byPrefix finds the one record whose key begins so.
func (c *Core) byPrefix(ctx context.Context, kind, id string) (journal.Record, error) {
	if id == "" {
		return journal.Record{}, fault.New(fault.InvalidRequest, "find "+kind, id, "no id is given")
	}
	rows, err := c.store.Find(ctx, journal.Query{Kind: kind, KeyPrefix: id, Max: 2})
	switch {
	case err != nil:
		return journal.Record{}, err
	case len(rows) == 0:
		return journal.Record{}, fault.New(fault.NotFound, "find "+kind, id, "there is none of this id").WithNext("%s.list shows them", kind)
	case len(rows) > 1 && rows[0].Key != id:
		return journal.Record{}, fault.New(fault.Ambiguous, "find "+kind, id, "it begins %s and %s", rows[0].Key, rows[1].Key).WithNext("give more characters")
	}
	return rows[0], nil
}

// Decide implements held.Queue. The decision is on record before anything follows
// from it; whoever decides second is told of the first (the record's revision).
func (q queue) Decide(ctx context.Context, call *verbs.Call, id string, approve bool, word string) (held.Decision, error) {
	row, rev, err := q.find(ctx, id)
	if err != nil {
		return held.Decision{}, err
	}
	if row.State != heldWaiting {
		return held.Decision{}, fault.New(fault.Conflict, "decide", row.ID, "it was %s by %s", row.State, actorText(*row.DecidedBy)).
			WithNext("held.show(id=%q)", row.ID)
	}
	by := call.Scene.By
	row.State, row.DecidedBy, row.Note, row.DecidedAtMS = heldDenied, &by, word, time.Now().UnixMilli()
	if approve {
		row.State = heldApproved
	}
	r, err := row.record(rev)
	if err != nil {
		return held.Decision{}, err
	}
	st := step{put: []journal.Record{r}, audit: []event.AuditDispatchV1{*call.Admitted}}
	q.decision(&st, row, approve, by, word)
	l, err := q.core.lane(ctx, row.Session)
	if err != nil {
		return held.Decision{}, err
	}
	if err := l.record(&note{step: st, word: true}); err != nil {
		return held.Decision{}, err
	}
	call.Admitted = nil
	d := held.Decision{Item: row.Item}
	if approve && row.Kind == held.Act {
		d.Outcome, err = q.carryOut(ctx, l, row, by)
	}
	return d, err
}

// decision are the events of a decision; the agent is told by an input (CP-056).
func (q queue) decision(st *step, row heldRow, approve bool, by event.Actor, note string) {
	var decided event.Payload
	text := "The operator denied " + row.ID + "."
	switch {
	case row.Kind == held.Send && approve:
		decided = event.SendApprovedV1{Effect: row.ID, By: by, Note: note}
		st.lane = append(st.lane, event.OperatorMessageV1{Effect: row.ID, Session: row.Session, Text: row.Text})
		text = "The operator approved " + row.ID + ": the message is in the operator's lane."
	case row.Kind == held.Send:
		decided = event.SendDeniedV1{Effect: row.ID, By: by, Note: note}
	case approve:
		decided = event.ActApprovedV1{Held: row.ID, By: by, Note: note}
		text = "The operator approved " + row.ID + " (" + row.Verb + "): it is tried again now."
	default:
		decided = event.ActDeniedV1{Held: row.ID, By: by, Note: note}
	}
	if note != "" {
		text += " Note: " + note
	}
	st.events = append(st.events, decided, event.InputReceivedV1{Input: "in_" + row.ID, Source: "operator", Text: text, About: row.ID})
	st.deliver = append(st.deliver, journal.Input{To: row.Session, ID: "in_" + row.ID, Body: []byte(text)})
}

// carryOut tries a held act again, for whoever asked for it and past the gate once
// more (VD-203).
func (q queue) carryOut(ctx context.Context, l *lane, row heldRow, by event.Actor) (*request.Entry, error) {
	args, err := request.ParseResult([]byte(row.Args))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "read held", row.ID)
	}
	r, err := request.Decoded([]request.Op{{Tool: row.Verb, Args: args.Items()}})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "read held", row.ID)
	}
	caller := q.core.caller(row.By, row.Session, l.workspaceOf(""), row.By.Kind != "operator")
	caller.Approved = &dispatch.Approved{Held: row.ID, By: by}
	answer := request.Assemble(r, q.core.dispatcher.Request(ctx, caller, r))
	return &answer.Results[0], nil
}
