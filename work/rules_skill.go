package work

import "slices"

func (s *step) recordAssignment(p *RecordAssignment) *Refusal {
	basis, found := s.scope.bases.get(p.Basis)
	if !found {
		return refuse(BasisMissing, "the scope has no basis %s", p.Basis)
	}
	if s.scope.assignments.has(p.Assignment) {
		return deny(DuplicateIdentity, "assignment %s exists", p.Assignment)
	}
	f, no := s.openFrameOf(p.Frame)
	if no != nil {
		return no
	}
	switch {
	case f.routing == nil:
		return deny(AssignmentNotReady, "frame %s has no coverage", p.Frame)
	case basis.coverage != f.routing:
		return deny(InvalidInput, "basis %s was made for another coverage than that of frame %s", p.Basis, p.Frame)
	case p.Revision != f.asked.Frame.Revision:
		return deny(AssignmentNotReady, "frame %s is at revision %d", p.Frame, f.asked.Frame.Revision)
	case p.Context != f.routing.digest || p.Applies != basis.Expected:
		return deny(AssignmentNotReady, "the assignment does not stand on the coverage and the basis")
	case p.Capability != basis.candidate.Subject || p.Skill != basis.candidate.Revision || !slices.Equal(p.Targets, basis.Targets):
		return deny(AssignmentNotReady, "the assignment has not the capability and targets of basis %s", p.Basis)
	}
	bits, ok := f.actionable(p.Targets)
	if !ok {
		return deny(AssignmentNotReady, "a target is not actionable")
	}
	sc := s.editScope()
	s.editFrame(f).assignments.push(p.Assignment)
	sc.assignments.set(s.own, p.Assignment, &Assignment{order: sc.recorded, RecordAssignment: p, basis: basis, bits: bits})
	sc.recorded++
	return nil
}

func (s *step) startInvocation(p *StartInvocation) *Refusal {
	if s.scope.active != nil {
		return deny(InvocationAlreadyActive, "invocation %s is active", s.scope.active.Invocation)
	}
	if s.scope.invocations.has(p.Invocation) {
		return deny(DuplicateIdentity, "invocation %s exists", p.Invocation)
	}
	a, found := s.scope.assignments.get(p.Assignment)
	if !found || a.invocation != "" {
		return deny(AssignmentNotReady, "assignment %s is unknown or was invoked", p.Assignment)
	}
	f, no := s.openFrameOf(a.Frame)
	if no != nil {
		return no
	}
	if _, ok := f.actionable(a.Targets); !ok {
		return deny(AssignmentNotReady, "a target of assignment %s is not actionable", p.Assignment)
	}
	sc := s.editScope()
	next := *a
	next.invocation = p.Invocation
	sc.assignments.set(s.own, p.Assignment, &next)
	sc.invocations.set(s.own, p.Invocation, p.Assignment)
	sc.active, sc.activeBy, sc.activeFrame, sc.activeBits = p, s.Ref(), a.Frame, a.bits
	return nil
}

func (s *step) settle(p *Settle) *Refusal {
	active := s.scope.active
	if active == nil {
		return deny(InvocationNotActive, "no invocation is active")
	}
	if p.Invocation != active.Invocation || p.Assignment != active.Assignment {
		return deny(SettlementMismatch, "invocation %s of assignment %s is active", active.Invocation, active.Assignment)
	}
	a, _ := s.scope.assignments.get(p.Assignment)
	f, _ := s.scope.frames.get(a.Frame)
	spoken := p.Outcome.Targets
	if p.Outcome.Blocks == blockFailure {
		spoken = a.Targets
	}
	for _, id := range spoken {
		if !slices.Contains(a.Targets, id) {
			return deny(SettlementMismatch, "obligation %s is no target of assignment %s", id, p.Assignment)
		}
	}
	var blocker *Blocker
	if p.Outcome.Blocks != "" {
		bits, _ := f.bits(spoken...) // they are among the targets, which are the frame's
		blocker = &Blocker{Blocker: p.blockerID(), Kind: p.Outcome.Blocks, Source: string(p.Invocation), Targets: spoken, bits: bits, details: p.Outcome.details}
		if p.Outcome.Blocks == blockDependency {
			blocker.Source = string(p.Outcome.Dependency)
		}
		if f.blocker(blocker.Blocker) >= 0 {
			return deny(DuplicateIdentity, "frame %s has blocker %s already", a.Frame, blocker.Blocker)
		}
	}
	sc := s.editScope()
	next := *a
	next.settlement = p
	sc.assignments.set(s.own, p.Assignment, &next)
	sc.active, sc.activeBy, sc.activeFrame, sc.activeBits = nil, EventRef{}, "", targets{}
	if blocker != nil {
		s.editFrame(f).block(blocker)
	}
	return nil
}

