package mcpserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// requestArgs are the arguments of the tool (VD-002).
type requestArgs struct {
	Ops          *string   `json:"ops"`
	Presentation *string   `json:"presentation"`
	PerOp        []*string `json:"presentation_per_op"`
	Format       *string   `json:"format"`
	FormatPerOp  []*string `json:"format_per_op"`
	SaveTo       *string   `json:"save_to"`
	RequestID    *uint64   `json:"request_id"`
	Plan         *bool     `json:"plan"`
}

var requestIn = object([]string{"ops"}, schema{
	"ops":                 text("The operations: one call, a chain, a batch, or JSON."),
	"presentation":        oneOf("agent, verbose or human. Default agent: short.", "agent", "verbose", "human"),
	"presentation_per_op": perOp("By position; null falls back to presentation."),
	"format":              oneOf("json, auto or table. Default json.", "json", "auto", "table"),
	"format_per_op":       perOp("By position; null falls back to format."),
	"save_to":             text("Write results as JSON lines to this file below the export root; the answer is a manifest."),
	"request_id":          whole("Correlation id, found again in the audit. Default: one is made."),
	"plan":                described("boolean", "Say how ops is read and run nothing. Default false."),
})

func oneOf(description string, values ...string) schema {
	s := text(description)
	s["enum"] = values
	return s
}

func perOp(description string) schema {
	s := listOf(nullable("string"))
	s["description"] = description
	return s
}

// cheatSheet teaches the language in one breath; the verbs follow it (VD-001).
const cheatSheet = `Ask reeve to do things: every verb passes one gate and is recorded.
verb(name="text", n=1, list=["a"], flag=true)  one call; arguments are named, strings in double quotes
a.b(x=1) | c.d(y=$prev.items[0].id)  chain: in order, $prev is the result before, stops at a failure
[a.b(), c.d() | e.f(z=$prev.n)]  batch: side by side, one failure leaves the others
[{"tool":"a.b","args":{"x":1}}]  the same as JSON
verb(help=true)  describes a verb; verbs() lists them with what each does
A failure says domain_disposition: committed, not_committed or unknown (then do not repeat it).
Verbs: `

func requestDescription(catalogue []*verbs.Verb) string {
	names := make([]string, len(catalogue))
	for i, v := range catalogue {
		names[i] = v.Name
	}
	slices.Sort(names)
	return cheatSheet + strings.Join(names, ", ")
}

func (s *Server) registerRequest() {
	s.protocol.AddTool(&mcp.Tool{
		Name: "request", Description: requestDescription(s.opt.Verbs), InputSchema: requestIn,
		Annotations: &mcp.ToolAnnotations{Title: "Ask for verbs", DestructiveHint: yes(true), OpenWorldHint: yes(true)},
	}, s.request)
}

// request serves the tool. What is wrong with the text or beside it is an error of
// the protocol: no operation count exists yet (VD-008).
func (s *Server) request(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	call, err := s.requestCall(req.Params)
	if err != nil {
		return nil, requestError(err)
	}
	if !call.Plan {
		answer, own, err := s.diagnostics(call.Ops)
		if err != nil {
			return nil, requestError(err)
		}
		if own {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer.Body)}}}, nil
		}
	}
	call.Session, call.Workspace, call.By, call.Agent = s.session, s.opt.Workspace, actor(req.Session), true
	call.Process = strconv.Itoa(os.Getpid())
	answer, err := s.ask(ctx, call)
	if err != nil {
		if fault.HasCode(err, fault.InvalidRequest) {
			return nil, requestError(err)
		}
		return requestFault(call, err), nil
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(answer.Body)}}, IsError: answer.Failed}, nil
}

