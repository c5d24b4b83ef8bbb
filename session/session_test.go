package session_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/session"
)

// steps lists what may follow in each phase; everything else must be refused.
var steps = map[session.Phase]map[event.Kind]session.Phase{
	session.Unopened: {event.SessionOpened: session.Stopped},
	session.Stopped: {
		event.KernelReset: session.Ready, event.SessionClosed: session.Closed,
		event.CellLateOutput: session.Stopped,
	},
	session.Ready: {
		event.CellStarted: session.Running, event.KernelLost: session.Stopped,
		event.KernelStopped: session.Stopped, event.CellLateOutput: session.Ready,
	},
	session.Running: {event.CellCompleted: session.Ready, event.CellLateOutput: session.Running},
	session.Closed:  {},
}

func init() {
	for phase, next := range steps {
		if phase == session.Unopened {
			continue
		}
		// The operator's word may come at any time, also after the end.
		for _, kind := range []event.Kind{
			event.ActSettled, event.ActApproved, event.ActDenied, event.SendApproved, event.SendDenied, event.InputReceived,
		} {
			next[kind] = phase
		}
		if phase == session.Closed {
			continue
		}
		for _, kind := range []event.Kind{
			event.ActIntended, event.ActFinished, event.ActUnknown, event.ActHeld, event.SendHeld, event.SendConfirmed,
		} {
			next[kind] = phase
		}
	}
}

// fitting is an event of each kind whose members fit the state, so that only the
// phase decides.
func fitting(s session.State, kind event.Kind) event.Payload {
	switch kind {
	case event.SessionOpened:
		return event.SessionOpenedV1{Session: "s", Workspace: "/w"}
	case event.SessionClosed:
		return event.SessionClosedV1{Reason: "done"}
	case event.KernelReset:
		return event.KernelResetV1{Generation: session.Generation(s.Number + 1), Number: s.Number + 1}
	case event.KernelLost:
		return event.KernelLostV1{Generation: s.Generation, Names: s.Names.Known, NamesMore: s.Names.More}
	case event.KernelStopped:
		return event.KernelStoppedV1{Generation: s.Generation, Names: s.Names.Known, NamesMore: s.Names.More}
	case event.CellStarted:
		return event.CellStartedV1{Cell: session.Execution(s.Executions + 1), Execution: session.Execution(s.Executions + 1), Generation: s.Generation}
	case event.CellCompleted:
		p := event.CellCompletedV2{Generation: s.Generation, Status: event.CellOK}
		if s.Open != nil {
			p.Cell, p.Execution = s.Open.Cell, s.Open.Execution
		}
		return p
	case event.CellLateOutput:
		return event.CellLateOutputV1{Cell: "earlier", Text: "late"}
	case event.ActIntended:
		return event.ActIntendedV1{Act: "new"}
	case event.ActFinished:
		return event.ActFinishedV1{Act: "running"}
	case event.ActUnknown:
		return event.ActUnknownV1{Act: "running"}
	case event.ActSettled:
		return event.ActSettledV1{Act: "lost"}
	case event.ActHeld:
		return event.ActHeldV1{}
	case event.ActApproved:
		return event.ActApprovedV1{}
	case event.ActDenied:
		return event.ActDeniedV1{}
	case event.SendHeld:
		return event.SendHeldV1{}
	case event.SendConfirmed:
		return event.SendConfirmedV1{}
	case event.SendApproved:
		return event.SendApprovedV1{}
	case event.SendDenied:
		return event.SendDeniedV1{}
	case event.InputReceived:
		return event.InputReceivedV1{}
	case event.OperatorMessage:
		return event.OperatorMessageV1{}
	case event.AuditDispatch:
		return event.AuditDispatchV1{}
	case event.ConfigLocked:
		return event.ConfigLockedV1{}
	}
	return nil
}

func kinds() []event.Kind {
	var all []event.Kind
	for _, s := range event.Shapes() {
		all = append(all, s.Kind)
	}
	return slices.Compact(all)
}

