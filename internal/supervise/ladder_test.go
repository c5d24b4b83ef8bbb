package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/worker"
)

// gate is a pipe file at which a cell tells the test where it is.
type gate string

func newGate(t *testing.T) gate {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return gate(path)
}

// reach is Python that lets wait return.
func (g gate) reach() string { return "open('" + string(g) + "', 'w').close()\n" }

// wait returns when the cell has reached the gate.
func (g gate) wait(t *testing.T) {
	t.Helper()
	if _, err := os.ReadFile(string(g)); err != nil {
		t.Error(err)
	}
}

type ended struct {
	c   supervise.Completion
	err error
}

// running starts code that reaches the gate and returns when it has.
func running(t *testing.T, ctx context.Context, p *supervise.Process, id, prefix, code string) <-chan ended {
	t.Helper()
	g := newGate(t)
	end := make(chan ended, 1)
	go func() {
		c, err := p.Execute(ctx, id, prefix+g.reach()+code)
		end <- ended{c, err}
	}()
	g.wait(t)
	return end
}

// patient is a ladder whose first rung is long: what ends on it was ended by the
// interrupt frame, however slow the machine.
func patient() worker.Timing {
	timing := worker.DefaultTiming()
	timing.Ladder[0].Wait = 15 * time.Second
	return timing
}

// brief is a ladder that is climbed in a moment.
func brief() worker.Timing {
	timing := worker.DefaultTiming()
	for i := range timing.Ladder {
		timing.Ladder[i].Wait = 150 * time.Millisecond
	}
	return timing
}

// TestInterruptKeepsNamespace: code that Python can be made to leave ends by the
// interrupt frame alone, its names stay, and the loop goes on to serve (W1, W2, W3,
// W5, and the regex of W23).
func TestInterruptKeepsNamespace(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, cites, prefix, code string }{
		{"W1 awaited sleep", "CP-026", "import asyncio\n", "await asyncio.sleep(600)"},
		{"W2 blocking in coroutine", "CP-026", "import time\nasync def m(): time.sleep(600)\n", "await m()"},
		{"blocking", "CP-026", "import time\n", "time.sleep(600)"},
		{"busy loop", "CP-026", "", "while True: pass"},
		{"W5 subprocess", "CP-026", "import subprocess\n", "subprocess.run(['/bin/sleep', '600'])"},
		{"thread join", "CP-026", "import threading, time\nw = threading.Thread(target=time.sleep, args=(600,), daemon=True)\nw.start()\n", "w.join()"},
		{"lock", "CP-026", "import threading\nlock = threading.Lock()\nlock.acquire()\n", "lock.acquire()"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Attr("requirement", tt.cites)
			t.Parallel()
			sp, _ := workbench(t)
			sp.Timing = patient()
			p := start(t, sp)
			result(t, p, "e-1", "kept = 'still here'")
			end := running(t, t.Context(), p, "e-2", tt.prefix, tt.code)
			rung, kept, err := p.Interrupt(t.Context(), "e-2")
			if rung != worker.RungCancel || !kept || err != nil {
				t.Errorf("Interrupt = %s, %t, %v", rung, kept, err)
			}
			got := <-end
			if got.err != nil {
				t.Fatalf("Execute: %v", got.err)
			}
			if got.c.Cell.Status != "interrupted" || got.c.Rung != worker.RungCancel {
				t.Errorf("completion %+v, rung %s", got.c.Cell, got.c.Rung)
			}
			if got := result(t, p, "e-3", "import asyncio\nawait asyncio.sleep(0)\nkept"); got != "'still here'" {
				t.Errorf("after the interrupt kept = %s", got)
			}
		})
	}
}

// TestInterruptBySignal: what holds the interpreter while it looks for signals ends
// by the host's signal, and its names stay (W23).
func TestInterruptBySignal(t *testing.T) {
	t.Attr("requirement", "CP-026")
	t.Parallel()
	sp, _ := workbench(t)
	sp.Timing = patient()
	sp.Timing.Ladder[0].Wait = 200 * time.Millisecond
	sp.Timing.Ladder[1].Wait = 15 * time.Second
	p := start(t, sp)
	result(t, p, "e-1", "import re\nkept = 1")
	rung := worker.RungCancel
	for i := 0; rung == worker.RungCancel && i < 20; i++ { // until it is caught within the match
		id := fmt.Sprintf("e-try-%d", i)
		end := running(t, t.Context(), p, id, "", "re.match(r'(a+)+$', 'a' * 64 + 'b')")
		var kept bool
		var err error
		rung, kept, err = p.Interrupt(t.Context(), id)
		if !kept || err != nil {
			t.Fatalf("Interrupt = %s, %t, %v", rung, kept, err)
		}
		if got := <-end; got.err != nil || got.c.Cell.Status != "interrupted" {
			t.Errorf("Execute = %+v, %v", got.c.Cell, got.err)
		}
	}
	if rung != worker.RungSignal {
		t.Errorf("it ended on rung %s", rung)
	}
	if got := result(t, p, "e-3", "kept"); got != "1" {
		t.Errorf("kept = %s", got)
	}
}

