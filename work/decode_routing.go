package work

import "github.com/reeve-run/reeve/canon"

func openSnapshot(r *reader) Payload {
	p := &OpenSnapshot{}
	r.lit(`{"basis":`)
	p.Basis = snapshotBasis(r)
	r.lit(`,"manifest":`)
	p.Manifest = manifest(r)
	r.lit(`,"replacesSnapshotId":`)
	p.Replaces = readIDOrNull[SnapshotID](r)
	r.lit("}")
	return p
}

// maxRevision is how long the revision of a source in a basis may be (DV-092).
const maxRevision = 1_000

func snapshotBasis(r *reader) (b SnapshotBasis) {
	start := r.pos
	r.lit(`{"admittedUniverseSha256":`)
	b.Universe = r.digest()
	r.lit(`,"frameId":`)
	b.Frame = readID[FrameID](r)
	r.lit(`,"frameRevision":`)
	b.Revision = r.integer()
	r.lit(`,"obligationSetSha256":`)
	b.Set = r.digest()
	r.lit(`,"priorityStrategySha256":`)
	b.Priority = r.digest()
	r.lit(`,"providerSourceRevisions":`)
	b.Sources = list(r, 0, canon.MaxItems, func(r *reader) SourceRevision { return sourceRevision(r, maxRevision) })
	if r.ok() && !rising(b.Sources, func(s SourceRevision) string { return string(s.Source) }) {
		r.fail("sources in rising order")
	}
	r.lit("}")
	if r.ok() {
		b.text = r.s[start:r.pos]
		b.digest = digestOf(`{"domain":"developer.snapshot-basis/v1","value":`, b.text, "}")
	}
	return b
}

func sourceRevision(r *reader, most int) (s SourceRevision) {
	r.lit(`{"revision":`)
	s.Revision = r.text(most)
	r.lit(`,"sourceId":`)
	s.Source = readID[SourceID](r)
	r.lit("}")
	return s
}

func manifest(r *reader) (m SnapshotManifest) {
	start := r.pos
	r.lit(`{"candidateCount":`)
	m.Candidates = r.integer()
	r.lit(`,"orderedPageRootSha256":`)
	m.Root = r.digest()
	r.lit(`,"pageCount":`)
	m.Pages = r.integer()
	r.lit(`,"snapshotBasisSha256":`)
	m.Basis = r.digest()
	r.lit(`,"snapshotId":`)
	m.Snapshot = readID[SnapshotID](r)
	r.lit("}")
	m.text = r.s[start:r.pos]
	return m
}

func accountPage(r *reader) Payload {
	p := &AccountPage{}
	r.lit(`{"dispositions":`)
	p.Dispositions = list(r, 0, canon.MaxItems, disposition)
	r.lit(`,"page":{"candidates":`)
	start := r.pos
	p.Candidates = list(r, 0, canon.MaxItems, candidate)
	candidates := r.s[start:r.pos]
	r.lit(`,"pageIndex":`)
	start = r.pos
	p.Index = r.loose()
	index := r.s[start:r.pos]
	r.lit(`,"pageSha256":`)
	p.Digest = r.digest()
	r.lit(`,"snapshotId":`)
	p.Snapshot = readID[SnapshotID](r)
	r.lit("}}")
	if r.ok() {
		p.actual = digestOf(`{"candidates":`, candidates, `,"domain":"developer/v8/routing-candidate-page","pageIndex":`, index,
			`,"snapshotId":"`, string(p.Snapshot), `"}`)
	}
	return p
}

// extras is the one member that each kind of candidate has beside the common ones: its
// literal, by its place among them. Those of the last three kinds are a refinement.
const (
	extraMaterial   = `,"contentDescriptorSha256":`
	extraRefinement = `,"refinement":{"basisSha256":`
	extraCapability = `,"registryRevisionSha256":`
	extraTool       = `,"schemaSha256":`
)

var candidateKinds = []CandidateKind{Capability, ToolKind, MaterialKind, Constraint, EvidenceKind, DecisionKind}

