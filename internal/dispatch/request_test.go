package dispatch_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

func count(r *rig, verb string) int {
	return strings.Count(r.did()+",", "run "+verb+",")
}

func TestTheSameHostRequestIsAnsweredOnceAndForAll(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-042 CP-132")
	for _, verb := range []string{"fx.write", "fx.record", "fx.call"} {
		r := newRig(t, permitAll, nil)
		first := r.one(t, asking("r-1"), verb+`(n={"a":1})`)
		r.put(t, denyAll) // what has been done is answered before the gate
		again := r.one(t, asking("r-1"), verb+`(n={"a":1})`)
		if a, b := encoded(first), encoded(again); a != b || !first.OK || count(r, verb) != 1 {
			t.Errorf("%s ran %d times: %s, then %s", verb, count(r, verb), a, b)
		}
		r.put(t, permitAll)
		for _, other := range []string{verb + `(n=2)`, `fx.record(n={"a":1},path="p")`} {
			if e := r.one(t, asking("r-1"), other); e.OK || detail(e, "code") != "conflict" || e.Disposition != request.NotCommitted {
				t.Errorf("%s: another body under the same id: %+v", other, e)
			}
		}
		if e := r.one(t, asking("r-2"), verb+`(n={"a":1})`); !e.OK || count(r, verb) != 2 {
			t.Errorf("%s: another id is not another request", verb)
		}
	}
}

func TestAFailedHostRequestFailsTheSameWayAgain(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-042 CP-132")
	for _, code := range []fault.Code{fault.NotFound, fault.Timeout, fault.Conflict, fault.Internal} {
		r := newRig(t, permitAll, nil)
		r.handle = failing(code)
		first := r.one(t, asking("r-1"), `fx.write()`)
		again := r.one(t, asking("r-1"), `fx.write()`)
		if a, b := encoded(first), encoded(again); a != b || count(r, "fx.write") != 1 {
			t.Errorf("%s ran %d times:\n%s\n%s", code, count(r, "fx.write"), a, b)
		}
	}
}

func TestReadsOfACellRunAgain(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-132")
	r := newRig(t, permitAll, nil)
	r.one(t, asking("r-1"), `fx.read()`)
	r.one(t, asking("r-1"), `fx.read()`)
	if count(r, "fx.read") != 2 || len(r.receipts) != 0 {
		t.Errorf("did %s", r.did())
	}
}

func TestTheOperationsOfOneHostRequestHaveAReceiptEach(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-132 CP-133")
	r := newRig(t, permitAll, nil)
	for range 2 {
		for i, e := range r.ask(t, asking("r-1"), `[fx.write(n=1), fx.write(n=2)]`) {
			if got := string(e.Result.AppendJSON(nil)); got != string(rune('1'+i)) {
				t.Errorf("operation %d answers %s", i, got)
			}
		}
	}
	if count(r, "fx.write") != 2 {
		t.Errorf("ran %d times", count(r, "fx.write"))
	}
}

func TestAHostRequestThatIsOnItsWayIsJoined(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-042 CP-132")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, permitAll, nil)
		release := make(chan struct{})
		r.handle = func(context.Context, *verbs.Call) (verbs.Reply, error) {
			<-release
			return verbs.Reply{Value: request.OfInt(9)}, nil
		}
		answers := make([]request.Entry, 4)
		gone, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range answers {
			ctx := t.Context()
			if i == 3 {
				ctx = gone
			}
			wg.Go(func() { answers[i] = r.askIn(ctx, t, asking("r-1"), `fx.write(n=1)`)[0] })
			synctest.Wait() // it runs, or has joined
		}
		if e := r.one(t, asking("r-1"), `fx.write(n=2)`); e.OK || detail(e, "code") != "conflict" {
			t.Errorf("another body joins: %+v", e)
		}
		leave()
		synctest.Wait()
		close(release)
		wg.Wait()
		for _, e := range answers[:3] {
			if !e.OK || string(e.Result.AppendJSON(nil)) != "9" {
				t.Errorf("answered %s", encoded(e))
			}
		}
		if e := answers[3]; e.OK || e.Disposition != request.Undetermined {
			t.Errorf("one that left while it ran is told %s", encoded(e))
		}
		if count(r, "fx.write") != 1 {
			t.Errorf("ran %d times", count(r, "fx.write"))
		}
	})
}

func TestAReceiptThatCannotBeReadStopsTheRequest(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-042")
	r := newRig(t, permitAll, nil)
	r.recallErr = fault.New(fault.Unavailable, "read", "receipt", "the disk is gone")
	if e := r.one(t, asking("r-1"), `fx.write()`); e.OK || e.Disposition != request.NotCommitted || r.did() != "" {
		t.Errorf("%+v, did %s", e, r.did())
	}
}

func TestARequestWhoseFirstAttemptHasNoOutcomeIsUnknownAndNotTriedAgain(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-042 VD-074")
	r := newRig(t, permitAll, nil)
	r.recallErr = fault.New(fault.Unknown, "repeat request", "r-1", "an earlier attempt has no outcome yet")
	if e := r.one(t, asking("r-1"), `fx.write()`); e.OK || e.Disposition != request.Undetermined || detail(e, "code") != "unknown" || r.did() != "" {
		t.Errorf("%s, did %s", encoded(e), r.did())
	}
}

