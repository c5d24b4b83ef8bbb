package work_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/work"
)

// driver tries events at random, legal and not, on what there is.
type driver struct {
	*maker
	r             *rapid.T
	frames        []question
	supports      []string
	contributions []string
	landings      int
	changes       int
	skills        int
}

func (d *driver) pick(label string, most int) int { return rapid.IntRange(0, most).Draw(d.r, label) }

func (d *driver) coin(label string) bool { return rapid.Bool().Draw(d.r, label) }

// frame draws one that was opened, by its present question.
func (d *driver) drawn() (int, question) {
	i := d.pick("frame", len(d.frames)-1)
	return i, d.frames[i]
}

func (d *driver) route() string { return []string{shaping, checking}[d.pick("route", 1)] }

// opened keeps the question of a frame that was opened or replaced.
func (d *driver) opened(q question, no *work.Refusal) {
	if no != nil {
		return
	}
	if i := slices.IndexFunc(d.frames, func(f question) bool { return f.id == q.id }); i >= 0 {
		d.frames[i] = q
		return
	}
	d.frames = append(d.frames, q)
}

// act tries one thing.
func (d *driver) act() {
	kind := d.pick("act", 24)
	if len(d.frames) == 0 || kind == 0 {
		q := question{id: fmt.Sprintf("frame:%d", d.n), route: d.route(), obligations: []string{"a", "ab", "abc"}[d.pick("obligations", 2)]}
		d.opened(q, d.frame(q))
		return
	}
	i, q := d.drawn()
	target := q.ids()[d.pick("target", len(q.ids())-1)]
	switch kind {
	case 1:
		c := question{id: fmt.Sprintf("frame:%d", d.n), parent: q.id, route: d.route(), obligations: "a"}
		d.opened(c, d.child(c, []string{target}))
	case 2:
		q.revision += d.pick("higher", 2)
		q.route, q.obligations = d.route(), "ab"
		d.opened(q, d.replace(q))
	case 3:
		name := fmt.Sprintf("s%d", d.pick("support", 9))
		if d.support(name) == nil {
			d.supports = append(d.supports, name)
		}
	case 4:
		d.admitSome(q)
	case 5:
		if len(d.contributions) > 0 {
			d.discharge(q.id, q.revision, target, d.contributions[d.pick("contribution", len(d.contributions)-1)])
		}
	case 6, 7:
		d.conclude(q, d.landing())
	case 8, 9:
		d.authorizeNext(q)
	case 10, 11:
		if d.land(fmt.Sprintf("landing:%d", d.landings+1), fmt.Sprintf("change:%d", d.changes-1)) == nil {
			d.landings++
		}
	case 12:
		d.payment()
	case 13:
		d.skill(q)
	case 14:
		d.settle(q.ids())
	case 15:
		d.unblock(d.frames[i].id)
	case 16, 17:
		d.answer(q, d.landing())
	default:
		d.advance()
	}
}

// advance does what brings the work on: blind trials seldom come as far as a landing.
func (d *driver) advance() {
	sc := d.b.Active()
	last := fmt.Sprintf("landing:%d", d.landings)
	debt, _ := sc.Debt()
	switch authorization, _ := sc.Authorization(); {
	case authorization != nil:
		d.landings++
		d.must(d.land(fmt.Sprintf("landing:%d", d.landings), string(authorization.Authorization)))
	case sc.Invocation() != nil:
		d.settle(d.frames[0].ids())
	case len(sc.OpenFrames()) > 0:
		id := string(sc.OpenFrames()[0].ID())
		d.unblock(id)
		d.answer(d.frames[slices.IndexFunc(d.frames, func(q question) bool { return q.id == id })], last)
	case debt.RerouteDue && d.coin("reroute"):
		d.opened(reroute(last), d.frame(reroute(last), last))
	case debt.VerDue:
		d.opened(verification(last), d.frame(verification(last), last))
	default:
		_, q := d.drawn()
		d.authorizeNext(q)
	}
}

func (d *driver) authorizeNext(q question) {
	if d.authorize(fmt.Sprintf("change:%d", d.changes), q) == nil {
		d.changes++
	}
}

func (d *driver) admitSome(q question) {
	if len(d.supports) == 0 {
		return
	}
	name := d.supports[d.pick("support", len(d.supports)-1)]
	use := []string{"evidence", "method", "decision"}[d.pick("use", 2)]
	if d.admit(q.id, q.revision, name, q.ids()[:1+d.pick("targets", len(q.ids())-1)], use) == nil {
		d.contributions = append(d.contributions, name)
	}
}

