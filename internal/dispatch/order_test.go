package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

const denyAll = `@id("none") @reason("nothing today") @remedy("ask tomorrow") forbid (principal, action, resource);`

func TestHelpIsNotGatedAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-066 VD-097")
	r := newRig(t, denyAll, nil)
	for _, name := range []string{"fx.write", "fx.hidden"} {
		e := r.one(t, agent(), name+`(help=true)`)
		if !e.OK {
			t.Fatalf("%s: help is refused: %+v", name, e.Error)
		}
		if v, _ := e.Result.Member("verb"); string(v.AppendJSON(nil)) != `"`+name+`"` {
			t.Errorf("help describes %s", v.AppendJSON(nil))
		}
	}
	if r.did() != "" {
		t.Errorf("help did: %s", r.did())
	}
	if e := r.one(t, agent(), `fx.write(help="true")`); e.OK || detail(e, "code") != "permission_denied" {
		t.Errorf("help as a string is taken for help: %+v", e)
	}
}

func TestANamespaceIsReadBeforeTheGate(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097 VD-100")
	r := newRig(t, denyAll, nil)
	for _, ns := range []string{"null", "1", "true", "[]", "{}", `""`, `"a:"`, `"a b"`} {
		e := r.one(t, agent(), `fx.read(namespace=`+ns+`)`)
		if e.OK || e.Error.Kind != "invalid_input" || e.Disposition != request.NotCommitted {
			t.Errorf("namespace %s: %+v", ns, e.Error)
		}
	}
	if r.did() != "" {
		t.Errorf("the gate's row is written although it was not asked: %s", r.did())
	}
}

func TestADenialNeverReachesThePackAndSaysWhetherItIsOnRecord(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097 VD-106 VD-107 VD-110 VD-155 VD-156 VD-158")
	r := newRig(t, permitAll+denyAll, nil)
	e := r.one(t, agent(), `fx.write(n=1)`)
	if e.OK || e.Disposition != request.NotCommitted || e.Error.Kind != "runtime_error" || detail(e, "code") != "permission_denied" {
		t.Fatalf("not a denial: %+v", e)
	}
	if !strings.HasPrefix(e.Error.Message, `permission denied for verb "fx.write": `) {
		t.Errorf("the text begins %q", e.Error.Message)
	}
	row := r.only(t)
	want := map[string]string{
		"verb": "fx.write", "audit_event_id": row.ID, "audit_outcome": "written", "forbidden": "true", "policy": row.Policy,
		"remedy": "ask tomorrow", "next": "ask tomorrow", "rules": `["none"]`, "reason": `rule "none" forbids fx.write for session "s1": nothing today`,
	}
	for name, text := range want {
		if got := detail(e, name); got != text {
			t.Errorf("%s is %s, want %s", name, got, text)
		}
	}
	if row.Decision != event.DecisionDeny || row.Outcome != event.AuditDenied || row.DurationUS != 0 || row.DenyReason == nil || row.Act != nil {
		t.Errorf("the row: %+v", row)
	}
	if r.did() != "owe fx.write" {
		t.Errorf("a denial did: %s", r.did())
	}
}

func TestWhatTheGateCannotDecideIsRefused(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097 VD-101 VD-102")
	broken := permitAll + `@id("bad") @reason("bad") forbid (principal, action, resource) when { context.args.path like "*" && context.args.bytes + 9223372036854775807 > 0 };`
	for name, set := range map[string]func(*rig){
		"no policy":         func(r *rig) { r.SetPolicy(nil, nil) },
		"unreadable policy": func(r *rig) { r.SetPolicy(nil, fault.New(fault.Usage, "read policy", "a.cedar", "secret detail")) },
		"rule that errors": func(r *rig) {
			r.judge = func(*verbs.Call) (verbs.Facts, error) { return verbs.Facts{Bytes: 1}, nil }
			r.put(t, broken)
		},
		"pack that panics": func(r *rig) { r.judge = func(*verbs.Call) (verbs.Facts, error) { panic("facts") } },
	} {
		r := newRig(t, permitAll, nil)
		set(r)
		e := r.one(t, agent(), `fx.write(n=1)`)
		if e.OK || detail(e, "code") != "gate_unavailable" || e.Disposition != request.NotCommitted {
			t.Errorf("%s: %+v", name, e)
			continue
		}
		if !strings.HasPrefix(e.Error.Message, `gate unavailable for verb "fx.write": `) || strings.Contains(e.Error.Message, "secret detail") {
			t.Errorf("%s: the text is %q", name, e.Error.Message)
		}
		row := r.only(t)
		if row.Decision != event.DecisionUnavailable || row.Outcome != event.AuditError {
			t.Errorf("%s: the row: %+v", name, row)
		}
		if r.did() != "owe fx.write" {
			t.Errorf("%s: did %s", name, r.did())
		}
	}
}

