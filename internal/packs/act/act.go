// Package act is the ledger of acts: what was intended, what became of it, and the
// operator's word about what nobody knows.
//
// Invariants: an act is settled once, and only when it is unknown. The package
// knows no store: the ledger is behind an interface.
package act

import (
	"context"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/verbs"
)

// Row is an act as lists show it. Times are Unix milliseconds.
type Row struct {
	Act         string            `json:"act"`
	Session     string            `json:"session"`
	Verb        string            `json:"verb"`
	Effect      string            `json:"effect"`
	State       string            `json:"state"` // intended | done | failed | unknown | settled
	Disposition event.Disposition `json:"disposition"`
	Code        string            `json:"code"`
	By          event.Actor       `json:"by"`
	Asked       *event.Asked      `json:"asked"`
	StartedAtMS int64             `json:"started_at_ms"`
	DurationUS  int64             `json:"duration_us"`
	Files       []string          `json:"files"`
	Note        string            `json:"note"`
}

// Detail is an act whole: its receipt.
type Detail struct {
	Row
	Args     string             `json:"args"`   // JSON text, empty when it was too long to be kept
	Result   string             `json:"result"` // JSON text, likewise
	Message  string             `json:"message"`
	Rules    []string           `json:"rules"` // that permitted it
	Policy   string             `json:"policy"`
	Changes  []event.FileChange `json:"changes"`
	Intended int64              `json:"intended_event"` // store-wide id
	Finished int64              `json:"finished_event"` // 0 while there is none
	Digest   string             `json:"digest"`         // of the last event of it
}

// Ledger keeps the acts.
type Ledger interface {
	List(ctx context.Context, session, state string, max int) ([]Row, error)
	Show(ctx context.Context, id string) (Detail, error)
	Settle(ctx context.Context, call *verbs.Call, id string, d event.Disposition, note string) (Row, error)
}

// Pack is the pack over a ledger.
func Pack(l Ledger) verbs.Pack {
	id := verbs.Param{Name: "id", Type: verbs.Text, Required: true, Description: "Id of the act, or a unique beginning of it."}
	return verbs.Pack{
		Table: verbs.Table{Name: "act", Verbs: []verbs.Spec{
			{
				Name: "act.list", Description: "Lists acts, the latest first.", Visibility: verbs.Public, Category: verbs.Assertive,
				Effect: verbs.Read, Query: true, Params: []verbs.Param{
					{Name: "session", Type: verbs.Text, Description: "Only those of this session."},
					{Name: "state", Type: verbs.Text, Enum: []string{"intended", "done", "failed", "unknown", "settled"}, Description: "Only those in this state."},
					{Name: "limit", Type: verbs.Integer, Description: "How many at most; default 50, at most 500."},
				},
			},
			{
				Name: "act.show", Description: "Shows one act whole: who, what, why it was allowed, what came of it.", Visibility: verbs.Public,
				Category: verbs.Assertive, Effect: verbs.Read, Query: true, Params: []verbs.Param{id},
			},
			{
				Name: "act.settle", Description: "Says of an unknown act whether it took effect.", Visibility: verbs.Public,
				Category: verbs.Declaration, Effect: verbs.Record, Records: true, Params: []verbs.Param{
					id,
					{Name: "as", Type: verbs.Text, Required: true, Enum: []string{"committed", "not_committed"}, Description: "What you found out."},
					{Name: "note", Type: verbs.Text, Description: "How you found out."},
				},
			},
		}},
		New: func() (verbs.Handler, error) { return handler{l}, nil },
	}
}

type handler struct{ ledger Ledger }

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	switch call.Verb.Name {
	case "act.list":
		max := min(max(call.Int("limit", 50), 1), 500)
		rows, err := h.ledger.List(ctx, call.Text("session"), call.Text("state"), int(max))
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(map[string]any{"items": rows, "count": len(rows)})
	case "act.show":
		d, err := h.ledger.Show(ctx, call.Text("id"))
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(d)
	default:
		row, err := h.ledger.Settle(ctx, call, call.Text("id"), event.Disposition(call.Text("as")), call.Text("note"))
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(row)
	}
}