// TestInterruptHasLastWord: code that cannot be made to leave is killed within the
// ladder, and everyone is told how far it had to go and what that costs (W22, W23,
// W24).
func TestInterruptHasLastWord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, prefix, code string
		atLeast            worker.Rung
	}{
		{"W23 sum", "", "sum(range(10**13))", worker.RungClose},
		{"W23 deque", "import collections, itertools\n", "collections.deque(itertools.count(), maxlen=0)", worker.RungClose},
		{"W23 repeat", "import itertools\n", "0 in itertools.repeat(1)", worker.RungClose},
		{"catches KeyboardInterrupt", "import time\n",
			"while True:\n    try:\n        time.sleep(600)\n    except BaseException:\n        pass", worker.RungClose},
		{"ignores signals", "import signal, itertools\nfor s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n",
			"0 in itertools.repeat(1)", worker.RungKill},
	}
	order := []worker.Rung{worker.RungCancel, worker.RungSignal, worker.RungClose, worker.RungTerminate, worker.RungKill}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Attr("requirement", "CP-026 CP-145")
			t.Parallel()
			sp, _ := workbench(t)
			sp.Timing = brief()
			var mu sync.Mutex
			var taken []worker.Rung
			sp.OnRung = func(id string, r worker.Rung) {
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, r)
				if !strings.HasPrefix(id, "e-stubborn-") {
					t.Errorf("rung of %q", id)
				}
			}
			p := start(t, sp)
			got := stubborn(t, p, func() {
				mu.Lock()
				defer mu.Unlock()
				taken = nil
			}, tt.prefix, tt.code)
			rung := worker.RungCancel
			mu.Lock()
			defer mu.Unlock()
			if len(taken) > 0 {
				rung = taken[len(taken)-1]
			}
			if diff := cmp.Diff(order[:len(taken)], taken); diff != "" {
				t.Errorf("rungs (-want +got):\n%s", diff)
			}
			t.Logf("ended on rung %s: %v", rung, got.err)
			var l *supervise.Lost
			if !errors.As(got.err, &l) {
				t.Fatalf("Execute = %+v, %v", got.c, got.err)
			}
			if l.Exit.Cause.Kind != event.CauseInterrupt || !strings.HasSuffix(l.Exit.Cause.Text, string(rung)) {
				t.Errorf("cause %+v", l.Exit.Cause)
			}
			if got, want := len(taken), 1+indexOf(order, tt.atLeast); got < want {
				t.Errorf("%d rungs taken, want at least %d", got, want)
			}
			gone(t, p.PID(), p.ShimPID())
		})
	}
}

// stubborn runs code that is to outlive an interrupt and takes back the caller's
// context when it has begun. A cell that was caught between the gate and the
// stubborn part ends well and is tried again.
func stubborn(t *testing.T, p *supervise.Process, again func(), prefix, code string) ended {
	t.Helper()
	var got ended
	for i := range 20 {
		again()
		ctx, cancel := context.WithCancel(t.Context())
		end := running(t, ctx, p, fmt.Sprintf("e-stubborn-%d", i), prefix, code)
		cancel() // what the host does when the caller's time is over
		if got = <-end; got.err != nil {
			break
		}
	}
	return got
}

func indexOf(rungs []worker.Rung, r worker.Rung) int {
	for i := range rungs {
		if rungs[i] == r {
			return i
		}
	}
	return -1
}

// TestInterruptSaysBeforeItTakes is W4: that the namespace is about to be lost is
// said while the worker is still alive.
func TestInterruptSaysBeforeItTakes(t *testing.T) {
	t.Attr("requirement", "CP-026")
	t.Parallel()
	sp, _ := hostile(t, "")
	sp.Timing = brief()
	var p *supervise.Process
	alive := make(chan bool, 1)
	sp.OnRung = func(_ string, r worker.Rung) {
		if r == worker.RungClose {
			alive <- syscall.Kill(p.PID(), 0) == nil && p.Phase() == worker.Interrupting
		}
	}
	p = start(t, sp)
	end := make(chan ended, 1)
	go func() {
		c, err := p.Execute(t.Context(), "e-1", "ignore")
		end <- ended{c, err}
	}()
	rung, kept, err := interruptWhenRunning(t, p, "e-1")
	if kept || err != nil || rung == worker.RungCancel {
		t.Errorf("Interrupt = %s, %t, %v", rung, kept, err)
	}
	<-end
	if !<-alive {
		t.Error("the worker was gone before the warning")
	}
}