func TestAnUnknownVerbIsToldAsSuchAndIsOnRecord(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097 VD-156 VD-204 VD-077 VD-106")
	r := newRig(t, permitAll, nil)
	e := r.one(t, agent(), `fx.raed(n=1)`)
	if e.OK || detail(e, "code") != "unknown_verb" || e.Reason != "verb-refused" || e.Disposition != request.NotCommitted {
		t.Fatalf("unknown verb: %+v", e)
	}
	if !strings.HasPrefix(e.Error.Message, `unknown verb "fx.raed"`) || !strings.Contains(e.Error.Message, "fx.write") || strings.Contains(e.Error.Message, "fx.hidden") {
		t.Errorf("the text is %q", e.Error.Message)
	}
	row := r.only(t)
	if row.Verb != "fx.raed" || row.Pack != nil || row.Outcome != event.AuditError || row.Decision != event.DecisionAllow || row.DurationUS != 0 {
		t.Errorf("the row: %+v", row)
	}
	r.put(t, permitAll+`@id("no-guessing") @reason("no") forbid (principal, action == Action::"unknown", resource);`)
	if e := r.one(t, agent(), `fx.raed()`); detail(e, "code") != "permission_denied" {
		t.Errorf("a rule that forbids unknown names does not: %+v", e.Error)
	}
}

func TestTheRowSaysWhoDidWhatWhereAndHowItEnded(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-106 VD-107 VD-201 VD-097")
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	clock := at
	r := newRig(t, permitAll, func(o *dispatch.Options) { o.Now = func() time.Time { return clock } })
	r.handle = func(context.Context, *verbs.Call) (verbs.Reply, error) {
		clock = clock.Add(1500 * time.Microsecond)
		return verbs.Reply{}, nil
	}
	e := r.one(t, agent(), `fx.look(target_id="0D9B9E7A-1C3F-4E1B-9A54-0C7C5C1D2E3F",namespace="local:a")`)
	if !e.OK {
		t.Fatal(e.Error)
	}
	row := r.only(t)
	text := func(s string) *string { return &s }
	policy, _ := r.Policy()
	want := event.AuditDispatchV1{
		ID: row.ID, AtMS: at.Add(1500 * time.Microsecond).UnixMilli(), Actor: "session:s1", Surface: "worker", SessionID: text("s1"),
		Namespace: "local:a", Verb: "fx.read", Pack: text("fx"), Effect: text("read"), Decision: event.DecisionAllow, Rules: []string{"all"},
		Policy: policy.Digest(), Obligations: []event.Obligation{}, GateImpl: "cedar", Outcome: event.AuditSuccess, DurationUS: 1500,
		TargetID: text("0d9b9e7a-1c3f-4e1b-9a54-0c7c5c1d2e3f"), RefResolution: event.RefLiteral,
		Resource: event.Resource{WorkClass: "read", RequestID: text("7")},
	}
	if d := cmp.Diff(want, row); d != "" {
		t.Errorf("the row (-want +got):\n%s", d)
	}
	if !strings.HasPrefix(row.ID, "aud_") || len(row.ID) != 4+32 {
		t.Errorf("the id is %q", row.ID)
	}
}

func TestTheStepsOfEachEffect(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097 VD-200 CP-151")
	for verb, want := range map[string]string{
		"fx.read":   "run fx.read, owe fx.read",
		"fx.record": "run fx.record, conclude fx.record",
		"fx.own":    "run fx.own",
		"fx.write":  "intend fx.write, run fx.write, conclude fx.write",
		"fx.call":   "intend fx.call, run fx.call, conclude fx.call",
	} {
		r := newRig(t, permitAll, nil)
		if e := r.one(t, agent(), verb+`(n=1)`); !e.OK {
			t.Errorf("%s: %s", verb, e.Error.Message)
		}
		if r.did() != want {
			t.Errorf("%s: %s; want %s", verb, r.did(), want)
		}
	}
}