func encoded(e request.Entry) string {
	b, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestChainsHandOnCanonicalResultsAndStopAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-051 VD-053 VD-054 VD-055 VD-073 VD-106")
	r := newRig(t, permitAll, nil)
	e := r.ask(t, agent(), `fx.read(n={"id":"0d9b9e7a-1c3f-4e1b-9a54-0c7c5c1d2e3f","list":[4,5]}) | fx.write(n=$prev.id) | fx.write(n=[$prev]) | fx.read(n=$prev[1]) | fx.write(n=1)`)
	if got := string(e[1].Result.AppendJSON(nil)); got != `"0d9b9e7a-1c3f-4e1b-9a54-0c7c5c1d2e3f"` {
		t.Errorf("the second got %s", got)
	}
	if got := string(e[2].Result.AppendJSON(nil)); got != `["0d9b9e7a-1c3f-4e1b-9a54-0c7c5c1d2e3f"]` {
		t.Errorf("the third got %s", got)
	}
	if e[3].OK || e[3].Error.Kind != "substitution_error" || detail(e[3], "reason") != "path_not_found" || e[3].Disposition != request.NotCommitted {
		t.Errorf("the fourth: %s", encoded(e[3]))
	}
	if !e[4].Aborted || e[4].Disposition != request.NotCommitted || count(r, "fx.write") != 2 {
		t.Errorf("the fifth: %s", encoded(e[4]))
	}
	if r.rows[0].RefResolution != event.RefLiteral || r.rows[1].RefResolution != event.RefResolved || r.rows[1].OpIndex != 1 {
		t.Errorf("the rows: %+v", r.rows[:2])
	}
	if *r.intents[0].Args != `{"n":"0d9b9e7a-1c3f-4e1b-9a54-0c7c5c1d2e3f"}` {
		t.Errorf("the intent has %s", *r.intents[0].Args)
	}
}

func TestUnitsOfABatchFailAlone(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-050 VD-051 VD-052 VD-053 VD-054")
	r := newRig(t, permitAll, nil)
	e := r.ask(t, agent(), `[fx.nope() | fx.write(n=1), fx.read(n=2) | fx.write(n=$prev), fx.read(n=3)]`)
	if e[0].OK || !e[1].Aborted || !e[2].OK || !e[3].OK || !e[4].OK || string(e[3].Result.AppendJSON(nil)) != "2" {
		t.Errorf("%s", encoded(e[3]))
	}
	e = r.ask(t, agent(), `[fx.read(n=1), fx.nope(), fx.read(n=3)]`)
	if !e[0].OK || e[1].OK || !e[2].OK || string(e[2].Result.AppendJSON(nil)) != "3" {
		t.Errorf("a flat batch: %s %s %s", encoded(e[0]), encoded(e[1]), encoded(e[2]))
	}
}

func TestOperationsThatWriteTheSameAreNotStarted(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-062 VD-063")
	r := newRig(t, permitAll, nil)
	e := r.ask(t, agent(), `[fx.write(path="0d9b9e7a-1c3f-4e1b-9a54-0c7c5c1d2e3f"), fx.record(path="0D9B9E7A1C3F4E1B9A540C7C5C1D2E3F"), fx.write(path="b")]`)
	if e[0].OK || e[1].OK || !e[2].OK || e[0].Error.Kind != "write_key_conflict" || e[0].Disposition != request.NotCommitted || len(r.intents) != 1 {
		t.Errorf("%s %s %s", encoded(e[0]), encoded(e[1]), encoded(e[2]))
	}
	if e := r.ask(t, agent(), `fx.write(path="a") | fx.write(path="a")`); !e[1].OK {
		t.Errorf("a chain conflicts with itself: %s", encoded(e[1]))
	}
	e = r.ask(t, agent(), `[fx.read() | fx.write(path="a"), fx.write(path="a") | fx.read(), fx.read()]`)
	if e[0].OK || !e[1].Aborted || e[2].OK || !e[3].Aborted || !e[4].OK {
		t.Errorf("units: %s %s", encoded(e[0]), encoded(e[2]))
	}
}

func TestAtMostEightRunBesideEachOtherAndAnswerInOrder(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-051 VD-052")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, permitAll, nil)
		var now, most atomic.Int64
		step := make(chan struct{})
		r.handle = func(_ context.Context, call *verbs.Call) (verbs.Reply, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			<-step
			now.Add(-1)
			v, _ := call.Arg("n")
			return verbs.Reply{Value: v}, nil
		}
		var ops []string
		for i := range 20 {
			ops = append(ops, `fx.read(n=`+string(request.OfInt(int64(i)).AppendJSON(nil))+`)`)
		}
		var e []request.Entry
		var wg sync.WaitGroup
		wg.Go(func() { e = r.ask(t, agent(), "["+strings.Join(ops, ",")+"]") })
		synctest.Wait()
		if now.Load() != 8 {
			t.Errorf("%d run at once, want 8", now.Load())
		}
		for range 20 {
			step <- struct{}{}
		}
		wg.Wait()
		if most.Load() != 8 {
			t.Errorf("at most %d ran", most.Load())
		}
		for i := range e {
			if got := string(e[i].Result.AppendJSON(nil)); got != string(request.OfInt(int64(i)).AppendJSON(nil)) {
				t.Errorf("entry %d is %s", i, got)
			}
		}
	})
}

