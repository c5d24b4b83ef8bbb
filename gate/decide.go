package gate

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

// Decide rules on r. An invalid request is an error ruling.
func (p *Policy) Decide(r Request) Decision {
	if err := r.Validate(); err != nil {
		return Decision{Ruling: Error, Reason: err.Error(), Digest: p.digest}
	}
	req, entities := r.cedar()
	verdict, diag := cedar.Authorize(p.about(r, req, entities), entities, req)
	d := Decision{Digest: p.digest}
	switch {
	case len(diag.Errors) > 0:
		d.broken(diag)
	case verdict == cedar.Allow:
		d.Ruling, d.Rules = Allow, ruleIDs(diag.Reasons)
		for _, id := range d.Rules {
			d.Obligations = append(d.Obligations, p.rules[id].obligations...)
		}
	case len(diag.Reasons) > 0:
		p.forbidden(&d, r, diag, req)
	default:
		p.unpermitted(&d, r, req, entities)
	}
	return d
}

// about are the rules whose scope has the action of r: the others cannot hold, nor
// fail, for their scope is looked at before anything else. Those of a prepared verb
// are found once.
func (p *Policy) about(r Request, req cedar.Request, entities cedar.EntityGetter) cedar.PolicyIterator {
	if r.Verb.static == nil {
		return p.set
	}
	if known, ok := p.byVerb.Load(r.Verb.static); ok {
		return known.(rules) //nolint:forcetypeassert // nothing else is stored
	}
	_, diag := cedar.Authorize(p.actions, entities, req)
	if len(diag.Errors) > 0 {
		return p.set
	}
	var found rules
	for _, id := range ruleIDs(diag.Reasons) {
		found = append(found, ruled{cedar.PolicyID(id), p.set.Get(cedar.PolicyID(id))})
	}
	p.byVerb.Store(r.Verb.static, found)
	return found
}

type ruled struct {
	id     cedar.PolicyID
	policy *cedar.Policy
}

// rules are some of a policy set.
type rules []ruled

// All implements cedar.PolicyIterator.
func (rs rules) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for i := range rs {
			if !yield(rs[i].id, rs[i].policy) {
				return
			}
		}
	}
}

func (d *Decision) broken(diag cedar.Diagnostic) {
	d.Ruling = Error
	for _, e := range diag.Errors {
		d.Broken = append(d.Broken, Broken{Rule: string(e.PolicyID), Message: e.Message})
		d.Rules = append(d.Rules, string(e.PolicyID))
	}
	slices.SortFunc(d.Broken, func(a, b Broken) int { return strings.Compare(a.Rule, b.Rule) })
	slices.Sort(d.Rules)
	d.Reason = fmt.Sprintf("the gate could not evaluate %s, so nothing passes it", quoteList("rule", d.Rules))
}

func (p *Policy) forbidden(d *Decision, r Request, diag cedar.Diagnostic, req cedar.Request) {
	d.Ruling, d.Forbidden, d.Rules = Deny, true, ruleIDs(diag.Reasons)
	var reasons, remedies []string
	for _, id := range d.Rules {
		rule := p.rules[id]
		reasons = appendNew(reasons, rule.Reason)
		remedies = appendNew(remedies, rule.Remedy)
		d.Facts = addFacts(d.Facts, rule.reads, req)
	}
	d.Facts = orScope(d.Facts, req)
	d.Reason = fmt.Sprintf("%s forbids %s for %s %q: %s", quoteList("rule", d.Rules), r.Verb.Name, r.Actor.Kind, r.Actor.ID, strings.Join(reasons, "; "))
	d.Remedy = strings.Join(remedies, "; ")
}

// unpermitted names the permits whose scope covers the act but whose conditions do
// not hold: they say what would allow it.
func (p *Policy) unpermitted(d *Decision, r Request, req cedar.Request, entities cedar.EntityGetter) {
	d.Ruling = Deny
	_, near := cedar.Authorize(p.scopes, entities, req)
	var remedies []string
	for _, id := range ruleIDs(near.Reasons) {
		rule := p.rules[id]
		d.Facts = addFacts(d.Facts, rule.reads, req)
		hint := rule.Remedy
		if hint == "" {
			hint = fmt.Sprintf("rule %q would allow it: %s", id, rule.Reason)
		}
		remedies = appendNew(remedies, hint)
	}
	d.Facts = orScope(d.Facts, req)
	d.Reason = fmt.Sprintf("no rule permits %s for %s %q in namespace %q", r.Verb.Name, r.Actor.Kind, r.Actor.ID, r.Namespace)
	d.Remedy = strings.Join(remedies, "; ")
	if d.Remedy == "" {
		d.Remedy = fmt.Sprintf("the operator can add a rule that permits action %q", r.Verb.Name)
	}
}

func ruleIDs(reasons []cedar.DiagnosticReason) []string {
	ids := make([]string, 0, len(reasons))
	for _, r := range reasons {
		ids = append(ids, string(r.PolicyID))
	}
	slices.Sort(ids)
	return ids
}

func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func quoteList(noun string, ids []string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("%s %q", noun, ids[0])
	}
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = fmt.Sprintf("%q", id)
	}
	return noun + "s " + strings.Join(quoted, ", ")
}

func addFacts(facts []Fact, reads []string, req cedar.Request) []Fact {
	for _, name := range reads {
		if slices.ContainsFunc(facts, func(f Fact) bool { return f.Name == name }) {
			continue
		}
		facts = append(facts, Fact{Name: name, Value: valueAt(req.Context, name)})
	}
	return facts
}

// orScope gives who asked for what when the conditions looked at nothing else.
func orScope(facts []Fact, req cedar.Request) []Fact {
	if len(facts) > 0 {
		return facts
	}
	return []Fact{
		{Name: "principal", Value: string(req.Principal.MarshalCedar())},
		{Name: "action", Value: string(req.Action.MarshalCedar())},
	}
}

// valueAt renders the value a path of the fixed schema has in ctx.
func valueAt(ctx cedar.Record, path string) string {
	var v types.Value = ctx
	for _, name := range strings.Split(path, ".")[1:] {
		rec, ok := v.(cedar.Record)
		if !ok {
			break
		}
		if v, ok = rec.Get(cedar.String(name)); !ok {
			return "absent"
		}
	}
	return string(v.MarshalCedar())
}

// JSON renders the decision in the public shape of VD-099.
func (d Decision) JSON() ([]byte, error) {
	if d.Ruling == Allow {
		obligations := d.Obligations
		if obligations == nil {
			obligations = []Obligation{}
		}
		return json.Marshal(map[string]any{"decision": "allow", "obligations": obligations})
	}
	return json.Marshal(map[string]any{"decision": "deny", "reason": d.Reason})
}
