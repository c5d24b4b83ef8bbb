package session

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/event"
)

// edge is a phase and the kind of an event that may follow it.
type edge struct {
	from Phase
	on   event.Kind
}

// next holds every legal step and where it leads. What is not in it is refused.
var next = map[edge]Phase{
	{Unopened, event.SessionOpened}: Stopped,

	{Stopped, event.KernelReset}:    Ready,
	{Stopped, event.CellLateOutput}: Stopped,
	{Stopped, event.SessionClosed}:  Closed,

	{Ready, event.CellStarted}:    Running,
	{Ready, event.CellLateOutput}: Ready,
	{Ready, event.KernelLost}:     Stopped,
	{Ready, event.KernelStopped}:  Stopped,

	{Running, event.CellCompleted}:  Ready,
	{Running, event.CellLateOutput}: Running,
}

// Recorded is an event at its place in the stream.
type Recorded struct {
	Seq     int64
	AtMS    int64
	Payload event.Payload
}

// StepError refuses an event that cannot follow.
type StepError struct {
	Session string
	Seq     int64
	From    Phase
	On      event.Kind
	Why     string
}

func (e *StepError) Error() string {
	from := string(e.From)
	if e.From == Unopened {
		from = "unopened"
	}
	return fmt.Sprintf("fold session %q: event %d (%s) cannot follow in phase %s: %s",
		e.Session, e.Seq, e.On, from, e.Why)
}

// Apply returns the state after e. On refusal, a *StepError, it returns s.
func Apply(s State, e Recorded) (State, error) {
	refuse := func(why string, args ...any) (State, error) {
		return s, &StepError{Session: s.Session, Seq: e.Seq, From: s.Phase, On: e.Payload.Kind(), Why: fmt.Sprintf(why, args...)}
	}
	to, ok := next[edge{s.Phase, e.Payload.Kind()}]
	if !ok {
		to, ok = s.Phase, beside(s.Phase, e.Payload.Kind())
	}
	if !ok {
		return refuse("no such step")
	}
	if e.Seq != s.Seq+1 {
		return refuse("the sequence after %d is %d", s.Seq, s.Seq+1)
	}
	n := s
	n.Seq, n.LastAtMS = e.Seq, e.AtMS
	if to != s.Phase {
		n.Phase, n.SinceMS = to, e.AtMS
	}
	why := ""
	switch p := e.Payload.(type) {
	case event.SessionOpenedV1:
		n.Session, n.Workspace, n.OpenedBy, n.OpenedAtMS = p.Session, p.Workspace, p.By, e.AtMS
	case event.SessionClosedV1:
		n.CloseBy, n.CloseWhy = p.By, p.Reason
		why = n.busy()
	case event.KernelResetV1:
		why = n.reset(p, e.AtMS)
	case event.KernelLostV1:
		why = n.lost(p, e.AtMS)
	case event.KernelStoppedV1:
		why = n.stopped(p, e.AtMS)
	case event.CellStartedV1:
		why = n.started(p, e)
	case event.CellCompletedV2:
		why = n.completed(p)
	case event.CellLateOutputV1:
		if s.Open != nil && s.Open.Cell == p.Cell {
			why = "the cell has not ended"
		}
	case event.ActIntendedV1:
		why = n.intended(p, e)
	case event.ActFinishedV1:
		why = n.concluded(p.Act, false)
	case event.ActUnknownV1:
		why = n.unknown(p.Act)
	case event.ActSettledV1:
		why = n.concluded(p.Act, true)
	case event.ActHeldV1, event.ActApprovedV1, event.ActDeniedV1, event.InputReceivedV1,
		event.SendHeldV1, event.SendConfirmedV1, event.SendApprovedV1, event.SendDeniedV1:
		// Their state is in records, which the same batches compare.
	default:
		why = "no rule for this kind"
	}
	if why != "" {
		return refuse("%s", why)
	}
	return n, nil
}