func apply(t interface{ Fatal(...any) }, s session.State, payloads ...event.Payload) session.State {
	for _, p := range payloads {
		next, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, AtMS: 1000 + s.Seq, Payload: p})
		if err != nil {
			t.Fatal(err)
		}
		s = next
	}
	return s
}

// in returns a state in the phase.
func in(t *testing.T, phase session.Phase) session.State {
	t.Helper()
	var s session.State
	path := map[session.Phase][]event.Kind{
		session.Unopened: {},
		session.Stopped:  {event.SessionOpened},
		session.Ready:    {event.SessionOpened, event.KernelReset},
		session.Running:  {event.SessionOpened, event.KernelReset, event.CellStarted},
		session.Closed:   {event.SessionOpened, event.SessionClosed},
	}[phase]
	for _, kind := range path {
		s = apply(t, s, fitting(s, kind))
	}
	if s.Phase != phase {
		t.Fatalf("arrived in %q, want %q", s.Phase, phase)
	}
	return s
}

func TestEveryPhaseWithEveryKind(t *testing.T) {
	t.Parallel()
	for _, phase := range session.Phases() {
		for _, kind := range kinds() {
			s := in(t, phase)
			switch kind {
			case event.ActFinished, event.ActUnknown:
				s.Acts = []session.Act{{Act: "running"}}
			case event.ActSettled:
				s.Acts = []session.Act{{Act: "lost", Unknown: true}}
			}
			got, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, AtMS: 9, Payload: fitting(s, kind)})
			want, legal := steps[phase][kind]
			if legal {
				if err != nil || got.Phase != want {
					t.Errorf("%s on %s: got %q, %v; want %q", kind, phase, got.Phase, err, want)
				}
				continue
			}
			step, ok := errors.AsType[*session.StepError](err)
			if !ok || step.From != phase || step.On != kind || step.Seq != s.Seq+1 {
				t.Errorf("%s on %s: got %v, want a refusal that names the step", kind, phase, err)
			}
			if diff := cmp.Diff(s, got); diff != "" {
				t.Errorf("%s on %s: a refusal changed the state: %s", kind, phase, diff)
			}
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase session.Phase
		seq   int64 // 0: the next one
		event event.Payload
	}{
		"a sequence left out":         {session.Ready, 4, event.KernelStoppedV1{Generation: "g-1"}},
		"a sequence again":            {session.Ready, 2, event.KernelStoppedV1{Generation: "g-1"}},
		"a generation left out":       {session.Stopped, 0, event.KernelResetV1{Generation: "g-2", Number: 2}},
		"a generation misnamed":       {session.Stopped, 0, event.KernelResetV1{Generation: "g-01", Number: 1}},
		"another generation lost":     {session.Ready, 0, event.KernelLostV1{Generation: "g-2"}},
		"another generation stopped":  {session.Ready, 0, event.KernelStoppedV1{Generation: ""}},
		"a cell of another":           {session.Ready, 0, event.CellStartedV1{Cell: "c", Execution: "e-1", Generation: "g-2"}},
		"an execution zero":           {session.Ready, 0, event.CellStartedV1{Cell: "c", Execution: "e-0", Generation: "g-1"}},
		"an execution misnamed":       {session.Ready, 0, event.CellStartedV1{Cell: "c", Execution: "e-01", Generation: "g-1"}},
		"an execution without number": {session.Ready, 0, event.CellStartedV1{Cell: "c", Execution: "x", Generation: "g-1"}},
		"another cell completed":      {session.Running, 0, event.CellCompletedV2{Cell: "x", Execution: "e-1", Generation: "g-1"}},
		"another execution completed": {session.Running, 0, event.CellCompletedV2{Cell: "e-1", Execution: "e-2", Generation: "g-1"}},
		"completed in another":        {session.Running, 0, event.CellCompletedV2{Cell: "e-1", Execution: "e-1", Generation: "g-2"}},
		"late while open":             {session.Running, 0, event.CellLateOutputV1{Cell: "e-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := in(t, c.phase)
			seq := c.seq
			if seq == 0 {
				seq = s.Seq + 1
			}
			got, err := session.Apply(s, session.Recorded{Seq: seq, Payload: c.event})
			if _, ok := errors.AsType[*session.StepError](err); !ok {
				t.Errorf("got %v, want a refusal", err)
			}
			if !reflect.DeepEqual(got, s) {
				t.Error("a refusal changed the state")
			}
		})
	}
}

