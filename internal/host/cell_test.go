package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/wire"
)

func TestCellsShareTheirSessionsNamespace(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-131")
	r := newRig(t)
	c := r.open(t)
	first := r.run(t, c, "s", "x = 6*7\nprint('set')")
	second := r.run(t, c, "s", "x")
	if first.Status != "ok" || text(first, "stdout") != "set\n" || second.Status != "ok" || text(second, "result") != "42" {
		t.Errorf("got %+v, then %+v", first, second)
	}
	if first.Cell == second.Cell || first.Generation != "g-1" || second.Execution != "e-2" || first.Notice != nil || first.Unrecorded {
		t.Errorf("got %+v, then %+v", first, second)
	}
	want := []string{"session.opened", "kernel.reset", "cell.started", "cell.completed", "cell.started", "cell.completed"}
	if diff := cmp.Diff(want, kinds(t, c, "s")); diff != "" {
		t.Error(diff)
	}
	n, err := c.Namespace(t.Context(), "s")
	if err != nil || !n.Live || !cmp.Equal(n.Names, []string{"x"}) {
		t.Errorf("namespace %+v, %v", n, err)
	}

	// W12: another session has names of its own.
	other := r.run(t, c, "other", "x = 'theirs'")
	if again := r.run(t, c, "s", "x"); other.Status != "ok" || text(again, "result") != "42" {
		t.Errorf("two sessions share x: %+v", again)
	}
	list, err := c.ListNamespaces(t.Context())
	if err != nil || len(list) != 2 || list[0].Session != "other" || list[1].Session != "s" {
		t.Errorf("namespaces %+v, %v", list, err)
	}
}

