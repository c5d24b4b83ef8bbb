package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/control"
)

// policyRule is a rule as policy show has it.
type policyRule struct {
	ID     string `json:"id"`
	Effect string `json:"effect"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Text   string `json:"text"`
}

// policySet is the set in force.
type policySet struct {
	Digest string       `json:"digest"`
	Rules  []policyRule `json:"rules"`
}

// explanation is why an act was allowed or refused.
type explanation struct {
	EventID int64                 `json:"event_id"`
	Row     event.AuditDispatchV1 `json:"row"`
	Rules   []policyRule          `json:"rules"`
	InForce bool                  `json:"in_force"`
}

func (a *app) cmdPolicy() *cobra.Command {
	return group(&cobra.Command{
		Use:   "policy",
		Short: "The policy: which rules are in force, what they do, why they ruled so",
		Long: `Policies are the .cedar files in the directory policy of the data directory; without
that directory the shipped one is in force. A core reads them when it starts.`,
		Example: `  reeve policy show
  reeve policy test
  reeve policy explain aud_0193`,
	}, a.cmdPolicyShow(), a.cmdPolicyTest(), a.cmdPolicyExplain(), a.cmdPolicyDiff())
}

func (a *app) cmdPolicyShow() *cobra.Command {
	var shipped bool
	c := &cobra.Command{
		Use:   "show [rule]",
		Short: "Show the rules in force, one of them whole, or the shipped policy",
		Args:  cobra.MaximumNArgs(1),
		Example: `  reeve policy show
  reeve policy show git-stays-git
  reeve policy show --shipped > policy.cedar`,
	}
	c.Flags().BoolVar(&shipped, "shipped", false, "print the policy that reeve init writes; asks no core")
	completeFields(c, members(reflect.TypeFor[policySet]()))
	return a.does(c, func(ctx context.Context, args []string) answer {
		if shipped {
			return shippedPolicy()
		}
		return a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
			var set policySet
			if err := a.ask(ctx, c, "policy.show", nil, &set); err != nil {
				return failed(leads(err, map[fault.Code]string{fault.GateUnavailable: "reeve policy test"}))
			}
			if len(args) == 1 {
				return oneRule(set, args[0])
			}
			return answer{kind: "policy", data: set, text: func(p printer) {
				rows := make([][]string, len(set.Rules))
				for i, r := range set.Rules {
					rows[i] = []string{r.ID, r.Effect, fmt.Sprintf("%s:%d", r.File, r.Line), r.Reason}
				}
				p.table("no rules: everything is denied", []string{"RULE", "EFFECT", "WHERE", "REASON"}, rows)
				a.note("policy %s", set.Digest)
			}}
		})(ctx, args)
	})
}

// shippedText is the policy that comes with reeve.
type shippedText struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func shippedPolicy() answer {
	s := gate.DefaultSource()
	return answer{kind: "shipped_policy", data: shippedText{s.Name, string(s.Text)}, text: func(p printer) { _, _ = p.w.Write(s.Text) }}
}

func oneRule(set policySet, id string) answer {
	var names []string
	for _, r := range set.Rules {
		if r.ID == id {
			return answer{kind: "rule", data: r, text: func(p printer) {
				p.line("%s", inert(strings.TrimRight(r.Text, "\n")))
			}}
		}
		names = append(names, r.ID)
	}
	e := fault.New(fault.NotFound, "show rule", id, "the set in force has no such rule").WithNext("reeve policy show")
	if near, ok := fault.Nearest(id, names); ok {
		e.Next = "reeve policy show " + near
	}
	return failed(e)
}

func (a *app) cmdPolicyExplain() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain <decision>",
		Short: "Say why an act was allowed or refused",
		Long: `Show the decision on record: who asked for what, which rules decided, and what they say
now. A decision is named by its audit row (aud_…), its act (act_…), or the id of its
event; a unique beginning is enough.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve policy explain aud_0193
  reeve policy explain act_0193
  reeve policy explain 42 --json --jq .data.row.deny_reason`,
	}
	completeFields(c, members(reflect.TypeFor[explanation]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		var e explanation
		if err := a.ask(ctx, c, "policy.explain", arguments{"decision": args[0]}, &e); err != nil {
			return failed(leads(err, map[fault.Code]string{
				fault.NotFound: "reeve receipt list", fault.Ambiguous: "give more of the id; reeve receipt list shows them",
			}))
		}
		return answer{kind: "explanation", data: e, ids: map[string]string{"audit": e.Row.ID}, text: func(p printer) { e.show(p) }}
	}))
}

func (e *explanation) show(p printer) {
	r := &e.Row
	duties := make([]string, len(r.Obligations))
	for i, o := range r.Obligations {
		duties[i] = strings.TrimSpace(o.Kind + " " + o.Detail)
	}
	set := r.Policy
	if !e.InForce {
		set += ", which is not in force any more"
	}
	p.pairs("audit row", r.ID, "event", fmt.Sprint(e.EventID), "at", p.when(r.AtMS), "verb", r.Verb, "effect", text(r.Effect), "by", r.Actor,
		"surface", r.Surface, "session", text(r.SessionID), "decision", string(r.Decision), "reason", text(r.DenyReason),
		"rules", strings.Join(r.Rules, ", "), "obligations", strings.Join(duties, "; "), "outcome", string(r.Outcome), "code", text(r.Code),
		"act", text(r.Act), "policy", set)
	for _, x := range e.Rules {
		p.part(fmt.Sprintf("%s (%s:%d)", x.ID, x.File, x.Line), x.Text)
	}
}

// text is what s points to, empty for nil.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
