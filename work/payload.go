package work

// Payload is what one event says. Only this package makes one, by reading it.
type Payload interface{ sealed() }

// The eighteen payloads, in the order of their table (DV-110…DV-127).
type (
	// OpenScope has nothing to say.
	OpenScope struct{}

	// CloseScope ends a scope for ever.
	CloseScope struct {
		Reason string
		Digest Digest

		text string // canonical, of the closure
	}

	// Authorize allows one change on the ground of a concluded frame.
	Authorize struct {
		Authorization AuthorizationID
		Frame         FrameID
		Revision      int64
		Conclusion    Digest
		Movement      string
		StableLanding string
		Verification  string    // what will be verified
		Boundary      *Boundary // nil when none is named
		Digest        Digest

		text string
	}

	// Land records what a change did. It leaves two debts.
	Land struct {
		Landing       LandingID
		Authorization AuthorizationID
		Paths         []string // rising
		Result        string
		Verification  []string // rising
		Reroute       FrameID  // the frame that will pay the reroute debt
		Verify        FrameID  // the frame that will pay the verification debt
		PathsDigest   Digest
		VerifyDigest  Digest
		Digest        Digest

		text string
	}

	// OpenFrame asks a question with its obligations.
	OpenFrame struct {
		Asked
		Dependency *Dependency // on a parent; nil of a root frame
	}

	// ReplaceFrame asks a frame's question anew, at a higher revision.
	ReplaceFrame struct{ Asked }

	// OpenSnapshot begins the accounting of candidates for a frame.
	OpenSnapshot struct {
		Basis    SnapshotBasis
		Manifest SnapshotManifest
		Replaces SnapshotID // empty when none
	}

	// AccountPage disposes of one page of candidates.
	AccountPage struct {
		Snapshot     SnapshotID
		Index        int64 // loose: -1 when it is not safe
		Candidates   []Candidate
		Dispositions []Disposition
		Digest       Digest

		actual Digest // that the page really has
	}

	// CompleteCoverage ends a snapshot.
	CompleteCoverage struct {
		Snapshot SnapshotID
		Expected Digest
	}

	// CreateBasis says that a selected capability can serve.
	CreateBasis struct {
		Snapshot  SnapshotID
		Basis     BasisID
		Candidate CandidateID
		Targets   []ObligationID
		Method    Digest
		Policy    Digest // empty when the method has none
		Expected  Digest
	}

	// RecordAssignment readies a skill for a part of a frame's question.
	RecordAssignment struct {
		Assignment AssignmentID
		Basis      BasisID
		Capability SubjectID
		Skill      Digest
		Frame      FrameID
		Revision   int64
		Targets    []ObligationID
		Question   string
		Expected   string // the contribution that is expected
		Limits     []string
		Applies    Digest // of the basis
		Context    Digest // of the coverage
		Digest     Digest

		text string
	}

	// StartInvocation begins the one active invocation of a scope.
	StartInvocation struct {
		Invocation InvocationID
		Assignment AssignmentID
	}

	// Settle ends an invocation.
	Settle struct {
		Invocation InvocationID
		Assignment AssignmentID
		Outcome    Outcome

		text    string // canonical, of the settlement
		support Digest // that the settlement gives (DV-046)
	}

	// Observe records a support that a contribution may stand on.
	Observe struct {
		Support        SupportID
		SourceKind     SourceKind
		Source         SourceID
		SourceRevision Digest
		Digest         Digest

		text string
	}

	// Admit lets a contribution into a frame.
	Admit struct {
		Contribution ContributionID
		Proposal     Proposal
		Expected     Digest
		Basis        Digest
	}

	// ResolveBlocker takes a blocker from a frame.
	ResolveBlocker struct {
		Frame   FrameID
		Blocker BlockerID
		Basis   Digest
	}

	// Discharge settles one obligation of a frame.
	Discharge struct {
		Discharge     DischargeID
		Frame         FrameID
		Revision      int64 // loose
		Obligation    ObligationID
		Contributions []ContributionID
		StopEvidence  []string
		Conclusion    string

		text   string
		insert int // where in text its own digest belongs
	}

	// Conclude answers a frame.
	Conclude struct {
		Frame        FrameID
		Revision     int64
		Discharges   []DischargeID
		StopEvidence []string
		Blockers     Digest // of the set of blockers, which has to be empty
		Conclusion   string

		text   string // canonical, of the proposal
		digest Digest // of the conclusion (DV-048)
	}
)

func (*OpenScope) sealed()        {}
func (*CloseScope) sealed()       {}
func (*Authorize) sealed()        {}
func (*Land) sealed()             {}
func (*OpenFrame) sealed()        {}
func (*ReplaceFrame) sealed()     {}
func (*OpenSnapshot) sealed()     {}
func (*AccountPage) sealed()      {}
func (*CompleteCoverage) sealed() {}
func (*CreateBasis) sealed()      {}
func (*RecordAssignment) sealed() {}
func (*StartInvocation) sealed()  {}
func (*Settle) sealed()           {}
func (*Observe) sealed()          {}
func (*Admit) sealed()            {}
func (*ResolveBlocker) sealed()   {}
func (*Discharge) sealed()        {}
func (*Conclude) sealed()         {}

// Digest is the hash of the conclusion (DV-048), which an authorization names.
func (c *Conclude) Digest() Digest { return c.digest }

// Support is the hash a settlement gives as a support (DV-046).
func (s *Settle) Support() Digest { return s.support }

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