// interruptWhenRunning interrupts id as soon as it is there to be interrupted.
func interruptWhenRunning(t *testing.T, p *supervise.Process, id string) (worker.Rung, bool, error) {
	t.Helper()
	for {
		rung, kept, err := p.Interrupt(t.Context(), id)
		if fault.CodeOf(err) != fault.NotFound {
			return rung, kept, err
		}
		if t.Context().Err() != nil {
			t.Fatal("it never ran")
		}
		time.Sleep(time.Millisecond) // Execute runs in another goroutine and says nothing before its end
	}
}

// TestInterruptOfAnother names what is not running: it is counted and disturbs
// nothing.
func TestInterruptOfAnother(t *testing.T) {
	t.Attr("requirement", "CP-026")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	if _, _, err := p.Interrupt(t.Context(), "e-9"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Interrupt with nothing running: %v", err)
	}
	end := running(t, t.Context(), p, "e-1", "import time\n", "time.sleep(600)")
	if _, _, err := p.Interrupt(t.Context(), "e-0"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Interrupt of an ended cell: %v", err)
	}
	if got := p.Counters().Ignored; got != 2 {
		t.Errorf("Ignored = %d", got)
	}
	if p.Phase() != worker.Busy {
		t.Errorf("phase %s", p.Phase())
	}
	// Two who ask share one ladder.
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if rung, kept, err := p.Interrupt(t.Context(), "e-1"); rung != worker.RungCancel || !kept || err != nil {
				t.Errorf("Interrupt = %s, %t, %v", rung, kept, err)
			}
		})
	}
	both.Wait()
	if got := <-end; got.err != nil || got.c.Cell.Status != "interrupted" {
		t.Errorf("Execute = %+v, %v", got.c.Cell, got.err)
	}
}

// TestInterruptAskedInVain: an interrupt whose caller goes away goes on without.
func TestInterruptAskedInVain(t *testing.T) {
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	end := running(t, t.Context(), p, "e-1", "import time\n", "time.sleep(600)")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Interrupt(ctx, "e-1"); err != nil && fault.CodeOf(err) != fault.Timeout {
		t.Errorf("Interrupt: %v", err)
	}
	if got := <-end; got.err != nil || got.c.Cell.Status != "interrupted" {
		t.Errorf("Execute = %+v, %v", got.c.Cell, got.err)
	}
}

// TestStopOfDeafWorker: one that does not leave when asked is killed.
func TestStopOfDeafWorker(t *testing.T) {
	t.Attr("requirement", "CP-028")
	t.Parallel()
	for name, timing := range map[string]time.Duration{"in time": never, "deaf": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Attr("requirement", "CP-028")
			t.Parallel()
			mode := ""
			if name == "deaf" {
				mode = "deaf"
			}
			sp, _ := hostile(t, mode)
			sp.Timing.Shutdown = timing
			p := start(t, sp)
			exit := p.Stop(t.Context())
			if exit.Cause.Kind != event.CauseShutdown {
				t.Errorf("cause %+v", exit.Cause)
			}
			if killed := exit.Cause.Signal != nil && *exit.Cause.Signal == "SIGKILL"; killed != (mode == "deaf") {
				t.Errorf("killed = %t: %+v", killed, exit.Cause)
			}
			if again := p.Stop(t.Context()); again.Cause.Kind != event.CauseShutdown {
				t.Errorf("second Stop: %+v", again.Cause)
			}
			gone(t, p.PID(), p.ShimPID())
		})
	}
}

// TestStopDuringCell: the cell ends as lost by the shutdown, and the worker with it
// (W17). A worker that is asked to leave interrupts its cell, so one that has not
// reached the loop yet answers with that.
func TestStopDuringCell(t *testing.T) {
	t.Attr("requirement", "CP-028")
	t.Parallel()
	sp, _ := workbench(t)
	sp.Timing.Shutdown = 300 * time.Millisecond
	p := start(t, sp)
	end := running(t, t.Context(), p, "e-1", "import itertools\n", "0 in itertools.repeat(1)")
	if exit := p.Stop(t.Context()); exit.Cause.Kind != event.CauseShutdown {
		t.Errorf("Stop = %+v", exit.Cause)
	}
	got := <-end
	var l *supervise.Lost
	lost := errors.As(got.err, &l) && l.Exit.Cause.Kind == event.CauseShutdown
	if !lost && (got.err != nil || got.c.Cell.Status != "interrupted") {
		t.Errorf("Execute = %+v, %v", got.c.Cell, got.err)
	}
	gone(t, p.PID(), p.ShimPID())
}