func TestHandlersGetTheTokenOfTheirOperation(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-103 VD-118 VD-119 VD-119a")
	r := newRig(t, permitAll, nil)
	var call *verbs.Call
	r.handle = func(_ context.Context, c *verbs.Call) (verbs.Reply, error) { call = c; return verbs.Reply{}, nil }
	c := agent()
	c.Identity.Default, c.Identity.Visible = "team:a", []string{"team:b", "not one:"}
	r.one(t, c, `fx.read(n=1)`)
	tok := call.Token
	if tok.Namespace() != "local" || tok.GateNamespace() != "team:a" || tok.Actor() != verbs.NewActor("session", "s1") || tok.Explicit() || tok.RequestID() != 7 {
		t.Errorf("the token: %+v", tok)
	}
	if d := cmp.Diff([]string{"local", "team:b", "s1"}, tok.Reads()); d != "" {
		t.Errorf("reads (-want +got):\n%s", d)
	}
	r.one(t, c, `fx.read(namespace="team:c")`)
	if _, there := call.Arg("namespace"); there || call.Token.Namespace() != "team:c" || len(call.Token.Reads()) != 1 {
		t.Errorf("an explicit namespace: %+v %+v", call.Token, call.Args)
	}
	if got := r.rows[1].Namespace; got != "team:c" {
		t.Errorf("the row names namespace %q", got)
	}
	c.Identity.Actor = verbs.NewActor("session", "  ")
	r.put(t, `@id("named") @reason("by name") permit (principal is Session, action, resource);`)
	if e := r.one(t, c, `fx.read()`); e.OK || r.rows[2].Actor != "anonymous:local" {
		t.Errorf("a blank actor passes as a session: %+v", r.rows[2])
	}
}

func TestActsTakePlaceInTheSessionsOwnNamespace(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-206")
	r := newRig(t, permitAll, nil)
	e := r.one(t, agent(), `fx.write(namespace="lenient")`)
	if e.OK || e.Error.Kind != "invalid_input" || r.did() != "" {
		t.Errorf("another namespace is taken: %+v, %s", e, r.did())
	}
	if e := r.one(t, agent(), `fx.write(namespace="local")`); !e.OK {
		t.Errorf("its own is refused: %s", e.Error.Message)
	}
	c := agent()
	c.Identity.Default = "team:a"
	if e := r.one(t, c, `fx.write(namespace="local")`); e.OK {
		t.Error("the global default is taken for the session's own")
	}
	if e := r.one(t, agent(), `fx.record(namespace="elsewhere")`); !e.OK {
		t.Errorf("a record elsewhere is refused: %s", e.Error.Message)
	}
}

func TestInternalVerbsStopAtTheBoundary(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-059 VD-086")
	r := newRig(t, permitAll, nil)
	e := r.one(t, agent(), `fx.hidden(n=1)`)
	if e.OK || detail(e, "code") != "permission_denied" || !strings.Contains(e.Error.Message, "internal subhandler") || r.did() != "" {
		t.Fatalf("an agent calls it: %+v, %s", e, r.did())
	}
	if e := r.one(t, operator(), `fx.hidden(n=1)`); !e.OK {
		t.Errorf("the operator may not: %s", e.Error.Message)
	}
	op := parse(t, `fx.hidden(n=1)`).Ops[0]
	if out := r.Do(t.Context(), agent(), &op, dispatch.Place{}); !out.Done {
		t.Errorf("the registry's own dispatch looks at visibility: %+v", out.Failure)
	}
}

func TestCouldAnswersWhatDoWould(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-065 VD-097")
	r := newRig(t, permitAll+`@id("not-there") @reason("no") forbid (principal, action, resource) when { context.args.path == "x" };`, nil)
	for _, text := range []string{`fx.write(path="x")`, `fx.write(path="y")`, `fx.raed()`, `fx.write(nope=1)`, `fx.hidden()`, `fx.write(namespace=1)`} {
		op := parse(t, text).Ops[0]
		p := r.Could(t.Context(), agent(), &op)
		if r.did() != "" {
			t.Fatalf("%s: could did %s", text, r.did())
		}
		e := r.one(t, agent(), text)
		r.steps = nil
		if would := p.Refused == nil && p.Decision.Ruling == gate.Allow; would != e.OK {
			t.Errorf("%s: could says %v, do says %v", text, would, e.OK)
		}
	}
}