func (d *driver) landing() string {
	if d.landings > 0 && d.coin("caused") {
		return fmt.Sprintf("landing:%d", d.landings)
	}
	return ""
}

// payment opens a frame that pays a debt, or may not.
func (d *driver) payment() {
	last := fmt.Sprintf("landing:%d", d.landings)
	q := reroute(last)
	if d.coin("verification") {
		q = verification(last)
	}
	q.route = d.route()
	d.opened(q, d.frame(q, d.landing()))
}

// skill routes a frame, readies a skill for its first obligation and invokes it.
func (d *driver) skill(q question) {
	if d.snapshot(q, []string{"candidate:a", "candidate:b"}) != nil {
		return
	}
	f, _ := d.b.Active().Frame(work.FrameID(q.id))
	context := string(f.Routing().Digest())
	d.skills++
	name := fmt.Sprintf("%d", d.skills)
	targets := q.ids()[:1]
	basis := o{"basisId": "basis:" + name, "kind": "can-serve", "snapshotId": "snapshot:" + q.id[len("frame:"):], "frameId": q.id, "frameRevision": q.revision, "candidateId": "candidate:a",
		"capabilityId": "skill:a", "capabilityRevisionSha256": h("skill"), "descriptorSha256": descriptor("candidate:a"),
		"targetObligationIds": targets, "methodRevisionSha256": h("method"), "policy": o{"kind": "absent"}, "rootApplicability": "applicable", "contextBasisSha256": context}
	basisDigest := h(o{"domain": "developer/v8/can-serve-routing-basis", "basis": basis})
	d.must(d.try("basis:"+name, work.BasisCreated, o{"snapshotId": basis["snapshotId"], "expectedBasisSha256": basisDigest, "body": o{"basisId": basis["basisId"], "candidateId": "candidate:a",
		"targetObligationIds": targets, "methodRevisionSha256": h("method"), "policy": o{"kind": "absent"}, "rootApplicability": "applicable"}}))
	assignment := o{"assignmentId": "assignment:" + name, "skillCapabilityId": "skill:a", "skillRevisionSha256": h("skill"), "parentFrameId": q.id, "parentFrameRevision": q.revision,
		"targetObligationIds": targets, "subquestion": "And this?", "applicabilityBasisSha256": basisDigest, "expectedContribution": "One claim.", "limitations": a{},
		"returnContract": "developer-skill-return/v1", "contextBasisSha256": context, "authority": "contribution-only"}
	if d.try("assignment:"+name, work.AssignmentReady, o{"basisId": basis["basisId"],
		"assignment": with(assignment, o{"assignmentRevisionSha256": h(o{"domain": "developer.ready-skill-assignment/v1", "value": assignment})})}) == nil {
		d.try("invocation:"+name, work.InvocationStarted, o{"invocationId": "invocation:" + name, "assignmentId": "assignment:" + name})
	}
}

// settle ends the active invocation, in one of the ways there are.
func (d *driver) settle(targets []string) *work.Refusal {
	active := d.b.Active().Invocation()
	if active == nil {
		return nil
	}
	s := o{"invocationId": string(active.Invocation), "assignmentId": string(active.Assignment)}
	target := []string{targets[0]}
	switch d.pick("outcome", 5) {
	case 0:
		s = with(s, o{"kind": "returned", "value": o{"kind": "needs-context", "targetObligationIds": target, "missingContext": a{"More."}}})
	case 1:
		s = with(s, o{"kind": "returned", "value": o{"kind": "dependency", "dependencyId": "dependency:a", "targetObligationIds": target, "question": "What?", "reason": "So."}})
	case 2:
		s = with(s, o{"kind": "returned", "value": o{"kind": "abort", "reason": "No."}})
	case 3:
		s = with(s, o{"kind": "capability-failed", "failure": o{"kind": "timeout", "timeoutMs": 5}})
	default:
		s = with(s, cancelled)
	}
	return d.try("settled", work.InvocationSettled, o{"settlement": s})
}

var cancelled = o{"kind": "lifecycle", "lifecycle": o{"kind": "cancelled", "reason": "Off.", "executionUncertain": true}}

// unblock resolves the blockers of a frame, on the ground of the opening of the scope.
func (m *maker) unblock(frame string) {
	f, _ := m.b.Active().Frame(work.FrameID(frame))
	for _, b := range f.Blockers() {
		m.try("resolved", work.BlockerResolved, o{"frameId": frame, "blockerId": string(b.Blocker), "resolutionBasisSha256": m.refs["open"].Digest}, "open")
	}
}

