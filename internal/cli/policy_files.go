package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
)

// policyTest is what policy test found.
type policyTest struct {
	Digest   string          `json:"digest"`
	Files    []string        `json:"files"`
	Examples []policyExample `json:"examples"`
	Warnings []string        `json:"warnings"`
}

// policyExample is one line and how the set rules on it.
type policyExample struct {
	Rule    string `json:"rule"` // that carries it; empty for one of --example
	Example string `json:"example"`
	Want    string `json:"want"` // empty when nothing is demanded
	Got     string `json:"got"`
	Reason  string `json:"reason"`
}

// sourcesOf reads policies from files and directories, or those of the data
// directory when none is named.
func (a *app) sourcesOf(paths []string) ([]gate.Source, error) {
	if len(paths) == 0 {
		dir, err := a.dataDir()
		if err != nil {
			return nil, err
		}
		if a.programs.Policies == nil {
			return nil, missing("reading the policies of a data directory")
		}
		return a.programs.Policies(dir)
	}
	var all []gate.Source
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.io.WorkDir, path)
		}
		files, err := filepath.Glob(filepath.Join(path, "*.cedar"))
		if err != nil || len(files) == 0 {
			files = []string{path}
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil, fault.Wrap(err, fault.NotFound, "read policy", f).WithNext("name a .cedar file, or a directory of them")
			case err != nil:
				return nil, fault.Wrap(err, fault.Usage, "read policy", f).WithNext("name a .cedar file, or a directory of them")
			}
			all = append(all, gate.Source{Name: filepath.Base(f), Text: text})
		}
	}
	return all, nil
}

// loadPolicy compiles a set and checks its examples. What is wrong with it is a
// finding.
func (a *app) loadPolicy(paths []string) (*gate.Policy, []gate.Source, error) {
	sources, err := a.sourcesOf(paths)
	if err != nil {
		return nil, nil, err
	}
	set, err := gate.Load(sources)
	if err != nil {
		return nil, sources, fault.Wrap(err, fault.Findings, "", "")
	}
	return set, sources, nil
}

func (a *app) cmdPolicyTest() *cobra.Command {
	var examples []string
	c := &cobra.Command{
		Use:   "test [file or directory]...",
		Short: "Check policies and their examples, without a core",
		Long: `Compile policies, run the examples that their rules carry, and say how they rule on the
lines of --example. Without a file the policies of the data directory are meant.

Status: 0 good, 9 something is wrong with them.`,
		Example: `  reeve policy test
  reeve policy test draft.cedar
  reeve policy test --example 'session:main workspace.run workspace argv=["git","push"]'`,
	}
	c.Flags().StringArrayVar(&examples, "example", nil, "a line to rule on: KIND[:ID] VERB EFFECT [name=value …]; may be repeated")
	completeFields(c, members(reflect.TypeFor[policyTest]()))
	c.Args = cobra.ArbitraryArgs
	return a.does(c, func(_ context.Context, args []string) answer {
		set, sources, err := a.loadPolicy(args)
		if err != nil {
			return failed(err)
		}
		t := policyTest{Digest: set.Digest(), Files: []string{}, Examples: []policyExample{}, Warnings: fences(set)}
		for _, s := range sources {
			t.Files = append(t.Files, s.Name)
		}
		for _, r := range set.Test() {
			t.Examples = append(t.Examples, policyExample{r.Rule, r.Example, string(r.Want), string(r.Decision.Ruling), r.Decision.Reason})
		}
		held := len(t.Examples)
		for _, line := range examples {
			ex, err := gate.ParseExample(line)
			if err != nil {
				return failed(fault.Wrap(err, fault.Usage, "read example", "").WithNext("write for example 'session workspace.read read path=go.mod'"))
			}
			t.Examples = append(t.Examples, example(set, ex))
		}
		return answer{kind: "policy_test", data: t, text: func(p printer) {
			for _, x := range t.Examples[held:] {
				p.line("%s\t%s", p.paint(styleOf(x.Got), x.Got), visible(x.Example))
				if x.Reason != "" {
					p.line("\t%s", inert(x.Reason))
				}
			}
			for _, w := range t.Warnings {
				p.line("%s: %s", p.paint(warn, "warning"), w)
			}
			p.line("%s: %s in %s, %s hold, policy %s", p.paint(good, "good"), count(int64(len(set.Rules())), "rule", "rules"),
				strings.Join(t.Files, ", "), count(int64(held), "example", "examples"), t.Digest)
		}}
	})
}

func styleOf(ruling string) string {
	switch ruling {
	case string(gate.Allow):
		return good
	case "hold":
		return warn
	}
	return bad
}

func example(set *gate.Policy, ex gate.Example) policyExample {
	d := set.Decide(ex.Request)
	x := policyExample{Example: ex.Text, Got: string(d.Ruling), Reason: d.Reason}
	if hold, held := d.Hold(); held {
		x.Got, x.Reason = "hold", hold.Reason
	}
	return x
}