func candidate(r *reader) (c Candidate) {
	start := r.pos
	r.lit(`{"candidateId":`)
	c.Candidate = readID[CandidateID](r)
	material := r.has(extraMaterial)
	if material {
		r.digest()
	}
	cut := r.pos
	r.lit(`,"descriptorSha256":`)
	c.Digest = r.digest()
	rest := r.pos
	r.lit(`,"kind":`)
	c.Kind = choice(r, candidateKinds)
	switch c.Kind {
	case Capability:
		r.lit(extraCapability)
		r.digest()
	case ToolKind:
		r.lit(extraTool)
		r.digest()
	case Constraint, EvidenceKind, DecisionKind:
		r.lit(extraRefinement)
		r.digest()
		r.lit(`,"producerId":`)
		readID[ProducerID](r)
		r.lit(`,"producerRevisionSha256":`)
		r.digest()
		r.lit("}")
	}
	if material != (c.Kind == MaterialKind) {
		r.fail("the members of this kind of candidate")
	}
	r.lit(`,"source":`)
	c.Source = sourceRevision(r, canon.MaxText)
	r.lit(`,"subjectId":`)
	c.Subject = readID[SubjectID](r)
	r.lit(`,"subjectRevisionSha256":`)
	c.Revision = r.digest()
	r.lit("}")
	if r.ok() {
		c.text = r.s[start:r.pos]
		r.verify(c.Digest, "candidate", `{"candidate":`, r.s[start:cut], r.s[rest:r.pos], `,"domain":"developer/v8/routing-candidate"}`)
	}
	return c
}

// The dispositions and the effects each may have (DV-096).
var (
	dispositionKinds = []string{"selected-for-material", "not-applicable", "excluded-by-root-unless", "considered-not-selected", "needs-context", "invalid/unavailable"}
	selecting        = []Effect{Selected, Cleared, OptionalLimitation}
	clearing         = []Effect{Cleared, OptionalLimitation}
	blocking         = []Effect{Blocked, OptionalLimitation}
	effectsOf        = map[string][]Effect{
		"selected-for-material": selecting,
		"not-applicable":        clearing, "excluded-by-root-unless": clearing, "considered-not-selected": clearing,
		"needs-context": blocking, "invalid/unavailable": blocking,
	}
)

func disposition(r *reader) (d Disposition) {
	r.lit(`{"candidateId":`)
	d.Candidate = readID[CandidateID](r)
	r.lit(`,"descriptorSha256":`)
	d.Digest = r.digest()
	r.lit(`,"kind":`)
	d.Kind = choice(r, dispositionKinds)
	r.lit(`,"rationale":`)
	d.Rationale = text(r)
	r.lit(`,"targetEffects":`)
	allowed := effectsOf[d.Kind]
	d.Effects = list(r, 0, canon.MaxItems, func(r *reader) (t TargetEffect) {
		r.lit(`{"effect":`)
		t.Effect = choice(r, allowed)
		r.lit(`,"obligationId":`)
		t.Obligation = readID[ObligationID](r)
		r.lit("}")
		return t
	})
	if r.ok() && !rising(d.Effects, func(t TargetEffect) string { return string(t.Obligation) }) {
		r.fail("effects in rising order")
	}
	r.lit("}")
	return d
}

func completeCoverage(r *reader) Payload {
	p := &CompleteCoverage{}
	r.lit(`{"expectedCoverageSha256":`)
	p.Expected = r.digest()
	r.lit(`,"snapshotId":`)
	p.Snapshot = readID[SnapshotID](r)
	r.lit("}")
	return p
}

func createBasis(r *reader) Payload {
	p := &CreateBasis{}
	r.lit(`{"body":{"basisId":`)
	p.Basis = readID[BasisID](r)
	r.lit(`,"candidateId":`)
	p.Candidate = readID[CandidateID](r)
	r.lit(`,"methodRevisionSha256":`)
	p.Method = r.digest()
	r.lit(`,"policy":{"kind":`)
	if !r.has(`"absent"`) {
		r.lit(`"complete","revisionSha256":`)
		p.Policy = r.digest()
	}
	r.lit(`},"rootApplicability":"applicable","targetObligationIds":`)
	p.Targets = list(r, 0, canon.MaxItems, readID[ObligationID])
	r.lit(`},"expectedBasisSha256":`)
	p.Expected = r.digest()
	r.lit(`,"snapshotId":`)
	p.Snapshot = readID[SnapshotID](r)
	r.lit("}")
	return p
}