// finish brings the scope to its closure from wherever it is (DV-419).
func (d *driver) finish() {
	last := func() string { return fmt.Sprintf("landing:%d", d.landings) }
	if active := d.b.Active().Invocation(); active != nil {
		d.must(d.try("settled", work.InvocationSettled, o{"settlement": with(cancelled, o{"invocationId": string(active.Invocation), "assignmentId": string(active.Assignment)})}))
	}
	if authorization, _ := d.b.Active().Authorization(); authorization != nil {
		d.landings++
		d.must(d.land(last(), string(authorization.Authorization)))
	}
	for range 2 {
		// A child is opened after its parent, so the last opened frame has no open child.
		for _, f := range slices.Backward(d.b.Active().Frames()) {
			if f.Open() {
				d.finishFrame(f, last())
			}
		}
		debt, landed := d.b.Active().Debt()
		for _, q := range []question{reroute(last()), verification(last())} {
			if _, there := d.b.Active().Frame(work.FrameID(q.id)); landed && !there && (debt.RerouteDue || debt.VerDue) {
				d.must(d.frame(q, last()))
				d.opened(q, nil)
			}
		}
	}
	d.must(d.close())
}

// finishFrame asks the question anew, which is possible whatever the frame's state, and
// answers it.
func (d *driver) finishFrame(f *work.Frame, landing string) {
	q := question{id: string(f.ID()), parent: string(f.Question().Parent), route: checking, revision: int(f.Question().Revision) + 1, obligations: "a"}
	d.must(d.replace(q))
	d.must(d.answer(q, landing))
}

// mark is a branch as it was when it was made.
type mark struct {
	b      *work.Branch
	scopes string
	rev    work.Digest
	digest work.Digest
}

func marked(b *work.Branch) mark {
	return mark{b: b, scopes: string(b.State().AppendScopes(nil)), rev: b.Revision(), digest: b.Projection().Digest()}
}

func run(r *rapid.T, rules work.Rules) (*driver, []mark) {
	d := &driver{maker: newMaker(r, rules), r: r}
	d.must(d.open("scope:a"))
	marks := []mark{marked(d.b)}
	for range rapid.IntRange(1, 60).Draw(r, "acts") {
		before, n := d.b, d.n
		d.act()
		if d.n == n && d.b != before {
			r.Fatalf("a refusal made another branch")
		}
		marks = append(marks, marked(d.b))
	}
	return d, marks
}

// unchanged checks that no branch was changed by what came after it.
func unchanged(r *rapid.T, marks []mark) {
	for i, m := range marks {
		if now := marked(m.b); now != m {
			r.Fatalf("branch %d changed:\n%s\nwas\n%s", i, now.scopes, m.scopes)
		}
		p := m.b.Projection()
		if again, no := work.Project(func(yield func(*work.Accepted) bool) {
			for j := range p.Len() {
				if !yield(p.At(j).Event) {
					return
				}
			}
		}); no != nil || again.Digest() != m.digest {
			r.Fatalf("branch %d projects otherwise: %v", i, no)
		}
	}
}

// Any prefix of an accepted history replays to the branch there was, none of which later
// events change; entry by entry it comes to the same; a strict history is a reference
// history with equal receipts; and closure can be reached.
func TestHistories(t *testing.T) {
	t.Parallel()
	for _, rules := range []work.Rules{work.Reference, work.Strict} {
		t.Run(rules.String(), func(t *testing.T) {
			t.Attr("requirement", "DV-151 DV-203 DV-210 DV-211 DV-222 DV-419")
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				d, marks := run(r, rules)
				entries := d.stored()
				at := rapid.IntRange(0, len(marks)-1).Draw(r, "prefix")
				prefix := entries[:marks[at].b.State().Len()]
				b := work.Reconstruct(slices.Values(prefix), work.All(rules))
				got := marked(b)
				if got.b = marks[at].b; got != marks[at] || b.Blocked() != "" {
					r.Fatalf("the prefix replays otherwise: %s", b.Blocked())
				}
				single(r, entries, rules, marks[len(marks)-1].scopes)
				elsewhere := work.Reconstruct(slices.Values(entries), work.All(work.Reference))
				if elsewhere.Blocked() != "" || elsewhere.Revision() != d.b.Revision() || elsewhere.Projection().Digest() != d.b.Projection().Digest() {
					r.Fatalf("under reference rules: %s", elsewhere.Blocked())
				}
				legal(r, d)
				// A second future of an old branch leaves the first alone.
				d.b, d.n = marks[at].b, len(prefix)
				d.frames = slices.DeleteFunc(d.frames, func(q question) bool {
					_, there := d.b.Active().Frame(work.FrameID(q.id))
					return !there
				})
				debt, landed := d.b.Active().Debt()
				if d.landings = 0; landed {
					d.landings = number(t, val(o{"n": parsed(t, []byte(debt.Landing.Landing[len("landing:"):]))}), "n")
				}
				d.finish()
				marks = append(marks, marked(d.b))
				if d.b.Mode() != work.ModeClosed {
					r.Fatalf("mode %s", d.b.Mode())
				}
				unchanged(r, marks)
			})
		})
	}
}

