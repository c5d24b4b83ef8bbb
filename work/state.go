package work

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// State is what the accepted entries of a branch come to (DV-140). It is immutable: an
// accepted entry makes another State, which shares what did not change. The zero value
// is the state before any entry.
type State struct {
	events table[EventID, *Accepted]
	scopes table[ScopeID, *Scope]
	open   table[ScopeID, struct{}] // scopes whose root is open
}

// Accepted is an event that a state took in. Only a State makes one, and a copy of one
// has no receipt.
type Accepted struct {
	*Entry
	self  *Accepted
	index int
}

// StoredIndex is the place of the event among the stored values of the branch, rejected
// ones counted (DV-150).
func (a *Accepted) StoredIndex() int { return a.index }

// Len counts the accepted events.
func (s *State) Len() int { return s.events.len() }

// Event finds an accepted event of any scope.
func (s *State) Event(id EventID) (*Accepted, bool) { return s.events.get(id) }

// Scope finds a scope.
func (s *State) Scope(id ScopeID) (*Scope, bool) { return s.scopes.get(id) }

// Scopes are all scopes by rising id.
func (s *State) Scopes() []*Scope {
	all := make([]*Scope, 0, s.scopes.len())
	for _, sc := range s.scopes.all() {
		all = append(all, sc)
	}
	slices.SortFunc(all, func(a, b *Scope) int { return cmp.Compare(a.id, b.id) })
	return all
}

// OpenScopes counts the scopes that are not closed.
func (s *State) OpenScopes() int { return s.open.len() }

// Only is the one open scope, nil when there is none or more than one.
func (s *State) Only() *Scope {
	if s.open.len() == 1 {
		for id := range s.open.all() {
			sc, _ := s.scopes.get(id)
			return sc
		}
	}
	return nil
}

// Scope is one piece of work from its opening on. It is immutable.
type Scope struct {
	own   *owner
	id    ScopeID
	rules Rules
	head  *Accepted

	closure       *CloseScope // nil while the root is open
	authorization *Authorize  // nil when none is active
	authorizedBy  EventRef
	landed        table[AuthorizationID, struct{}]
	landings      stack[*landing]
	// An authorization waits until no debt is pending and a landing needs an
	// authorization, so only the debts of the last landing can be pending.
	reroute, verify bool

	frames      table[FrameID, *Frame]
	opened      int // frames ever opened
	openFrames  table[FrameID, struct{}]
	assignments table[AssignmentID, *Assignment]
	recorded    int // assignments ever recorded
	invocations table[InvocationID, AssignmentID]
	active      *StartInvocation
	activeBy    EventRef
	activeFrame FrameID
	activeBits  targets // of the frame's obligations
	snapshots   table[SnapshotID, *Snapshot]
	bases       table[BasisID, *Basis]
	supports    table[SupportID, *Accepted]
}

type landing struct {
	*Land
	ref      EventRef
	sequence int64
}

// ID names the scope.
func (s *Scope) ID() ScopeID { return s.id }

// Rules are those the scope lives under.
func (s *Scope) Rules() Rules { return s.rules }

// Head is the last event accepted into the scope.
func (s *Scope) Head() *Accepted { return s.head }

// Closed reports whether the scope has ended.
func (s *Scope) Closed() bool { return s.closure != nil }

// Authorization is the active one and the event that gave it; nil when there is none.
func (s *Scope) Authorization() (*Authorize, EventRef) { return s.authorization, s.authorizedBy }

// Landings counts the recorded landings.
func (s *Scope) Landings() int { return s.landings.n }

// Invocation is the active one, nil when there is none.
func (s *Scope) Invocation() *StartInvocation { return s.active }

// Debt is what a landing leaves to be decided (DV-141).
type Debt struct {
	Landing            *Land
	Event              EventRef // of the landing, which the frames that pay must name as cause
	Reroute, Verify    FrameID
	RerouteDue, VerDue bool
}

// Debt is that of the last landing; ok is false before the first.
func (s *Scope) Debt() (d Debt, ok bool) {
	if s.landings.n == 0 {
		return d, false
	}
	l := s.landings.top.item
	return Debt{Landing: l.Land, Event: l.ref, Reroute: l.Land.Reroute, Verify: l.Land.Verify, RerouteDue: s.reroute, VerDue: s.verify}, true
}

// Frame finds a frame.
func (s *Scope) Frame(id FrameID) (*Frame, bool) { return s.frames.get(id) }

// Frames are all frames in the order they were opened in.
func (s *Scope) Frames() []*Frame {
	all := make([]*Frame, 0, s.frames.len())
	for _, f := range s.frames.all() {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *Frame) int { return cmp.Compare(a.order, b.order) })
	return all
}

// OpenFrames are the frames without conclusion by rising id. Few are open at once, so
// this is cheap in a long scope.
func (s *Scope) OpenFrames() []*Frame {
	all := make([]*Frame, 0, s.openFrames.len())
	for id := range s.openFrames.all() {
		f, _ := s.frames.get(id)
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *Frame) int { return strings.Compare(string(a.ID()), string(b.ID())) })
	return all
}

// Concluded counts the frames that have a conclusion.
func (s *Scope) Concluded() int { return s.frames.len() - s.openFrames.len() }

