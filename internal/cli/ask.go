package cli

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/request"
)

// requestAnswer is the envelope of the verb plane as it came. Its entries are kept
// as they are beside what the command line reads of them.
type requestAnswer struct {
	Results []entry         `json:"results"`
	Summary request.Summary `json:"summary"`
	Status  string          `json:"status"`
}

// entry is what became of one operation.
type entry struct {
	OK          bool               `json:"ok"`
	Tool        string             `json:"tool"`
	Index       int                `json:"op_index"`
	Unit        *int               `json:"unit_index,omitempty"`
	Step        *int               `json:"step_index,omitempty"`
	Aborted     bool               `json:"aborted,omitzero"`
	Disposition string             `json:"domain_disposition,omitempty"`
	Result      jsontext.Value     `json:"result,omitempty"`
	Error       *opFailure         `json:"error,omitempty"`
	Reason      string             `json:"reason,omitempty"`
	Message     string             `json:"message,omitempty"`
	Advisories  []request.Advisory `json:"advisories,omitempty"`
	More        jsontext.Value     `json:",embed"` // siblings of a verb's own
}

// opFailure is why an operation did not succeed.
type opFailure struct {
	Kind        string         `json:"kind"`
	Message     string         `json:"message"`
	Disposition string         `json:"domain_disposition"`
	Code        string         `json:"code,omitempty"`
	Next        string         `json:"next,omitempty"`
	Retryable   bool           `json:"retryable,omitzero"`
	Act         string         `json:"act,omitempty"`
	Held        string         `json:"held_id,omitempty"`
	Audit       string         `json:"audit_event_id,omitempty"`
	Rules       []string       `json:"rules,omitempty"`
	Facts       jsontext.Value `json:"facts,omitempty"`
	More        jsontext.Value `json:",embed"`
}

// boundaryCodes are the codes that the verb plane spells otherwise.
var boundaryCodes = map[string]fault.Code{
	"invalid_input": fault.InvalidRequest, "permission_denied": fault.Denied, "unknown_verb": fault.UnknownMethod,
}

// transportCodes are those of failures that no fault stands behind.
var transportCodes = map[string]fault.Code{
	request.KindSubstitution: fault.InvalidRequest, request.KindWriteConflict: fault.Conflict, request.KindResultTooDeep: fault.LimitExceeded,
	request.KindBudget: fault.LimitExceeded, request.KindFrameBudget: fault.LimitExceeded,
}

// fault is a failed entry as an error of the command line. One that may have taken
// effect is unknown, whatever it failed of.
func (e *entry) fault() *fault.Error {
	switch {
	case e.OK:
		return nil
	case e.Error == nil:
		return fault.New(fault.Cancelled, "run operation", e.Tool, "%s", e.Message)
	}
	f := fault.New(e.Error.code(), "", "", "%s", e.Error.Message)
	f.Next, f.Retry = e.Error.Next, e.Error.Retryable
	switch {
	case f.Code == fault.Held:
		f.Next = "reeve held show " + e.Error.Held + " shows it; reeve held approve " + e.Error.Held + " lets it pass"
	case e.Disposition == string(request.Undetermined) && e.Error.Act != "":
		f.Code, f.Next = fault.Unknown, "reeve act show "+e.Error.Act+", find out what it did, then reeve act settle"
	case e.Disposition == string(request.Undetermined):
		f.Code, f.Next = fault.Unknown, "reeve act list --state unknown"
	case f.Next != "":
	case f.Code == fault.Denied && e.Error.Audit != "":
		f.Next = "reeve policy explain " + e.Error.Audit
	case e.Tool != "":
		f.Next = "reeve pack show " + e.Tool
	}
	return f
}

func (f *opFailure) code() fault.Code {
	if c, ok := boundaryCodes[f.Code]; ok {
		return c
	}
	if c := fault.Code(f.Code); c.Known() {
		return c
	}
	if c, ok := transportCodes[f.Kind]; ok {
		return c
	}
	return fault.Internal
}

