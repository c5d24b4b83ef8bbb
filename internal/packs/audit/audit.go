// Package audit reads the audit rows: one for every operation that the gate was
// asked about.
package audit

import (
	"context"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/verbs"
)

// Query selects rows; empty members do not restrict.
type Query struct {
	ID, Act                                  string // ID may be a beginning
	Verb, Actor, Session, Outcome, RequestID string
	Effect                                   string
	AfterID                                  int64
	Limit                                    int
}

// Row is an audit row with its store-wide event id.
type Row struct {
	EventID int64 `json:"event_id"`
	event.AuditDispatchV1
}

// Log is where the rows are.
type Log interface {
	// Query gives the latest rows that match, in order, or those after AfterID.
	Query(ctx context.Context, q Query) ([]Row, error)
}

// Pack is the pack over a log.
func Pack(l Log) verbs.Pack {
	return verbs.Pack{
		Table: verbs.Table{Name: "audit", Verbs: []verbs.Spec{{
			Name: "audit.query", Description: "Lists audit rows in order: the latest, or those after an event.",
			Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Query: true,
			Params: []verbs.Param{
				{Name: "id", Type: verbs.Text, Description: "Only the row of this id, or those whose id begins so."},
				{Name: "act", Type: verbs.Text, Description: "Only rows of this act."},
				{Name: "verb", Type: verbs.Text, Description: "Only rows of this verb."},
				{Name: "effect", Type: verbs.Text, Enum: []string{"read", "record", "workspace", "external"}, Description: "Only rows of verbs with this effect."},
				{Name: "actor", Type: verbs.Text, Description: "Only rows of this actor, as kind:id."},
				{Name: "session", Type: verbs.Text, Description: "Only rows of this session."},
				{Name: "outcome", Type: verbs.Text, Enum: []string{"success", "error", "denied", "held"}, Description: "Only rows that ended so."},
				{Name: "request_id", Type: verbs.Text, Description: "Only rows of this request, in decimal digits."},
				{Name: "after", Type: verbs.Integer, Description: "Only rows after this event id."},
				{Name: "limit", Type: verbs.Integer, Description: "How many at most; default 50, at most 500."},
			},
		}}},
		New: func() (verbs.Handler, error) { return handler{l}, nil },
	}
}

type handler struct{ log Log }

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	rows, err := h.log.Query(ctx, Query{
		ID: call.Text("id"), Act: call.Text("act"), Verb: call.Text("verb"), Actor: call.Text("actor"), Session: call.Text("session"), Outcome: call.Text("outcome"),
		RequestID: call.Text("request_id"), Effect: call.Text("effect"), AfterID: call.Int("after", 0), Limit: int(min(max(call.Int("limit", 50), 1), 500)),
	})
	if err != nil {
		return verbs.Reply{}, err
	}
	return verbs.Answer(map[string]any{"items": rows, "count": len(rows)})
}
