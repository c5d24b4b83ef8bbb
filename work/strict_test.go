package work_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/work"
)

// both runs f under each rule set; refusal is what strict rules must answer the last
// step with, which reference rules must accept.
func both(t *testing.T, requirement string, code work.Code, transition work.Transition, f func(m *maker) *work.Refusal) {
	t.Helper()
	for _, rules := range []work.Rules{work.Reference, work.Strict} {
		t.Run(rules.String(), func(t *testing.T) {
			t.Attr("requirement", requirement)
			t.Parallel()
			m := newMaker(t, rules)
			m.must(m.open("scope:a"))
			no := f(m)
			switch {
			case rules == work.Reference && no != nil:
				t.Errorf("reference rules refuse: %v", no)
			case rules == work.Strict && no == nil:
				t.Error("strict rules accept")
			case rules == work.Strict && (no.Code != work.PreflightRejected || no.Entry != code || no.Transition != transition || !strings.HasPrefix(no.Message, string(transition))):
				t.Errorf("refused with %s, %s (%s): %s", no.Code, no.Entry, no.Transition, no.Message)
			}
		})
	}
}

func TestStrictClosureWaitsForFrames(t *testing.T) {
	t.Parallel()
	both(t, "DV-402 DV-161", work.TransitionRejected, work.ScopeCloseBlocked, func(m *maker) *work.Refusal {
		m.must(m.frame(question{id: "frame:a", obligations: "a"}))
		return m.close()
	})
}

func TestStrictClosureWaitsForDebts(t *testing.T) {
	t.Parallel()
	both(t, "DV-402 DV-161", work.TransitionRejected, work.ScopeCloseBlocked, func(m *maker) *work.Refusal {
		m.change("a")
		return m.close()
	})
}

// Concluded frames and paid debts never block closure, under either rule set; an
// authorization always does.
func TestClosure(t *testing.T) {
	t.Parallel()
	for _, rules := range []work.Rules{work.Reference, work.Strict} {
		t.Run(rules.String(), func(t *testing.T) {
			t.Attr("requirement", "DV-402 DV-161 DV-403")
			t.Parallel()
			m := newMaker(t, rules)
			m.must(m.open("scope:a"))
			q := question{id: "frame:a", obligations: "ab"}
			m.must(m.frame(q))
			m.must(m.answer(q))
			m.must(m.authorize("change:a", q))
			if no := m.close(); no == nil || no.Transition != work.ScopeCloseBlocked {
				t.Fatalf("closed over an authorization: %v", no)
			}
			m.must(m.land("landing:a", "change:a"))
			m.must(m.frame(reroute("landing:a"), "landing:a"))
			m.must(m.answer(reroute("landing:a")))
			m.must(m.frame(verification("landing:a"), "landing:a"))
			m.must(m.answer(verification("landing:a"), "landing:a"))
			m.must(m.close())
			if m.b.Mode() != work.ModeClosed || m.b.State().OpenScopes() != 0 {
				t.Errorf("mode %s", m.b.Mode())
			}
		})
	}
}

func due(m *maker) string {
	d, _ := m.b.Active().Debt()
	return fmt.Sprintf("reroute %t, verify %t", d.RerouteDue, d.VerDue)
}

// Under reference rules opening the frame pays the reroute debt, under strict rules its
// conclusion does, on any route and without the cause again.
func TestRerouteDebt(t *testing.T) {
	t.Parallel()
	for rules, opened := range map[work.Rules]string{work.Reference: "reroute false, verify true", work.Strict: "reroute true, verify true"} {
		t.Run(rules.String(), func(t *testing.T) {
			t.Attr("requirement", "DV-403 DV-162")
			t.Parallel()
			m := newMaker(t, rules)
			m.must(m.open("scope:a"))
			m.change("a")
			q := reroute("landing:a")
			if no := m.frame(q); no == nil || no.Transition != work.DebtCausality {
				t.Fatalf("opened without the landing's cause: %v", no)
			}
			m.must(m.frame(q, "landing:a"))
			if got := due(m); got != opened {
				t.Errorf("after opening: %s, want %s", got, opened)
			}
			m.must(m.answer(q))
			if got := due(m); got != "reroute false, verify true" {
				t.Errorf("after concluding: %s", got)
			}
			if m.b.Purpose() != work.VerificationDecision {
				t.Errorf("purpose %s", m.b.Purpose())
			}
		})
	}
}

