package gate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
)

func load(t testing.TB, text string) *gate.Policy {
	t.Helper()
	p, err := gate.Load([]gate.Source{{Name: "test.cedar", Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func example(t testing.TB, line string) gate.Request {
	t.Helper()
	ex, err := gate.ParseExample(line)
	if err != nil {
		t.Fatal(err)
	}
	return ex.Request
}

const permitAll = `@id("all") @reason("everything") permit (principal, action, resource);` + "\n"

func TestNothingIsAllowedThatNoRulePermits(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-102")
	p := load(t, `@id("reads") @reason("reads are free") permit (principal, action in Effect::"read", resource);`)
	got := p.Decide(example(t, "session:s1 workspace.write workspace path=a"))
	if got.Ruling != gate.Deny || got.Forbidden {
		t.Fatalf("ruling %s, forbidden %v; want a deny that is not a prohibition", got.Ruling, got.Forbidden)
	}
	if !strings.Contains(got.Reason, "no rule permits workspace.write") || got.Remedy == "" {
		t.Errorf("reason %q, remedy %q: want both to name the way out", got.Reason, got.Remedy)
	}
	if p.Decide(example(t, "session:s1 workspace.read read")).Ruling != gate.Allow {
		t.Error("a read is not allowed")
	}
}

func TestForbidNamesRuleFactAndRemedy(t *testing.T) {
	t.Parallel()
	p := load(t, permitAll+`
@id("needs-authority") @reason("changes need an authorization") @remedy("call developer_authorize_change")
forbid (principal is Session, action in Effect::"workspace", resource) when { context.work.discipline == "enforced" && !context.work.authorized };`)
	got := p.Decide(example(t, "session:s1 workspace.write workspace discipline=enforced authorized=false"))
	want := gate.Decision{
		Ruling: gate.Deny, Forbidden: true, Rules: []string{"needs-authority"},
		Reason: `rule "needs-authority" forbids workspace.write for session "s1": changes need an authorization`,
		Remedy: "call developer_authorize_change",
		Facts: []gate.Fact{
			{Name: "context.work.authorized", Value: "false"},
			{Name: "context.work.discipline", Value: `"enforced"`},
		},
		Digest: p.Digest(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if err := got.Err("workspace.write"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("Err code %s, want denied", fault.CodeOf(err))
	}
	if p.Decide(example(t, "session:s1 workspace.write workspace discipline=enforced authorized=true")).Ruling != gate.Allow {
		t.Error("an authorized change is not allowed")
	}
}

// A forbid whose condition cannot be evaluated must never let the act through, though
// a permit covers it: Cedar on its own would skip the forbid.
func TestBrokenRuleRefuses(t *testing.T) {
	t.Parallel()
	for name, condition := range map[string]string{
		"missing attribute of the principal": `principal.team == "core"`,
		"missing attribute of the resource":  `resource.frozen`,
		"wrong type":                         `context.args.path < 3`,
		"wrong type in a set test":           `context.args.path.contains("x")`,
		"overflow":                           `context.args.bytes + 9223372036854775807 > 0`,
		"not a boolean":                      `context.args.path`,
		"not an address":                     `ip(context.args.target).isLoopback()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Attr("requirement", "VD-097 VD-101")
			p := load(t, permitAll+`@id("broken") @reason("r") forbid (principal, action, resource) when { `+condition+` };`)
			got := p.Decide(example(t, "session:s1 workspace.write workspace bytes=1 target=nowhere"))
			if got.Ruling != gate.Error || len(got.Broken) != 1 || got.Broken[0].Rule != "broken" {
				t.Fatalf("decision %+v, want an error ruling naming rule broken", got)
			}
			err := got.Err("workspace.write")
			if fault.CodeOf(err) != fault.GateUnavailable {
				t.Errorf("code %s, want gate_unavailable", fault.CodeOf(err))
			}
			if strings.Contains(err.Error(), got.Broken[0].Message) {
				t.Errorf("%q carries the evaluator's own text", err)
			}
		})
	}
}

func TestBrokenPermitRefusesThoughAnotherPermits(t *testing.T) {
	t.Parallel()
	p := load(t, permitAll+`@id("broken") @reason("r") permit (principal, action, resource) when { principal.team == "core" };`)
	if got := p.Decide(example(t, "session:s1 workspace.write workspace")); got.Ruling != gate.Error {
		t.Errorf("ruling %s, want error", got.Ruling)
	}
}

func TestInvalidRequestIsRefused(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-098")
	p := load(t, permitAll)
	good := example(t, "session:s1 workspace.write workspace")
	for name, change := range map[string]func(*gate.Request){
		"empty kind":      func(r *gate.Request) { r.Actor.Kind = "" },
		"unknown kind":    func(r *gate.Request) { r.Actor.Kind = "root" },
		"blank id":        func(r *gate.Request) { r.Actor.ID = " \t" },
		"empty verb":      func(r *gate.Request) { r.Verb.Name = "" },
		"empty namespace": func(r *gate.Request) { r.Namespace = "" },
		"unknown effect":  func(r *gate.Request) { r.Verb.Effect = "harmless" },
	} {
		r := good
		change(&r)
		if got := p.Decide(r); got.Ruling != gate.Error {
			t.Errorf("%s: ruling %s, want error", name, got.Ruling)
		}
	}
	if p.Decide(good).Ruling != gate.Allow {
		t.Error("the unchanged request is not allowed")
	}
}

func TestNamespacesNest(t *testing.T) {
	t.Parallel()
	p := load(t, `@id("research") @reason("r") permit (principal, action, resource in Namespace::"research");`)
	for ns, want := range map[string]gate.Ruling{"research": gate.Allow, "research:x": gate.Allow, "research:x:y": gate.Allow, "researchx": gate.Deny, "x:research": gate.Deny} {
		if got := p.Decide(example(t, "session:s1 workspace.read read namespace="+ns)).Ruling; got != want {
			t.Errorf("namespace %s: %s, want %s", ns, got, want)
		}
	}
}

func TestArgvPatternsCannotConfuseArguments(t *testing.T) {
	t.Parallel()
	p := load(t, `@id("git-status") @reason("r") permit (principal, action == Action::"workspace.run", resource) when { context.args.argv like "[\"git\",\"status\"*" };`)
	for argv, want := range map[string]gate.Ruling{
		`["git","status"]`:          gate.Allow,
		`["git","status","-s"]`:     gate.Allow,
		`["git status"]`:            gate.Deny,
		`["git\",\"status","push"]`: gate.Deny,
	} {
		if got := p.Decide(example(t, "session:s1 workspace.run workspace argv="+argv)).Ruling; got != want {
			t.Errorf("argv %s: %s, want %s", argv, got, want)
		}
	}
}

func TestObligationsOfAllDecidingPermits(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-099 VD-203")
	p := load(t, `
@id("a") @reason("r") @audit("sensitive") permit (principal, action, resource);
@id("b") @reason("r") @hold("look first") @rate_limit("10/1m") permit (principal, action == Action::"peer.open", resource);`)
	got := p.Decide(example(t, "session:s1 peer.open external"))
	want := []gate.Obligation{
		{Kind: gate.ObligeAudit, Rule: "a", Tag: "sensitive"},
		{Kind: gate.ObligeHold, Rule: "b", Reason: "look first"},
		{Kind: gate.ObligeRateLimit, Rule: "b", Max: 10, WindowSecs: 60},
	}
	if diff := cmp.Diff(want, got.Obligations); diff != "" {
		t.Errorf("obligations (-want +got):\n%s", diff)
	}
	if hold, ok := got.Hold(); !ok || hold.Reason != "look first" {
		t.Errorf("hold %+v %v", hold, ok)
	}
	b, err := p.Decide(example(t, "session:s1 workspace.read read")).JSON()
	if err != nil || string(b) != `{"decision":"allow","obligations":[{"kind":"audit","rule":"a","tag":"sensitive"}]}` {
		t.Errorf("JSON %s, %v", b, err)
	}
	b, err = load(t, permitAll).Decide(example(t, "session:s1 workspace.read read")).JSON()
	if err != nil || string(b) != `{"decision":"allow","obligations":[]}` {
		t.Errorf("JSON without obligations %s, %v", b, err)
	}
}

// Whatever else a set holds, a matching forbid decides, and no set answers allow when
// one of its rules broke.
func TestForbidAlwaysWins(t *testing.T) {
	t.Parallel()
	conditions := []string{"true", "false", "context.work.authorized", "context.args.path == \"a\"", "principal.team == 1", "context.args.bytes > 2"}
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		broken, forbids := false, false
		bytes := rapid.Int64Range(0, 4).Draw(rt, "bytes")
		authorized := rapid.Bool().Draw(rt, "authorized")
		holds := map[string]bool{"true": true, "context.work.authorized": authorized, "context.args.path == \"a\"": true, "context.args.bytes > 2": bytes > 2}
		for i := range rapid.IntRange(1, 6).Draw(rt, "rules") {
			effect := rapid.SampledFrom([]string{"permit", "forbid"}).Draw(rt, "effect")
			c := rapid.SampledFrom(conditions).Draw(rt, "condition")
			text.WriteString(`@id("r` + string(rune('a'+i)) + `") @reason("r") ` + effect + " (principal, action, resource) when { " + c + " };\n")
			broken = broken || c == "principal.team == 1"
			forbids = forbids || effect == "forbid" && holds[c]
		}
		p, err := gate.Load([]gate.Source{{Name: "r.cedar", Text: []byte(text.String())}})
		if err != nil {
			rt.Fatal(err)
		}
		r := example(t, "session:s1 workspace.write workspace path=a")
		r.Args.Bytes, r.Work.Authorized = bytes, authorized
		got := p.Decide(r)
		switch {
		case broken && got.Ruling != gate.Error:
			rt.Fatalf("%s with a broken rule in\n%s", got.Ruling, text.String())
		case !broken && forbids && (got.Ruling != gate.Deny || !got.Forbidden):
			rt.Fatalf("%+v though a forbid matches in\n%s", got, text.String())
		}
	})
}

func BenchmarkDecideDefault(b *testing.B) {
	p, err := gate.Load([]gate.Source{gate.DefaultSource()})
	if err != nil {
		b.Fatal(err)
	}
	for name, line := range map[string]string{
		"allow": "session:s1 workspace.edit workspace path=src/a.go",
		"deny":  "session:s1 workspace.edit workspace path=.git/config",
	} {
		r := example(b, line)
		r.Verb = gate.NewVerb(r.Verb.Name, r.Verb.Pack, r.Verb.Category, r.Verb.Effect)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(r)
			}
		})
	}
}

// A registry's verbs are ruled on by the rules about them alone; any verb by all of
// them. Both must say the same.
func TestAPreparedVerbIsRuledOnAsAnyOther(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-102")
	sets := []*gate.Policy{
		load(t, permitAll+`
@id("git") @reason("no") forbid (principal is Session, action in [Action::"workspace.write", Pack::"held"], resource) when { context.args.in_git };
@id("long") @reason("no") forbid (principal, action in Effect::"workspace", resource) when { context.args.bytes + 9223372036854775807 > 0 };
@id("one") @reason("no") forbid (principal, action == Action::"held.list", resource in Namespace::"a") unless { context.work.authorized };`),
	}
	shipped, err := gate.Load([]gate.Source{gate.DefaultSource()})
	if err != nil {
		t.Fatal(err)
	}
	sets = append(sets, shipped)
	verbs := map[string]gate.Verb{}
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(sets).Draw(rt, "set")
		name := rapid.SampledFrom([]string{"workspace.write", "workspace.read", "held.list", "held.approve", "peer.open", "unknown"}).Draw(rt, "verb")
		effect := map[string]gate.Effect{"workspace.write": gate.Workspace, "held.approve": gate.Record, "peer.open": gate.External}[name]
		if effect == "" {
			effect = gate.Read
		}
		pack, _, _ := strings.Cut(name, ".")
		if _, ok := verbs[name]; !ok {
			verbs[name] = gate.NewVerb(name, pack, "assertive", effect)
		}
		r := gate.Request{
			Actor: gate.Actor{
				Kind: rapid.SampledFrom([]gate.ActorKind{gate.Operator, gate.Session, gate.Client, gate.Hook, gate.Anonymous}).Draw(rt, "kind"),
				ID:   "x",
			},
			Namespace: rapid.SampledFrom([]string{"a", "a:b", "local"}).Draw(rt, "namespace"),
			Verb:      gate.Verb{Name: name, Pack: pack, Category: "assertive", Effect: effect},
			Args: gate.Args{
				Path:  rapid.SampledFrom([]string{"", "a", ".git/config", "../x"}).Draw(rt, "path"),
				Bytes: rapid.SampledFrom([]int64{0, 1}).Draw(rt, "bytes"),
			},
			Work:    gate.Work{Discipline: "off", Authorized: rapid.Bool().Draw(rt, "authorized")},
			Context: gate.Context{SessionID: rapid.SampledFrom([]string{"", "s1", "s2"}).Draw(rt, "session"), Surface: "worker", Isolation: "off"},
		}
		want := p.Decide(r)
		r.Verb = verbs[name]
		if d := cmp.Diff(want, p.Decide(r)); d != "" {
			rt.Errorf("%+v (-any +prepared):\n%s", r, d)
		}
	})
}
