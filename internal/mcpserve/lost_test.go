package mcpserve_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/mcpserve"
)

// fleet is a data directory whose core can be replaced.
type fleet struct {
	mu    sync.Mutex
	cores []*memory // the last one is the one that runs
	why   error     // no core can be started
	dials int
}

func (f *fleet) dial(context.Context) (control.Service, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	if f.why != nil {
		return nil, f.why
	}
	m := f.cores[len(f.cores)-1]
	return m, m.here()
}

// replace starts a core that has closed what the last one left open.
func (f *fleet) replace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.cores[len(f.cores)-1]
	next := newMemory()
	old.mu.Lock()
	defer old.mu.Unlock()
	for id, c := range old.cells {
		d := c.detail
		if d.Result.Status == "running" {
			d.Result.Status = "interrupted"
		}
		next.cells[id] = &cell{detail: d, bytes: c.bytes}
	}
	f.cores = append(f.cores, next)
}

func (f *fleet) sent() (n int) {
	for _, m := range f.cores {
		n += len(m.requests())
	}
	return n
}

func TestCallInFlightWhenTheCoreDiesIsAnsweredFromTheRecord(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M11 D4 D7")
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{cores: []*memory{newMemory()}}
		cs := connect(t, mcpserve.Options{Dial: f.dial}, nil)
		go func() {
			time.Sleep(3 * time.Second) // a start and its recovery
			f.replace()
		}()
		g, res := call(t, cs, "execute", map[string]any{"code": "print once\ndie"})
		if res.IsError || g.Status != "interrupted" || g.Cell != "cell_000000000001" {
			t.Errorf("%+v, isError %v", g, res.IsError)
		}
		if g.Notice == nil || !strings.Contains(g.Notice.Text, "not run again") {
			t.Errorf("notice %+v", g.Notice)
		}
		if n := f.sent(); n != 1 {
			t.Errorf("the cell was sent %d times", n)
		}
		begun := time.Now()
		if g, res := call(t, cs, "execute", map[string]any{"code": "print on"}); g.Status != "ok" {
			t.Error(words(res))
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the next call took %s", took)
		}
	})
}

func TestCellThatWasNeverRecordedIsSaidNotToHaveRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{cores: []*memory{newMemory()}}
		cs := connect(t, mcpserve.Options{Dial: f.dial}, nil)
		go func() {
			time.Sleep(time.Second)
			f.replace()
			f.mu.Lock()
			defer f.mu.Unlock()
			clear(f.cores[1].cells)
		}()
		g, res := call(t, cs, "execute", map[string]any{"code": "die"})
		if !res.IsError || g.Status != "not_run" || g.Fault.Code != fault.Unavailable {
			t.Errorf("%+v, isError %v", g, res.IsError)
		}
	})
}

func TestOutcomeIsUnknownWhileNoCoreCanBeStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{cores: []*memory{newMemory()}}
		cs := connect(t, mcpserve.Options{Dial: f.dial}, nil)
		if g, res := call(t, cs, "execute", map[string]any{"code": "print warm"}); g.Status != "ok" {
			t.Fatal(words(res))
		}
		f.mu.Lock()
		f.why = fault.New(fault.Unavailable, "start core", "/srv/data", "the disk is read-only").WithNext("mount it for writing")
		f.mu.Unlock()
		begun := time.Now()
		g, res := call(t, cs, "execute", map[string]any{"code": "die"})
		if !res.IsError || g.Status != "unknown" || g.Fault.Code != fault.Unknown || g.Cell != "cell_000000000002" {
			t.Errorf("%+v, isError %v", g, res.IsError)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the answer took %s", took)
		}
	})
}

func TestStatusAnswersWithoutACore(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M12")
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{cores: []*memory{newMemory()},
			why: fault.New(fault.Unavailable, "start core", "/srv/data", "the disk is read-only").WithNext("mount it for writing")}
		cs := connect(t, mcpserve.Options{Dial: f.dial}, nil)
		begun := time.Now()
		g, res := call(t, cs, "status", nil)
		if res.IsError || g.Core.Reachable == nil || *g.Core.Reachable || g.Core.Fault == nil || !strings.Contains(g.Core.Fault.Message, "read-only") {
			t.Errorf("%+v, isError %v", g, res.IsError)
		}
		if text := words(res); !strings.Contains(text, "next: mount it for writing") {
			t.Errorf("text %q", text)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the answer took %s", took)
		}
		if g, res := call(t, cs, "execute", map[string]any{"code": "print x"}); !res.IsError || g.Status != "not_run" {
			t.Errorf("%+v, isError %v", g, res.IsError)
		}
		f.mu.Lock()
		f.why = nil
		f.mu.Unlock()
		if g, res := call(t, cs, "execute", map[string]any{"code": "print x"}); g.Status != "ok" {
			t.Error(words(res))
		}
	})
}

// A fault that says that the same call cannot succeed is not tried again: a
// worker that cannot start would be started for nine seconds.
func TestOnlyWhatMaySucceedIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.refuse = fault.New(fault.Unavailable, "start worker", "s", "no Python").WithNext("install Python")
	n := 0
	cs := connect(t, mcpserve.Options{Dial: func(context.Context) (control.Service, error) { n++; return m, nil }}, nil)
	if g, _ := call(t, cs, "execute", map[string]any{"code": "print x"}); g.Status != "not_run" || n != 1 {
		t.Errorf("%+v after %d tries", g, n)
	}
}

// A core that stands still does not hold a call for ever that has a time of its own.
func TestTimeoutHoldsWithACoreThatStandsStill(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		code fault.Code
		cell any
	}{
		"ignore": {fault.Timeout, "cell_000000000001"},
		"mute":   {fault.Unknown, ""},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cs := connect(t, mcpserve.Options{Dial: dialled(newMemory())}, nil)
				begun := time.Now()
				g, res := call(t, cs, "execute", map[string]any{"code": code, "timeout_ms": 1000})
				if !res.IsError || g.Status != "unknown" || g.Fault.Code != want.code || g.Cell != want.cell {
					t.Errorf("%+v, isError %v", g, res.IsError)
				}
				if took := time.Since(begun); took < time.Second || took > 10*time.Second {
					t.Errorf("the answer took %s", took)
				}
			})
		})
	}
}