// worst is the failure that the exit status tells of: an outcome that nobody knows,
// then whatever failed, then a denial, then what waits for the operator. Of equals
// the first. Nil when everything succeeded.
func worst(entries []entry) error {
	var found *fault.Error
	for i := range entries {
		f := entries[i].fault()
		if f == nil || entries[i].Aborted {
			continue
		}
		if found == nil || badness(f.Code) > badness(found.Code) {
			found = f
		}
	}
	if found == nil {
		return nil
	}
	return found
}

func badness(c fault.Code) int {
	switch c {
	case fault.Held:
		return 1
	case fault.Denied:
		return 2
	case fault.Unknown:
		return 4
	}
	return 3
}

// arguments are those of one operation; empty texts are left out.
type arguments map[string]any

func (w arguments) text(name, value string) arguments {
	if value != "" {
		w[name] = value
	}
	return w
}

// call is a request of this command line: by the operator, in a session, with
// results as they are.
func (a *app) call(session, ops string) control.RequestCall {
	return control.RequestCall{
		Ops: ops, Presentation: string(request.Verbose), Session: session, Workspace: a.io.WorkDir, By: a.actor(),
		TimeoutMS: a.set.timeout.Milliseconds(),
	}
}

// ask runs one operation in the session of the working directory and reads its
// result.
func (a *app) ask(ctx context.Context, c control.Service, verb string, with arguments, into any) error {
	return a.askIn(ctx, c, DefaultSession(a.io.WorkDir), verb, with, into)
}

func (a *app) askIn(ctx context.Context, c control.Service, session, verb string, with arguments, into any) error {
	op := struct {
		Tool string    `json:"tool"`
		Args arguments `json:"args"`
	}{verb, with}
	if op.Args == nil {
		op.Args = arguments{}
	}
	text, err := json.Marshal(op, json.Deterministic(true))
	if err != nil {
		return fault.Wrap(err, fault.Usage, "write request", verb)
	}
	r, err := c.Request(ctx, a.call(session, string(text)))
	if err != nil {
		return err
	}
	got, err := readAnswer(r.Body)
	if err != nil {
		return err
	}
	if len(got.Results) != 1 {
		return fault.New(fault.Internal, "read answer", verb, "it has %d entries for one operation", len(got.Results))
	}
	for _, v := range got.Results[0].Advisories {
		a.note("%s", v.Message)
	}
	if f := got.Results[0].fault(); f != nil {
		return f
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(got.Results[0].Result, into); err != nil {
		return fault.Wrap(err, fault.Internal, "read answer", verb)
	}
	return nil
}

func readAnswer(body []byte) (requestAnswer, error) {
	var got requestAnswer
	if err := json.Unmarshal(body, &got); err != nil {
		return got, fault.Wrap(err, fault.Internal, "read answer", "")
	}
	return got, nil
}

// list is a result that lists.
type list[T any] struct {
	Items []T `json:"items"`
	Count int `json:"count"`
}

// askList runs an operation that lists; no items are an empty list.
func askList[T any](ctx context.Context, a *app, c control.Service, verb string, with arguments) ([]T, error) {
	var got list[T]
	err := a.ask(ctx, c, verb, with, &got)
	if got.Items == nil {
		got.Items = []T{}
	}
	return got.Items, err
}

// leads gives an error the command that goes on from it, by its code, where the core
// spoke in terms of verbs.
func leads(err error, byCode map[fault.Code]string) error {
	next, ok := byCode[fault.CodeOf(err)]
	if err == nil || !ok {
		return err
	}
	return fault.Wrap(err, fault.CodeOf(err), "", "").WithNext("%s", next)
}

// values reads name=value words: a value is JSON or else a bare word.
func values(words []string) (arguments, error) {
	out := arguments{}
	for _, w := range words {
		name, text, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, fault.New(fault.Usage, "read arguments", w, "it has the form name=value").
				WithNext("write for example path=go.mod or argv='[\"go\",\"test\"]'")
		}
		if _, twice := out[name]; twice {
			return nil, fault.New(fault.Usage, "read arguments", w, "%s is given twice", name).WithNext("give each argument once")
		}
		if v := jsontext.Value(text); text != "" && v.IsValid() {
			out[name] = v
			continue
		}
		out[name] = text
	}
	return out, nil
}
