package work_test

import (
	"fmt"
	"testing"

	"github.com/reeve-run/reeve/work"
)

// numbered makes n items that rise.
func numbered[T any](n int, item func(i int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = item(i)
	}
	return all
}

func word(prefix string) func(int) any {
	return func(i int) any { return fmt.Sprintf("%s%03d", prefix, i) }
}

// Each list is as long as it may be, then one longer.
func TestListsAreBounded(t *testing.T) {
	t.Attr("requirement", "DV-028 DV-113 DV-098 DV-102")
	t.Parallel()
	m := newMaker(t, work.Strict)
	m.must(m.open("scope:a"))
	for name, c := range map[string]struct {
		most int
		make func(n int) (work.Kind, o)
	}{
		"obligations":   {100, func(n int) (work.Kind, o) { return work.FrameOpened, frameOf(n) }},
		"changed paths": {200, func(n int) (work.Kind, o) { return work.LandingRecorded, landing(numbered(n, word("path/")), a{}) }},
		"verification":  {100, func(n int) (work.Kind, o) { return work.LandingRecorded, landing(a{"a"}, numbered(n, word("check "))) }},
		"limitations of a contribution": {100, func(n int) (work.Kind, o) {
			p := with(proposal("frame:a", 0, "s", []string{"obligation:a"}, "evidence"), o{"limitations": numbered(n, word("limit "))})
			return work.ContributionAdmitted, o{"proposal": p, "expectedProposalSha256": h(p), "contributionId": "contribution:a", "admissionBasisSha256": h(p)}
		}},
		"stop evidence of a conclusion": {32, func(n int) (work.Kind, o) {
			return work.FrameConcluded, o{"proposal": with(conclusion(question{id: "frame:a", obligations: "a"}), o{"stopEvidence": numbered(n, word("seen "))})}
		}},
		"missing context": {32, func(n int) (work.Kind, o) {
			return work.InvocationSettled, o{"settlement": o{"kind": "returned", "invocationId": "invocation:a", "assignmentId": "assignment:a",
				"value": o{"kind": "needs-context", "targetObligationIds": a{"obligation:a"}, "missingContext": numbered(n, word("context "))}}}
		}},
	} {
		for n, ok := range map[int]bool{c.most: true, c.most + 1: false} {
			kind, payload := c.make(n)
			p, no := sealed(t, m, kind, payload).Payload()
			if (p != nil) != ok || ok != (no == nil) || !ok && no.Code != work.InvalidPayload {
				t.Errorf("%d %s: %v", n, name, no)
			}
		}
	}
}

// frameOf is the payload of a frame with n obligations.
func frameOf(n int) o {
	ids := numbered(n, word("obligation:"))
	obligations := numbered(n, func(i int) any { return o{"obligationId": ids[i], "frameId": "frame:a", "statement": "It is so."} })
	return o{"parentDependency": nil, "obligations": obligations, "frame": o{"frameId": "frame:a", "frameRevision": 0, "workScopeId": "scope:a", "parentFrameId": nil, "routeDefinitionId": shaping,
		"routeDefinitionRevisionSha256": h(shaping), "exactQuestion": "Is it so?", "obligationIds": ids, "obligationSetSha256": h(obligations)}}
}

func landing(paths, verification a) o {
	fields := o{"landingId": "landing:a", "authorizationId": "change:a", "changedPaths": paths, "result": "Moved.", "verification": verification, "rerouteFrameId": "frame:r", "verificationFrameId": "frame:v"}
	p := h(o{"domain": "developer/v8/landing-changed-paths", "changedPaths": paths})
	v := h(o{"domain": "developer/v8/landing-verification", "verification": verification})
	return o{"landing": with(fields, o{"changedPathsSha256": p, "verificationSha256": v,
		"landingSha256": h(o{"domain": "developer/v8/implementation-landing", "fields": fields, "changedPathsSha256": p, "verificationSha256": v})})}
}