// The verification debt may be paid first; each debt is paid by its own frame only.
func TestDebtsClearSeparately(t *testing.T) {
	t.Parallel()
	for _, rules := range []work.Rules{work.Reference, work.Strict} {
		t.Run(rules.String(), func(t *testing.T) {
			t.Attr("requirement", "DV-256 DV-175 DV-403")
			t.Parallel()
			m := newMaker(t, rules)
			m.must(m.open("scope:a"))
			m.change("a")
			other := question{id: "frame:other", route: checking, obligations: "a"}
			m.must(m.frame(other, "landing:a"))
			m.must(m.answer(other, "landing:a"))
			if got := due(m); got != "reroute true, verify true" {
				t.Fatalf("another frame paid: %s", got)
			}
			v := verification("landing:a")
			m.must(m.frame(v, "landing:a"))
			if no := m.answer(v); no == nil || no.Transition != work.DebtCausality {
				t.Fatalf("concluded without the landing's cause: %v", no)
			}
			m.must(m.conclude(v, "landing:a"))
			if got := due(m); got != "reroute true, verify false" {
				t.Fatalf("after verification: %s", got)
			}
			q := question{id: "frame:again", obligations: "a"}
			m.must(m.frame(q))
			m.must(m.answer(q))
			if no := m.authorize("change:again", q); no == nil || no.Transition != work.AuthorizationBlocked {
				t.Fatalf("authorized over a debt: %v", no)
			}
			r := reroute("landing:a")
			m.must(m.frame(r, "landing:a"))
			m.must(m.answer(r))
			if got := due(m); got != "reroute false, verify false" {
				t.Fatalf("after rerouting: %s", got)
			}
			m.must(m.authorize("change:again", q))
		})
	}
}

func TestStrictVerificationOpensWithCause(t *testing.T) {
	t.Parallel()
	both(t, "DV-403", work.TransitionRejected, work.DebtCausality, func(m *maker) *work.Refusal {
		m.change("a")
		return m.frame(verification("landing:a"))
	})
}

func TestStrictVerificationOpensOnItsRoute(t *testing.T) {
	t.Parallel()
	both(t, "DV-404", work.TransitionRejected, work.VerificationRoute, func(m *maker) *work.Refusal {
		m.change("a")
		q := verification("landing:a")
		q.route = shaping
		return m.frame(q, "landing:a")
	})
}

// A frame on another route, which reference rules let open, can never conclude.
func TestVerificationOnAnotherRouteNeverConcludes(t *testing.T) {
	t.Attr("requirement", "DV-404 DV-175")
	t.Parallel()
	m := newMaker(t, work.Reference)
	m.must(m.open("scope:a"))
	m.change("a")
	q := verification("landing:a")
	q.route = shaping
	m.must(m.frame(q, "landing:a"))
	if no := m.answer(q, "landing:a"); no == nil || no.Transition != work.VerificationRoute {
		t.Errorf("concluded: %v", no)
	}
}

// A change is authorized on the ground of a frame that was concluded after the last
// landing.
func TestStrictAuthorizationNeedsACurrentConclusion(t *testing.T) {
	t.Parallel()
	both(t, "DV-405 DV-176", work.TransitionRejected, work.AuthorizationStale, func(m *maker) *work.Refusal {
		m.change("a")
		m.must(m.frame(reroute("landing:a"), "landing:a"))
		m.must(m.answer(reroute("landing:a")))
		m.must(m.frame(verification("landing:a"), "landing:a"))
		m.must(m.answer(verification("landing:a"), "landing:a"))
		if no := tryStale(m, reroute("landing:a")); no != nil {
			return no
		}
		return m.authorize("change:stale", question{id: "frame:a", obligations: "ab"})
	})
}

// tryStale checks that the frame that paid a debt is current under both rule sets, and
// leaves the branch as it was.
func tryStale(m *maker, q question) *work.Refusal {
	before, n := m.b, m.n
	defer func() { m.b, m.n = before, n }()
	return m.authorize("change:current", q)
}

