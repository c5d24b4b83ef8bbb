package work

import "slices"

// Runtime is how the work of a branch stands, as results say it (DV-241).
type Runtime struct {
	State      Standing
	RerouteDue bool
	VerifyDue  bool
}

// Standing is a word for how the work of a branch stands.
type Standing string

// The standings.
const (
	Inactive   Standing = "inactive"
	BlockedAll Standing = "blocked"
	Idle       Standing = "idle"
	InFrame    Standing = "frame"
	Authorized Standing = "authorized"
)

var standings = []Standing{Inactive, BlockedAll, Idle, InFrame, Authorized}

// Runtime is how the work of the branch stands.
func (b *Branch) Runtime() Runtime {
	sc := b.Active()
	switch {
	case b.Blocked() != "":
		return Runtime{State: BlockedAll}
	case sc == nil:
		return Runtime{State: Inactive}
	}
	r := Runtime{State: Idle, RerouteDue: sc.reroute, VerifyDue: sc.verify}
	switch {
	case sc.authorization != nil:
		r.State = Authorized
	case sc.openFrames.len() == 1:
		r.State = InFrame
	}
	return r
}

// Operation names one of the five operations.
type Operation string

// The operations.
const (
	OpenJudgment       Operation = "developer_open_judgment"
	OpenContextSources Operation = "developer_open_context_sources"
	ConcludeJudgment   Operation = "developer_conclude_judgment"
	AuthorizeChange    Operation = "developer_authorize_change"
	RecordLanding      Operation = "developer_record_landing"
)

// TooManyFrames is the code of Legal when more than one frame is open (DV-251).
const TooManyFrames Code = "more-than-one-open-frame"

// Legal are the operations that may run now, the most likely next one first (DV-250). It
// refuses where no operation can: when more than one frame is open.
func (b *Branch) Legal() ([]Operation, *Refusal) {
	sc := b.Active()
	switch {
	case sc == nil:
		return nil, nil
	case sc.openFrames.len() > 1:
		return nil, refuse(TooManyFrames, "%d frames of scope %s are open", sc.openFrames.len(), sc.id)
	case sc.authorization != nil:
		return []Operation{RecordLanding}, nil
	case sc.openFrames.len() == 1:
		return []Operation{OpenContextSources, ConcludeJudgment}, nil
	case sc.Concluded() > 0 && !sc.reroute && !sc.verify:
		return []Operation{AuthorizeChange, OpenJudgment}, nil
	}
	return []Operation{OpenJudgment}, nil
}

// Purpose is what the next frame is for.
type Purpose string

// The purposes.
const (
	WorkDecision         Purpose = "work-decision"
	RerouteDecision      Purpose = "reroute-decision"
	VerificationDecision Purpose = "verification-decision"
)

// Purpose is what the next frame has to be for (DV-255).
func (b *Branch) Purpose() Purpose {
	switch sc := b.Active(); {
	case sc != nil && sc.reroute:
		return RerouteDecision
	case sc != nil && sc.verify:
		return VerificationDecision
	}
	return WorkDecision
}

// carriesDebt reports whether debts can be pending in a standing.
func (s Standing) carriesDebt() bool { return s == Idle || s == InFrame }

func (s Standing) known() bool { return slices.Contains(standings, s) }