func TestACellIsFoundByItsHandle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	long := "x = 1\n" + strings.Repeat("# é\n", 5000) + "raise ValueError('no')"
	done := r.run(t, c, "s", long)
	if done.Status != "error" || done.Error == nil || !strings.Contains(*done.Error, "ValueError: no") {
		t.Fatalf("got %+v", done)
	}
	d, err := c.Cell(t.Context(), done.Cell)
	if err != nil {
		t.Fatal(err)
	}
	if d.Code != long || d.By != me || d.EventID == 0 || d.Result.Status != "error" || *d.Result.Error != *done.Error {
		t.Errorf("detail %+v", d.Result)
	}
	if diff := cmp.Diff(done.Output, d.Result.Output); diff != "" {
		t.Error(diff)
	}
	for range 3 {
		r.run(t, c, "s", "1")
	}
	rows, err := c.ListCells(t.Context(), "s", 3)
	if err != nil || len(rows) != 3 || rows[0].Execution != "e-4" || rows[2].Execution != "e-2" || rows[0].Status != "ok" {
		t.Errorf("list %+v, %v", rows, err)
	}
	all, err := c.ListCells(t.Context(), "", 0)
	if err != nil || len(all) != 4 || all[3].Cell != done.Cell || all[3].Code != "x = 1" {
		t.Errorf("list %+v, %v", all, err)
	}
	for name, want := range map[string]fault.Code{
		done.Cell[:len(done.Cell)-1]: "", strings.TrimPrefix(done.Cell, "cell_"): "",
		"cell_": fault.Ambiguous, "cell_zzz": fault.NotFound, "": fault.NotFound,
	} {
		if _, err := c.Cell(t.Context(), name); fault.CodeOf(err) != want {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestWhatCannotRunIsRefusedBeforeAnythingHappens(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-009")
	r := newRig(t)
	c := r.open(t)
	bad := func(change func(*control.ExecuteRequest)) control.ExecuteRequest {
		q := r.request("s", "1")
		change(&q)
		return q
	}
	for name, q := range map[string]control.ExecuteRequest{
		"no session":       bad(func(q *control.ExecuteRequest) { q.Session = "" }),
		"session with /":   bad(func(q *control.ExecuteRequest) { q.Session = "a/b" }),
		"long session":     bad(func(q *control.ExecuteRequest) { q.Session = strings.Repeat("a", 129) }),
		"no UTF-8":         bad(func(q *control.ExecuteRequest) { q.Code = "\xff" }),
		"negative timeout": bad(func(q *control.ExecuteRequest) { q.TimeoutMS = -1 }),
		"no workspace":     bad(func(q *control.ExecuteRequest) { q.Workspace = "" }),
		"relative":         bad(func(q *control.ExecuteRequest) { q.Workspace = "here" }),
		"not there":        bad(func(q *control.ExecuteRequest) { q.Workspace = "/nowhere/at/all" }),
	} {
		if _, err := c.Execute(t.Context(), q, nil); fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	q := r.request("s", strings.Repeat("x", wire.MaxCode+1))
	if _, err := c.Execute(t.Context(), q, nil); fault.CodeOf(err) != fault.LimitExceeded || !strings.Contains(err.Error(), "262145") {
		t.Errorf("too much code: %v", err)
	}
	if list, err := c.ListSessions(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("sessions %+v, %v", list, err)
	}
}

// progress collects what a caller hears of its cell.
type progress struct {
	mu  sync.Mutex
	all []control.CellProgress
	on  chan control.CellProgress
}

func newProgress() *progress { return &progress{on: make(chan control.CellProgress, 1000)} }

func (p *progress) add(step control.CellProgress) {
	p.mu.Lock()
	p.all = append(p.all, step)
	p.mu.Unlock()
	p.on <- step
}

// wait returns the first step of a kind that is yet to come.
func (p *progress) wait(t *testing.T, kind string) control.CellProgress {
	t.Helper()
	for {
		select {
		case step := <-p.on:
			if step.Kind == kind {
				return step
			}
		case <-time.After(time.Minute):
			t.Fatalf("no step %q within a minute", kind)
		}
	}
}

type answer struct {
	result control.CellResult
	err    error
}

// start runs a cell beside the test.
func start(ctx context.Context, execute func(context.Context, control.ExecuteRequest, func(control.CellProgress)) (control.CellResult, error), q control.ExecuteRequest) (*progress, chan answer) {
	p, got := newProgress(), make(chan answer, 1)
	go func() {
		res, err := execute(ctx, q, p.add)
		got <- answer{res, err}
	}()
	return p, got
}

const forever = "import time\nprint('going', flush=True)\ntime.sleep(600)"

// W6: a second cell waits and says behind how many; over the bound one is refused
// by name. W5: meanwhile everything else answers.
func TestOverlappingCellsQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config.Limits.Queue = 1
	c := r.open(t)
	before := r.run(t, c, "s", "print('earlier')")
	first, firstDone := start(t.Context(), c.Execute, r.request("s", forever))
	first.wait(t, "output")
	second, secondDone := start(t.Context(), c.Execute, r.request("s", "2"))
	if step := second.wait(t, "queued"); step.Ahead != 1 || step.Cell == "" {
		t.Errorf("queued: %+v", step)
	}
	_, err := c.Execute(t.Context(), r.request("s", "3"), nil)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "1 cells wait") {
		t.Errorf("over the bound: %v", err)
	}

	status, err := c.Status(t.Context())
	if err != nil || status.Running != 1 || status.Queued != 1 || status.Workers != 1 {
		t.Errorf("status %+v, %v", status, err)
	}
	row, err := c.Session(t.Context(), "s")
	if err != nil || row.State != "running" || row.Queue != 1 {
		t.Errorf("session %+v, %v", row, err)
	}
	rows, err := c.ListCells(t.Context(), "s", 0)
	if err != nil || len(rows) != 3 || rows[0].Status != "queued" || rows[1].Status != "running" || rows[2].Status != "ok" {
		t.Errorf("cells %+v, %v", rows, err)
	}
	if got := readOutput(t, c, before.Cell, 0); got.body != "earlier\n" {
		t.Errorf("output of an earlier cell: %+v", got)
	}
	if live, err := c.Cell(t.Context(), rows[1].Cell); err != nil || live.Result.Status != "running" || text(live.Result, "stdout") != "going\n" {
		t.Errorf("the running cell: %+v, %v", live.Result, err)
	}

	queued, err := c.Interrupt(t.Context(), rows[0].Cell, me)
	if err != nil || !queued.Found || queued.Rung != "" || !queued.NamespaceKept {
		t.Errorf("interrupting the queued: %+v, %v", queued, err)
	}
	if a := <-secondDone; fault.CodeOf(a.err) != fault.Cancelled {
		t.Errorf("the queued one: %+v", a)
	}
	report, err := c.Interrupt(t.Context(), "s", me)
	if err != nil || !report.Found || !report.NamespaceKept || report.Rung == "" {
		t.Errorf("interrupting the running: %+v, %v", report, err)
	}
	a := <-firstDone
	if a.err != nil || a.result.Status != "interrupted" || a.result.Notice == nil || a.result.Notice.Kind != "interrupted" || text(a.result, "stdout") != "going\n" {
		t.Errorf("the interrupted one: %+v", a)
	}
	if next := r.run(t, c, "s", "time"); next.Status != "ok" || next.Notice != nil {
		t.Errorf("after the interrupt: %+v", next)
	}
	if again, err := c.Interrupt(t.Context(), a.result.Cell, me); err != nil || again.Found {
		t.Errorf("interrupting what has ended: %+v, %v", again, err)
	}
	if _, err := c.Interrupt(t.Context(), "nothing", me); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("interrupting nothing: %v", err)
	}
}

