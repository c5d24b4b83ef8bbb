package work_test

import (
	"fmt"
	"slices"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/work"
)

// o and a spell JSON objects and arrays in tests.
type (
	o = map[string]any
	a = []any
)

// val makes the value of what is spelled with o and a.
func val(x any) canon.Value {
	switch x := x.(type) {
	case nil:
		return canon.Value{}
	case canon.Value:
		return x
	case bool:
		return canon.OfBool(x)
	case int:
		return canon.OfNumber(float64(x))
	case string:
		return canon.OfString(x)
	case work.Digest:
		return canon.OfString(string(x))
	case []string:
		items := make([]canon.Value, len(x))
		for i, s := range x {
			items[i] = canon.OfString(s)
		}
		return canon.OfArray(items...)
	case a:
		items := make([]canon.Value, len(x))
		for i, s := range x {
			items[i] = val(s)
		}
		return canon.OfArray(items...)
	case o:
		var members []canon.Item
		for name, m := range x {
			members = append(members, canon.Item{Name: name, Value: val(m)})
		}
		return canon.OfObject(members...)
	}
	panic(fmt.Sprintf("no JSON for %T", x))
}

// h is the digest of what is spelled, computed without the package under test.
func h(x any) string {
	d, err := val(x).Hash()
	if err != nil {
		panic(err)
	}
	return d
}

// with is a copy of x with further members.
func with(x o, more o) o {
	c := o{}
	for k, v := range x {
		c[k] = v
	}
	for k, v := range more {
		c[k] = v
	}
	return c
}

// fataler is what testing and rapid have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// maker makes histories, event by event, as a caller of Preflight would.
type maker struct {
	t     fataler
	b     *work.Branch
	rules work.Rules
	scope string
	n     int
	refs  map[string]work.EventRef // of made events, by what made them
}

func newMaker(t fataler, rules work.Rules) *maker {
	return &maker{t: t, b: work.NewBranch(), rules: rules, refs: map[string]work.EventRef{}}
}

const someTime = "2031-04-05T06:07:08.009Z"

// try adds an event if it is accepted. name binds its ref.
func (m *maker) try(name string, kind work.Kind, payload o, causes ...string) *work.Refusal {
	body, err := val(payload).Append(nil)
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	d := work.Draft{Event: work.EventID(fmt.Sprintf("event:%d", m.n)), Kind: kind, Payload: body, At: someTime}
	for _, c := range causes {
		if ref, there := m.refs[c]; there && !slices.Contains(d.Causes, ref) {
			d.Causes = append(d.Causes, ref)
		}
	}
	q := work.Request{Rules: m.rules, Drafts: []work.Draft{d}}
	if kind == work.ScopeOpened {
		q.Scope = work.ScopeID(m.scope)
	}
	batch, no := m.b.Preflight(q)
	if no != nil {
		return no
	}
	m.n++
	m.b = batch.After()
	m.refs[name] = batch.Entries()[0].Ref()
	return nil
}

func (m *maker) must(no *work.Refusal) {
	m.t.Helper()
	if no != nil {
		m.t.Fatalf("refused: %v", no)
	}
}

func (m *maker) open(scope string) *work.Refusal {
	m.scope = scope
	return m.try("open", work.ScopeOpened, o{})
}

func (m *maker) close() *work.Refusal {
	return m.try("close", work.ScopeClosed, o{"closure": closure("All is done.")})
}

func closure(reason string) o {
	return o{"reason": reason, "reasonSha256": h(o{"domain": "developer/v8/scope-closure", "reason": reason})}
}

// question is a frame to ask: its obligations are named by their last letters.
type question struct {
	id, parent, route string
	revision          int
	obligations       string
}

func (q question) ids() []string {
	var ids []string
	for _, c := range q.obligations {
		ids = append(ids, "obligation:"+q.id[len("frame:"):]+":"+string(c))
	}
	return ids
}

func (m *maker) asked(q question) o {
	var obligations a
	for _, id := range q.ids() {
		obligations = append(obligations, o{"obligationId": id, "frameId": q.id, "statement": "It is so."})
	}
	if q.route == "" {
		q.route = "route:implementation-shaping"
	}
	return o{
		"obligations": obligations,
		"frame": o{
			"frameId": q.id, "frameRevision": q.revision, "workScopeId": m.scope, "parentFrameId": orNull(q.parent), "routeDefinitionId": q.route,
			"routeDefinitionRevisionSha256": h(q.route), "exactQuestion": "Is it so?", "obligationIds": q.ids(), "obligationSetSha256": h(obligations),
		},
	}
}

func (m *maker) frame(q question, causes ...string) *work.Refusal {
	return m.try(q.id, work.FrameOpened, with(m.asked(q), o{"parentDependency": nil}), causes...)
}

func (m *maker) child(q question, targets []string) *work.Refusal {
	return m.try(q.id, work.FrameOpened, with(m.asked(q), o{"parentDependency": o{"blockerId": "blocker:" + q.id[len("frame:"):], "targetObligationIds": targets, "reason": "It waits."}}))
}

func (m *maker) replace(q question) *work.Refusal {
	return m.try("replaced:"+q.id, work.FrameReplaced, m.asked(q))
}

func (m *maker) support(name string) *work.Refusal {
	return m.try(name, work.SupportObserved, o{"support": o{"supportId": "support:" + name, "sourceKind": "judgment-result", "sourceId": "source:" + name,
		"sourceRevisionSha256": h("revision of " + name), "supportSha256": h(name)}})
}

