package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

func deep(n int) request.Value {
	v := request.OfInt(1)
	for range n {
		v = request.OfArray(v)
	}
	return v
}

func failing(code fault.Code) func(context.Context, *verbs.Call) (verbs.Reply, error) {
	return func(context.Context, *verbs.Call) (verbs.Reply, error) {
		return verbs.Reply{}, fault.New(code, "do", "it", "the test says so")
	}
}

func settling(d request.Disposition) func(context.Context, *verbs.Call) (verbs.Reply, error) {
	return func(context.Context, *verbs.Call) (verbs.Reply, error) {
		return verbs.Reply{}, &verbs.Settled{
			Err: fault.New(fault.Internal, "do", "it", "the test says so"), Disposition: d,
			Changes: verbs.Changes{Files: []event.FileChange{{Path: "a"}}},
		}
	}
}

func TestTheDispositionIsTrueOnEveryPath(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-056 VD-074 VD-155 VD-158 VD-164 CP-134")
	const yes, no, unknown = request.Committed, request.NotCommitted, request.Undetermined
	full := fault.New(fault.StoreFull, "append", "s1", "no space")
	type handler = func(context.Context, *verbs.Call) (verbs.Reply, error)
	panics := func(context.Context, *verbs.Call) (verbs.Reply, error) { panic("pack") }
	tooDeep := func(context.Context, *verbs.Call) (verbs.Reply, error) { return verbs.Reply{Value: deep(65)}, nil }
	for name, c := range map[string]struct {
		ops    string
		handle handler
		broken func(*ledger)
		code   string
		want   request.Disposition
		steps  string
	}{
		"bad argument":                  {ops: `fx.write(nope=1)`, code: "invalid_input", want: no, steps: "owe fx.write"},
		"a read fails":                  {ops: `fx.read()`, handle: failing(fault.Timeout), code: "timeout", want: no, steps: "run fx.read, owe fx.read"},
		"an act is refused":             {ops: `fx.write()`, handle: failing(fault.NotFound), code: "not_found", want: no},
		"an act conflicts":              {ops: `fx.write()`, handle: failing(fault.Conflict), code: "conflict", want: no},
		"an act times out":              {ops: `fx.write()`, handle: failing(fault.Timeout), code: "timeout", want: unknown},
		"an act is cancelled":           {ops: `fx.call()`, handle: failing(fault.Cancelled), code: "cancelled", want: unknown},
		"an act breaks":                 {ops: `fx.call()`, handle: failing(fault.Internal), code: "internal", want: unknown},
		"an act is unavailable":         {ops: `fx.call()`, handle: failing(fault.Unavailable), code: "unavailable", want: unknown},
		"an act panics":                 {ops: `fx.write()`, handle: panics, code: "internal", want: unknown, steps: "intend fx.write, run fx.write, conclude fx.write"},
		"an act proves that it did":     {ops: `fx.write()`, handle: settling(yes), code: "internal", want: yes},
		"an act proves that it did not": {ops: `fx.write()`, handle: settling(no), code: "internal", want: no},
		"an act answers too deep":       {ops: `fx.write()`, handle: tooDeep, code: "limit_exceeded", want: yes},
		"a record answers too deep":     {ops: `fx.record()`, handle: tooDeep, code: "limit_exceeded", want: yes, steps: "run fx.record, conclude fx.record"},
		"a record is refused":           {ops: `fx.record()`, handle: failing(fault.Conflict), code: "conflict", want: no, steps: "run fx.record, owe fx.record"},
		"own records fail":              {ops: `fx.own()`, handle: failing(fault.Conflict), code: "conflict", want: no, steps: "run fx.own, owe fx.own"},
		"the intent is refused": {
			ops: `fx.write()`, broken: func(l *ledger) { l.intendErr = full }, code: "store_full", want: no, steps: "intend fx.write",
		},
		"the intent is in doubt": {
			ops: `fx.write()`, broken: func(l *ledger) { l.intendErr = fault.New(fault.Unknown, "append", "", "lost") }, code: "unknown", want: no, steps: "intend fx.write",
		},
		"the outcome is refused": {ops: `fx.write(n=5)`, broken: func(l *ledger) { l.concludeErr = full }, code: "audit_obligation", want: yes},
		"the outcome of a doubtful act is refused": {
			ops: `fx.write()`, handle: failing(fault.Timeout), broken: func(l *ledger) { l.concludeErr = full }, code: "audit_obligation", want: unknown,
		},
		"a record finds no space": {ops: `fx.record()`, broken: func(l *ledger) { l.concludeErr = full }, code: "store_full", want: no},
		"a record's commit goes unanswered": {
			ops: `fx.record()`, broken: func(l *ledger) { l.concludeErr = fault.New(fault.Unknown, "append", "", "lost") }, code: "unknown", want: unknown,
		},
	} {
		r := newRig(t, permitAll, nil)
		r.handle = c.handle
		if c.broken != nil {
			c.broken(r.ledger)
		}
		e := r.one(t, agent(), c.ops)
		if begins, rest, _ := strings.Cut(e.Error.Message, ": "); strings.HasPrefix(rest, begins+": ") {
			t.Errorf("%s: it says so twice: %s", name, e.Error.Message)
		}
		if e.OK || e.Disposition != c.want || e.Error.Disposition != c.want || detail(e, "code") != c.code {
			t.Errorf("%s: %s (%s), want %s (%s)", name, e.Disposition, detail(e, "code"), c.want, c.code)
		}
		if c.steps != "" && r.did() != c.steps {
			t.Errorf("%s: did %s; want %s", name, r.did(), c.steps)
		}
		if name == "the outcome is refused" && (e.Error.Kind != "obligation" || detail(e, "domain_result") != "5" || detail(e, "act") == "(absent)") {
			t.Errorf("%s: %+v", name, e.Error)
		}
		if name == "the outcome of a doubtful act is refused" && detail(e, "domain_result") != "(absent)" {
			t.Errorf("%s: a result out of nothing: %+v", name, e.Error)
		}
		for _, concluded := range r.concluded {
			if f := concluded.Finished; f != nil && (f.OK || string(f.Disposition) != string(c.want) || f.Code == nil) {
				t.Errorf("%s: the journal says %+v", name, f)
			}
			if concluded.Row.Outcome != event.AuditError || concluded.Row.Code == nil {
				t.Errorf("%s: the row says %+v", name, concluded.Row)
			}
		}
	}
}

