package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/journaltest"
)

// unruly is a store whose commits can be held up, refused, or answered wrongly.
type unruly struct {
	*journaltest.Memory

	mu   sync.Mutex
	rule func(b journal.Batch) verdict // nil: all goes well
}

// verdict is what happens to a commit.
type verdict struct {
	hold  <-chan struct{} // first wait for this
	write bool
	err   error // the answer; nil: that of the write
}

func newUnruly() *unruly { return &unruly{Memory: journaltest.NewMemory(nil)} }

func (u *unruly) set(rule func(b journal.Batch) verdict) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rule = rule
}

func (u *unruly) Commit(ctx context.Context, b journal.Batch) (journal.Result, error) {
	u.mu.Lock()
	rule := u.rule
	u.mu.Unlock()
	if rule == nil {
		return u.Memory.Commit(ctx, b)
	}
	v := rule(b)
	if v.hold != nil {
		<-v.hold
	}
	if !v.write {
		return journal.Result{}, v.err
	}
	res, err := u.Memory.Commit(ctx, b)
	if err == nil && v.err != nil {
		return journal.Result{}, v.err
	}
	return res, err
}

// Close keeps the memory, so that another core can open it.
func (u *unruly) Close() error { return nil }

func has(b journal.Batch, kind event.Kind) bool {
	return slices.ContainsFunc(b.Append, func(a journal.Append) bool {
		return slices.ContainsFunc(a.Events, func(e journal.Event) bool { return e.Kind == string(kind) })
	})
}

func unrulyRig(t *testing.T) (*rig, *unruly, *host.Core) {
	t.Helper()
	r, u := newRig(t), newUnruly()
	r.store = func() journal.Store { return u }
	c := r.open(t)
	r.run(t, c, "s", "x = 1")
	return r, u, c
}

var full = fault.New(fault.StoreFull, "commit", "", "no space left").Retryable()

// W11, CP-140: a store that stalls costs neither the result nor the worker, and
// the outcome is recorded when the store answers.
func TestAStalledStoreKeepsTheResult(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-140")
	r, u, c := unrulyRig(t)
	hold := make(chan struct{})
	u.set(func(b journal.Batch) verdict {
		if has(b, event.CellCompleted) {
			return verdict{hold: hold, write: true}
		}
		return verdict{write: true}
	})
	res := r.run(t, c, "s", "print('done once'); open('ran', 'a').write('1'); x")
	if !res.Unrecorded || res.Status != "ok" || text(res, "stdout") != "done once\n" || text(res, "result") != "1" {
		t.Fatalf("got %+v", res)
	}
	status, err := c.Status(t.Context())
	if err != nil || status.Unrecorded != 1 || status.Workers != 1 {
		t.Errorf("status %+v, %v", status, err)
	}
	// The worker lives and its session answers, though it takes no new work yet.
	if row, err := c.Session(t.Context(), "s"); err != nil || row.State != "idle" || row.Generation != "g-1" {
		t.Errorf("session %+v, %v", row, err)
	}
	if n, err := c.Namespace(t.Context(), "s"); err != nil || !n.Live {
		t.Errorf("namespace %+v, %v", n, err)
	}
	u.set(nil)
	close(hold)
	next := r.run(t, c, "s", "x")
	if next.Unrecorded || next.Generation != "g-1" || text(next, "result") != "1" || next.Notice != nil {
		t.Errorf("after the stall: %+v", next)
	}
	d, err := c.Cell(t.Context(), res.Cell)
	if err != nil || d.Result.Status != "ok" || text(d.Result, "stdout") != "done once\n" {
		t.Errorf("the outcome that waited: %+v, %v", d.Result, err)
	}
	want := []string{"session.opened", "kernel.reset", "cell.started", "cell.completed", "cell.started", "cell.completed", "cell.started", "cell.completed"}
	if diff := cmp.Diff(want, kinds(t, c, "s")); diff != "" {
		t.Error(diff)
	}
}