func TestNothingIsStartedBeyondTheResponseBudget(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-057")
	r := newRig(t, permitAll, nil)
	big := request.OfString(strings.Repeat("x", 1<<20))
	r.handle = func(context.Context, *verbs.Call) (verbs.Reply, error) { return verbs.Reply{Value: big}, nil }
	e := r.ask(t, agent(), `[`+strings.Repeat(`fx.read(),`, 59)+`fx.read() | fx.read()]`)
	done, over := 0, 0
	for i := range e {
		switch {
		case e[i].OK:
			done++
		case e[i].Aborted:
			if i != 60 {
				t.Errorf("entry %d is aborted", i)
			}
		case e[i].Error.Kind == "response_budget_exceeded" && e[i].Disposition == request.NotCommitted:
			over++
		default:
			t.Errorf("entry %d: %s", i, encoded(e[i]))
		}
	}
	if done < 4 || done > 4+8 || over != 60-done {
		t.Errorf("%d answered, %d not started", done, over)
	}
	if e := r.ask(t, agent(), `fx.read()`+strings.Repeat(` | fx.read()`, 9)); !e[9].OK {
		t.Errorf("a chain has a budget: %s", encoded(e[9]))
	}
}

// TestWhateverIsAskedIsAnswered sends ten thousand requests, half of them built of
// parts that mean something.
func TestWhateverIsAskedIsAnswered(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-050 VD-051 VD-072 VD-074")
	r := newRig(t, permitAll+`@id("no-x") @reason("no") forbid (principal, action, resource) when { context.args.path like "*x*" };`, nil)
	r.handle = func(_ context.Context, call *verbs.Call) (verbs.Reply, error) {
		v, _ := call.Arg("n")
		switch s, _ := v.Text(); s {
		case "panic":
			panic("asked to")
		case "timeout":
			return verbs.Reply{}, fault.New(fault.Timeout, "do", "", "asked to")
		case "deep":
			return verbs.Reply{Value: deep(70)}, nil
		}
		return verbs.Reply{Value: v}, nil
	}
	const goal = 10_000
	asked, parsed := 0, 0
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			"fx.write", "fx.read", "fx.record", "fx.call", "fx.hidden", "fx.own", "fx.nope", "(", ")", "[", "]", "|", ",", "n=", "path=", "text=",
			"$prev", "$prev.a", "$prev[0]", `"x"`, `"panic"`, `"timeout"`, `"deep"`, "1", "-1e999", "null", "true", "{", "}", `"a":`, "help=true",
			"namespace=", `"local"`, "\x00", "é", "\u202e", "𝄞", `\u0000`, "\n", " ", strings.Repeat("[", 70), strings.Repeat("9", 400),
		}),
		rapid.String(),
		rapid.StringMatching(`fx\.(write|read|record|own|hidden|call|nope)\((n|path|text|namespace|target_id)=("(panic|timeout|deep|x|ok)"|[0-9]{1,3}|null|\{"a":1\}|\[1\])(,help=(true|false))?\)( \| fx\.(read|write)\(n=(\$prev|\$prev\.a|\$prev\[0\]|"timeout")\)){0,3}`),
	)
	whole := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 1, 12).Draw(t, "parts"), "") }),
		rapid.Custom(func(t *rapid.T) string {
			return "[" + strings.Join(rapid.SliceOfN(part, 1, 12).Draw(t, "parts"), ", ") + "]"
		}),
	)
	rapid.Check(t, func(rt *rapid.T) {
		for range 100 {
			text := whole.Draw(rt, "request")
			asked++
			q, err := request.Parse(text)
			if err != nil {
				if fault.CodeOf(err) != fault.InvalidRequest && fault.CodeOf(err) != fault.LimitExceeded {
					rt.Fatalf("%q: refused without a code: %v", text, err)
				}
				continue
			}
			parsed++
			answer := request.Assemble(q, r.Request(t.Context(), asking(text), q))
			b, err := json.Marshal(&answer)
			if err != nil || !json.Valid(b) || len(answer.Results) != len(q.Ops) {
				rt.Fatalf("%q: no answer: %v", text, err)
			}
			for _, e := range answer.Results {
				if !e.OK && e.Disposition == "" || e.Error != nil && e.Error.Message == "no outcome of the operation is known" {
					rt.Fatalf("%q: no disposition: %s", text, encoded(e))
				}
			}
		}
	})
	if asked < goal && !testing.Short() {
		t.Errorf("only %d were asked", asked)
	}
	if parsed < asked/100 {
		t.Errorf("of %d only %d were requests: the generator has become useless", asked, parsed)
	}
}