func TestTheJournalHasTheIntentAndTheOutcomeOfAnAct(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097 VD-200 VD-208")
	r := newRig(t, permitAll, nil)
	r.handle = func(_ context.Context, call *verbs.Call) (verbs.Reply, error) {
		if call.Scene.Act != r.intents[0].Act {
			t.Errorf("the handler works for act %q, the intent is of %q", call.Scene.Act, r.intents[0].Act)
		}
		return verbs.Reply{Value: request.OfString("done"), Changes: verbs.Changes{Files: []event.FileChange{{Path: "a"}}}}, nil
	}
	e := r.one(t, agent(), `fx.write(path="a",n=1)`)
	if !e.OK {
		t.Fatal(e.Error)
	}
	in, out := r.intents[0], r.concluded[0]
	if !strings.HasPrefix(in.Act, "act_") || in.Args == nil || *in.Args != `{"n":1,"path":"a"}` || len(in.ArgsSHA256) != 64 || len(in.Ruled.Rules) != 1 {
		t.Errorf("the intent: %+v", in)
	}
	f := out.Finished
	if f == nil || f.Act != in.Act || !f.OK || *f.Result != `"done"` || len(f.Files) != 1 || *out.Row.Act != in.Act || f.Disposition != event.Committed {
		t.Errorf("the outcome: %+v %+v", f, out.Row)
	}
}

