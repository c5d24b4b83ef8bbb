package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/journal"
)

// entry is one operation of an answer.
type entry struct {
	OK          bool           `json:"ok"`
	Disposition string         `json:"domain_disposition"`
	Result      map[string]any `json:"result"`
	Error       map[string]any `json:"error"`
}

// asker is what takes requests: a core, or a client of one.
type asker interface {
	Request(ctx context.Context, r control.RequestCall) (control.RequestAnswer, error)
}

func askOps(t *testing.T, c asker, session, workspace, ops string) []entry {
	t.Helper()
	a, err := c.Request(t.Context(), control.RequestCall{Ops: ops, Session: session, Workspace: workspace, By: me})
	if err != nil {
		t.Fatalf("%s: %v", ops, err)
	}
	var answer struct {
		Results []entry `json:"results"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Results
}

// items are the rows of a list verb.
func items(t *testing.T, c asker, ops string) []map[string]any {
	t.Helper()
	e := askOps(t, c, "", "", ops)[0]
	all, ok := e.Result["items"].([]any)
	if !ok && e.Result["count"] != 0.0 { // an agent is not shown empty lists
		t.Fatalf("%s: %+v", ops, e)
	}
	var rows []map[string]any
	for _, it := range all {
		rows = append(rows, it.(map[string]any))
	}
	return rows
}

// A write is two commits: its intent before anything happens, and its outcome with
// the audit row after it.
func TestAnActIsAnIntentThenItsOutcomeWithTheAuditRow(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097 VD-163 CP-151")
	r, u, c := unrulyRig(t)
	var mu sync.Mutex
	var commits [][]string
	u.set(func(b journal.Batch) verdict {
		mu.Lock()
		defer mu.Unlock()
		var all []string
		for _, a := range b.Append {
			for _, e := range a.Events {
				all = append(all, e.Kind)
			}
		}
		_, err := os.Stat(filepath.Join(r.workspace, "a"))
		if err == nil {
			all = append(all, "(file there)")
		}
		commits = append(commits, all)
		return verdict{write: true}
	})
	if e := askOps(t, c, "s", r.workspace, `workspace.write(path="a",content="1")`)[0]; !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	mu.Lock()
	defer mu.Unlock()
	want := [][]string{{"act.intended"}, {"act.finished", "audit.dispatch", "(file there)"}}
	if d := cmp.Diff(want, commits); d != "" {
		t.Errorf("commits (-want +got):\n%s", d)
	}
}

func TestAFullStoreRunsNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-074 VD-156")
	r, u, c := unrulyRig(t)
	u.set(func(journal.Batch) verdict { return verdict{err: full} })
	e := askOps(t, c, "s", r.workspace, `workspace.write(path="a",content="1")`)[0]
	if e.OK || e.Disposition != "not_committed" || e.Error["code"] != "store_full" {
		t.Errorf("%+v", e)
	}
	if _, err := os.Stat(filepath.Join(r.workspace, "a")); err == nil {
		t.Error("it was done although its intent is nowhere")
	}
	u.set(nil)
	if e := askOps(t, c, "s", r.workspace, `workspace.write(path="a",content="1")`)[0]; !e.OK {
		t.Errorf("with space again: %+v", e)
	}
}

func TestAnOutcomeThatFindsNoSpaceIsToldAndWrittenLater(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-155 VD-164 VD-074")
	r, u, c := unrulyRig(t)
	u.set(func(b journal.Batch) verdict {
		if has(b, event.ActFinished) {
			return verdict{err: full}
		}
		return verdict{write: true}
	})
	e := askOps(t, c, "s", r.workspace, `workspace.write(path="a",content="1")`)[0]
	if e.OK || e.Disposition != "committed" || e.Error["kind"] != "obligation" || e.Error["domain_result"] == nil {
		t.Errorf("%+v", e)
	}
	u.set(nil)
	waitForEvent(t, c, "s", event.ActFinished)
	if rows := items(t, c, `act.list()`); len(rows) != 1 || rows[0]["state"] != "done" {
		t.Errorf("%+v", rows)
	}
}

func TestAnActWhoseCoreDiedIsUnknownUntilSomebodySettlesIt(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-120 VD-074 CP-042")
	k := newCrasher(t)
	cmd, client := k.core(t)
	gone := make(chan error, 1)
	go func() {
		_, err := client.Request(bg, control.RequestCall{
			Ops: `workspace.run(argv=["sh","-c","echo 1 >> begun; exec sleep 600"])`, Session: "s", Workspace: k.workspace, By: me,
		})
		gone <- err
	}()
	waitForFile(t, k.workspace, "begun")
	must(cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	if err := <-gone; err == nil {
		t.Error("the client of a killed core is told that all is well")
	}
	cmd, client = k.core(t)
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	rows := items(t, client, `act.list(state="unknown")`)
	if len(rows) != 1 || rows[0]["verb"] != "workspace.run" || rows[0]["disposition"] != "unknown" {
		t.Fatalf("%+v", rows)
	}
	if b, err := os.ReadFile(filepath.Join(k.workspace, "begun")); err != nil || string(b) != "1\n" {
		t.Errorf("it was done again: %q %v", b, err)
	}
	id := rows[0]["act"].(string)
	if e := askOps(t, client, "", "", `act.settle(id="`+id+`",as="committed",note="I looked")`)[0]; !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	if rows := items(t, client, `act.list(state="unknown")`); len(rows) != 0 {
		t.Errorf("settled and still %+v", rows)
	}
	if e := askOps(t, client, "", "", `act.settle(id="`+id+`",as="committed",note="again")`)[0]; e.OK || e.Error["code"] != "conflict" {
		t.Errorf("settled twice: %+v", e)
	}
}

func TestABrokenPolicyLetsNothingPass(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-101 VD-102")
	r := newRig(t)
	must(os.MkdirAll(filepath.Join(r.dir, "policy"), 0o700))
	must(os.WriteFile(filepath.Join(r.dir, "policy", "mine.cedar"), []byte("permit (principal, action"), 0o600))
	c := r.open(t)
	e := askOps(t, c, "s", r.workspace, `[workspace.write(path="a",content="1"), whoami(), verbs(help=true)]`)
	for i := range 2 {
		if e[i].OK || e[i].Error["code"] != "gate_unavailable" || e[i].Disposition != "not_committed" {
			t.Errorf("%+v", e[i])
		}
	}
	if !e[2].OK {
		t.Errorf("help asks the gate: %+v", e[2])
	}
	if _, err := c.Execute(t.Context(), r.request("s", "1"), nil); !errors.Is(err, fault.Of(fault.GateUnavailable)) {
		t.Errorf("a cell runs: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.workspace, "a")); err == nil {
		t.Error("it was done")
	}
}

func TestTheOperatorDecidesWhatIsSaid(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-056 CP-151")
	r := newRig(t)
	c := r.open(t)
	res := r.run(t, c, "s", `
from reeve import verbs
for word in ("one", "two"):
    print((await verbs.local.send(text=word))["status"])
`)
	if text(res, "stdout") != "held\nheld\n" {
		t.Fatalf("%+v", res)
	}
	rows := items(t, c, `held.list()`)
	if len(rows) != 2 {
		t.Fatalf("%+v", rows)
	}
	ids := map[any]string{}
	for _, row := range rows {
		ids[row["text"]] = row["id"].(string)
	}
	if e := askOps(t, c, "", "", `held.approve(id="`+ids["one"]+`",note="fine")`)[0]; !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	if e := askOps(t, c, "", "", `held.deny(id="`+ids["two"]+`")`)[0]; !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	if e := askOps(t, c, "", "", `held.deny(id="`+ids["one"]+`")`)[0]; e.OK || e.Error["code"] != "conflict" || e.Disposition != "not_committed" {
		t.Errorf("decided twice: %+v", e)
	}
	var lane []string
	err := c.Events(bg, control.EventQuery{Stream: "operator", Max: 100}, func(e control.EventRow) error {
		lane = append(lane, e.Kind+" "+string(e.Payload))
		return nil
	})
	if err != nil || len(lane) != 1 || !strings.HasPrefix(lane[0], "operator.message") || !strings.Contains(lane[0], `"one"`) {
		t.Errorf("the operator's lane: %v %v", lane, err)
	}
	got := strings.Join(kinds(t, c, "s"), " ")
	for _, kind := range []string{"send.approved", "send.denied", "input.received"} {
		if !strings.Contains(got, kind) {
			t.Errorf("no %s in %s", kind, got)
		}
	}
	var effects struct {
		Effects []string `json:"effects"`
	}
	must(json.Unmarshal(waitForEvent(t, c, "s", event.CellCompleted).Payload, &effects))
	if len(effects.Effects) != 2 {
		t.Errorf("the cell's effects: %v", effects.Effects)
	}
}

func TestAHeldActIsTriedAgainByWhoeverAskedOnceApproved(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-203")
	r := newRig(t)
	must(os.MkdirAll(filepath.Join(r.dir, "policy"), 0o700))
	must(os.WriteFile(filepath.Join(r.dir, "policy", "mine.cedar"), []byte(`
@id("all") @reason("all") permit (principal, action, resource) unless { principal is Session && action == Action::"workspace.write" };
@id("ask") @reason("writes are looked at") @hold("a write") permit (principal is Session, action == Action::"workspace.write", resource);
`), 0o600))
	c := r.open(t)
	res := r.run(t, c, "s", `
from reeve import verbs, VerbError
for path in ("a", "b"):
    try:
        await verbs.workspace.write(path=path, content="1")
    except VerbError as error:
        print(error.code, error.disposition)
`)
	if text(res, "stdout") != "held not_committed\nheld not_committed\n" {
		t.Fatalf("%+v", res)
	}
	rows := items(t, c, `held.list(session="s")`)
	if len(rows) != 2 {
		t.Fatalf("%+v", rows)
	}
	for _, row := range rows {
		verb := "held.deny"
		if strings.Contains(row["args"].(string), `"a"`) {
			verb = "held.approve"
		}
		e := askOps(t, c, "", "", verb+`(id="`+row["id"].(string)+`")`)[0]
		if !e.OK {
			t.Fatalf("%+v", e.Error)
		}
		if outcome, _ := e.Result["outcome"].(map[string]any); verb == "held.approve" && outcome["ok"] != true {
			t.Errorf("approved, and then %+v", e.Result)
		}
	}
	if b, err := os.ReadFile(filepath.Join(r.workspace, "a")); err != nil || string(b) != "1" {
		t.Errorf("the approved one: %q %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(r.workspace, "b")); err == nil {
		t.Error("the denied one is done")
	}
	done := items(t, c, `act.list()`)
	if len(done) != 1 || done[0]["by"].(map[string]any)["kind"] != "session" {
		t.Errorf("the act: %+v", done)
	}
}

// The operator's act is on record while the session's cell still runs; the cell ends
// only because it happened.
func TestAnActBesideARunningCell(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-097")
	r := newRig(t)
	c := r.open(t)
	ended := make(chan control.CellResult, 1)
	go func() {
		res, _ := c.Execute(bg, r.request("s", `
import asyncio, os
while not os.path.exists("go"):
    await asyncio.sleep(0.01)
print(open("go").read())
`), nil)
		ended <- res
	}()
	waitForEvent(t, c, "s", event.CellStarted)
	if e := askOps(t, c, "s", r.workspace, `workspace.write(path="go",content="now")`)[0]; !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	if res := <-ended; res.Status != "ok" || text(res, "stdout") != "now\n" {
		t.Errorf("%+v", res)
	}
	got := strings.Join(kinds(t, c, "s"), " ")
	if want := "cell.started act.intended act.finished cell.completed"; !strings.HasSuffix(got, want) {
		t.Errorf("%s; want it to end %s", got, want)
	}
}

// A session does not close over an act that runs in it: its outcome would have no
// place.
func TestASessionStaysOpenWhileAnActRuns(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-074")
	r := newRig(t)
	c := r.open(t)
	done := make(chan []entry, 1)
	go func() {
		done <- askOps(t, c, "s", r.workspace, `workspace.run(argv=["sh","-c","while ! test -e go; do sleep 0.01; done"])`)
	}()
	waitForEvent(t, c, "s", event.ActIntended)
	if _, err := c.CloseSession(t.Context(), "s", me); !errors.Is(err, fault.Of(fault.Conflict)) {
		t.Errorf("closed over it: %v", err)
	}
	must(os.WriteFile(filepath.Join(r.workspace, "go"), nil, 0o600))
	if e := <-done; !e[0].OK {
		t.Errorf("the act: %+v", e[0])
	}
	if _, err := c.CloseSession(t.Context(), "s", me); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// What a cell asks for is on record under the identity of its request.
func TestAnActOfACellIsKeptUnderItsRequest(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-042 CP-132")
	r := newRig(t)
	c := r.open(t)
	res := r.run(t, c, "s", `
from reeve import verbs
for word in "ab":
    print((await verbs.workspace.write(path=word, content="1"))["files"][0]["path"])
`)
	if text(res, "stdout") != "a\nb\n" {
		t.Fatalf("%+v", res)
	}
	rows := items(t, c, `act.list()`)
	asked := map[any]bool{}
	for _, row := range rows {
		a := row["asked"].(map[string]any)
		asked[a["request"]] = true
	}
	if len(rows) != 2 || len(asked) != 2 {
		t.Errorf("two requests have %d acts of %d: %+v", len(rows), len(asked), rows)
	}
}
