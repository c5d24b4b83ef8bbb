package work

import (
	"iter"
	"slices"

	"github.com/reeve-run/reeve/canon"
)

// Apply takes one entry into the state, or says why not; a refused entry leaves the
// state it came to (DV-151). index is its place among the stored values, rules are those
// of the scope when the entry opens one.
func (s State) Apply(e *Entry, index int, rules Rules) (State, *Rejection) {
	f := fold{own: new(owner), state: s}
	if _, no := f.apply(e, index, rules); no != nil {
		return s, reject(no, e, index)
	}
	return f.state, nil
}

// Replay folds stored values from the first to the last, and calls each (when not nil)
// with every one and what became of it. It is Apply for each, without the cost of a
// State between them. index is the place of the first among the stored values.
func (s State) Replay(entries iter.Seq[*Entry], index int, rules func(ScopeID) Rules, each func(*Accepted, *Rejection)) State {
	f := fold{own: new(owner), state: s}
	for e := range entries {
		a, no := f.apply(e, index, rules(e.Scope))
		if each != nil {
			var r *Rejection
			if no != nil {
				r = reject(no, e, index)
			}
			each(a, r)
		}
		index++
	}
	return f.state
}

// All gives every scope the same rules.
func All(rules Rules) func(ScopeID) Rules { return func(ScopeID) Rules { return rules } }

// maxMessage bounds the message of a rejection (DV-155).
const maxMessage = 1_000

func reject(no *Refusal, e *Entry, index int) *Rejection {
	r := &Rejection{Refusal: *no, StoredIndex: index, Observed: e.Observed()}
	if len(r.Message) > maxMessage {
		r.Message = canon.Cut(r.Message, maxMessage)
	}
	return r
}

// fold is a state in the making. What its owner made it changes in place.
type fold struct {
	own   *owner
	state State
	last  *Scope // of the last accepted entry: the next is mostly of the same
	step  step   // one after the other in the same place
}

// step is one entry on its way into a scope. Its rule looks first and changes last, so
// that a refusal leaves nothing behind.
type step struct {
	*fold
	*Accepted
	scope  *Scope
	causes []*Accepted
	room   [4]*Accepted
}

// apply judges in the order of DV-152.
func (f *fold) apply(e *Entry, index int, rules Rules) (*Accepted, *Refusal) {
	if e.envelope != nil {
		return nil, e.envelope
	}
	scope, known := f.last, true
	if scope == nil || scope.id != e.Scope {
		scope, known = f.state.scopes.get(e.Scope)
	}
	if known {
		rules = scope.rules
	}
	if rules == Strict && e.imprecise != "" {
		return nil, refuse(InvalidEnvelope, "%s", e.imprecise)
	}
	if f.state.events.has(e.Event) {
		return nil, refuse(DuplicateEventID, "event %s was accepted before", e.Event)
	}
	if e.shape != nil {
		return nil, e.shape
	}
	s := &f.step
	*s = step{fold: f, Accepted: &Accepted{Entry: e, index: index}, scope: scope}
	s.causes = s.room[:0]
	for _, ref := range e.Causes {
		cause, found := f.state.events.get(ref.Event)
		if !found || cause.Ref() != ref {
			return nil, refuse(UnresolvedCause, "cause %s of scope %s is no accepted event", ref.Event, ref.Scope)
		}
		s.causes = append(s.causes, cause)
	}
	no := s.enter(known, rules)
	if no != nil {
		return nil, no
	}
	s.self = s.Accepted
	f.state.events.set(f.own, e.Event, s.Accepted)
	f.last = s.editScope()
	f.last.head = s.Accepted
	return s.Accepted, nil
}

// enter opens the scope, or checks the chain and applies the rule of the kind.
func (s *step) enter(known bool, rules Rules) *Refusal {
	if !known {
		switch {
		case s.Kind != ScopeOpened:
			return refuse(ScopeNotOpen, "the first event of scope %s does not open it", s.Scope)
		case s.Sequence != 0:
			return refuse(ScopeSequence, "sequence %d does not begin a scope", s.Sequence)
		case len(s.causes) > 0:
			return refuse(UnresolvedCause, "the opening of a scope has no causes")
		}
		s.scope = &Scope{own: s.own, id: s.Entry.Scope, rules: rules}
		s.state.scopes.set(s.own, s.scope.id, s.scope)
		s.state.open.set(s.own, s.scope.id, struct{}{})
		return nil
	}
	head := s.scope.head
	switch {
	case s.Sequence != head.Sequence+1:
		return refuse(ScopeSequence, "sequence %d does not follow %d", s.Sequence, head.Sequence)
	case s.Previous != head.Digest:
		return refuse(ScopeChain, "the event before is not the head of scope %s", s.scope.id)
	case s.scope.closure != nil:
		return &Refusal{Code: TransitionRejected, Message: "the scope is closed"}
	}
	return s.rule()
}

func (s *step) rule() *Refusal {
	switch p := s.payload.(type) {
	case *OpenScope:
		return refuse(ScopeAlreadyOpen, "scope %s is open", s.scope.id)
	case *CloseScope:
		return s.closeScope(p)
	case *Authorize:
		return s.authorize(p)
	case *Land:
		return s.land(p)
	case *OpenFrame:
		return s.openFrame(p)
	case *ReplaceFrame:
		return s.replaceFrame(p)
	case *OpenSnapshot:
		return s.openSnapshot(p)
	case *AccountPage:
		return s.accountPage(p)
	case *CompleteCoverage:
		return s.completeCoverage(p)
	case *CreateBasis:
		return s.createBasis(p)
	case *RecordAssignment:
		return s.recordAssignment(p)
	case *StartInvocation:
		return s.startInvocation(p)
	case *Settle:
		return s.settle(p)
	case *Observe:
		return s.observe(p)
	case *Admit:
		return s.admit(p)
	case *ResolveBlocker:
		return s.resolveBlocker(p)
	case *Discharge:
		return s.discharge(p)
	case *Conclude:
		return s.conclude(p)
	}
	return refuse(UnknownKind, "%s has no rule", s.Kind)
}

// editScope is the scope for changing.
func (s *step) editScope() *Scope {
	if s.scope.own != s.own {
		c := *s.scope
		c.own = s.own
		s.scope = &c
		s.state.scopes.set(s.own, c.id, &c)
	}
	return s.scope
}

// editFrame is a frame of the scope for changing.
func (s *step) editFrame(f *Frame) *Frame {
	if f.own != s.own {
		c := *f
		c.own = s.own
		c.discharged = slices.Clip(c.discharged)
		c.blockers = slices.Clip(c.blockers)
		f = &c
		s.editScope().frames.set(s.own, f.ID(), f)
	}
	return f
}

// openFrameOf finds a frame that has no conclusion (DV-143).
func (s *step) openFrameOf(id FrameID) (*Frame, *Refusal) {
	f, found := s.scope.frames.get(id)
	if !found {
		return nil, deny(UnknownFrame, "the scope has no frame %s", id)
	}
	if !f.Open() {
		return nil, deny(FrameAlreadyConcluded, "frame %s is concluded", id)
	}
	return f, nil
}

// causedBy reports whether ref is among the causes.
func (s *step) causedBy(ref EventRef) bool { return slices.Contains(s.Causes, ref) }
