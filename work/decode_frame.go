package work

import (
	"slices"

	"github.com/reeve-run/reeve/canon"
)

func openFrame(r *reader) Payload {
	p := &OpenFrame{}
	p.Asked.read(r)
	r.lit(`,"parentDependency":`)
	p.Dependency = dependency(r)
	r.lit("}")
	return p
}

func replaceFrame(r *reader) Payload {
	p := &ReplaceFrame{}
	p.Asked.read(r)
	r.lit("}")
	return p
}

func (a *Asked) read(r *reader) {
	r.lit(`{"frame":`)
	start := r.pos
	a.Frame = question(r)
	a.text = r.s[start:r.pos]
	r.lit(`,"obligations":`)
	start = r.pos
	a.Obligations = list(r, 0, canon.MaxItems, obligation)
	a.obligations = r.s[start:r.pos]
	if r.ok() {
		a.set = obligationSet(a.Obligations, a.obligations)
	}
}

func question(r *reader) (q Question) {
	r.lit(`{"exactQuestion":`)
	q.Exact = text(r)
	r.lit(`,"frameId":`)
	q.Frame = readID[FrameID](r)
	r.lit(`,"frameRevision":`)
	q.Revision = r.integer()
	r.lit(`,"obligationIds":`)
	q.Obligations = risingIDs[ObligationID](r, 1, canon.MaxItems)
	r.lit(`,"obligationSetSha256":`)
	q.Set = r.digest()
	r.lit(`,"parentFrameId":`)
	q.Parent = readIDOrNull[FrameID](r)
	r.lit(`,"routeDefinitionId":`)
	q.Route = readID[RouteID](r)
	r.lit(`,"routeDefinitionRevisionSha256":`)
	q.RouteRevision = r.digest()
	r.lit(`,"workScopeId":`)
	q.Scope = readID[ScopeID](r)
	r.lit("}")
	return q
}

func obligation(r *reader) (o Obligation) {
	start := r.pos
	r.lit(`{"frameId":`)
	o.Frame = readID[FrameID](r)
	r.lit(`,"obligationId":`)
	o.Obligation = readID[ObligationID](r)
	r.lit(`,"statement":`)
	o.Statement = text(r)
	r.lit("}")
	o.text = r.s[start:r.pos]
	return o
}

// obligationSet is DV-031: of the bare list in rising order, which is mostly the order
// given. A list that names an obligation twice has none.
func obligationSet(all []Obligation, given string) Digest {
	id := func(o Obligation) string { return string(o.Obligation) }
	if rising(all, id) {
		return digestOf(given)
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Obligation) int { return canon.Compare(id(a), id(b)) })
	if !rising(sorted, id) {
		return ""
	}
	parts := []string{"["}
	for i, o := range sorted {
		if i > 0 {
			parts = append(parts, ",")
		}
		parts = append(parts, o.text)
	}
	return digestOf(append(parts, "]")...)
}

func dependency(r *reader) *Dependency {
	if r.has("null") {
		return nil
	}
	d := &Dependency{}
	r.lit(`{"blockerId":`)
	d.Blocker = readID[BlockerID](r)
	r.lit(`,"reason":`)
	start := r.pos
	d.Reason = text(r)
	d.reason = r.s[start:r.pos]
	r.lit(`,"targetObligationIds":`)
	d.Targets = list(r, 0, canon.MaxItems, readID[ObligationID])
	r.lit("}")
	return d
}

// contributionKinds and supportKinds are what each may come from.
var (
	contributionKinds = []SourceKind{FromSkill, FromTool, FromMaterial, FromUser, FromJudgment, FromChild}
	supportKinds      = []SourceKind{FromTool, FromMaterial, FromUser, FromJudgment}
	useKinds          = []Use{AsConstraint, AsEvidence, AsDecision, AsMethod, AsGuidance}
)

func observeSupport(r *reader) Payload {
	p := &Observe{}
	r.lit(`{"support":`)
	start := r.pos
	r.lit(`{"sourceId":`)
	p.Source = readID[SourceID](r)
	r.lit(`,"sourceKind":`)
	p.SourceKind = choice(r, supportKinds)
	r.lit(`,"sourceRevisionSha256":`)
	p.SourceRevision = r.digest()
	r.lit(`,"supportId":`)
	p.Support = readID[SupportID](r)
	r.lit(`,"supportSha256":`)
	p.Digest = r.digest()
	r.lit("}")
	p.text = r.s[start:r.pos]
	r.lit("}")
	return p
}

