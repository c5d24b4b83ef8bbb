package work

import (
	"slices"

	"github.com/reeve-run/reeve/canon"
)

// matches is the obligation identity test of DV-162.
func (a *Asked) matches() *Refusal {
	same := a.set == a.Frame.Set && len(a.Obligations) == len(a.Frame.Obligations)
	for i := 0; same && i < len(a.Obligations); i++ {
		o := &a.Obligations[i]
		same = o.Obligation == a.Frame.Obligations[i] && o.Frame == a.Frame.Frame
	}
	if !same {
		return deny(InvalidInput, "the obligations are not those the frame names")
	}
	return nil
}

func (s *step) openFrame(p *OpenFrame) *Refusal {
	if no := p.matches(); no != nil {
		return no
	}
	q := &p.Frame
	if q.Scope != s.scope.id {
		return deny(StaleFrame, "the frame belongs to scope %s", q.Scope)
	}
	if s.scope.frames.has(q.Frame) {
		return deny(DuplicateIdentity, "frame %s was opened before", q.Frame)
	}
	parent, blocker, no := s.dependency(p)
	if no == nil {
		no = s.paysByOpening(q)
	}
	if no != nil {
		return no
	}
	sc := s.editScope()
	if parent != nil {
		parent = s.editFrame(parent)
		parent.block(blocker)
		parent.children++
	}
	sc.frames.set(s.own, q.Frame, &Frame{own: s.own, order: sc.opened, asked: &p.Asked})
	sc.opened++
	sc.openFrames.set(s.own, q.Frame, struct{}{})
	if sc.reroute && sc.rules != Strict && sc.landings.top.item.Reroute == q.Frame {
		sc.reroute = false
	}
	return nil
}

// dependency checks how a child hangs on its parent; a root frame has neither.
func (s *step) dependency(p *OpenFrame) (*Frame, *Blocker, *Refusal) {
	d := p.Dependency
	if p.Frame.Parent == "" {
		if d != nil {
			return nil, nil, deny(ParentDependency, "a frame without parent has no parent dependency")
		}
		return nil, nil, nil
	}
	if d == nil {
		return nil, nil, deny(ParentDependency, "a child frame names no parent dependency")
	}
	parent, no := s.openFrameOf(p.Frame.Parent)
	if no != nil {
		return nil, nil, no
	}
	if len(d.Targets) == 0 || !rising(d.Targets, asString[ObligationID]) {
		return nil, nil, deny(InvalidInput, "the targets of a dependency are a list in rising order")
	}
	bits, ok := parent.actionable(d.Targets)
	if !ok {
		return nil, nil, deny(ParentDependency, "a target of the dependency is not actionable in frame %s", p.Frame.Parent)
	}
	if parent.blocker(d.Blocker) >= 0 {
		return nil, nil, deny(ParentDependency, "frame %s has blocker %s already", p.Frame.Parent, d.Blocker)
	}
	return parent, &Blocker{Blocker: d.Blocker, Kind: blockChild, Source: string(p.Frame.Frame), Targets: d.Targets, bits: bits, details: `{"reason":` + d.reason + "}"}, nil
}

// paysByOpening demands the landing's cause of a frame that pays a pending debt: of the
// rerouting frame always, of the verifying frame under strict rules, which also hold it
// to its route at once rather than leave it without end (DV-162, DV-403, DV-404).
func (s *step) paysByOpening(q *Question) *Refusal {
	sc := s.scope
	if !sc.reroute && !sc.verify {
		return nil
	}
	l := sc.landings.top.item
	verifies := sc.rules == Strict && sc.verify && l.Verify == q.Frame
	if (verifies || sc.reroute && l.Reroute == q.Frame) && !s.causedBy(l.ref) {
		return deny(DebtCausality, "frame %s does not name the landing as its cause", q.Frame)
	}
	if verifies && q.Route != VerificationRouteID {
		return deny(VerificationRoute, "a verification frame is opened on %s", VerificationRouteID)
	}
	return nil
}

func (s *step) replaceFrame(p *ReplaceFrame) *Refusal {
	if no := p.matches(); no != nil {
		return no
	}
	q := &p.Frame
	f, no := s.openFrameOf(q.Frame)
	if no != nil {
		return no
	}
	old := &f.asked.Frame
	switch {
	case q.Scope != old.Scope || q.Parent != old.Parent || q.Revision <= old.Revision:
		return deny(ReplacementNotReady, "the replacement is no later revision of frame %s", q.Frame)
	case s.scope.active != nil && s.scope.activeFrame == q.Frame:
		return deny(ReplacementNotReady, "an invocation is active on frame %s", q.Frame)
	case f.children > 0:
		return deny(ReplacementNotReady, "frame %s has an open child", q.Frame)
	}
	sc := s.editScope()
	for l := f.assignments.top; l != nil; l = l.below {
		if a, found := sc.assignments.get(l.item); found && a.invocation != "" {
			sc.invocations.remove(s.own, a.invocation)
		}
		sc.assignments.remove(s.own, l.item)
	}
	for l := f.bases.top; l != nil; l = l.below {
		sc.bases.remove(s.own, l.item)
	}
	if f.snapshot != "" {
		sc.snapshots.remove(s.own, f.snapshot)
	}
	sc.frames.set(s.own, q.Frame, &Frame{own: s.own, order: f.order, asked: &p.Asked})
	return nil
}

// VerificationRouteID is the route a verification debt is paid on (DV-175).
const VerificationRouteID RouteID = "route:claim-evidence-assessment"

func (f *Frame) blocker(id BlockerID) int {
	return slices.IndexFunc(f.blockers, func(b *Blocker) bool { return b.Blocker == id })
}

