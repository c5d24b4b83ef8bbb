package gate_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
)

func TestLoadRefusesWhatAnAuthorCanGetWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, contains string }{
		"syntax":              {`permit (principal, action`, "parse"},
		"no id":               {`@reason("r") permit (principal, action, resource);`, "@id"},
		"no reason":           {`@id("a") permit (principal, action, resource);`, "@reason"},
		"duplicate id":        {permitAll + permitAll, "taken by line 1"},
		"misspelt annotation": {`@id("a") @reason("r") @hodl("x") permit (principal, action, resource);`, "@hodl"},
		"misspelt attribute":  {`@id("a") @reason("r") forbid (principal, action, resource) when { context.work.authorised };`, "nearest: context.work.authorized"},
		"misspelt has":        {`@id("a") @reason("r") forbid (principal, action, resource) when { context has wrk };`, "context.wrk"},
		"hold on a forbid":    {`@id("a") @reason("r") @hold("x") forbid (principal, action, resource);`, "obligations"},
		"rate without window": {`@id("a") @reason("r") @rate_limit("10") permit (principal, action, resource);`, "COUNT/WINDOW"},
		"rate of nothing":     {`@id("a") @reason("r") @rate_limit("0/1m") permit (principal, action, resource);`, "COUNT/WINDOW"},
		"broken example":      {`@id("a") @reason("r") @must_allow("session") permit (principal, action, resource);`, "want KIND"},
		"example not met":     {`@id("a") @reason("r") @must_deny("session workspace.read read") permit (principal, action, resource);`, "must be deny but is allow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := gate.Load([]gate.Source{{Name: "p.cedar", Text: []byte(c.text)}})
			if fault.CodeOf(err) != fault.InvalidRequest || !strings.Contains(err.Error(), c.contains) {
				t.Errorf("error %v, want invalid_request with %q", err, c.contains)
			}
		})
	}
}

func TestDefaultPolicy(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-202 VD-204")
	p := load(t, string(gate.DefaultSource().Text))
	results := p.Test()
	if len(results) < 25 {
		t.Errorf("%d examples in the default policy, want at least 25", len(results))
	}
	for _, r := range results {
		if !r.Pass() {
			t.Errorf("%s: %s: %s", r.Rule, r.Example, r.Decision.Ruling)
		}
	}
	operations := []string{"developer_open_judgment", "developer_open_context_sources", "developer_conclude_judgment", "developer_authorize_change", "developer_record_landing"}
	for _, op := range operations {
		if got := p.Decide(example(t, "session:s1 "+op+" record")); got.Ruling != gate.Allow || len(got.Obligations) != 0 {
			t.Errorf("%s: %s with %v", op, got.Ruling, got.Obligations)
		}
	}
	for line, code := range map[string]fault.Code{
		"session:s1 misspelt.verb read":                              "",
		"session:s1 unknown read":                                    "",
		"session:s1 remote.call external":                            fault.Denied,
		"hook:delivery.review local.send record":                     fault.Denied,
		"anonymous:local workspace.info read":                        fault.Denied,
		"session:s1 held.approve record":                             fault.Denied,
		"session:s1 workspace.write workspace path=sub/.GIT/hooks/x": fault.Denied,
	} {
		if got := fault.CodeOf(p.Decide(example(t, line)).Err("v")); got != code {
			t.Errorf("%s: code %q, want %q", line, got, code)
		}
	}
}

func TestDigestCoversNamesAndBytes(t *testing.T) {
	t.Parallel()
	base := []gate.Source{{Name: "a.cedar", Text: []byte(permitAll)}, {Name: "b.cedar"}}
	digest := func(s ...gate.Source) string {
		p, err := gate.Load(s)
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest()
	}
	first := digest(base...)
	if digest(base[1], base[0]) != first {
		t.Error("the digest depends on the order of files")
	}
	for name, s := range map[string][]gate.Source{
		"renamed":  {{Name: "c.cedar", Text: []byte(permitAll)}, {Name: "b.cedar"}},
		"edited":   {{Name: "a.cedar", Text: []byte(permitAll + " ")}, {Name: "b.cedar"}},
		"moved":    {{Name: "a.cedar"}, {Name: "b.cedar", Text: []byte(permitAll)}},
		"one less": {{Name: "a.cedar", Text: []byte(permitAll)}},
	} {
		if digest(s...) == first {
			t.Errorf("%s: same digest", name)
		}
	}
}