// blockerID derives the id of the blocker a settlement leaves (DV-045).
func (p *Settle) blockerID() BlockerID {
	const kept = 40
	d := digestOf(`{"domain":"developer/v8/settlement-blocker-id","invocationId":"`, string(p.Invocation), `","kind":"`, p.Outcome.Blocks, `"}`)
	return BlockerID("blocker:" + string(d[:kept]))
}

func (s *step) observe(p *Observe) *Refusal {
	if s.scope.supports.has(p.Support) {
		return refuse(CausalityMissing, "support %s exists", p.Support)
	}
	s.editScope().supports.set(s.own, p.Support, s.Accepted)
	return nil
}

func (s *step) admit(p *Admit) *Refusal {
	q := &p.Proposal
	if !s.grounded(q) {
		return refuse(CausalityMissing, "no cause is the %s that the contribution names", q.SourceKind)
	}
	switch {
	case len(q.Uses) == 0 || !rising(q.Uses, func(u TargetUse) string { return string(u.Obligation) }):
		return refuse(InvalidPayload, "the uses are not one for each target in rising order")
	case len(q.Limits) > maxShort:
		return refuse(InvalidPayload, "the contribution has more than %d limitations", maxShort)
	case p.Expected != q.digest:
		return refuse(CausalityMissing, "expectedProposalSha256 is not the digest of the proposal")
	}
	f, no := s.openFrameOf(q.Frame)
	if no != nil {
		return no
	}
	if q.Revision != f.asked.Frame.Revision {
		return deny(ContributionNotAdmissible, "frame %s is at revision %d", q.Frame, f.asked.Frame.Revision)
	}
	if f.contributed.has(p.Contribution) {
		return deny(DuplicateIdentity, "frame %s has contribution %s already", q.Frame, p.Contribution)
	}
	for i := range q.Uses {
		if !f.Actionable(q.Uses[i].Obligation) {
			return deny(ContributionNotAdmissible, "obligation %s is not actionable", q.Uses[i].Obligation)
		}
	}
	if q.SourceKind == FromSkill && !s.returned(q, f) {
		return deny(ContributionNotAdmissible, "the contribution is not what the invocation returned")
	}
	s.editScope()
	f = s.editFrame(f)
	f.contributed.set(s.own, p.Contribution, p)
	f.admitted.push(p)
	return nil
}

// grounded reports whether a cause is what the proposal says it comes from (DV-172).
func (s *step) grounded(q *Proposal) bool {
	if q.SourceKind == FromChild {
		child, found := s.scope.frames.get(FrameID(q.Source))
		if !found || child.asked.Frame.Parent != q.Frame || child.Open() {
			return false
		}
	}
	return slices.ContainsFunc(s.causes, func(a *Accepted) bool {
		switch p := a.payload.(type) {
		case *Settle:
			return q.SourceKind == FromSkill && string(p.Invocation) == string(q.Source) && p.support == q.SourceRevision && p.support == q.Support
		case *Conclude:
			return q.SourceKind == FromChild && string(p.Frame) == string(q.Source) && p.digest == q.SourceRevision && p.digest == q.Support
		case *Observe:
			return p.SourceKind == q.SourceKind && p.Source == q.Source && p.SourceRevision == q.SourceRevision && p.Digest == q.Support
		}
		return false
	})
}

// returned reports whether the scope has the settled invocation the proposal comes from,
// on this frame as it is, and the proposal says what it returned.
func (s *step) returned(q *Proposal, f *Frame) bool {
	id, found := s.scope.invocations.get(InvocationID(q.Source))
	if !found {
		return false
	}
	a, _ := s.scope.assignments.get(id)
	if a.settlement == nil || a.Frame != q.Frame || a.Revision != q.Revision || f.routing == nil || a.Context != f.routing.digest {
		return false
	}
	o := &a.settlement.Outcome
	return o.Uses != nil && o.Claim == q.Claim && o.Applicability == q.Applicability && slices.Equal(o.Uses, q.Uses) && slices.Equal(o.Limits, q.Limits)
}