func proposal(frame string, revision int, name string, targets []string, use string) o {
	var uses a
	for _, t := range targets {
		uses = append(uses, o{"obligationId": t, "useAs": use})
	}
	return o{"proposalId": "proposal:" + name, "frameId": frame, "frameRevision": revision, "claim": "It is so.", "applicability": "Here.", "targetUses": uses, "limitations": a{},
		"source": o{"kind": "judgment-result", "sourceId": "source:" + name, "sourceRevisionSha256": h("revision of " + name)}, "supportSha256": h(name)}
}

// admit admits what the named support says, for the targets.
func (m *maker) admit(frame string, revision int, name string, targets []string, use string) *work.Refusal {
	p := proposal(frame, revision, name, targets, use)
	return m.try("admit:"+name, work.ContributionAdmitted, o{"proposal": p, "expectedProposalSha256": h(o{"domain": "developer/v8/proposed-frame-contribution", "contribution": p}),
		"contributionId": "contribution:" + name, "admissionBasisSha256": h("basis")}, name)
}

func (m *maker) discharge(frame string, revision int, obligation, contribution string) *work.Refusal {
	return m.try("discharge:"+obligation, work.ObligationDischarged, o{"discharge": o{"dischargeId": "discharge:" + obligation, "frameId": frame, "expectedFrameRevision": revision,
		"obligationId": obligation, "contributionIds": a{"contribution:" + contribution}, "stopEvidence": a{"Seen."}, "conclusion": "Settled."}})
}

var noBlockers = h(o{"domain": "developer/v8/runtime-blocker-set", "blockers": a{}})

func conclusion(q question) o {
	var discharges []string
	for _, id := range q.ids() {
		discharges = append(discharges, "discharge:"+id)
	}
	return o{"frameId": q.id, "expectedFrameRevision": q.revision, "dischargeIds": discharges, "stopEvidence": a{"All seen."}, "expectedBlockerSetSha256": noBlockers, "conclusion": "So it is."}
}

func (m *maker) conclude(q question, causes ...string) *work.Refusal {
	return m.try("concluded:"+q.id, work.FrameConcluded, o{"proposal": conclusion(q)}, causes...)
}

// answer settles every obligation of an open frame and concludes it.
func (m *maker) answer(q question, causes ...string) *work.Refusal {
	name := fmt.Sprintf("%s:%d:%d", q.id[len("frame:"):], q.revision, m.n)
	if no := m.support(name); no != nil {
		return no
	}
	if no := m.admit(q.id, q.revision, name, q.ids(), "evidence"); no != nil {
		return no
	}
	for _, id := range q.ids() {
		if no := m.discharge(q.id, q.revision, id, name); no != nil {
			return no
		}
	}
	return m.conclude(q, causes...)
}

func (m *maker) authorize(id string, q question) *work.Refusal {
	fields := o{"authorizationId": id, "frameId": q.id, "frameRevision": q.revision, "conclusionSha256": h(o{"domain": "developer/v8/route-frame-conclusion", "proposal": conclusion(q)}),
		"movement": "Move it.", "stableLanding": "The rest stays.", "verificationTarget": "It is seen.", "boundary": nil}
	return m.try(id, work.ChangeAuthorized, o{"authorization": with(fields, o{"authorizationSha256": h(o{"domain": "developer/v8/change-authorization", "fields": fields})})}, "concluded:"+q.id)
}

// land records a landing whose debts are paid by frame:<id>:r and frame:<id>:v.
func (m *maker) land(id, authorization string) *work.Refusal {
	name := id[len("landing:"):]
	fields := o{"landingId": id, "authorizationId": authorization, "changedPaths": a{"a.txt"}, "result": "Moved.", "verification": a{},
		"rerouteFrameId": "frame:" + name + ":r", "verificationFrameId": "frame:" + name + ":v"}
	paths := h(o{"domain": "developer/v8/landing-changed-paths", "changedPaths": a{"a.txt"}})
	verification := h(o{"domain": "developer/v8/landing-verification", "verification": a{}})
	return m.try(id, work.LandingRecorded, o{"landing": with(fields, o{"changedPathsSha256": paths, "verificationSha256": verification,
		"landingSha256": h(o{"domain": "developer/v8/implementation-landing", "fields": fields, "changedPathsSha256": paths, "verificationSha256": verification})})}, authorization)
}

const (
	shaping  = "route:implementation-shaping"
	checking = string(work.VerificationRouteID)
)

func reroute(landing string) question {
	return question{id: "frame:" + landing[len("landing:"):] + ":r", route: "route:change-timing", obligations: "a"}
}

func verification(landing string) question {
	return question{id: "frame:" + landing[len("landing:"):] + ":v", route: checking, obligations: "a"}
}

// change runs a scope from a first question to a landing with both debts pending.
func (m *maker) change(name string) {
	m.t.Helper()
	q := question{id: "frame:" + name, obligations: "ab"}
	m.must(m.frame(q))
	m.must(m.answer(q))
	m.must(m.authorize("change:"+name, q))
	m.must(m.land("landing:"+name, "change:"+name))
}

// stored are the entries of the branch so far, as they would be read back.
func (m *maker) stored() []*work.Entry {
	p := m.b.Projection()
	var all []*work.Entry
	for i := range p.Len() {
		all = append(all, work.Parse([]byte(p.At(i).Event.Text())))
	}
	return all
}