func admit(r *reader) Payload {
	p := &Admit{}
	r.lit(`{"admissionBasisSha256":`)
	p.Basis = r.digest()
	r.lit(`,"contributionId":`)
	p.Contribution = readID[ContributionID](r)
	r.lit(`,"expectedProposalSha256":`)
	p.Expected = r.digest()
	r.lit(`,"proposal":`)
	p.Proposal = proposal(r)
	r.lit("}")
	return p
}

func proposal(r *reader) (p Proposal) {
	start := r.pos
	r.lit(`{"applicability":`)
	p.Applicability = text(r)
	r.lit(`,"claim":`)
	p.Claim = text(r)
	r.lit(`,"frameId":`)
	p.Frame = readID[FrameID](r)
	r.lit(`,"frameRevision":`)
	p.Revision = r.loose()
	r.lit(`,"limitations":`)
	p.Limits = list(r, 0, canon.MaxItems, text)
	r.lit(`,"proposalId":`)
	p.Proposal = readID[ProposalID](r)
	p.insert = r.pos - start
	r.lit(`,"source":{"kind":`)
	p.SourceKind = choice(r, contributionKinds)
	r.lit(`,"sourceId":`)
	p.Source = readID[SourceID](r)
	r.lit(`,"sourceRevisionSha256":`)
	p.SourceRevision = r.digest()
	r.lit(`},"supportSha256":`)
	p.Support = r.digest()
	r.lit(`,"targetUses":`)
	p.Uses = list(r, 0, canon.MaxItems, targetUse)
	r.lit("}")
	if r.ok() {
		p.text = r.s[start:r.pos]
		p.digest = digestOf(`{"contribution":`, p.text, `,"domain":"developer/v8/proposed-frame-contribution"}`)
	}
	return p
}

func targetUse(r *reader) (u TargetUse) {
	r.lit(`{"obligationId":`)
	u.Obligation = readID[ObligationID](r)
	r.lit(`,"useAs":`)
	u.As = choice(r, useKinds)
	r.lit("}")
	return u
}

func resolveBlocker(r *reader) Payload {
	p := &ResolveBlocker{}
	r.lit(`{"blockerId":`)
	p.Blocker = readID[BlockerID](r)
	r.lit(`,"frameId":`)
	p.Frame = readID[FrameID](r)
	r.lit(`,"resolutionBasisSha256":`)
	p.Basis = r.digest()
	r.lit("}")
	return p
}

func discharge(r *reader) Payload {
	p := &Discharge{}
	r.lit(`{"discharge":`)
	start := r.pos
	r.lit(`{"conclusion":`)
	p.Conclusion = text(r)
	r.lit(`,"contributionIds":`)
	p.Contributions = list(r, 0, canon.MaxItems, readID[ContributionID])
	r.lit(`,"dischargeId":`)
	p.Discharge = readID[DischargeID](r)
	p.insert = r.pos - start
	r.lit(`,"expectedFrameRevision":`)
	p.Revision = r.loose()
	r.lit(`,"frameId":`)
	p.Frame = readID[FrameID](r)
	r.lit(`,"obligationId":`)
	p.Obligation = readID[ObligationID](r)
	r.lit(`,"stopEvidence":`)
	p.StopEvidence = list(r, 0, canon.MaxItems, text)
	r.lit("}")
	p.text = r.s[start:r.pos]
	r.lit("}")
	return p
}

func conclude(r *reader) Payload {
	p := &Conclude{}
	r.lit(`{"proposal":`)
	start := r.pos
	r.lit(`{"conclusion":`)
	p.Conclusion = text(r)
	r.lit(`,"dischargeIds":`)
	p.Discharges = risingIDs[DischargeID](r, 0, canon.MaxItems)
	r.lit(`,"expectedBlockerSetSha256":`)
	p.Blockers = r.digest()
	r.lit(`,"expectedFrameRevision":`)
	p.Revision = r.integer()
	r.lit(`,"frameId":`)
	p.Frame = readID[FrameID](r)
	r.lit(`,"stopEvidence":`)
	p.StopEvidence = r.texts(1)
	r.lit("}")
	p.text = r.s[start:r.pos]
	r.lit("}")
	if r.ok() {
		p.digest = digestOf(`{"domain":"developer/v8/route-frame-conclusion","proposal":`, p.text, "}")
	}
	return p
}
