package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/control"
)

// ruling is what would become of an act.
type ruling struct {
	Verb        string            `json:"verb"`
	Effect      string            `json:"effect"`
	As          string            `json:"as"`
	Ruling      string            `json:"ruling"` // allow | hold | deny | error | refused
	Code        fault.Code        `json:"code"`
	Reason      string            `json:"reason"`
	Rules       []string          `json:"rules"`
	Forbidden   bool              `json:"forbidden"`
	Facts       []gate.Fact       `json:"facts"`
	Remedy      string            `json:"remedy"`
	Obligations []gate.Obligation `json:"obligations"`
	Policy      string            `json:"policy"`
}

func (a *app) cmdCan() *cobra.Command {
	var as string
	c := &cobra.Command{
		Use:   "can <verb> [name=value]...",
		Short: "Say whether an act would be allowed, held or denied, and why",
		Long: `Ask the gate about an act by the steps that the act itself would take. Nothing is done,
recorded as done, or counted against a rate limit. A value is JSON or a bare word.

Status: 0 it would be done, 7 it would wait for you, 6 it would be denied; otherwise
that of what it would fail of.`,
		Args: cobra.MinimumNArgs(1),
		Example: `  reeve can workspace.write path=go.mod content=x --as session:main
  reeve can workspace.run argv='["git","push"]' --as client:claude
  reeve can stats --json --jq .data.ruling`,
		ValidArgsFunction: first(a.completeVerbs()),
	}
	c.Flags().StringVar(&as, "as", "", "for whom: session:ID (session:. is the working directory's), client:NAME, hook:NAME (default: you)")
	completeFields(c, members(reflect.TypeFor[ruling]()))
	return a.does(c, func(ctx context.Context, args []string) answer {
		given, err := values(args[1:])
		if err != nil {
			return failed(err)
		}
		whom := as
		if whom == "session:." {
			whom = "session:" + DefaultSession(a.io.WorkDir)
		}
		return a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
			var r ruling
			if err := a.ask(ctx, c, "policy.can", arguments{"verb": args[0], "args": given}.text("as", whom), &r); err != nil {
				return failed(err)
			}
			return answer{kind: "ruling", data: r, err: r.err(), text: func(p printer) { r.show(p) }}
		})(ctx, args)
	})
}

// err is what the ruling means for the status of the command.
func (r *ruling) err() error {
	if r.Ruling == "allow" {
		return nil
	}
	e := fault.New(r.Code, "ask gate", r.Verb, "it would %s: %s", map[string]string{
		"hold": "wait for you", "deny": "be denied", "error": "be refused", "refused": "be refused",
	}[r.Ruling], r.Reason)
	e.Next = r.Remedy
	switch {
	case r.Code == fault.UnknownMethod:
		e.Next = "reeve pack list"
	case e.Next != "":
	case r.Code == fault.InvalidRequest:
		e.Next = "reeve pack show " + r.Verb
	default:
		e.Next = "reeve policy show"
	}
	return e
}

func (r *ruling) show(p printer) {
	style := map[string]string{"allow": good, "hold": warn}[r.Ruling]
	if style == "" {
		style = bad
	}
	facts := make([]string, len(r.Facts))
	for i, f := range r.Facts {
		facts[i] = f.Name + " = " + f.Value
	}
	duties := make([]string, len(r.Obligations))
	for i, o := range r.Obligations {
		duties[i] = dutyText(o)
	}
	p.line("%s", p.paint(style, r.Ruling))
	p.pairs("verb", r.Verb, "effect", r.Effect, "as", r.As, "rules", strings.Join(r.Rules, ", "), "because", strings.Join(facts, ", "),
		"then", strings.Join(duties, "; "), "policy", r.Policy)
}

func dutyText(o gate.Obligation) string {
	switch o.Kind {
	case gate.ObligeHold:
		return "it waits: " + o.Reason
	case gate.ObligeRateLimit:
		return fmt.Sprintf("at most %d in %d s", o.Max, o.WindowSecs)
	}
	return "its audit row is marked " + o.Tag
}