// snapshot routes a frame over pages of candidates, each of which is selected.
func (m *maker) snapshot(q question, pages ...[]string) *work.Refusal {
	id := "snapshot:" + q.id[len("frame:"):]
	set := h(m.asked(q)["obligations"])
	basis := o{"frameId": q.id, "frameRevision": q.revision, "obligationSetSha256": set, "admittedUniverseSha256": h("universe"), "providerSourceRevisions": a{}, "priorityStrategySha256": h("priority")}
	basisDigest := h(o{"domain": "developer.snapshot-basis/v1", "value": basis})
	chain := h(o{"domain": "developer/v8/routing-page-chain/seed", "snapshotId": id, "basisSha256": basisDigest})
	var payloads []o
	var selected, summaries a
	for i, names := range pages {
		candidates, dispositions := chosen(q, names)
		page := h(o{"domain": "developer/v8/routing-candidate-page", "snapshotId": id, "pageIndex": i, "candidates": candidates})
		chain = h(o{"domain": "developer/v8/routing-page-chain/link", "previousSha256": chain, "pageIndex": i, "pageSha256": page})
		payloads = append(payloads, o{"page": o{"snapshotId": id, "pageIndex": i, "candidates": candidates, "pageSha256": page}, "dispositions": dispositions})
		for _, c := range candidates {
			selected = append(selected, o{"candidateId": c.(o)["candidateId"], "descriptorSha256": c.(o)["descriptorSha256"]})
		}
	}
	manifest := o{"snapshotId": id, "snapshotBasisSha256": basisDigest, "pageCount": len(pages), "candidateCount": len(selected), "orderedPageRootSha256": chain}
	if no := m.try(id, work.SnapshotOpened, o{"basis": basis, "manifest": manifest, "replacesSnapshotId": nil}); no != nil {
		return no
	}
	for _, p := range payloads {
		if no := m.try("page:"+id, work.PageAccounted, p); no != nil {
			return no
		}
	}
	for _, ob := range q.ids() {
		summaries = append(summaries, o{"obligationId": ob, "selectedCount": len(selected), "clearedCount": 0, "blockedCount": 0, "optionalLimitationCount": 0})
	}
	coverage := h(o{"domain": "developer/v8/completed-routing-coverage", "basisSha256": basisDigest, "manifest": manifest, "selectedCandidates": selected, "targetSummaries": summaries})
	return m.try("covered:"+id, work.CoverageCompleted, o{"snapshotId": id, "expectedCoverageSha256": coverage})
}

// capability is the descriptor of a candidate, without its digest.
func capability(name string) o {
	return o{"candidateId": name, "kind": "capability", "source": o{"sourceId": "source:a", "revision": "1"}, "subjectId": "skill:a", "subjectRevisionSha256": h("skill"), "registryRevisionSha256": h("registry")}
}

func descriptor(name string) string {
	return h(o{"domain": "developer/v8/routing-candidate", "candidate": capability(name)})
}

// chosen are candidates with the dispositions that select them for all obligations.
func chosen(q question, names []string) (candidates, dispositions a) {
	for _, name := range names {
		candidates = append(candidates, with(capability(name), o{"descriptorSha256": descriptor(name)}))
		var effects a
		for _, ob := range q.ids() {
			effects = append(effects, o{"obligationId": ob, "effect": "selected"})
		}
		dispositions = append(dispositions, o{"candidateId": name, "descriptorSha256": descriptor(name), "kind": "selected-for-material", "targetEffects": effects, "rationale": "It serves."})
	}
	return candidates, dispositions
}

func TestStrictCandidatesAreDistinct(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string][][]string{
		"on a page":    {{"candidate:a", "candidate:a"}},
		"across pages": {{"candidate:a", "candidate:b"}, {"candidate:c"}, {"candidate:b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, "DV-406 DV-165", work.InvalidPayload, "", func(m *maker) *work.Refusal {
				q := question{id: "frame:a", obligations: "a"}
				m.must(m.frame(q))
				return m.snapshot(q, pages...)
			})
		})
	}
}

func TestDistinctCandidatesAreCovered(t *testing.T) {
	t.Attr("requirement", "DV-406 DV-166 DV-037 DV-038 DV-039")
	t.Parallel()
	m := newMaker(t, work.Strict)
	m.must(m.open("scope:a"))
	q := question{id: "frame:a", obligations: "ab"}
	m.must(m.frame(q))
	m.must(m.snapshot(q, []string{"candidate:a", "candidate:b"}, []string{"candidate:c"}))
	f, _ := m.b.Active().Frame("frame:a")
	if f.Routing() == nil || !f.Routing().Completed() {
		t.Error("no coverage")
	}
}

