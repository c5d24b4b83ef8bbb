// Package runtime tells an agent about the session it is in.
package runtime

import (
	"context"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/verbs"
)

// Report is a session as its agent may know it. Times are Unix milliseconds.
type Report struct {
	Session    string   `json:"session"`
	Workspace  string   `json:"workspace"`
	State      string   `json:"state"`
	Reason     string   `json:"reason"`
	Generation string   `json:"generation"`
	Python     string   `json:"python"`
	Isolation  string   `json:"isolation"`
	Cells      int64    `json:"cells"`
	Queue      int      `json:"queue"`
	Names      []string `json:"names"`
	OpenedAtMS int64    `json:"opened_at_ms"`
	Head       int64    `json:"head"`  // events in its stream
	Held       []string `json:"held"`  // what of it waits for the operator
	Acts       []Act    `json:"acts"`  // without an outcome
	Inbox      []Input  `json:"inbox"` // the latest inputs, oldest first
}

// Act is an act without an outcome.
type Act struct {
	Act     string `json:"act"`
	Verb    string `json:"verb"`
	Unknown bool   `json:"unknown"` // it does not run any more
}

// Input is something the agent was told.
type Input struct {
	Input  string `json:"input"`
	Source string `json:"source"`
	Text   string `json:"text"`
	AtMS   int64  `json:"at_ms"`
}

// Change ends or begins something of a session on request.
type Change string

// Changes.
const (
	Resume Change = "resume"
	Reset  Change = "reset"
	Close  Change = "close"
)

// Sessions is what the pack tells of and changes.
type Sessions interface {
	Inspect(ctx context.Context, session string) (Report, error)
	Change(ctx context.Context, session string, c Change, by event.Actor) error
}

// Pack is the pack over sessions.
func Pack(s Sessions) verbs.Pack {
	change := func(name, does string) verbs.Spec {
		return verbs.Spec{
			Name: name, Description: does, Visibility: verbs.Public, Category: verbs.Declaration, Effect: verbs.Record, Repeatable: true,
			Params: []verbs.Param{{Name: "session", Type: verbs.Text, Description: "Which session; default the caller's."}},
		}
	}
	return verbs.Pack{
		Table: verbs.Table{Name: "runtime", Verbs: []verbs.Spec{
			{
				Name: "runtime.inspect", Description: "Tells the state of the session: worker, names, what is held, what the operator said.",
				Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Query: true,
				Params: []verbs.Param{{Name: "session", Type: verbs.Text, Description: "Which session; default the caller's."}},
			},
			change("runtime.resume", "Starts the worker of a session now."),
			change("runtime.reset", "Ends the namespace of a session and starts an empty one."),
			change("runtime.close", "Closes a session for ever."),
		}},
		New: func() (verbs.Handler, error) { return handler{s}, nil },
	}
}

type handler struct{ sessions Sessions }

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	session := call.Text("session")
	if session == "" {
		session = call.Scene.Session
	}
	if call.Verb.Name != "runtime.inspect" {
		change := Change(call.Verb.Name[len("runtime."):])
		if err := h.sessions.Change(ctx, session, change, call.Scene.By); err != nil {
			return verbs.Reply{}, err
		}
	}
	r, err := h.sessions.Inspect(ctx, session)
	if err != nil {
		return verbs.Reply{}, err
	}
	return verbs.Answer(r)
}