// D8: a full disk refuses new work with one clear message, loses no outcome, leaves
// reading, and is over when space returns.
func TestAFullStoreRefusesNewWork(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-140")
	r, u, c := unrulyRig(t)
	u.set(func(b journal.Batch) verdict {
		if has(b, event.CellStarted) {
			return verdict{write: true}
		}
		return verdict{err: full}
	})
	res := r.run(t, c, "s", "y = 2")
	if !res.Unrecorded || res.Status != "ok" {
		t.Fatalf("got %+v", res)
	}
	u.set(func(journal.Batch) verdict { return verdict{err: full} })
	for _, session := range []string{"s", "new"} {
		_, err := c.Execute(t.Context(), r.request(session, "open('ran', 'a').write('1')"), nil)
		var f *fault.Error
		if fault.CodeOf(err) != fault.StoreFull || !asFault(err, &f) || f.Next == "" || !f.Retry || !strings.Contains(err.Error(), "nothing was run") {
			t.Errorf("%s: %v", session, err)
		}
	}
	if list, err := c.ListCells(t.Context(), "", 0); err != nil || len(list) != 2 {
		t.Errorf("list %+v, %v", list, err)
	}
	u.set(nil)
	next := r.run(t, c, "s", "import os\nos.path.exists('ran'), y")
	if text(next, "result") != "(False, 2)" || next.Generation != "g-1" {
		t.Errorf("when space is back: %+v", next)
	}
	if d, err := c.Cell(t.Context(), res.Cell); err != nil || d.Result.Status != "ok" {
		t.Errorf("the outcome that waited: %+v, %v", d.Result, err)
	}
}

// D8: what ends a namespace on request is recorded first, so that a full disk keeps
// the namespace; that of a running cell is gone, and the answer does not deny it.
func TestAFullStoreKeepsTheNamespace(t *testing.T) {
	t.Parallel()
	changes := map[string]func(c *host.Core) error{
		"reset": func(c *host.Core) error { _, err := c.ResetNamespace(bg, "s", me); return err },
		"close": func(c *host.Core) error { _, err := c.CloseSession(bg, "s", me); return err },
	}
	refuse := func(b journal.Batch) verdict {
		if has(b, event.CellStarted) {
			return verdict{write: true}
		}
		return verdict{err: full}
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, u, c := unrulyRig(t)
			u.set(refuse)
			if err := change(c); fault.CodeOf(err) != fault.StoreFull || !strings.Contains(err.Error(), "nothing was run") {
				t.Errorf("got %v", err)
			}
			if n, err := c.Namespace(t.Context(), "s"); err != nil || !n.Live || n.Generation != "g-1" {
				t.Errorf("namespace %+v, %v", n, err)
			}
			u.set(nil)
			if res := r.run(t, c, "s", "x"); text(res, "result") != "1" || res.Generation != "g-1" || res.Notice != nil {
				t.Errorf("when space is back: %+v, notice %+v", res, res.Notice)
			}
			if err := change(c); err != nil {
				t.Error(err)
			}
			if n, err := c.Namespace(t.Context(), "s"); err != nil || n.Live == (name == "close") {
				t.Errorf("after it: %+v, %v", n, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			checkFold(t, u, "s")
		})
		t.Run(name+" of a running cell", func(t *testing.T) {
			t.Parallel()
			r, u, c := unrulyRig(t)
			p, got := start(t.Context(), c.Execute, r.request("s", forever))
			p.wait(t, "output")
			u.set(refuse)
			err := change(c)
			if fault.CodeOf(err) != fault.StoreFull || !strings.Contains(err.Error(), "the namespace of g-1 has ended") || strings.Contains(err.Error(), "nothing was run") {
				t.Errorf("got %v", err)
			}
			if a := <-got; a.err != nil || a.result.Status != "interrupted" || !a.result.Unrecorded {
				t.Errorf("the running one: %+v", a)
			}
			u.set(nil)
			if err := change(c); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			checkFold(t, u, "s")
		})
	}
}

func asFault(err error, f **fault.Error) bool {
	e, ok := err.(*fault.Error)
	*f = e
	return ok
}

