package worker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/worker"
)

var (
	phases  = []worker.Phase{worker.Starting, worker.Ready, worker.Busy, worker.Interrupting, worker.Stopping, worker.Dead}
	changes = []worker.Change{worker.Greeted, worker.Began, worker.Ended, worker.Cut, worker.Quit, worker.Broken, worker.Disappeared}
)

// TestNextMatrix states every pair of phase and change: the next phase, or the
// refusal's code.
func TestNextMatrix(t *testing.T) {
	t.Parallel()
	const (
		c = "conflict"
		n = "not_found"
		u = "unavailable"
	)
	want := map[worker.Phase][]string{
		//                    hello    began   ended       cut             quit        broken      gone
		worker.Starting:     {"ready", u, c, n, "stopping", "stopping", "dead"},
		worker.Ready:        {c, "busy", c, n, "stopping", "stopping", "dead"},
		worker.Busy:         {c, c, "ready", "interrupting", "stopping", "stopping", "dead"},
		worker.Interrupting: {c, c, "ready", "interrupting", "stopping", "stopping", "dead"},
		worker.Stopping:     {c, u, "stopping", n, "stopping", "stopping", "dead"},
		worker.Dead:         {c, u, c, n, "dead", "dead", c},
	}
	for _, p := range phases {
		var got []string
		for _, ch := range changes {
			next, err := worker.Next(p, ch)
			if err != nil {
				if next != p {
					t.Errorf("Next(%s, %s) refused and moved to %s", p, ch, next)
				}
				got = append(got, string(fault.CodeOf(err)))
				continue
			}
			got = append(got, next.String())
		}
		if diff := cmp.Diff(want[p], got); diff != "" {
			t.Errorf("phase %s (-want +got):\n%s", p, diff)
		}
	}
}

func TestNextRefusesWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	if _, err := worker.Next(worker.Phase(0), worker.Quit); err == nil {
		t.Error("the zero phase moved")
	}
	if _, err := worker.Next(worker.Ready, worker.Change(0)); err == nil {
		t.Error("the zero change moved a worker")
	}
	if got := worker.Phase(99).String() + worker.Change(99).String(); got != "invalidinvalid" {
		t.Errorf("names of unknown values: %q", got)
	}
}

// TestNextEndsDead walks random histories: a dead worker stays dead, and an
// operation runs exactly between its beginning and its end.
func TestNextEndsDead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := worker.Starting
		running := false
		for _, ch := range rapid.SliceOf(rapid.SampledFrom(changes)).Draw(t, "changes") {
			was := p
			next, err := worker.Next(p, ch)
			if err == nil {
				p = next
				switch ch {
				case worker.Began:
					running = true
				case worker.Ended, worker.Quit, worker.Broken, worker.Disappeared:
					running = false
				}
			}
			if was == worker.Dead && p != worker.Dead {
				t.Fatalf("dead worker became %s by %s", p, ch)
			}
			if p.Running() != running {
				t.Fatalf("after %s in %s: Running() = %t, want %t", ch, was, p.Running(), running)
			}
		}
	})
}

// TestLadder: the default ladder climbs gentlest first, ends with the kill that
// nothing survives, and its bound is the sum of its waits (W22, W23).
func TestLadder(t *testing.T) {
	t.Parallel()
	timing := worker.DefaultTiming()
	var got []worker.Rung
	var sum time.Duration
	for _, s := range timing.Ladder {
		got = append(got, s.Rung)
		sum += s.Wait
		if s.Wait <= 0 {
			t.Errorf("rung %s waits %s", s.Rung, s.Wait)
		}
	}
	want := []worker.Rung{worker.RungCancel, worker.RungSignal, worker.RungClose, worker.RungTerminate, worker.RungKill}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rungs (-want +got):\n%s", diff)
	}
	if timing.Bound() != sum {
		t.Errorf("Bound() = %s, want %s", timing.Bound(), sum)
	}
}

// TestRestartStopsARunOfQuickDeaths is W9: restarts are capped and say so.
func TestRestartStopsARunOfQuickDeaths(t *testing.T) {
	t.Parallel()
	policy := worker.Policy{Quick: 10 * time.Second, Max: 5, Base: time.Second, Cap: 3 * time.Second}
	quick := worker.Death{Cause: event.CauseSignal, Lived: time.Second}
	failed := worker.Death{Cause: event.CauseStart}
	long := worker.Death{Cause: event.CauseExit, Lived: time.Hour}
	asked := worker.Death{Cause: event.CauseShutdown, Lived: time.Millisecond}
	cut := worker.Death{Cause: event.CauseInterrupt, Lived: time.Second}

	tests := []struct {
		name   string
		deaths []worker.Death
		wait   time.Duration
		giveUp bool
	}{
		{"no history", nil, 0, false},
		{"one death", []worker.Death{quick}, 0, false},
		{"second waits", []worker.Death{quick, quick}, time.Second, false},
		{"wait doubles", []worker.Death{quick, quick, quick}, 2 * time.Second, false},
		{"wait is capped", []worker.Death{quick, quick, quick, quick}, 3 * time.Second, false},
		{"fifth gives up", []worker.Death{quick, quick, quick, quick, quick}, 0, true},
		{"failed starts count", []worker.Death{failed, failed, failed, failed, failed}, 0, true},
		{"a long life ends the run", []worker.Death{quick, quick, quick, quick, long, quick}, 0, false},
		{"a long life starts at once", []worker.Death{quick, quick, long}, 0, false},
		{"wishes do not count", []worker.Death{asked, asked, asked, asked, asked, asked}, 0, false},
		{"killing interrupts do not count", []worker.Death{cut, cut, cut, cut, cut, cut}, 0, false},
		{"wishes do not end the run", []worker.Death{quick, quick, quick, quick, asked, quick}, 0, true},
		{"exactly quick is long", []worker.Death{{Cause: event.CauseExit, Lived: 10 * time.Second}, quick}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := worker.Decide(policy, tt.deaths)
			if got.Wait != tt.wait || got.GiveUp != tt.giveUp {
				t.Errorf("Decide() = %+v, want wait %s, give up %t", got, tt.wait, tt.giveUp)
			}
			if (got.GiveUp || got.Wait > 0) && got.Reason == "" {
				t.Error("waits or gives up without a reason")
			}
		})
	}
}

// TestRestartIsBounded: for any policy with a cap and any history the wait stays
// within the cap, and Max quick deaths in a row always give up.
func TestRestartIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := worker.DefaultPolicy()
		policy.Max = rapid.IntRange(1, 100).Draw(t, "max")
		n := rapid.IntRange(0, 200).Draw(t, "deaths")
		deaths := make([]worker.Death, n)
		for i := range deaths {
			deaths[i] = worker.Death{Cause: event.CauseExit, Lived: time.Duration(i) % policy.Quick}
		}
		d := worker.Decide(policy, deaths)
		if d.GiveUp != (n >= policy.Max) {
			t.Fatalf("%d quick deaths of at most %d: give up = %t", n, policy.Max, d.GiveUp)
		}
		if d.Wait < 0 || d.Wait > policy.Cap {
			t.Fatalf("wait %s outside 0…%s", d.Wait, policy.Cap)
		}
	})
}
