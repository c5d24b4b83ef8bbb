// Package workbench is running Python and reading what it did, as verbs.
package workbench

import (
	"context"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/verbs"
)

// Bench runs cells.
type Bench interface {
	// Execute runs code in the call's session. Its intent carries the call's audit row.
	Execute(ctx context.Context, call *verbs.Call, session, code string, timeoutMS int64) (any, error)
	Interrupt(ctx context.Context, target string, by event.Actor) (any, error)
	Output(ctx context.Context, cell string, offset, limit int64) (any, error)
}

// maxOutput bounds one range, in bytes.
const maxOutput = 65_536

// Pack is the pack over a bench.
func Pack(b Bench) verbs.Pack {
	session := verbs.Param{Name: "session", Type: verbs.Text, Description: "Which session; default the caller's."}
	return verbs.Pack{
		Table: verbs.Table{Name: "workbench", Verbs: []verbs.Spec{
			{
				Name: "workbench.execute", Description: "Runs Python in the session's namespace and answers what it printed, showed or raised.",
				Visibility: verbs.Public, Category: verbs.Directive, Effect: verbs.Workspace, Records: true,
				Params: []verbs.Param{
					{Name: "code", Type: verbs.Text, Required: true, Fact: verbs.FactBytes, Description: "Python source, at most 262144 bytes."},
					session,
					{Name: "timeout_ms", Type: verbs.Integer, Description: "Interrupt it after this long; default no limit."},
				},
			},
			{
				Name: "workbench.interrupt", Description: "Stops a cell that runs or waits.",
				Visibility: verbs.Public, Category: verbs.Directive, Effect: verbs.Record, Repeatable: true,
				Params: []verbs.Param{
					{Name: "cell", Type: verbs.Text, Description: "Handle of the cell; default whatever runs in the session."},
					session,
				},
			},
			{
				Name: "workbench.output", Description: "Reads a range of what a cell printed, in exact bytes.",
				Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Query: true,
				Params: []verbs.Param{
					{Name: "cell", Type: verbs.Text, Required: true, Description: "Handle of the cell."},
					{Name: "offset", Type: verbs.Integer, Description: "First byte; default 0."},
					{Name: "limit", Type: verbs.Integer, Description: "How many bytes; default 32768, at most 65536."},
				},
			},
		}},
		New: func() (verbs.Handler, error) { return handler{b}, nil },
	}
}

type handler struct{ bench Bench }

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	session := call.Text("session")
	if session == "" {
		session = call.Scene.Session
	}
	var v any
	var err error
	switch call.Verb.Name {
	case "workbench.execute":
		if call.Scene.Asked != nil && session == call.Scene.Session {
			return verbs.Reply{}, fault.New(fault.Conflict, "execute", session, "the cell that asks runs in this session, and cells of a session run one after the other").
				WithNext("run the code in the cell itself, or name another session")
		}
		v, err = h.bench.Execute(ctx, call, session, call.Text("code"), call.Int("timeout_ms", 0))
	case "workbench.interrupt":
		target := call.Text("cell")
		if target == "" {
			target = session
		}
		v, err = h.bench.Interrupt(ctx, target, call.Scene.By)
	default:
		v, err = h.bench.Output(ctx, call.Text("cell"), max(call.Int("offset", 0), 0), min(max(call.Int("limit", 32_768), 1), maxOutput))
	}
	if err != nil {
		return verbs.Reply{}, err
	}
	return verbs.Answer(v)
}
