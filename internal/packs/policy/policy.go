// Package policy tells the operator what the gate would rule, and why it ruled as it
// did. The shipped policy forbids the pack to agents.
//
// Invariants: nothing here changes anything, and an answer about an act comes from
// the steps that the act itself would take. The package knows neither dispatcher nor
// store: both are behind an interface.
package policy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// Prospect is what would become of an act up to its pack. Refused is what says no
// beside the gate.
type Prospect struct {
	Verb     string
	Effect   string
	Decision gate.Decision
	Refused  error
}

// Gate is what rules and what is on record of it.
type Gate interface {
	Policy() (*gate.Policy, error)
	// Could asks on behalf of somebody; nil is the caller.
	Could(ctx context.Context, call *verbs.Call, as *gate.Actor, op *request.Op) (Prospect, error)
	// Decided finds the audit row of that id, of that act, or in that event; a unique
	// beginning of an id is enough.
	Decided(ctx context.Context, id string) (event.AuditDispatchV1, int64, error)
}

// Rule is a rule of the set in force.
type Rule struct {
	ID     string `json:"id"`
	Effect string `json:"effect"` // permit | forbid
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Text   string `json:"text"` // Cedar
}

// Ruling is the answer to whether an act would pass.
type Ruling struct {
	Verb        string            `json:"verb"`
	Effect      string            `json:"effect"`
	As          string            `json:"as"`     // kind:id
	Ruling      string            `json:"ruling"` // allow | hold | deny | error | refused
	Code        fault.Code        `json:"code"`   // unless allow
	Reason      string            `json:"reason"`
	Rules       []string          `json:"rules"`
	Forbidden   bool              `json:"forbidden"` // a rule forbids it; otherwise none permits it
	Facts       []gate.Fact       `json:"facts"`
	Remedy      string            `json:"remedy"`
	Obligations []gate.Obligation `json:"obligations"`
	Policy      string            `json:"policy"` // digest
}

// Explanation is a decision on record, with the rules as they are now.
type Explanation struct {
	EventID int64                 `json:"event_id"`
	Row     event.AuditDispatchV1 `json:"row"`
	Rules   []Rule                `json:"rules"`    // of those that decided, what the set in force has
	InForce bool                  `json:"in_force"` // the set that decided is the one in force
}

// Pack is the pack over a gate.
func Pack(g Gate) verbs.Pack {
	read := func(name, does string, params ...verbs.Param) verbs.Spec {
		return verbs.Spec{
			Name: name, Description: does, Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Query: true, Params: params,
		}
	}
	return verbs.Pack{
		Table: verbs.Table{Name: "policy", Verbs: []verbs.Spec{
			read("policy.show", "Shows the rules in force."),
			read("policy.can", "Tells whether an act would be allowed, held or denied, and why.",
				verbs.Param{Name: "verb", Type: verbs.Text, Required: true, Description: "Which verb."},
				verbs.Param{Name: "args", Type: verbs.Struct, Description: "Its arguments."},
				verbs.Param{Name: "as", Type: verbs.Text, Description: "For whom, as session:ID, client:NAME or the like; default the caller."}),
			read("policy.explain", "Tells why an act was allowed or refused.",
				verbs.Param{Name: "decision", Type: verbs.Text, Required: true, Description: "Id of an audit row or of an act, a unique beginning of it, or the number of the event."}),
			read("policy.test", "Runs the examples of the rules in force, and others.",
				verbs.Param{Name: "examples", Type: verbs.Texts, Description: "Lines of the form KIND[:ID] VERB EFFECT [name=value …]."}),
		}},
		New: func() (verbs.Handler, error) { return handler{g}, nil },
	}
}

type handler struct{ gate Gate }

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	switch call.Verb.Name {
	case "policy.can":
		return h.can(ctx, call)
	case "policy.explain":
		return h.explain(ctx, call)
	case "policy.test":
		return h.test(call)
	default:
		set, err := h.gate.Policy()
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(map[string]any{"digest": set.Digest(), "rules": rules(set)})
	}
}

func rules(set *gate.Policy) []Rule {
	all := []Rule{}
	for _, r := range set.Rules() {
		all = append(all, Rule{ID: r.ID, Effect: r.Effect, Reason: r.Reason, Remedy: r.Remedy, File: r.File, Line: r.Line, Text: r.Text})
	}
	return all
}

