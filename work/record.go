package work

// Asked is a frame's question and obligations as an event brings them (DV-090, DV-091).
type Asked struct {
	Frame       Question
	Obligations []Obligation

	text        string // canonical, of the frame
	obligations string // canonical, of the list as given
	set         Digest // of the list in rising order (DV-031); empty when one repeats
}

// Question is a route frame.
type Question struct {
	Frame         FrameID
	Revision      int64
	Scope         ScopeID
	Parent        FrameID // empty of a root frame
	Route         RouteID
	RouteRevision Digest
	Exact         string
	Obligations   []ObligationID // rising
	Set           Digest
}

// Obligation is one statement that a frame has to settle.
type Obligation struct {
	Obligation ObligationID
	Frame      FrameID
	Statement  string

	text string
}

// Dependency is why a parent waits for the frame.
type Dependency struct {
	Blocker BlockerID
	Targets []ObligationID
	Reason  string

	reason string // as spelled
}

// Boundary is what an authorization says of the edge it works at: one of its two forms.
type Boundary struct {
	Refinement *RefinementBoundary
	Compiler   *CompilerGap
}

// RefinementBoundary is an edge between two representations.
type RefinementBoundary struct{ Raw, Refined, Producer, Failure, FirstEffect string }

// CompilerGap is an assertion that no compiler checks.
type CompilerGap struct{ Assertion, EstablishedBy, Limitation, Containment, Verification string }

// SnapshotBasis is what a snapshot of candidates stands on (DV-092).
type SnapshotBasis struct {
	Frame    FrameID
	Revision int64
	Set      Digest // of the frame's obligations
	Universe Digest
	Sources  []SourceRevision // rising
	Priority Digest

	text   string
	digest Digest // DV-032
}

// SourceRevision is a source at a revision.
type SourceRevision struct {
	Source   SourceID
	Revision string
}

// SnapshotManifest is what the pages of a snapshot come to (DV-093).
type SnapshotManifest struct {
	Snapshot   SnapshotID
	Basis      Digest
	Pages      int64
	Candidates int64
	Root       Digest

	text string
}

// CandidateKind is what a candidate is.
type CandidateKind string

// Capability is the one kind that can serve; the others are only accounted for.
const (
	Capability   CandidateKind = "capability"
	ToolKind     CandidateKind = "tool"
	MaterialKind CandidateKind = "material"
	Constraint   CandidateKind = "constraint"
	EvidenceKind CandidateKind = "evidence"
	DecisionKind CandidateKind = "decision"
)

// Candidate is one thing that might serve a frame (DV-094).
type Candidate struct {
	Candidate CandidateID
	Kind      CandidateKind
	Source    SourceRevision
	Subject   SubjectID
	Revision  Digest // of the subject
	Digest    Digest // of the descriptor

	text string
}

// Disposition says what became of a candidate, obligation by obligation (DV-096).
type Disposition struct {
	Candidate CandidateID
	Digest    Digest
	Kind      string
	Effects   []TargetEffect // rising
	Rationale string
}

// TargetEffect is a disposition's effect on one obligation.
type TargetEffect struct {
	Obligation ObligationID
	Effect     Effect
}

// Effect is what a candidate does for an obligation.
type Effect string

// The effects, each of which a coverage counts.
const (
	Selected           Effect = "selected"
	Cleared            Effect = "cleared"
	Blocked            Effect = "blocked"
	OptionalLimitation Effect = "optional-limitation"
)

// Use is what a contribution serves an obligation as.
type Use string

// The uses. Method and guidance never suffice for a discharge.
const (
	AsConstraint Use = "constraint"
	AsEvidence   Use = "evidence"
	AsDecision   Use = "decision"
	AsMethod     Use = "method"
	AsGuidance   Use = "guidance"
)

// TargetUse is a use for one obligation.
type TargetUse struct {
	Obligation ObligationID
	As         Use
}

// SourceKind is where a support or contribution comes from.
type SourceKind string

// The sources. The first and the last are of contributions only.
const (
	FromSkill    SourceKind = "skill-return"
	FromTool     SourceKind = "tool-result"
	FromMaterial SourceKind = "material"
	FromUser     SourceKind = "user-decision"
	FromJudgment SourceKind = "judgment-result"
	FromChild    SourceKind = "child-frame"
)

// Proposal is a contribution as it is proposed (DV-101).
type Proposal struct {
	Proposal       ProposalID
	Frame          FrameID
	Revision       int64 // loose
	SourceKind     SourceKind
	Source         SourceID
	SourceRevision Digest
	Claim          string
	Applicability  string
	Uses           []TargetUse
	Limits         []string
	Support        Digest

	text   string
	insert int    // where in text the proposal's digest belongs
	digest Digest // DV-041
}

// Outcome is how an invocation ended: what it returned, a failure, or the end of its
// life (DV-099, DV-100).
type Outcome struct {
	Name    string         // as a receipt says it (DV-221)
	Targets []ObligationID // that it speaks of; nil of one that speaks of none
	Blocks  string         // the kind of blocker it leaves, empty when none

	// of a returned contribution
	Claim, Applicability string
	Uses                 []TargetUse
	Limits               []string

	Dependency DependencyID // that a returned dependency names
	Question   string       // that a returned dependency asks
	Reason     string       // as the outcome gives it; the message of a resolver's error
	Missing    []string     // that a return of needs-context lists
	TimeoutMS  int64        // of a timeout
	Uncertain  bool         // a lifecycle end that may have left effects

	details string // canonical text that the blocker's digest covers
}