// A commit whose answer is lost, written or not, is neither lost nor doubled; of an
// intent in doubt nothing is run.
func TestALostAnswerOfTheStore(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-140")
	lost := fault.New(fault.Unknown, "commit", "", "the answer was lost")
	for name, written := range map[string]bool{"written": true, "not written": false} {
		for _, kind := range []event.Kind{event.CellStarted, event.CellCompleted, event.KernelReset} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				r, u, c := unrulyRig(t)
				if kind == event.KernelReset {
					r.run(t, c, "s", "import os\nos._exit(1)")
				}
				once := sync.OnceValue(func() bool { return true })
				used := false
				u.set(func(b journal.Batch) verdict {
					if has(b, kind) && !used {
						used = once()
						return verdict{write: written, err: lost}
					}
					return verdict{write: true}
				})
				res, err := c.Execute(t.Context(), r.request("s", "open('ran', 'a').write('1')"), nil)
				wantRuns := "1"
				if kind != event.CellCompleted {
					wantRuns = ""
					if fault.CodeOf(err) != fault.Unavailable {
						t.Errorf("got %+v, %v", res, err)
					}
				} else if err != nil || !res.Unrecorded {
					t.Errorf("got %+v, %v", res, err)
				}
				u.set(nil)
				after := r.run(t, c, "s", "import os\nprint(open('ran').read() if os.path.exists('ran') else '', end='')")
				if text(after, "stdout") != wantRuns {
					t.Errorf("it ran %q times, want %q", text(after, "stdout"), wantRuns)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				checkFold(t, u, "s")
			})
		}
	}
}

// The end of a namespace of which the store did not say whether it has it is an end
// all the same, and is recorded once.
func TestALostAnswerToAReset(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unknown, "commit", "", "the answer was lost")
	for name, written := range map[string]bool{"written": true, "not written": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, u, c := unrulyRig(t)
			pids := workerPIDs(t, c)
			once := true
			u.set(func(b journal.Batch) verdict {
				if has(b, event.KernelStopped) && once {
					once = false
					return verdict{write: written, err: lost}
				}
				return verdict{write: true}
			})
			if _, err := c.ResetNamespace(t.Context(), "s", me); err == nil || !strings.Contains(err.Error(), "the namespace of g-1 has ended") {
				t.Errorf("got %v", err)
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("process %d: %v", pid, err)
				}
			}
			res := r.run(t, c, "s", "'x' in globals()")
			if n := res.Notice; text(res, "result") != "False" || n == nil || n.Kind != "namespace_reset" {
				t.Errorf("got %+v, notice %+v", res, n)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			checkFold(t, u, "s")
		})
	}
}

