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
func (p *Conclude) Digest() Digest { return p.digest }

// Support is the hash a settlement gives as a support (DV-046).
func (p *Settle) Support() Digest { return p.support }