func (s *State) reset(p event.KernelResetV1, at int64) string {
	if want := s.Number + 1; p.Number != want || p.Generation != Generation(want) {
		return fmt.Sprintf("generation %q number %d, want %q", p.Generation, p.Number, Generation(want))
	}
	s.Generation, s.Number, s.Python, s.ReadyAtMS = p.Generation, p.Number, p.Python, at
	s.Names = Names{}
	if p.Reason == event.ResetOperator {
		s.Deaths = nil
	}
	return ""
}

func (s *State) lost(p event.KernelLostV1, at int64) string {
	if p.Generation != s.Generation {
		return notLiving(p.Generation, s.Generation)
	}
	deaths := append([]Death(nil), s.Deaths...)
	deaths = append(deaths, Death{Generation: p.Generation, Cause: p.Cause, StartedAtMS: s.ReadyAtMS, AtMS: at})
	if over := len(deaths) - maxDeaths; over > 0 {
		deaths = deaths[over:]
	}
	s.Deaths = deaths
	s.end(Loss{
		How: EndedLost, Generation: p.Generation, Cause: p.Cause, AtMS: at, Names: Names{}.with(p.Names, nil),
		Partial: s.Unanswered == p.Generation,
	}, p.NamesMore)
	return ""
}

func (s *State) stopped(p event.KernelStoppedV1, at int64) string {
	if p.Generation != s.Generation {
		return notLiving(p.Generation, s.Generation)
	}
	s.end(Loss{How: EndedStopped, Generation: p.Generation, Cause: p.Cause, By: p.By, AtMS: at, Names: Names{}.with(p.Names, nil)}, p.NamesMore)
	return ""
}

// end keeps the loss until a reply has told it.
func (s *State) end(l Loss, more int) {
	l.Names.More += more
	if s.Loss != nil {
		l.Names = l.Names.union(s.Loss.Names)
		l.Partial = l.Partial || s.Loss.Partial
	}
	s.Generation, s.Names, s.Loss = "", Names{}, &l
}

func (s *State) started(p event.CellStartedV1, e Recorded) string {
	if p.Generation != s.Generation {
		return notLiving(p.Generation, s.Generation)
	}
	n, ok := executionNumber(p.Execution)
	if !ok || n <= s.Executions {
		return fmt.Sprintf("execution %q after %q", p.Execution, Execution(s.Executions))
	}
	s.Executions, s.Cells = n, s.Cells+1
	s.Open = &Cell{Cell: p.Cell, Execution: p.Execution, Seq: e.Seq, StartedAtMS: e.AtMS, By: p.By}
	return ""
}

func (s *State) completed(p event.CellCompletedV2) string {
	switch {
	case p.Generation != s.Generation:
		return notLiving(p.Generation, s.Generation)
	case p.Cell != s.Open.Cell || p.Execution != s.Open.Execution:
		return fmt.Sprintf("cell %q (%s) is not the open one, %q (%s)", p.Cell, p.Execution, s.Open.Cell, s.Open.Execution)
	}
	s.Open, s.Unanswered = nil, ""
	if unanswered(p) {
		s.Unanswered = p.Generation
	}
	s.Names = s.Names.with(p.NamesAdded, p.NamesRemoved)
	if !untold(p) {
		s.Loss = nil
	}
	return ""
}

// unanswered reports whether the host wrote the completion for a worker that had
// ended: an interrupt that left the worker alive names no signal and no status.
func unanswered(p event.CellCompletedV2) bool {
	if p.Status == event.CellInterrupted && p.Cause != nil && (p.Cause.Signal != nil || p.Cause.Code != nil) {
		return true
	}
	return p.Status == event.CellFailed || untold(p)
}

// untold reports whether the completion was written by a later core: then nobody
// has read a reply, and a loss stays to be told.
func untold(p event.CellCompletedV2) bool {
	return p.Cause != nil && p.Cause.Kind == event.CauseCoreRestart
}

func notLiving(got, want string) string {
	return fmt.Sprintf("generation %q is not the one that lives, %q", got, want)
}

// Generation is the id of the nth generation of a session.
func Generation(n int64) string { return "g-" + strconv.FormatInt(n, 10) }

// Execution is the id of the nth execution of a session.
func Execution(n int64) string { return "e-" + strconv.FormatInt(n, 10) }

func executionNumber(id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, "e-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0 && Execution(n) == id
}