// single applies the entries one by one, each twice: the second time it is refused and
// changes nothing.
func single(r *rapid.T, entries []*work.Entry, rules work.Rules, want string) {
	var s work.State
	for i, e := range entries {
		next, no := s.Apply(e, i, rules)
		if no != nil {
			r.Fatalf("entry %d: %v", i, &no.Refusal)
		}
		again, no := next.Apply(e, i+1, rules)
		if no == nil || no.Code != work.DuplicateEventID || again.Len() != next.Len() {
			r.Fatalf("entry %d was taken twice", i)
		}
		s = next
	}
	if got := string(s.AppendScopes(nil)); got != want {
		r.Fatalf("one by one:\n%s\nwant\n%s", got, want)
	}
}

// legal checks that a change may be authorized exactly when some frame allows it, which
// then has a conclusion.
func legal(r *rapid.T, d *driver) {
	operations, no := d.b.Legal()
	if no != nil {
		return
	}
	before, n := d.b, d.n
	defer func() { d.b, d.n = before, n }()
	can := false
	for _, q := range d.frames {
		d.b = before
		if d.authorize("change:probe", q) == nil {
			can = true
			if f, _ := before.Active().Frame(work.FrameID(q.id)); f.Open() {
				r.Fatalf("authorized on the ground of the open frame %s", q.id)
			}
		}
	}
	if said := slices.Contains(operations, work.AuthorizeChange); said != can && before.Active().Invocation() == nil {
		r.Fatalf("operations %v, but a change can be authorized: %t", operations, can)
	}
}

// A branch may be read and batches checked against it from many goroutines at once.
func TestBranchIsShared(t *testing.T) {
	t.Attr("requirement", "DV-203 DV-210")
	t.Parallel()
	m := newMaker(t, work.Strict)
	m.must(m.open("scope:a"))
	m.change("a")
	before := marked(m.b)
	results := make([]work.Digest, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			mine := *m
			mine.refs = maps.Clone(m.refs)
			q := reroute("landing:a")
			for _, no := range []*work.Refusal{mine.frame(q, "landing:a"), mine.answer(q)} {
				if no != nil {
					t.Error(no)
				}
			}
			if now := marked(before.b); now != before {
				t.Error("the shared branch changed")
			}
			results[i] = mine.b.Revision()
		})
	}
	wg.Wait()
	for _, r := range results {
		if r != results[0] || r == before.rev {
			t.Errorf("revision %s beside %s", r, results[0])
		}
	}
}

// Two futures of one branch do not see each other, also where a list has room to grow.
func TestForksAreIndependent(t *testing.T) {
	t.Attr("requirement", "DV-151 DV-211")
	t.Parallel()
	m := newMaker(t, work.Strict)
	m.must(m.open("scope:a"))
	q := question{id: "frame:a", obligations: "abcdef"}
	m.must(m.frame(q))
	m.must(m.support("s"))
	m.must(m.admit(q.id, 0, "s", q.ids(), "evidence"))
	fork, n := m.b, m.n
	for i := range q.ids() {
		m.b, m.n = fork, n
		m.must(m.discharge(q.id, 0, q.ids()[i], "s"))
		if i+2 < len(q.ids()) {
			fork, n = m.b, m.n
			m.must(m.discharge(q.id, 0, q.ids()[i+1], "s"))
			one := marked(m.b)
			m.b, m.n = fork, n
			m.must(m.discharge(q.id, 0, q.ids()[i+2], "s"))
			if now := marked(one.b); now != one {
				t.Fatalf("after %d discharges the first future changed", i+2)
			}
		}
	}
}