// An execution id is never used again, not even after a cell that was refused
// left a hole, and not in a later generation.
func TestExecutionsOnlyRise(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-131")
	s := in(t, session.Ready)
	s = apply(t, s, event.CellStartedV1{Cell: "a", Execution: "e-7", Generation: "g-1"},
		event.CellCompletedV2{Cell: "a", Execution: "e-7", Generation: "g-1"},
		event.KernelLostV1{Generation: "g-1"}, event.KernelResetV1{Generation: "g-2", Number: 2})
	for _, id := range []string{"e-1", "e-7"} {
		if _, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, Payload: event.CellStartedV1{Cell: "b", Execution: id, Generation: "g-2"}}); err == nil {
			t.Errorf("%s was used again", id)
		}
	}
	apply(t, s, event.CellStartedV1{Cell: "b", Execution: "e-8", Generation: "g-2"})
}

func names(known ...string) session.Names { return session.Names{Known: known} }

func TestLossIsKeptUntilAReplyHasToldIt(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-120")
	lost := event.Cause{Kind: event.CauseSignal, Text: "killed by SIGKILL"}
	restart := event.Cause{Kind: event.CauseCoreRestart, Text: "the core was restarted"}
	s := in(t, session.Running)
	s = apply(t, s, event.CellCompletedV2{Cell: "e-1", Execution: "e-1", Generation: "g-1", NamesAdded: []string{"x", "a"}},
		event.KernelLostV1{Generation: "g-1", Cause: lost, Names: []string{"a", "x"}})
	want := &session.Loss{How: session.EndedLost, Generation: "g-1", Cause: lost, AtMS: s.LastAtMS, Names: names("a", "x")}
	if diff := cmp.Diff(want, s.Loss); diff != "" {
		t.Fatal(diff)
	}

	s = apply(t, s, event.KernelResetV1{Generation: "g-2", Number: 2}, event.CellStartedV1{Cell: "c", Execution: "e-2", Generation: "g-2"})
	if s.Loss == nil || s.Names.Len() != 0 {
		t.Fatalf("before any reply: loss %v, names %v", s.Loss, s.Names)
	}

	cut := apply(t, s, event.CellCompletedV2{Cell: "c", Execution: "e-2", Generation: "g-2", Status: event.CellInterrupted, Cause: &restart, NamesAdded: []string{"z"}},
		event.KernelLostV1{Generation: "g-2", Cause: restart, Names: []string{"z"}})
	if diff := cmp.Diff(names("a", "x", "z"), cut.Loss.Names); diff != "" || cut.Loss.Generation != "g-2" {
		t.Errorf("the core died before the reply: %s%s", cut.Loss.Generation, diff)
	}

	told := apply(t, s, event.CellCompletedV2{Cell: "c", Execution: "e-2", Generation: "g-2", Status: event.CellOK})
	if told.Loss != nil {
		t.Errorf("told and kept all the same: %+v", told.Loss)
	}
}

func TestDeathsCountUntilARequestedReset(t *testing.T) {
	t.Parallel()
	s := in(t, session.Stopped)
	for n := int64(1); n <= 20; n++ {
		s = apply(t, s, event.KernelResetV1{Generation: session.Generation(n), Number: n, Reason: event.ResetLost},
			event.KernelLostV1{Generation: session.Generation(n)})
	}
	if len(s.Deaths) != 16 || s.Deaths[15].Generation != "g-20" || s.Deaths[15].AtMS <= s.Deaths[15].StartedAtMS {
		t.Errorf("got %d deaths, the last is %+v", len(s.Deaths), s.Deaths[len(s.Deaths)-1])
	}
	s = apply(t, s, event.KernelResetV1{Generation: "g-21", Number: 21, Reason: event.ResetOperator})
	if len(s.Deaths) != 0 {
		t.Errorf("a requested reset keeps %d deaths", len(s.Deaths))
	}
}