// Text with a member named twice, or with a number that is not a safe integer, is an
// envelope under reference rules and none under strict ones.
func TestStrictDecoding(t *testing.T) {
	t.Parallel()
	m := newMaker(t, work.Reference)
	m.must(m.open("scope:a"))
	m.must(m.support("s"))
	entries := m.stored()
	for name, spell := range map[string]func(string) string{
		"member twice":      func(s string) string { return strings.Replace(s, `"supportId":`, `"supportId":"x","supportId":`, 1) },
		"member twice, top": func(s string) string { return strings.Replace(s, `"kind":`, `"kind":"x","kind":`, 1) },
		"plain":             func(s string) string { return s },
		"other spelling":    func(s string) string { return strings.ReplaceAll(s, `,"`, ` , "`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Attr("requirement", "DV-401 DV-002")
			t.Parallel()
			e := work.Parse([]byte(spell(entries[1].Text())))
			for _, rules := range []work.Rules{work.Reference, work.Strict} {
				b := work.Reconstruct(slices.Values([]*work.Entry{entries[0], e}), work.All(rules))
				refused := len(b.Rejections()) > 0
				if want := rules == work.Strict && strings.HasPrefix(name, "member twice"); refused != want {
					t.Errorf("%s: %q", rules, b.Blocked())
				} else if refused && b.Rejections()[0].Code != work.InvalidEnvelope {
					t.Errorf("%s: %s", rules, b.Rejections()[0].Code)
				}
			}
		})
	}
}

// The number reaches the reducer in the one field that passes its shape: a loose one.
func TestStrictNumbers(t *testing.T) {
	t.Parallel()
	for spelled, want := range map[string]work.Code{"9007199254740992": work.InvalidEnvelope, "1e300": work.InvalidEnvelope, "9007199254740991": work.TransitionRejected} {
		t.Run(spelled, func(t *testing.T) {
			t.Attr("requirement", "DV-401 DV-025")
			t.Parallel()
			m := newMaker(t, work.Strict)
			m.must(m.open("scope:a"))
			q := question{id: "frame:a", obligations: "a"}
			m.must(m.frame(q))
			m.must(m.support("s"))
			entries := m.stored()
			p := proposal(q.id, 0, "s", q.ids(), "evidence")
			p["frameRevision"] = parsed(t, []byte(spelled))
			e := sealed(t, m, work.ContributionAdmitted, o{"proposal": p, "expectedProposalSha256": h(o{"domain": "developer/v8/proposed-frame-contribution", "contribution": p}),
				"contributionId": "contribution:s", "admissionBasisSha256": h("basis")}, "s")
			for rules, code := range map[work.Rules]work.Code{work.Strict: want, work.Reference: work.TransitionRejected} {
				b := work.Reconstruct(slices.Values(append(slices.Clone(entries), e)), work.All(rules))
				if r := b.Rejections(); len(r) != 1 || r[0].Code != code {
					t.Errorf("%s: %v, want %s", rules, r, code)
				}
			}
		})
	}
}

// sealed is the entry of an event that is to follow, made without the package's help.
func sealed(t testing.TB, m *maker, kind work.Kind, payload o, causes ...string) *work.Entry {
	t.Helper()
	head := m.b.Active().Head()
	var refs a
	for _, c := range causes {
		refs = append(refs, plainRef(m.refs[c]))
	}
	body := o{"protocolVersion": work.Protocol, "eventId": "event:sealed", "workScopeId": m.scope, "scopeSequence": int(head.Sequence) + 1, "previousScopeEventSha256": head.Digest,
		"causalRefs": refs, "occurredAt": someTime, "kind": string(kind), "payload": payload}
	e := work.Parse(form(t, val(with(body, o{"eventSha256": h(o{"domain": "developer.event-envelope/v8", "value": body})}))))
	if e.Refusal() != nil {
		t.Fatal(e.Refusal())
	}
	return e
}

// What is not ours is no result at all, so an evaluator cannot take it for idle.
func TestSummaryHasFourMembers(t *testing.T) {
	t.Attr("requirement", "DV-240 DV-412")
	t.Parallel()
	m := newMaker(t, work.Strict)
	m.must(m.open("scope:a"))
	s := m.b.Summary(nil)
	if got := string(s.Append(nil)); got != `{"eventIds":[],"protocol":"developer/v8-result","runtime":{"reroutePending":false,"state":"idle","verificationPending":false},"workScopeId":null}` {
		t.Errorf("summary %s", got)
	}
	for _, text := range []string{`null`, `{}`, `{"protocol":"developer/v7-result"}`, `[]`} {
		if got, ours, err := work.ParseSummary(parsed(t, []byte(text))); ours || err != nil || got.Complete() {
			t.Errorf("%s: %+v, %t, %v", text, got, ours, err)
		}
	}
}