// Supports yields the observed supports in no order.
func (s *Scope) Supports() iter.Seq[*Observe] {
	return func(yield func(*Observe) bool) {
		for _, a := range s.supports.all() {
			if p, ok := a.payload.(*Observe); ok && !yield(p) {
				return
			}
		}
	}
}

// Assignment finds an assignment.
func (s *Scope) Assignment(id AssignmentID) (*Assignment, bool) { return s.assignments.get(id) }

// Snapshot finds a snapshot that is collecting or completed.
func (s *Scope) Snapshot(id SnapshotID) (*Snapshot, bool) { return s.snapshots.get(id) }

// Basis finds a can-serve basis.
func (s *Scope) Basis(id BasisID) (*Basis, bool) { return s.bases.get(id) }

// Frame is a question with what has been gathered for it. It is immutable.
type Frame struct {
	own         *owner
	order       int
	asked       *Asked
	children    int // open ones
	routing     *Snapshot
	snapshot    SnapshotID // the one there is, empty when none
	contributed table[ContributionID, *Admit]
	admitted    stack[*Admit]
	discharged  []*Discharge
	blockers    []*Blocker
	done        targets // discharged obligations
	blocked     targets
	conclusion  *Conclude
	concludedAt int64

	assignments stack[AssignmentID]
	bases       stack[BasisID]
}

// ID names the frame.
func (f *Frame) ID() FrameID { return f.asked.Frame.Frame }

// Question is what the frame asks, at its present revision.
func (f *Frame) Question() Question { return f.asked.Frame }

// Obligations are what the frame has to settle, by rising id.
func (f *Frame) Obligations() []Obligation { return slices.Clone(f.asked.Obligations) }

// Open reports whether the frame has no conclusion (DV-143).
func (f *Frame) Open() bool { return f.conclusion == nil }

// Conclusion is the frame's answer, nil while it is open.
func (f *Frame) Conclusion() *Conclude { return f.conclusion }

// Blockers are what keeps obligations from being settled.
func (f *Frame) Blockers() []*Blocker { return slices.Clone(f.blockers) }

// Contributions are what was admitted, in that order.
func (f *Frame) Contributions() []*Admit { return f.admitted.slice() }

// Discharges are the settled obligations, in the order they were settled in.
func (f *Frame) Discharges() []*Discharge { return slices.Clone(f.discharged) }

// Routing is the completed coverage of the frame, nil before there is one.
func (f *Frame) Routing() *Snapshot { return f.routing }

// Actionable reports whether the obligation can still be worked on (DV-142).
func (f *Frame) Actionable(id ObligationID) bool {
	b, ok := f.bits(id)
	return ok && f.Open() && !f.done.meets(b) && !f.blocked.meets(b)
}

// Blocker is why some obligations of a frame wait. It is immutable.
type Blocker struct {
	Blocker BlockerID
	Kind    string // child-frame, capability-failure, dependency or needs-context
	Source  string // the child frame, invocation or dependency it comes from
	Targets []ObligationID

	bits    targets
	details string // canonical text that its digest covers
}

// Assignment is a skill that was readied. It is immutable.
type Assignment struct {
	order int
	*RecordAssignment
	basis      *Basis
	bits       targets
	invocation InvocationID // empty before it is invoked
	settlement *Settle      // nil before it is settled
}

// Settled is how the assignment ended, nil before.
func (a *Assignment) Settled() *Settle { return a.settlement }

// Invocation is the invocation of the assignment, empty before.
func (a *Assignment) Invocation() InvocationID { return a.invocation }

// Snapshot is the accounting of candidates for a frame. It is immutable once completed.
type Snapshot struct {
	open     *OpenSnapshot
	asked    *Asked
	page     int64
	observed int64
	chain    Digest
	selected stack[*Candidate]
	counts   []effectCounts               // by obligation
	seen     table[CandidateID, struct{}] // under strict rules only

	digest Digest // of the coverage, empty while collecting
	byID   map[CandidateID]*Candidate
}

// effectCounts counts the effects on one obligation.
type effectCounts struct{ selected, cleared, blocked, limited int }

// Completed reports whether the snapshot became a coverage.
func (n *Snapshot) Completed() bool { return n.digest != "" }

// Digest is that of the coverage (DV-039), empty while the snapshot collects.
func (n *Snapshot) Digest() Digest { return n.digest }

// Basis says that a capability can serve obligations of a frame (DV-167). It is immutable.
type Basis struct {
	*CreateBasis
	candidate *Candidate
	coverage  *Snapshot
}

// targets are obligations of one frame, a bit each by their place in it.
type targets [2]uint64

func (t targets) meets(o targets) bool { return t[0]&o[0]|t[1]&o[1] != 0 }

func (t targets) with(o targets) targets { return targets{t[0] | o[0], t[1] | o[1]} }

// bits finds the obligations; ok is false when one is not the frame's.
func (f *Frame) bits(ids ...ObligationID) (t targets, ok bool) {
	for _, id := range ids {
		i, found := slices.BinarySearch(f.asked.Frame.Obligations, id)
		if !found {
			return t, false
		}
		t[i/64] |= 1 << (i % 64)
	}
	return t, true
}

// actionable finds obligations that are all actionable.
func (f *Frame) actionable(ids []ObligationID) (t targets, ok bool) {
	t, ok = f.bits(ids...)
	return t, ok && f.Open() && !f.done.meets(t) && !f.blocked.meets(t)
}
