// Package held is the operator's queue: what agents wanted to say or do and a rule,
// or a review, let pass only with the operator's word.
//
// Invariants: a decision is recorded before anything follows from it and is made
// once; an approved act passes the gate again. The package knows no store: the
// queue is behind an interface.
package held

import (
	"context"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// Kinds of items.
const (
	Act  = "act"
	Send = "send"
)

// Item is one thing that waits or waited. Times are Unix milliseconds.
type Item struct {
	ID          string       `json:"id"`
	Kind        string       `json:"kind"`  // act | send
	State       string       `json:"state"` // held | approved | denied
	Session     string       `json:"session"`
	Verb        string       `json:"verb"`
	Args        string       `json:"args"` // JSON text, of an act
	Text        string       `json:"text"` // of a send
	Reason      string       `json:"reason"`
	By          event.Actor  `json:"by"`
	Asked       *event.Asked `json:"asked"`
	AtMS        int64        `json:"at_ms"`
	DecidedBy   *event.Actor `json:"decided_by"`
	DecidedAtMS int64        `json:"decided_at_ms"`
	Note        string       `json:"note"`
}

// Decision is an item after it was decided. Outcome is what became of an approved
// act.
type Decision struct {
	Item    Item
	Outcome *request.Entry
}

// Queue keeps the items.
type Queue interface {
	List(ctx context.Context, state, session string) ([]Item, error)
	Show(ctx context.Context, id string) (Item, error) // a unique prefix is enough
	Decide(ctx context.Context, call *verbs.Call, id string, approve bool, note string) (Decision, error)
}

var id = verbs.Param{Name: "id", Type: verbs.Text, Required: true, Description: "Id of the item, or a unique beginning of it."}

// Pack is the pack over a queue.
func Pack(q Queue) verbs.Pack {
	note := verbs.Param{Name: "note", Type: verbs.Text, Description: "What to tell the agent with the decision."}
	decide := func(name, does string) verbs.Spec {
		return verbs.Spec{
			Name: name, Description: does, Visibility: verbs.Public, Category: verbs.Declaration, Effect: verbs.Record, Records: true,
			Params: []verbs.Param{id, note},
		}
	}
	look := func(name, does string, params ...verbs.Param) verbs.Spec {
		return verbs.Spec{
			Name: name, Description: does, Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Query: true, Params: params,
		}
	}
	return verbs.Pack{
		Table: verbs.Table{Name: "held", Verbs: []verbs.Spec{
			look("held.list", "Lists what waits for the operator, or what was decided.",
				verbs.Param{Name: "state", Type: verbs.Text, Enum: []string{"held", "approved", "denied"}, Description: "Which items; default held."},
				verbs.Param{Name: "session", Type: verbs.Text, Description: "Only those of this session."}),
			look("held.show", "Shows one item whole.", id),
			decide("held.approve", "Approves an item: a message goes to the operator's lane, an act is tried again past the gate."),
			decide("held.deny", "Denies an item: it is never said or done."),
		}},
		New: func() (verbs.Handler, error) { return handler{q}, nil },
	}
}

type handler struct{ queue Queue }

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	switch call.Verb.Name {
	case "held.list":
		state := call.Text("state")
		if state == "" {
			state = "held"
		}
		items, err := h.queue.List(ctx, state, call.Text("session"))
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(map[string]any{"items": items, "count": len(items)})
	case "held.show":
		item, err := h.queue.Show(ctx, call.Text("id"))
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(item)
	default:
		d, err := h.queue.Decide(ctx, call, call.Text("id"), call.Verb.Name == "held.approve", call.Text("note"))
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(map[string]any{"item": d.Item, "outcome": d.Outcome})
	}
}
