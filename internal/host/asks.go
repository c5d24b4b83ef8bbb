package host

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
	"github.com/reeve-run/reeve/wire"
)

// Methods that carry the verb plane from a cell (CP-133).
const methodRequest = "verbs.request"

// Request implements supervise.Sink: what a cell asks of its host is a verb like any
// other, asked for by its session.
func (s *sink) Request(ctx context.Context, r wire.HostRequest, reply func(wire.HostReply)) {
	if s.lane == nil {
		reply(wire.HostReply{Code: string(fault.UnknownMethod), Text: "nothing is served here"})
		return
	}
	done, err := s.lane.core.flight(ctx, s.lane.id)
	if err != nil {
		reply(errorReply(err))
		return
	}
	go func() {
		defer done()
		value, err := s.lane.ask(ctx, r)
		if err != nil {
			reply(errorReply(err))
			return
		}
		reply(wire.HostReply{Value: value})
	}()
}

// ask answers one host request.
func (l *lane) ask(ctx context.Context, r wire.HostRequest) (wire.Raw, error) {
	body, err := request.ParseResult(r.Request)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidRequest, "read request", r.ID)
	}
	var args []request.Item
	for _, it := range body.Items() {
		if it.Name != "method" {
			args = append(args, it)
		}
	}
	asked := event.Asked{Execution: r.ExecutionID, Request: r.ID}
	if r.Method == methodRequest {
		return l.askOps(ctx, asked, args)
	}
	if v, known := l.core.registry.Lookup(r.Method); !known || v.Visibility != verbs.Public {
		return nil, fault.New(fault.UnknownMethod, "ask", r.Method, "there is no such method").WithNext("await verbs.request('verbs()') lists what there is")
	}
	parsed, err := request.Decoded([]request.Op{{Tool: r.Method, Args: args}})
	if err != nil {
		return nil, parseFault(err)
	}
	v, err := l.core.dispatcher.Ask(ctx, l.cellCaller(asked), &parsed.Ops[0])
	if err != nil {
		return nil, err
	}
	return v.AppendJSON(nil), nil
}

// cellCaller is the session's own agent, asking from a cell.
func (l *lane) cellCaller(asked event.Asked) dispatch.Caller {
	by := event.Actor{Kind: "session", Name: l.id, Surface: "worker"}
	caller := l.core.caller(by, l.id, l.workspaceOf(""), true)
	caller.Identity.RequestID = mintRequestID()
	caller.Asked = &asked
	return caller
}

// askOps runs a text of the ops language, or its operations as a list, and answers the
// envelope with nothing shortened.
func (l *lane) askOps(ctx context.Context, asked event.Asked, args []request.Item) (wire.Raw, error) {
	var parsed *request.Request
	var err error
	switch {
	case len(args) != 1 || args[0].Name != "ops":
		return nil, fault.New(fault.InvalidRequest, "ask", methodRequest, "it takes exactly the member ops")
	case args[0].Value.Kind() == request.String:
		text, _ := args[0].Value.Text()
		parsed, err = request.Parse(text)
	case args[0].Value.Kind() == request.Array:
		parsed, err = request.Parse(string(args[0].Value.AppendJSON(nil)))
	default:
		return nil, fault.New(fault.InvalidRequest, "ask", "ops", "it is a text or a list, not %s", args[0].Value.Kind())
	}
	if err != nil {
		return nil, parseFault(err)
	}
	answer := request.Assemble(parsed, l.core.dispatcher.Request(ctx, l.cellCaller(asked), parsed))
	b, err := json.Marshal(&answer)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "answer", methodRequest)
	}
	return b, nil
}

// wireCodes are the codes that a host reply may carry (CP-043, CP-134); others
// become the nearest of them.
var wireCodes = map[fault.Code]fault.Code{
	fault.Held: fault.Denied, fault.StoreFull: fault.Unavailable, fault.Usage: fault.InvalidRequest,
	fault.Unauthorized: fault.Denied, fault.CellFailed: fault.Internal, fault.WorkerLost: fault.Unavailable,
	fault.Altered: fault.Internal, fault.Truncated: fault.Internal, fault.Findings: fault.Internal,
}

func errorReply(err error) wire.HostReply {
	code := fault.CodeOf(err)
	if other, ok := wireCodes[code]; ok {
		code = other
	}
	text := err.Error()
	var f *fault.Error
	if errors.As(err, &f) && f.Next != "" {
		text += "; " + f.Next
	}
	return wire.HostReply{Code: string(code), Text: valid(text)}
}