// model is a second, plainer fold of the names: a set.
func TestNamesFollowAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s session.State
		for _, kind := range []event.Kind{event.SessionOpened, event.KernelReset} {
			s = apply(t, s, fitting(s, kind))
		}
		model := map[string]bool{}
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "näme"})
		for range rapid.IntRange(1, 20).Draw(t, "cells") {
			before := s
			kept := slices.Clone(s.Names.Known)
			s = apply(t, s, fitting(s, event.CellStarted))
			p := fitting(s, event.CellCompleted).(event.CellCompletedV2)
			p.NamesRemoved = rapid.SliceOfDistinct(name, rapid.ID).Draw(t, "removed")
			p.NamesAdded = rapid.SliceOfDistinct(name, rapid.ID).Draw(t, "added")
			s = apply(t, s, p)
			for _, n := range p.NamesRemoved {
				delete(model, n)
			}
			for _, n := range p.NamesAdded {
				model[n] = true
			}
			var want []string
			for n := range model {
				want = append(want, n)
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, s.Names.Known, cmpopts.EquateEmpty()); diff != "" || s.Names.More != 0 {
				t.Fatal(diff, s.Names.More)
			}
			if !slices.Equal(kept, before.Names.Known) {
				t.Fatal("a later event changed an earlier state")
			}
		}
	})
}

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	s := in(t, session.Running)
	p := fitting(s, event.CellCompleted).(event.CellCompletedV2)
	for n := range int64(session.MaxNames) {
		p.NamesAdded = append(p.NamesAdded, session.Execution(n))
	}
	p.NamesAdded = append(p.NamesAdded, "zz", string(make([]byte, 300)))
	s = apply(t, s, p)
	if len(s.Names.Known) != session.MaxNames || s.Names.More != 2 || s.Names.Len() != session.MaxNames+2 {
		t.Errorf("%d known, %d more", len(s.Names.Known), s.Names.More)
	}
	s = apply(t, s, fitting(s, event.CellStarted))
	q := fitting(s, event.CellCompleted).(event.CellCompletedV2)
	q.NamesRemoved = []string{"zz", "e-5"}
	s = apply(t, s, q)
	if len(s.Names.Known) != session.MaxNames-1 || s.Names.More != 1 {
		t.Errorf("after removal: %d known, %d more", len(s.Names.Known), s.Names.More)
	}
}

// A snapshot of any prefix and the events after it give the state that the whole
// stream gives.
func TestSnapshotAndTailEqualTheWholeFold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var events []session.Recorded
		var s session.State
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			var legal []event.Kind
			for kind := range steps[s.Phase] {
				switch kind {
				case event.SessionClosed:
				case event.ActIntended:
					if !slices.ContainsFunc(s.Acts, func(a session.Act) bool { return a.Act == "new" }) {
						legal = append(legal, kind)
					}
				case event.ActFinished, event.ActUnknown, event.ActSettled: // they need an act: TestAnActStandsOpenUntilItsOutcome
				default:
					legal = append(legal, kind)
				}
			}
			slices.Sort(legal)
			p := fitting(s, rapid.SampledFrom(legal).Draw(t, "kind"))
			if done, ok := p.(event.CellCompletedV2); ok {
				done.NamesAdded = rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,2}`), 0, 3).Draw(t, "names")
				p = done
			}
			events = append(events, session.Recorded{Seq: s.Seq + 1, AtMS: 1000 + s.Seq, Payload: p})
			s = apply(t, s, p)
		}
		at := rapid.IntRange(0, len(events)).Draw(t, "snapshot at")
		var half session.State
		for _, e := range events[:at] {
			half = apply(t, half, e.Payload)
		}
		b, err := json.Marshal(half)
		if err != nil {
			t.Fatal(err)
		}
		var again session.State
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		for _, e := range events[at:] {
			again = apply(t, again, e.Payload)
		}
		if diff := cmp.Diff(s, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}