// A stream that cannot be read sets its session aside, with the place named, and
// no other.
func TestABrokenStreamIsSetAside(t *testing.T) {
	t.Parallel()
	r, u, c := unrulyRig(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	heads := int64(len(mustEvents(t, u, "s")))
	_, err := u.Memory.Commit(t.Context(), journal.Batch{ID: "stray", Append: []journal.Append{{
		Stream: "session/s", Head: heads, Events: []journal.Event{{Kind: "cell.vanished", Version: 1, AtMS: 1, Payload: []byte(`{}`)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	c = r.open(t)
	_, err = c.Execute(t.Context(), r.request("s", "1"), nil)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "event "+itoa(int(heads)+1)) {
		t.Errorf("got %v", err)
	}
	row, err := c.Session(t.Context(), "s")
	if err != nil || row.State != "quarantined" || !strings.Contains(row.Reason, "cell.vanished") {
		t.Errorf("session %+v, %v", row, err)
	}
	r.run(t, c, "other", "1")
}

func mustEvents(t *testing.T, s journal.Store, session string) []journal.Stored {
	t.Helper()
	var all []journal.Stored
	for e, err := range journal.Stream(t.Context(), s, "session/"+session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// CP-120: what a killed core left open is closed as interrupted and lost, with the
// names that the fold knows, and its first reply tells so. The killed core is one
// that stands still and whose store has moved on to the next.
func TestRecoveryClosesWhatWasOpen(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-120")
	r, u, c := unrulyRig(t)
	r.run(t, c, "idle", "held = 1")
	p, got := start(t.Context(), c.Execute, r.request("s", forever))
	p.wait(t, "output")
	copied := u.snapshot()
	if _, err := c.Interrupt(t.Context(), "s", me); err != nil {
		t.Fatal(err)
	}
	<-got
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	r.dir += "-copy"
	r.store = func() journal.Store { return copied }
	c = r.open(t)
	status, err := c.Status(t.Context())
	if err != nil || status.LastRecovery != "cells interrupted: 1, namespaces lost: 2" {
		t.Errorf("status %+v, %v", status, err)
	}
	rows, err := c.ListCells(t.Context(), "s", 1)
	if err != nil || len(rows) != 1 || rows[0].Status != "interrupted" {
		t.Fatalf("cells %+v, %v", rows, err)
	}
	d, err := c.Cell(t.Context(), rows[0].Cell)
	if err != nil || d.Result.Cause == nil || d.Result.Cause.Kind != event.CauseCoreRestart || d.Code != forever {
		t.Errorf("the open cell: %+v, %v", d, err)
	}
	for session, held := range map[string]string{"s": "x", "idle": "held"} {
		n := r.run(t, c, session, "1").Notice
		if n == nil || n.Kind != "namespace_lost" || !slices.Equal(n.Names, []string{held}) || n.Cause.Kind != event.CauseCoreRestart {
			t.Errorf("%s: notice %+v", session, n)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	checkFold(t, copied, "s")
	c = r.open(t)
	if status, err := c.Status(t.Context()); err != nil || status.LastRecovery != "nothing was open" {
		t.Errorf("after a stop in order: %+v, %v", status, err)
	}
}

var _ control.Service = (*host.Core)(nil)

// Two writers of one stream would be two histories: the session is set aside, its
// worker ended, and nobody else is touched.
func TestAForeignWriterSetsTheSessionAside(t *testing.T) {
	t.Parallel()
	r, u, c := unrulyRig(t)
	r.run(t, c, "other", "1")
	heads := int64(len(mustEvents(t, u, "s")))
	_, payload, err := event.Encode(event.CellLateOutputV1{Cell: "cell_x", Stream: "stdout", Text: "who?"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Memory.Commit(t.Context(), journal.Batch{ID: "foreign", Append: []journal.Append{{
		Stream: "session/s", Head: heads, Events: []journal.Event{{Kind: "cell.late_output", Version: 1, AtMS: 1, Payload: payload}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := c.Execute(t.Context(), r.request("s", "open('ran', 'w')"), nil)
		if err == nil {
			t.Fatalf("got %+v", res)
		}
	}
	row, err := c.Session(t.Context(), "s")
	if err != nil || row.State != "quarantined" || !strings.Contains(row.Reason, "session/s") {
		t.Errorf("session %+v, %v", row, err)
	}
	if res := r.run(t, c, "other", "import os\nos.path.exists('ran')"); text(res, "result") != "False" || res.Generation != "g-1" {
		t.Errorf("the other session: %+v", res)
	}
}

// A handle that another core has drawn is exchanged before anything has run.
func TestATakenHandleIsExchanged(t *testing.T) {
	t.Parallel()
	r, u, c := unrulyRig(t)
	taken := ""
	u.set(func(b journal.Batch) verdict {
		if has(b, event.CellStarted) && taken == "" {
			for _, rec := range b.Put {
				if rec.Kind == "cell" {
					taken = rec.Key
				}
			}
			_, err := u.Memory.Commit(bg, journal.Batch{
				ID:     "theirs",
				Append: []journal.Append{{Stream: "session/theirs", Events: []journal.Event{{Kind: "x", Version: 1, AtMS: 1, Payload: []byte("{}")}}}},
				Put:    []journal.Record{{Kind: "cell", Key: taken, Session: "theirs", State: "running", Body: []byte("{}")}},
			})
			must(err)
		}
		return verdict{write: true}
	})
	res := r.run(t, c, "s", "x")
	if res.Cell == taken || taken == "" || text(res, "result") != "1" {
		t.Errorf("got %+v, taken %s", res, taken)
	}
	if d, err := c.Cell(t.Context(), res.Cell); err != nil || d.Result.Status != "ok" {
		t.Errorf("by its handle: %+v, %v", d.Result, err)
	}
}