func TestACallerThatIsGoneBeforeIsNotServed(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-074")
	r := newRig(t, permitAll, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := r.askIn(ctx, t, agent(), `fx.write()`)[0]
	if e.OK || e.Disposition != request.NotCommitted || detail(e, "code") != "cancelled" || r.did() != "" {
		t.Errorf("%+v, did %s", e, r.did())
	}
}

func TestACallerThatGoesMidwayLeavesTheOutcomeOnRecord(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-074 VD-097")
	r := newRig(t, permitAll, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.handle = func(context.Context, *verbs.Call) (verbs.Reply, error) { cancel(); return verbs.Reply{}, nil }
	e := r.askIn(ctx, t, agent(), `fx.write() | fx.write()`)
	if !e[0].OK || len(r.concluded) != 1 || !r.concluded[0].Finished.OK {
		t.Errorf("the outcome is not on record: %+v", e[0])
	}
	if e[1].OK || e[1].Disposition != request.NotCommitted || len(r.intents) != 1 {
		t.Errorf("the next one is begun for nobody: %+v", e[1])
	}
}

func TestHoldPutsTheActIntoTheQueueAndRunsNothing(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-203 VD-099")
	r := newRig(t, `@id("ask") @reason("ask first") @hold("costs money") permit (principal, action, resource);`, nil)
	e := r.one(t, asking("r-1"), `fx.call(n=1)`)
	if e.OK || e.Disposition != request.NotCommitted || detail(e, "code") != "held" || !strings.HasPrefix(detail(e, "held_id"), "held_") {
		t.Fatalf("not held: %+v", e)
	}
	if r.did() != "conclude fx.call" {
		t.Fatalf("did %s", r.did())
	}
	c := r.concluded[0]
	held, ok := c.Changes.Session[0].(event.ActHeldV1)
	if !ok || held.Held != detail(e, "held_id") || held.Args != `{"n":1}` || held.Reason != "costs money" || c.Finished != nil || c.Row.Outcome != event.AuditHeld || c.Row.DurationUS != 0 {
		t.Errorf("the queue: %+v, row %+v", held, c.Row)
	}
	again := r.one(t, asking("r-1"), `fx.call(n=1)`)
	if again.Error.Message != e.Error.Message || detail(again, "held_id") != held.Held || again.Error.Kind != e.Error.Kind || len(r.concluded) != 1 {
		t.Errorf("asked again it answers %q %q; at first %q", again.Error.Kind, again.Error.Message, e.Error.Message)
	}
	approved := agent()
	approved.Approved = &dispatch.Approved{Held: held.Held, By: event.Actor{Kind: "operator", Name: "ada"}}
	if e := r.one(t, approved, `fx.call(n=1)`); !e.OK || *r.intents[0].Held != held.Held {
		t.Errorf("approved it does not run: %+v", e)
	}
	r.put(t, denyAll)
	if e := r.one(t, approved, `fx.call(n=1)`); detail(e, "code") != "permission_denied" {
		t.Errorf("an approval passes a gate that denies by now: %+v", e)
	}
}

func TestRateLimitsAreEnforced(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-099")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newRig(t, `@id("slowly") @reason("slowly") @rate_limit("2/60s") permit (principal, action, resource);`, func(o *dispatch.Options) {
		o.Now = func() time.Time { return now }
	})
	r.one(t, agent(), `fx.write()`)
	r.one(t, agent(), `fx.write()`)
	e := r.one(t, agent(), `fx.write()`)
	if e.OK || detail(e, "code") != "permission_denied" || detail(e, "retryable") != "true" || len(r.intents) != 2 {
		t.Errorf("a third passes: %+v", e)
	}
	if row := r.rows[2]; row.Decision != event.DecisionDeny || row.Outcome != event.AuditDenied || row.DenyReason == nil {
		t.Errorf("the row: %+v", row)
	}
	other := agent()
	other.Identity.Actor = verbs.NewActor("session", "s2")
	if e := r.one(t, other, `fx.write()`); !e.OK {
		t.Errorf("another actor pays for it: %+v", e.Error)
	}
	now = now.Add(61 * time.Second)
	if e := r.one(t, agent(), `fx.write()`); !e.OK {
		t.Errorf("it does not pass after the window: %+v", e.Error)
	}
}

