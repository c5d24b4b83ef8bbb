// Package work is developer/v8 as data: the envelopes of work events, the reducer
// that folds a branch of them into scopes, frames, authorizations and debts, the
// work receipts that say what was accepted, and the check of a batch before it is
// stored.
//
// Invariants: a stored entry is read without the state and judged only by it, so
// reading may happen anywhere and folding is one pure step; an entry is accepted
// whole or changes nothing, and every prefix of an accepted history replays; a State
// never changes once it is handed out, and the cost of the next entry does not grow
// with the history. Hashes are taken over the canonical text that was read, never over
// a second encoding of it.
//
// What authorizes is a value made here in this process: a Branch, a Batch, a
// Projection, a Cursor. Nothing decodes into one, and a copy of one is refused.
//
// The package knows no storage, clock, host, tool or workspace, and nothing of the
// operations that draft events.
package work

// Protocol is the protocol every envelope names.
const Protocol = "developer/v8"

// The identifiers of developer/v8 (DV-021), a type for each so that none is taken for
// another (DV-413). All are ASCII.
type (
	EventID         string
	ScopeID         string
	FrameID         string
	ObligationID    string
	BlockerID       string
	RouteID         string
	SnapshotID      string
	CandidateID     string
	SubjectID       string // of a candidate; the capability when the candidate is one
	SourceID        string
	ProducerID      string
	BasisID         string
	AssignmentID    string
	InvocationID    string
	DependencyID    string
	SupportID       string
	ProposalID      string
	ContributionID  string
	DischargeID     string
	AuthorizationID string
	LandingID       string
	CoordinatorID   string
)

// Digest is a SHA-256 in lower-case hex (DV-022).
type Digest string

// EventRef names one event by scope, id and digest.
type EventRef struct {
	Scope  ScopeID
	Event  EventID
	Digest Digest
}

// Rules is the set of rules a scope lives under from its opening to its end. The
// stored number belongs to histories and is never given a second meaning.
type Rules uint8

// Reference is the protocol as histories made elsewhere show it, and the zero value.
// Strict is Reference with refusals added and none dropped (DV-400…DV-406).
const (
	Reference Rules = iota
	Strict
)

func (r Rules) String() string {
	if r == Strict {
		return "strict"
	}
	return "reference"
}

// Kind names what an event says. An envelope may carry any identifier.
type Kind string

// The eighteen kinds (DV-110…DV-127).
const (
	ScopeOpened          Kind = "work-scope-opened"
	ScopeClosed          Kind = "work-scope-closed"
	ChangeAuthorized     Kind = "change-authorized"
	LandingRecorded      Kind = "implementation-landing-recorded"
	FrameOpened          Kind = "route-frame-opened"
	FrameReplaced        Kind = "route-frame-replaced"
	SnapshotOpened       Kind = "routing-snapshot-opened"
	PageAccounted        Kind = "routing-page-accounted"
	CoverageCompleted    Kind = "routing-coverage-completed"
	BasisCreated         Kind = "can-serve-basis-created"
	AssignmentReady      Kind = "ready-assignment-recorded"
	InvocationStarted    Kind = "skill-invocation-started"
	InvocationSettled    Kind = "invocation-settled"
	SupportObserved      Kind = "support-observed"
	ContributionAdmitted Kind = "frame-contribution-admitted"
	BlockerResolved      Kind = "frame-blocker-resolved"
	ObligationDischarged Kind = "obligation-discharged"
	FrameConcluded       Kind = "route-frame-concluded"
)