func TestDiffShowsRulesAndRulings(t *testing.T) {
	t.Parallel()
	before := load(t, permitAll+`@id("old") @reason("r") @must_deny("session workspace.write workspace") forbid (principal is Session, action in Effect::"workspace", resource);`)
	after := load(t, permitAll+`@id("new") @reason("r") forbid (principal is Hook, action, resource);`)
	var got []string
	for _, c := range gate.Diff(before, after) {
		got = append(got, strings.TrimSpace(c.Kind+" "+c.Rule+" "+c.Example))
	}
	want := []string{"added new", "removed old", "ruling old session workspace.write workspace"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if same := gate.Diff(before, before); len(same) != 0 {
		t.Errorf("a set differs from itself: %v", same)
	}
}

func TestRateLimitSlides(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-099")
	p := load(t, `@id("some") @reason("r") @rate_limit("2/10s") permit (principal, action, resource);`)
	d := p.Decide(example(t, "session:s1 workspace.read read"))
	s1, s2 := gate.Actor{Kind: gate.Session, ID: "s1"}, gate.Actor{Kind: gate.Session, ID: "s2"}
	var l gate.Limiter
	at := func(by gate.Actor, second int64) fault.Code {
		return fault.CodeOf(l.Take(d, by, second*1000))
	}
	for i, step := range []struct {
		by     gate.Actor
		second int64
		want   fault.Code
	}{
		{s1, 100, ""}, {s1, 104, ""}, {s1, 105, fault.Denied}, {s2, 105, ""},
		{s1, 109, fault.Denied}, {s1, 110, ""}, {s1, 111, fault.Denied},
		{s1, 20, fault.Denied}, // the clock went back: what was done is not forgotten
		{s1, 114, ""},
	} {
		if got := at(step.by, step.second); got != step.want {
			t.Errorf("step %d at %ds: %q, want %q", i, step.second, got, step.want)
		}
	}
	err := l.Take(d, s1, 115_000)
	if !strings.Contains(err.Error(), `rule "some"`) || !strings.Contains(errNext(err), (5*time.Second).String()) {
		t.Errorf("refusal %v, next %q: want the rule and the wait", err, errNext(err))
	}
}

func errNext(err error) string {
	e, ok := err.(*fault.Error)
	if !ok {
		return ""
	}
	return e.Next
}

func FuzzLoad(f *testing.F) {
	f.Add(string(gate.DefaultSource().Text))
	f.Add(permitAll)
	f.Add(`@id("a") @reason("r") @must_deny("session a.b read argv=[\"x\"]") forbid (principal, action, resource) when { context.args.paths.contains("x") };`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := gate.Load([]gate.Source{{Name: "f.cedar", Text: []byte(text)}})
		if err != nil {
			if !fault.CodeOf(err).Known() {
				t.Fatalf("refused without a code: %v", err)
			}
			return
		}
		p.Decide(example(t, "session:s1 workspace.write workspace path=a"))
	})
}

func FuzzParseExample(f *testing.F) {
	for _, line := range []string{"session:a b.c read", `client x.y workspace argv=["a b","c"] bytes=3`, `operator a record path="x y"`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		ex, err := gate.ParseExample(line)
		if err == nil && ex.Request.Validate() != nil {
			t.Fatalf("%q parses to an invalid request", line)
		}
	})
}

func TestDefaultPolicyIsReadable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("default.cedar")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if len(line) > 240 {
			t.Errorf("line %d has %d characters", i+1, len(line))
		}
	}
}