// W7, W22: a timeout answers, with the handle under which all of it can be read.
func TestATimeoutAnswersWithTheHandle(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-145")
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "kept = 1")
	q := r.request("s", forever)
	q.TimeoutMS = 300
	res, err := c.Execute(t.Context(), q, nil)
	if err != nil || res.Status != "interrupted" || res.Cell == "" || res.Notice == nil || res.Notice.Kind != "timeout" {
		t.Fatalf("got %+v, %v", res, err)
	}
	if !strings.Contains(res.Notice.Text, "300ms") || !strings.Contains(res.Notice.Text, res.Cell) || !strings.Contains(res.Notice.Text, "is kept") {
		t.Errorf("notice %q", res.Notice.Text)
	}
	if got := readOutput(t, c, res.Cell, 0); got.body != "going\n" {
		t.Errorf("output by handle: %+v", got)
	}
	if next := r.run(t, c, "s", "kept"); text(next, "result") != "1" {
		t.Errorf("the namespace was lost: %+v", next)
	}

	first, firstDone := start(t.Context(), c.Execute, r.request("s", forever))
	first.wait(t, "output")
	q = r.request("s", "never = 1")
	q.TimeoutMS = 100
	if _, err := c.Execute(t.Context(), q, nil); fault.CodeOf(err) != fault.Timeout || !strings.Contains(err.Error(), "nothing was run") {
		t.Errorf("a timeout in the queue: %v", err)
	}
	if _, err := c.Interrupt(t.Context(), "s", me); err != nil {
		t.Error(err)
	}
	<-firstDone
}