// requestCall reads the arguments and the text, in the order in which they are
// refused: what a plan excludes, options, text.
func (s *Server) requestCall(p *mcp.CallToolParamsRaw) (control.RequestCall, error) {
	var in requestArgs
	if err := arguments(p, &in); err != nil {
		return control.RequestCall{}, err
	}
	if in.Ops == nil {
		return control.RequestCall{}, fault.New(fault.InvalidRequest, "request", "ops", "the argument is missing").WithNext("pass the operations as ops")
	}
	call := control.RequestCall{Ops: *in.Ops, Plan: in.Plan != nil && *in.Plan}
	if call.Plan {
		names, err := members(p.Arguments)
		if err != nil {
			return call, err
		}
		return call, request.CheckPlan(names)
	}
	call.Presentation, call.Format, call.SaveTo = deref(in.Presentation), deref(in.Format), deref(in.SaveTo)
	call.PerOp, call.FormatPerOp = derefAll(in.PerOp), derefAll(in.FormatPerOp)
	if in.SaveTo != nil && *in.SaveTo == "" {
		return call, fault.New(fault.InvalidRequest, "request", "save_to", "an empty name is no file")
	}
	if in.RequestID != nil {
		call.RequestID = *in.RequestID
	}
	for call.RequestID == 0 {
		call.RequestID = rand.Uint64() //nolint:gosec // it correlates and protects nothing
	}
	parsed, err := request.Parse(call.Ops)
	if err != nil {
		return call, err
	}
	options := request.Options{Presentation: call.Presentation, PerOp: call.PerOp, Format: call.Format, FormatPerOp: call.FormatPerOp}
	call.Reads = s.onlyReads(parsed)
	return call, options.Check(len(parsed.Ops))
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func derefAll(list []*string) []string {
	var all []string
	for _, s := range list {
		all = append(all, deref(s))
	}
	return all
}

// members are the names of an object that has been read already.
func members(raw []byte) ([]string, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil, fault.Wrap(err, fault.InvalidRequest, "read arguments", "request")
	}
	var names []string
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, fault.Wrap(err, fault.InvalidRequest, "read arguments", "request")
		}
		names = append(names, name.String())
		if err := dec.SkipValue(); err != nil {
			return nil, fault.Wrap(err, fault.InvalidRequest, "read arguments", "request")
		}
	}
	return names, nil
}

// onlyReads reports whether every operation is a verb that this build knows to read
// only: then a lost answer may be asked for again (VD-148).
func (s *Server) onlyReads(r *request.Request) bool {
	for i := range r.Ops {
		j := slices.IndexFunc(s.opt.Verbs, func(v *verbs.Verb) bool { return v.Name == r.Ops[i].Tool })
		if j < 0 || s.opt.Verbs[j].Effect != verbs.Read || !s.opt.Verbs[j].Query {
			return false
		}
	}
	return true
}

// ask looks for a core as long as nothing has been sent, and then waits for its
// answer as long as that takes.
func (s *Server) ask(ctx context.Context, call control.RequestCall) (control.RequestAnswer, error) {
	until := time.Now().Add(reachFor)
	for {
		look, cancel := context.WithDeadline(ctx, until)
		svc, err := s.core.get(look)
		cancel()
		if err == nil {
			var answer control.RequestAnswer
			if answer, err = svc.Request(ctx, call); err == nil {
				return answer, nil
			}
			if gone(err) {
				s.core.lost(svc)
			}
		}
		if !unsent(err) || time.Now().After(until) {
			return control.RequestAnswer{}, err
		}
		select {
		case <-ctx.Done():
			return control.RequestAnswer{}, fault.Wrap(context.Cause(ctx), fault.Cancelled, "request", "")
		case <-time.After(reachEvery):
		}
	}
}

// requestError is the protocol's error for what cannot be read (VD-003, VD-008).
func requestError(err error) error {
	type data struct {
		Reason      string `json:"reason"`
		Kind        string `json:"kind"`
		Code        string `json:"code"`
		Message     string `json:"message"`
		Disposition string `json:"domain_disposition"`
		Next        string `json:"next,omitempty"`
		Byte        *int   `json:"byte,omitempty"`
		Line        int    `json:"line,omitempty"`
		Column      int    `json:"column,omitempty"`
		Excerpt     string `json:"excerpt,omitempty"`
	}
	d := data{Kind: "invalid_input", Code: string(fault.CodeOf(err)), Message: err.Error(), Disposition: string(request.NotCommitted)}
	var f *fault.Error
	if errors.As(err, &f) {
		d.Next = f.Next
	}
	var p *request.ParseError
	if errors.As(err, &p) {
		d.Reason, d.Kind, d.Code = "parse-error", "parse_error", string(p.Code)
		d.Line, d.Column, d.Excerpt = p.Line, p.Column, p.Excerpt
		if p.Offset >= 0 {
			d.Byte = &p.Offset
		}
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: d.Message}
	if b, err := json.Marshal(d); err == nil {
		out.Data = b
	}
	return out
}

// requestFault is the answer when no envelope has come: what is known of all
// operations together.
func requestFault(call control.RequestCall, err error) *mcp.CallToolResult {
	f := body(err)
	d := request.NotCommitted
	outcome := "not_run"
	if gone(err) && !unsent(err) || fault.HasCode(err, fault.Internal) || fault.HasCode(err, fault.Timeout) {
		d, outcome = request.Undetermined, "unknown"
	}
	text := fmt.Sprintf(`{"outcome":%q,"retryable":%t,"request_id":"%d","domain_disposition":%q,"error":`, outcome, f.Retryable && d == request.NotCommitted, call.RequestID, d)
	b, err := json.Marshal(f)
	if err != nil {
		b = []byte(`{"code":"internal","message":"the fault cannot be written","next":"","retryable":false}`)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text + string(b) + "}"}}, IsError: true}
}
