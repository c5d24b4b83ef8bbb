package work

import "fmt"

// Code says why an entry of a history was not accepted (DV-178), why a batch was not
// formed (DV-201), or why a receipt could not be read (DV-222…DV-224). It is stable.
type Code string

// The codes of replay.
const (
	UnsupportedProtocol  Code = "unsupported-protocol"
	InvalidEnvelope      Code = "invalid-envelope"
	DuplicateEventID     Code = "duplicate-event-id"
	ScopeNotOpen         Code = "scope-not-open"
	ScopeAlreadyOpen     Code = "scope-already-open"
	ScopeSequence        Code = "scope-sequence-mismatch"
	ScopeChain           Code = "scope-chain-mismatch"
	UnresolvedCause      Code = "unresolved-causal-ref"
	UnknownKind          Code = "unknown-event-kind"
	InvalidPayload       Code = "invalid-payload"
	RoutingMissing       Code = "routing-state-missing"
	BasisMissing         Code = "basis-missing"
	CausalityMissing     Code = "source-causality-missing"
	TransitionRejected   Code = "semantic-transition-rejected"
	InvalidProtocolValue Code = "developer.runtime-protocol.invalid"
)

// The codes of a batch.
const (
	InvalidReconstruction Code = "invalid-reconstruction"
	BlockedHistory        Code = "blocked-history"
	InvalidBatch          Code = "invalid-batch"
	ScopeMismatch         Code = "scope-mismatch"
	PreflightRejected     Code = "preflight-rejected"
)

// The codes of receipts and their pages.
const (
	UnacceptedEvent      Code = "unaccepted-event"
	NoncanonicalOrder    Code = "noncanonical-event-order"
	InvalidReceiptInput  Code = "invalid-input"
	InvalidProjection    Code = "invalid-projection"
	ProjectionRefreshing Code = "projection-refreshing"
	InvalidCursor        Code = "invalid-cursor"
	StaleCursor          Code = "stale-cursor"
	InvalidPage          Code = "invalid-page"
	StalePage            Code = "stale-page"
)

// Transition is the inner code of TransitionRejected. It is empty when the scope is
// closed.
type Transition string

// The transition codes that a history can reach.
const (
	InvalidInput              Transition = "invalid-input"
	DuplicateIdentity         Transition = "duplicate-identity"
	UnknownFrame              Transition = "unknown-frame"
	StaleFrame                Transition = "stale-frame"
	FrameAlreadyConcluded     Transition = "frame-concluded"
	ParentDependency          Transition = "parent-dependency-invalid"
	RoutingNotCurrent         Transition = "routing-not-current"
	AssignmentNotReady        Transition = "assignment-not-ready"
	InvocationAlreadyActive   Transition = "invocation-already-active"
	InvocationNotActive       Transition = "invocation-not-active"
	SettlementMismatch        Transition = "settlement-mismatch"
	ContributionNotAdmissible Transition = "contribution-not-admissible"
	BlockerNotFound           Transition = "blocker-not-found"
	ObligationNotActionable   Transition = "obligation-not-actionable"
	DischargeNotSupported     Transition = "discharge-not-supported"
	ConclusionNotReady        Transition = "conclusion-not-ready"
	ReplacementNotReady       Transition = "replacement-not-ready"
	ScopeCloseBlocked         Transition = "scope-close-blocked"
	AuthorizationBlocked      Transition = "authorization-blocked"
	AuthorizationStale        Transition = "authorization-stale"
	LandingBlocked            Transition = "landing-blocked"
	LandingStale              Transition = "landing-stale"
	DebtCausality             Transition = "debt-causality-mismatch"
	VerificationRoute         Transition = "verification-route-mismatch"
)

// Refusal is a no with its code. Its message begins with the transition code when
// there is one (DV-154).
type Refusal struct {
	Code       Code
	Entry      Code // of PreflightRejected: the code the first rejected entry would have
	Transition Transition
	Message    string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func deny(t Transition, format string, args ...any) *Refusal {
	return &Refusal{Code: TransitionRejected, Transition: t, Message: string(t) + ": " + fmt.Sprintf(format, args...)}
}

// Identity is what a refused entry said of itself, as far as it was text; nil where
// it was not (DV-155).
type Identity struct {
	Protocol, Event, Scope, Digest *string
}

// Rejection is an entry that was not accepted, and its place among the entries.
type Rejection struct {
	Refusal
	StoredIndex int
	Observed    Identity
}
