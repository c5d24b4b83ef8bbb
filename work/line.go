package work

import "fmt"

// Line is the receipt in one line of plain text (DV-374).
func (r Receipt) Line() string {
	switch p := r.Event.payload.(type) {
	case *OpenScope:
		return fmt.Sprintf("scope opened · %s", r.Event.Scope)
	case *CloseScope:
		return fmt.Sprintf("scope closed · %s · reason %s", r.Event.Scope, p.Digest)
	case *Authorize:
		return fmt.Sprintf("change authorized · %s · frame %s r%d", p.Authorization, p.Frame, p.Revision)
	case *Land:
		return fmt.Sprintf("landing recorded · %s · paths %d · verification %d", p.Landing, len(p.Paths), len(p.Verification))
	case *OpenFrame:
		return p.line("opened")
	case *ReplaceFrame:
		return p.line("replaced")
	case *OpenSnapshot:
		return fmt.Sprintf("routing snapshot · %s · candidates %d · pages %d", p.Manifest.Snapshot, p.Manifest.Candidates, p.Manifest.Pages)
	case *AccountPage:
		return fmt.Sprintf("routing page %d · %s · candidates %d · dispositions %d", p.Index, p.Snapshot, len(p.Candidates), len(p.Dispositions))
	case *CompleteCoverage:
		return fmt.Sprintf("routing complete · %s · %s", p.Snapshot, p.Expected)
	case *CreateBasis:
		return fmt.Sprintf("can-serve basis · %s · candidate %s · targets %d", p.Basis, p.Candidate, len(p.Targets))
	case *RecordAssignment:
		return fmt.Sprintf("assignment ready · %s · capability %s · targets %d", p.Assignment, p.Capability, len(p.Targets))
	case *StartInvocation:
		return fmt.Sprintf("invocation started · %s · assignment %s", p.Invocation, p.Assignment)
	case *Settle:
		return fmt.Sprintf("invocation settled · %s · %s", p.Invocation, p.Outcome.Name)
	case *Observe:
		return fmt.Sprintf("support observed · %s · %s · %s", p.Support, p.SourceKind, p.Source)
	case *Admit:
		return fmt.Sprintf("contribution admitted · %s · %s r%d · targets %d", p.Contribution, p.Proposal.Frame, p.Proposal.Revision, len(p.Proposal.Uses))
	case *ResolveBlocker:
		return fmt.Sprintf("blocker resolved · %s · frame %s", p.Blocker, p.Frame)
	case *Discharge:
		return fmt.Sprintf("obligation discharged · %s · contributions %d", p.Obligation, len(p.Contributions))
	case *Conclude:
		return fmt.Sprintf("frame concluded · %s r%d · discharges %d", p.Frame, p.Revision, len(p.Discharges))
	}
	return string(r.Event.Kind)
}

func (a *Asked) line(what string) string {
	q := &a.Frame
	return fmt.Sprintf("frame %s · %s r%d · %s · obligations %d", what, q.Frame, q.Revision, q.Route, len(a.Obligations))
}