func (f *Frame) block(b *Blocker) {
	f.blockers = append(f.blockers, b)
	f.blocked = f.blocked.with(b.bits)
}

func (s *step) resolveBlocker(p *ResolveBlocker) *Refusal {
	if !slices.ContainsFunc(s.causes, func(a *Accepted) bool { return a.supports(p.Basis) }) {
		return refuse(CausalityMissing, "no cause supports the resolution of blocker %s", p.Blocker)
	}
	f, no := s.openFrameOf(p.Frame)
	if no != nil {
		return no
	}
	i := f.blocker(p.Blocker)
	if i < 0 {
		return deny(BlockerNotFound, "frame %s has no blocker %s", p.Frame, p.Blocker)
	}
	f = s.editFrame(f)
	left := slices.Concat(f.blockers[:i], f.blockers[i+1:])
	f.blockers, f.blocked = nil, targets{}
	for _, b := range left {
		f.block(b)
	}
	return nil
}

// supports reports whether the event gives the basis of a resolution (DV-173).
func (a *Accepted) supports(basis Digest) bool {
	if a.Digest == basis {
		return true
	}
	switch p := a.payload.(type) {
	case *Observe:
		return p.Digest == basis
	case *Settle:
		return p.support == basis
	case *Conclude:
		return p.digest == basis
	}
	return false
}

func (s *step) discharge(p *Discharge) *Refusal {
	if len(p.StopEvidence) == 0 || len(p.Contributions) == 0 || !rising(p.Contributions, asString[ContributionID]) {
		return deny(InvalidInput, "a discharge names stop evidence, and contributions in rising order")
	}
	f, no := s.openFrameOf(p.Frame)
	if no != nil {
		return no
	}
	if p.Revision != f.asked.Frame.Revision {
		return deny(StaleFrame, "frame %s is at revision %d", p.Frame, f.asked.Frame.Revision)
	}
	bit, ok := f.actionable([]ObligationID{p.Obligation})
	if !ok || s.scope.active != nil && s.scope.activeFrame == p.Frame && s.scope.activeBits.meets(bit) {
		return deny(ObligationNotActionable, "obligation %s is unknown, blocked, discharged or worked on", p.Obligation)
	}
	for _, id := range p.Contributions {
		if c, found := f.contributed.get(id); !found || !c.Proposal.settles(p.Obligation) {
			return deny(DischargeNotSupported, "contribution %s does not settle obligation %s", id, p.Obligation)
		}
	}
	if slices.ContainsFunc(f.discharged, func(d *Discharge) bool { return d.Discharge == p.Discharge }) {
		return deny(DuplicateIdentity, "frame %s has discharge %s already", p.Frame, p.Discharge)
	}
	f = s.editFrame(f)
	f.discharged = append(f.discharged, p)
	f.done = f.done.with(bit)
	return nil
}

// settles reports whether the contribution suffices for the obligation: method and
// guidance never do.
func (p *Proposal) settles(id ObligationID) bool {
	return slices.ContainsFunc(p.Uses, func(u TargetUse) bool {
		return u.Obligation == id && (u.As == AsConstraint || u.As == AsEvidence || u.As == AsDecision)
	})
}

// noBlockers is the digest of the empty set of blockers (DV-044).
var noBlockers = digestOf(`{"blockers":[],"domain":"developer/v8/runtime-blocker-set"}`)

func (s *step) conclude(p *Conclude) *Refusal {
	f, no := s.openFrameOf(p.Frame)
	if no != nil {
		return no
	}
	switch {
	case p.Revision != f.asked.Frame.Revision:
		return deny(StaleFrame, "frame %s is at revision %d", p.Frame, f.asked.Frame.Revision)
	case len(f.blockers) > 0 || p.Blockers != noBlockers:
		return deny(ConclusionNotReady, "the blockers of frame %s are not none", p.Frame)
	case s.scope.active != nil && s.scope.activeFrame == p.Frame:
		return deny(ConclusionNotReady, "an invocation is active on frame %s", p.Frame)
	case !f.settledBy(p.Discharges):
		return deny(ConclusionNotReady, "the discharges are not one for each obligation of frame %s", p.Frame)
	}
	sc := s.scope
	verifies := sc.verify && sc.landings.top.item.Verify == p.Frame
	if verifies && f.asked.Frame.Route != VerificationRouteID {
		return deny(VerificationRoute, "a verification debt is paid on %s", VerificationRouteID)
	}
	if verifies && !s.causedBy(sc.landings.top.item.ref) {
		return deny(DebtCausality, "the conclusion of frame %s does not name the landing as its cause", p.Frame)
	}
	sc = s.editScope()
	f = s.editFrame(f)
	f.conclusion, f.concludedAt = p, s.Sequence
	sc.openFrames.remove(s.own, p.Frame)
	if parent, found := sc.frames.get(f.asked.Frame.Parent); found {
		s.editFrame(parent).children--
	}
	if verifies {
		sc.verify = false
	}
	if sc.reroute && sc.rules == Strict && sc.landings.top.item.Reroute == p.Frame {
		sc.reroute = false // DV-403
	}
	return nil
}

// settledBy reports whether ids, which rise, are the frame's discharges and those are
// as many as its obligations.
func (f *Frame) settledBy(ids []DischargeID) bool {
	if len(f.discharged) != len(f.asked.Obligations) || len(ids) != len(f.discharged) {
		return false
	}
	sorted := make([]DischargeID, len(f.discharged))
	for i, d := range f.discharged {
		sorted[i] = d.Discharge
	}
	slices.SortFunc(sorted, func(a, b DischargeID) int { return canon.Compare(string(a), string(b)) })
	return slices.Equal(sorted, ids)
}