func TestTheDisciplineHoldsBackWhatChangesTheWorkspaceOnly(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-200 CP-062")
	work := gate.Work{}
	r := newRig(t, permitAll, func(o *dispatch.Options) { o.Work = func(string) gate.Work { return work } })
	for _, c := range []struct {
		discipline string
		authorized bool
		verb       string
		ok         bool
	}{
		{"off", false, "fx.write", true},
		{"advisory", false, "fx.write", true},
		{"enforced", false, "fx.write", false},
		{"enforced", true, "fx.write", true},
		{"enforced", false, "fx.read", true},
		{"enforced", false, "fx.record", true},
		{"enforced", false, "fx.call", true},
	} {
		work = gate.Work{Discipline: c.discipline, Authorized: c.authorized}
		before := len(r.intents)
		e := r.one(t, agent(), c.verb+`(n=1)`)
		if e.OK != c.ok {
			t.Errorf("%+v: %v", c, e.OK)
		}
		if !c.ok && (detail(e, "code") != "permission_denied" || len(r.intents) != before || !strings.Contains(detail(e, "next"), "developer_authorize_change")) {
			t.Errorf("%+v: %+v", c, e.Error)
		}
		if c.ok && len(r.intents) > before && (r.intents[before].Discipline != c.discipline || r.intents[before].Authorized != c.authorized) {
			t.Errorf("%+v: the intent says %+v", c, r.intents[before])
		}
	}
}

func TestSecretsInProseStopTheAct(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-170 VD-211 VD-156 VD-077")
	r := newRig(t, permitAll, func(o *dispatch.Options) {
		o.Secrets = func(text string) (string, string, bool) {
			return "planted key", "hunter…", strings.Contains(text, "hunter2")
		}
		o.Mask = func(text string) string { return strings.ReplaceAll(text, "hunter2", "…") }
	})
	for _, ops := range []string{`fx.record(text="it is hunter2")`, `fx.write(text="it is hunter2")`, `fx.record(notes=["fine","it is hunter2"])`} {
		e := r.one(t, agent(), ops)
		if e.OK || e.Error.Kind != "secret_detected" || e.Reason != "gate-refusal" || e.Disposition != request.NotCommitted || !strings.HasPrefix(e.Error.Message, "write blocked") {
			t.Errorf("%s: %+v", ops, e)
		} else if strings.Contains(e.Error.Message, "hunter2") {
			t.Errorf("the refusal repeats the secret: %s", e.Error.Message)
		}
	}
	if strings.Contains(r.did(), "run") || strings.Contains(r.did(), "intend") {
		t.Errorf("did %s", r.did())
	}
	if e := r.one(t, agent(), `fx.record(target_id="hunter2",n="hunter2")`); !e.OK {
		t.Errorf("what is no prose is looked through: %+v", e.Error)
	}
	r.put(t, permitAll+`@id("echo") @reason("hunter2 is not welcome") forbid (principal, action, resource);`)
	r.one(t, agent(), `fx.write()`)
	if row := r.rows[len(r.rows)-1]; strings.Contains(*row.DenyReason, "hunter2") {
		t.Errorf("the row repeats it: %s", *row.DenyReason)
	}
	if logged := r.log.String(); strings.Contains(logged, "hunter2") || !strings.Contains(logged, "gate.check") {
		t.Errorf("the log repeats it or has no gate.check:\n%s", logged)
	}
}

func TestReadOnlyStoresGetNoRowsAndSaySo(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-120 VD-076")
	r := newRig(t, permitAll, func(o *dispatch.Options) { o.ReadOnly = true })
	e := r.ask(t, agent(), `[fx.read(n=1), fx.read(nope=1), fx.write(), fx.record(), fx.read(help=true), fx.nope()]`)
	if len(e[0].Advisories) != 1 || e[0].Advisories[0].Code != "audit_persistence_skipped_read_only" || e[0].Advisories[0].Severity != "warning" ||
		e[0].Advisories[0].Component != "audit_event_store" || e[0].Advisories[0].Reason != "read_only_backend" {
		t.Errorf("the read: %+v", e[0])
	}
	for i := range e {
		if i > 0 && len(e[i].Advisories) != 0 {
			t.Errorf("operation %d has an advisory: %+v", i, e[i])
		}
	}
	if e[2].OK || e[3].OK || e[2].Disposition != request.NotCommitted {
		t.Errorf("writes are taken: %+v %+v", e[2], e[3])
	}
	r.put(t, denyAll)
	if d := r.one(t, agent(), `fx.read()`); detail(d, "audit_outcome") != "skipped_read_only" {
		t.Errorf("a denial: %+v", d)
	}
	if len(r.rows) != 0 {
		t.Errorf("rows are attempted: %+v", r.rows)
	}
}