// W23, W8, W9: what Python cannot interrupt costs the worker; the reply says which
// rung was needed and what was lost, and so does the first reply after it.
func TestALadderThatEndsTheWorkerSaysWhatItCost(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-145 CP-144 CP-026")
	r := newRig(t)
	for i := range r.config.Worker.Timing.Ladder {
		r.config.Worker.Timing.Ladder[i].Wait = 200 * time.Millisecond
	}
	c := r.open(t)
	r.run(t, c, "s", "alpha = 1\nbeta = 2")
	q := r.request("s", "gamma = 3\nsum(range(10**12))")
	q.TimeoutMS = 200
	p, got := start(t.Context(), c.Execute, q)
	if step := p.wait(t, "interrupting"); step.Rung != "cancel" {
		t.Errorf("first rung %+v", step)
	}
	a := <-got
	if a.err != nil || a.result.Status != "interrupted" || a.result.Notice == nil || a.result.Cause == nil {
		t.Fatalf("got %+v", a)
	}
	n := a.result.Notice
	if n.Kind != "timeout" || !slices.Equal(n.Names, []string{"alpha", "beta"}) || n.Previous != "g-1" || !strings.Contains(n.Text, "alpha, beta") || !strings.Contains(n.Text, "sig") {
		t.Errorf("notice %+v", n)
	}
	next := r.run(t, c, "s", "2")
	n = next.Notice
	if n == nil || n.Kind != "namespace_lost" || n.Generation != "g-2" || n.Previous != "g-1" || !slices.Equal(n.Names, []string{"alpha", "beta"}) || text(next, "result") != "2" {
		t.Errorf("the next reply: %+v, notice %+v", next, n)
	}
	if again := r.run(t, c, "s", "3"); again.Notice != nil {
		t.Errorf("said twice: %+v", again.Notice)
	}
	want := []string{
		"session.opened", "kernel.reset", "cell.started", "cell.completed", "cell.started", "cell.completed", "kernel.lost",
		"kernel.reset", "cell.started", "cell.completed", "cell.started", "cell.completed",
	}
	if diff := cmp.Diff(want, kinds(t, c, "s")); diff != "" {
		t.Error(diff)
	}
}

// W26: each way for a worker to die has its cause.
func TestAWorkerThatDiesIsNamedWithItsCause(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-024 CP-142")
	r := newRig(t)
	c := r.open(t)
	for i, want := range []struct{ code, status, cause, say string }{
		{"import os\nprint('half', flush=True)\nos._exit(7)", "failed", "exit", "7"},
		{"import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "failed", "signal", "SIGKILL"},
		{"import sys\nsys.exit(3)", "error", "", ""},
	} {
		session := fmt.Sprint("s", i)
		r.run(t, c, session, "mine = 1")
		res := r.run(t, c, session, want.code)
		if res.Status != want.status {
			t.Errorf("%q: %+v", want.code, res)
			continue
		}
		if want.cause == "" {
			if res.Notice != nil || text(r.run(t, c, session, "mine"), "result") != "1" {
				t.Errorf("%q took the namespace: %+v", want.code, res)
			}
			continue
		}
		if res.Cause == nil || string(res.Cause.Kind) != want.cause || !strings.Contains(res.Cause.Text, want.say) {
			t.Errorf("%q: cause %+v", want.code, res.Cause)
		}
		next := r.run(t, c, session, "1")
		if next.Notice == nil || next.Notice.Kind != "namespace_lost" || !slices.Equal(next.Notice.Names, []string{"mine"}) || !strings.Contains(next.Notice.Text, want.say) {
			t.Errorf("after %q: %+v", want.code, next.Notice)
		}
		const unknown = "What the cell that was running had bound is not known."
		if !strings.Contains(res.Notice.Text, unknown) || !strings.Contains(next.Notice.Text, unknown) {
			t.Errorf("%q: the notices do not say that its own names are unknown: %q, %q", want.code, res.Notice.Text, next.Notice.Text)
		}
	}
}

func TestACallerThatGoesAwayInterruptsItsCell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	ctx, leave := context.WithCancel(t.Context())
	p, got := start(ctx, c.Execute, r.request("s", forever))
	p.wait(t, "output")
	leave()
	if a := <-got; a.err != nil || a.result.Status != "interrupted" {
		t.Errorf("got %+v", a)
	}
}

func TestADetachedCellGoesOnAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	ctx, leave := context.WithCancel(t.Context())
	q := r.request("s", "import os, time\nwhile not os.path.exists('go'): time.sleep(.01)\nprint('done')")
	q.Detach = true
	res, err := c.Execute(ctx, q, nil)
	leave()
	if err != nil || res.Status != "running" || res.Cell == "" || res.Execution != "e-1" {
		t.Fatalf("got %+v, %v", res, err)
	}
	touch(t, r.workspace, "go")
	r.run(t, c, "s", "1") // waits behind it
	d, err := c.Cell(t.Context(), res.Cell)
	if err != nil || d.Result.Status != "ok" || text(d.Result, "stdout") != "done\n" {
		t.Errorf("got %+v, %v", d.Result, err)
	}
}