func (h handler) can(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	var as *gate.Actor
	if text := call.Text("as"); text != "" {
		kind, id, _ := strings.Cut(text, ":")
		as = &gate.Actor{Kind: gate.ActorKind(kind), ID: id}
		if id == "" || !slices.Contains([]gate.ActorKind{gate.Operator, gate.Session, gate.Client, gate.Hook}, as.Kind) {
			return verbs.Reply{}, fault.New(fault.InvalidRequest, "ask gate", text, "it is session:ID, client:NAME, hook:NAME or operator:NAME")
		}
	}
	given, _ := call.Arg("args")
	asked, err := request.Decoded([]request.Op{{Tool: call.Text("verb"), Args: given.Items()}})
	if err != nil {
		return verbs.Reply{}, fault.Wrap(err, fault.InvalidRequest, "read act", call.Text("verb"))
	}
	p, err := h.gate.Could(ctx, call, as, &asked.Ops[0])
	if err != nil {
		return verbs.Reply{}, err
	}
	r := p.ruling()
	r.As = call.Token.Actor().Kind + ":" + call.Token.Actor().ID
	if as != nil {
		r.As = string(as.Kind) + ":" + as.ID
	}
	return verbs.Answer(r)
}

// ruling says in one word what would happen.
func (p Prospect) ruling() Ruling {
	d := p.Decision
	r := Ruling{
		Verb: p.Verb, Effect: p.Effect, Ruling: string(d.Ruling), Reason: d.Reason, Rules: append([]string{}, d.Rules...), Forbidden: d.Forbidden,
		Facts: append([]gate.Fact{}, d.Facts...), Remedy: d.Remedy, Obligations: append([]gate.Obligation{}, d.Obligations...), Policy: d.Digest,
	}
	hold, held := d.Hold()
	switch {
	case p.Refused != nil:
		r.Ruling, r.Code, r.Reason = "refused", fault.CodeOf(p.Refused), p.Refused.Error()
		r.Remedy = next(p.Refused)
	case d.Ruling == gate.Deny:
		r.Code = fault.Denied
	case d.Ruling == gate.Error:
		r.Code = fault.GateUnavailable
	case held:
		r.Ruling, r.Code, r.Reason = "hold", fault.Held, hold.Reason
	}
	return r
}

func next(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Next
	}
	return ""
}

func (h handler) explain(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	row, id, err := h.gate.Decided(ctx, call.Text("decision"))
	if err != nil {
		return verbs.Reply{}, err
	}
	e := Explanation{EventID: id, Row: row, Rules: []Rule{}}
	if set, err := h.gate.Policy(); err == nil {
		e.InForce = set.Digest() == row.Policy
		for _, r := range rules(set) {
			if slices.Contains(row.Rules, r.ID) {
				e.Rules = append(e.Rules, r)
			}
		}
	}
	return verbs.Answer(e)
}

// tested is one example and how it came out.
type tested struct {
	Rule    string `json:"rule"` // empty for one that was asked for
	Example string `json:"example"`
	Want    string `json:"want"` // empty when nothing is demanded
	Got     string `json:"got"`
	Pass    bool   `json:"pass"`
	Reason  string `json:"reason"`
}

func (h handler) test(call *verbs.Call) (verbs.Reply, error) {
	set, err := h.gate.Policy()
	if err != nil {
		return verbs.Reply{}, err
	}
	all := []tested{}
	for _, r := range set.Test() {
		all = append(all, tested{r.Rule, r.Example, string(r.Want), string(r.Decision.Ruling), r.Pass(), r.Decision.Reason})
	}
	lines, _ := call.Arg("examples")
	for _, it := range lines.Items() {
		text, _ := it.Value.Text()
		ex, err := gate.ParseExample(text)
		if err != nil {
			return verbs.Reply{}, fault.Wrap(err, fault.InvalidRequest, "read example", text)
		}
		d := set.Decide(ex.Request)
		all = append(all, tested{Example: text, Got: string(d.Ruling), Pass: true, Reason: d.Reason})
	}
	return verbs.Answer(map[string]any{"digest": set.Digest(), "examples": all})
}