func TestASlowRowDefersAReadNoLongerThanAQuarterSecond(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-209 VD-165")
	for name, c := range map[string]struct {
		reads    dispatch.Reads
		late     time.Duration
		never    bool
		took     time.Duration
		deferred bool
	}{
		"in time":  {dispatch.ReadsSync, 249 * time.Millisecond, false, 249 * time.Millisecond, false},
		"too late": {dispatch.ReadsSync, time.Second, false, 250 * time.Millisecond, true},
		"never":    {dispatch.ReadsSync, 0, true, 250 * time.Millisecond, true},
		"async":    {dispatch.ReadsAsync, 0, true, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, permitAll, func(o *dispatch.Options) { o.Reads = c.reads })
			r.slow, r.late = c.never, c.late
			begun := time.Now()
			e := r.one(t, agent(), `fx.read(n=1)`)
			if took := time.Since(begun); took != c.took || !e.OK {
				t.Errorf("%s: %v after %v, want %v", name, e.OK, took, c.took)
			}
			if deferred := len(e.Advisories) == 1 && e.Advisories[0].Code == "audit_deferred"; deferred != c.deferred {
				t.Errorf("%s: advisories %+v", name, e.Advisories)
			}
			r.only(t)
			time.Sleep(2 * time.Second) // the late row
		})
	}
}

// An interrupt, or a reset, has happened whatever becomes of its row: it is told as
// done, and in time, while the store takes nothing.
func TestWhatAVerbHasDoneItselfStandsWithoutItsRow(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-074 VD-164")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, permitAll, nil)
		r.byItself, r.slow = true, true
		r.ledger.concludeErr = fault.New(fault.StoreFull, "append", "", "no space")
		begun := time.Now()
		e := r.one(t, agent(), `fx.record(n=1)`)
		if took := time.Since(begun); !e.OK || took > 2*time.Second {
			t.Errorf("%+v after %v", e.Error, took)
		}
		if len(e.Advisories) != 1 || e.Advisories[0].Code != "audit_deferred" {
			t.Errorf("advisories %+v", e.Advisories)
		}
	})
}

func TestADenialOfWhichTheRowIsSlowSaysThatItIsOwed(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-110")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, denyAll, nil)
		r.slow = true
		if e := r.one(t, agent(), `fx.write()`); detail(e, "audit_outcome") != "owed" {
			t.Errorf("%+v", e.Error)
		}
	})
}

func TestTheHookSeesSuccessesAndItsErrorsStayInTheLog(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-105 VD-097")
	var seen []string
	r := newRig(t, permitAll, func(o *dispatch.Options) {
		o.Hook = func(_ context.Context, row event.AuditDispatchV1) error {
			seen = append(seen, row.Verb)
			return errors.New("the hook is broken")
		}
	})
	for _, verb := range []string{"fx.read", "fx.record", "fx.write"} {
		if e := r.one(t, agent(), verb+`()`); !e.OK {
			t.Errorf("%s: the hook's error is the caller's: %+v", verb, e.Error)
		}
	}
	r.handle = failing(fault.Conflict)
	r.one(t, agent(), `fx.write()`)
	r.one(t, agent(), `fx.read()`)
	if got := strings.Join(seen, " "); got != "fx.read fx.record fx.write" {
		t.Errorf("the hook saw %s", got)
	}
	if !strings.Contains(r.log.String(), "the hook is broken") {
		t.Error("the hook's error is nowhere")
	}
}