// landing is the operation that no policy should stand in the way of: without it a
// change that was made is never recorded.
const landing = "developer_record_landing"

// fences warns of a set that could deny, hold or limit the recording of a landing
// (VD-202). It asks for every circumstance that a rule can see of it.
func fences(set *gate.Policy) []string {
	found := []string{}
	add := func(w string) {
		for _, f := range found {
			if f == w {
				return
			}
		}
		found = append(found, w)
	}
	for _, who := range []string{"session", "client"} {
		for _, with := range circumstances() {
			ex, err := gate.ParseExample(who + " " + landing + " record" + with)
			if err != nil {
				add(err.Error())
				continue
			}
			d := set.Decide(ex.Request)
			if d.Ruling != gate.Allow {
				add(fmt.Sprintf("it can refuse %s to a %s: %s", landing, who, d.Reason))
			}
			for _, o := range d.Obligations {
				if o.Kind != gate.ObligeAudit {
					add(fmt.Sprintf("rule %q can hold up %s of a %s (%s)", o.Rule, landing, who, o.Kind))
				}
			}
		}
	}
	return found
}

func circumstances() []string {
	all := []string{""}
	for _, attribute := range []string{
		"discipline off advisory enforced", "authorized false true", "scope_open false true",
		"isolation off confined", "attended false true", "surface mcp worker",
	} {
		values := strings.Fields(attribute)
		var more []string
		for _, line := range all {
			for _, v := range values[1:] {
				more = append(more, line+" "+values[0]+"="+v)
			}
		}
		all = more
	}
	return all
}

// policyChange is one difference between two sets.
type policyChange struct {
	Kind    string `json:"kind"` // added | removed | changed | ruling
	Rule    string `json:"rule"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Example string `json:"example"` // of kind ruling
}

func (a *app) cmdPolicyDiff() *cobra.Command {
	c := &cobra.Command{
		Use:   "diff [before] [after]",
		Short: "Compare two policies: rules, and examples that would be ruled otherwise",
		Long: `Compare the shipped policy with that of the data directory; with one file or directory,
that of the data directory with it; with two, the first with the second. Needs no core.

Status: 0 they are the same, 9 they differ.`,
		Args: cobra.MaximumNArgs(2),
		Example: `  reeve policy diff               what you changed in the shipped one
  reeve policy diff draft.cedar   what the draft would change
  reeve policy diff old.cedar new.cedar --json --jq '.data[].rule'`,
	}
	completeFields(c, members(reflect.TypeFor[policyChange]()))
	return a.does(c, func(_ context.Context, args []string) answer {
		before, after, err := a.pair(args)
		if err != nil {
			return failed(err)
		}
		all := []policyChange{}
		for _, x := range gate.Diff(before, after) {
			all = append(all, policyChange(x))
		}
		ans := answer{kind: "policy_diff", data: all, rows: true, text: func(p printer) { showDiff(p, all) }}
		if len(all) > 0 {
			ans.err = fault.New(fault.Findings, "compare policies", "", "they differ: %s", count(int64(len(all)), "difference", "differences")).
				WithNext("reeve policy test checks the examples of both")
		}
		return ans
	})
}

func (a *app) pair(args []string) (before, after *gate.Policy, err error) {
	switch len(args) {
	case 0:
		if before, err = gate.Load([]gate.Source{gate.DefaultSource()}); err != nil {
			return nil, nil, err
		}
		after, _, err = a.loadPolicy(nil)
	case 1:
		if before, _, err = a.loadPolicy(nil); err != nil {
			return nil, nil, err
		}
		after, _, err = a.loadPolicy(args)
	default:
		if before, _, err = a.loadPolicy(args[:1]); err != nil {
			return nil, nil, err
		}
		after, _, err = a.loadPolicy(args[1:])
	}
	return before, after, err
}

func showDiff(p printer, all []policyChange) {
	if len(all) == 0 {
		p.line("no difference")
	}
	for _, x := range all {
		switch x.Kind {
		case "ruling":
			p.line("%s\t%s\t%s → %s", x.Kind, visible(x.Example), x.Before, p.paint(styleOf(x.After), x.After))
			continue
		case "added":
			p.line("%s\t%s", p.paint(good, x.Kind), x.Rule)
		case "removed":
			p.line("%s\t%s", p.paint(bad, x.Kind), x.Rule)
		default:
			p.line("%s\t%s", p.paint(warn, x.Kind), x.Rule)
		}
		for _, side := range []struct{ sign, text, style string }{{"-", x.Before, bad}, {"+", x.After, good}} {
			for l := range strings.Lines(side.text) {
				p.line("%s", p.paint(side.style, side.sign+inert(strings.TrimRight(l, "\n"))))
			}
		}
	}
}
