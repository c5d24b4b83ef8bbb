package work

import (
	"cmp"
	"slices"
	"strconv"
)

// AppendScopes writes all scopes as plain canonical JSON (DV-140, DV-141): the form in
// which states are compared. It costs the size of the state.
func (s *State) AppendScopes(b []byte) []byte {
	return appendList(b, s.Scopes(), func(b []byte, sc *Scope) []byte { return sc.append(b) })
}

func appendList[T any](b []byte, items []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, item)
	}
	return append(b, ']')
}

// append writes the ref as canonical JSON.
func (ref EventRef) append(b []byte) []byte {
	b = append(append(b, `{"eventId":"`...), ref.Event...)
	b = append(append(b, `","eventSha256":"`...), ref.Digest...)
	b = append(append(b, `","workScopeId":"`...), ref.Scope...)
	return append(b, `"}`...)
}

// appendQuoted writes an identifier or digest, or null when it is empty.
func appendQuoted[T ~string](b []byte, s T) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), s...), '"')
}

func (s *Scope) append(b []byte) []byte {
	b = appendList(append(b, `{"canServeBases":`...), sorted(&s.bases), func(b []byte, v *Basis) []byte { return v.append(b, v.Expected) })
	b = s.head.Ref().append(append(b, `,"head":{"eventRef":`...))
	b = strconv.AppendInt(append(b, `,"scopeSequence":`...), s.head.Sequence, 10)
	b = s.appendRoot(append(b, `},"root":`...))
	b = appendList(append(b, `,"routingSnapshots":`...), sorted(&s.snapshots), func(b []byte, v *Snapshot) []byte { return v.append(b) })
	b = append(b, `,"state":{"activeInvocation":`...)
	if a := s.active; a != nil {
		b = append(append(b, `{"assignmentId":"`...), a.Assignment...)
		b = append(append(b, `","frameId":"`...), s.activeFrame...)
		b = append(append(append(b, `","invocationId":"`...), a.Invocation...), `"}`...)
	} else {
		b = append(b, "null"...)
	}
	b = appendList(append(b, `,"assignments":`...), s.assignmentsInOrder(), func(b []byte, v *Assignment) []byte { return v.append(b) })
	b = appendList(append(b, `,"frames":`...), s.Frames(), func(b []byte, v *Frame) []byte { return v.append(b) })
	b = append(append(append(b, `,"workScopeId":"`...), s.id...), `"},"supportRecords":`...)
	b = appendList(b, sorted(&s.supports), func(b []byte, a *Accepted) []byte {
		p, _ := a.payload.(*Observe)
		b = a.Ref().append(append(b, `{"eventRef":`...))
		return append(append(b, ','), p.text[1:]...)
	})
	return append(append(append(b, `,"workScopeId":"`...), s.id...), `"}`...)
}

// sorted is the values of a table by rising key.
func sorted[K ~string, V any](t *table[K, V]) []V {
	keys := make([]K, 0, t.len())
	for k := range t.all() {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	values := make([]V, len(keys))
	for i, k := range keys {
		values[i], _ = t.get(k)
	}
	return values
}

func (s *Scope) assignmentsInOrder() []*Assignment {
	all := make([]*Assignment, 0, s.assignments.len())
	for _, a := range s.assignments.all() {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *Assignment) int { return cmp.Compare(a.order, b.order) })
	return all
}

func (s *Scope) status() string {
	if s.closure != nil {
		return "closed"
	}
	return "open"
}

// debts is the debts of all landings, of which only the last can be pending.
func (s *Scope) appendDebts(b []byte, landings []*landing) []byte {
	last := len(landings)
	return appendList(b, landings, func(b []byte, l *landing) []byte {
		last--
		b = l.ref.append(append(b, `{"landingEventRef":`...))
		b = append(append(b, `,"landingId":"`...), l.Landing...)
		b = append(append(b, `","rerouteFrameId":"`...), l.Reroute...)
		b = strconv.AppendBool(append(b, `","reroutePending":`...), last == 0 && s.reroute)
		b = append(append(b, `,"verificationFrameId":"`...), l.Verify...)
		b = strconv.AppendBool(append(b, `","verificationPending":`...), last == 0 && s.verify)
		return append(b, '}')
	})
}

func (s *Scope) appendRoot(b []byte) []byte {
	landings := s.landings.slice()
	b = append(b, `{"activeAuthorization":`...)
	if s.authorization != nil {
		b = append(b, s.authorization.text...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"closure":`...)
	if s.closure != nil {
		b = append(b, s.closure.text...)
	} else {
		b = append(b, "null"...)
	}
	b = s.appendDebts(append(b, `,"debts":`...), landings)
	b = appendList(append(b, `,"landings":`...), landings, func(b []byte, l *landing) []byte { return append(b, l.text...) })
	b = append(append(b, `,"stateSha256":"`...), s.RootDigest()...)
	return append(append(append(b, `","status":"`...), s.status()...), `"}`...)
}

// RootDigest is the digest of the root state (DV-054). It costs the number of landings.
func (s *Scope) RootDigest() Digest {
	landings := s.landings.slice()
	var authorization, closure Digest
	if s.authorization != nil {
		authorization = s.authorization.Digest
	}
	if s.closure != nil {
		closure = s.closure.Digest
	}
	b := appendQuoted([]byte(`{"domain":"developer/v8/runtime-root-state","state":{"authorizationSha256":`), authorization)
	b = appendQuoted(append(b, `,"closureSha256":`...), closure)
	b = s.appendDebts(append(b, `,"debts":`...), landings)
	b = appendList(append(b, `,"landingSha256s":`...), landings, func(b []byte, l *landing) []byte { return appendQuoted(b, l.Digest) })
	b = append(append(append(b, `,"status":"`...), s.status()...), `"}}`...)
	return digestOf(string(b))
}

func (f *Frame) append(b []byte) []byte {
	b = appendList(append(b, `{"blockers":`...), f.blockers, func(b []byte, v *Blocker) []byte { return v.append(b, f.ID()) })
	b = append(b, `,"conclusion":`...)
	if c := f.conclusion; c != nil {
		b = append(append(b, `{"conclusionSha256":"`...), c.digest...)
		b = append(append(append(b, `","proposal":`...), c.text...), '}')
	} else {
		b = append(b, "null"...)
	}
	b = appendList(append(b, `,"contributions":`...), f.admitted.slice(), func(b []byte, p *Admit) []byte { return p.append(b) })
	b = appendList(append(b, `,"discharges":`...), f.discharged, func(b []byte, p *Discharge) []byte {
		digest := digestOf(`{"discharge":`, p.text, `,"domain":"developer/v8/obligation-discharge"}`)
		b = append(append(b, p.text[:p.insert]...), `,"dischargeSha256":"`...)
		return append(append(append(b, digest...), '"'), p.text[p.insert:]...)
	})
	b = append(append(b, `,"frame":`...), f.asked.text...)
	b = append(append(b, `,"obligations":`...), f.asked.obligations...)
	b = append(b, `,"routing":`...)
	if f.routing != nil {
		b = f.routing.appendCoverage(b)
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

func (v *Blocker) append(b []byte, frame FrameID) []byte {
	b = append(append(b, `{"blockerId":"`...), v.Blocker...)
	b = append(append(b, `","detailsSha256":"`...), digestOf(`{"details":`, v.details, `,"domain":"developer/v8/runtime-blocker"}`)...)
	b = append(append(b, `","frameId":"`...), frame...)
	b = append(append(b, `","kind":"`...), v.Kind...)
	b = append(append(b, `","sourceId":"`...), v.Source...)
	return append(appendIDs(append(b, `","targetObligationIds":`...), v.Targets), '}')
}

func (p *Admit) append(b []byte) []byte {
	q := &p.Proposal
	proposal := q.text[:q.insert] + `,"proposalSha256":"` + string(q.digest) + `"` + q.text[q.insert:]
	admission := digestOf(`{"admission":{"admissionBasisSha256":"`, string(p.Basis), `","contributionId":"`, string(p.Contribution), `","proposal":`, proposal,
		`},"domain":"developer/v8/admitted-frame-contribution"}`)
	b = append(append(b, `{"admissionBasisSha256":"`...), p.Basis...)
	b = append(append(b, `","admissionSha256":"`...), admission...)
	b = append(append(b, `","contributionId":"`...), p.Contribution...)
	return append(append(append(b, `","proposal":`...), proposal...), '}')
}

func (a *Assignment) append(b []byte) []byte {
	b = append(append(b, `{"assignment":`...), a.text...)
	b = a.basis.append(append(b, `,"basis":`...), a.basis.Expected)
	status := "ready"
	if a.invocation != "" {
		status = "active"
		b = append(append(append(b, `,"invocationId":"`...), a.invocation...), '"')
	}
	if a.settlement != nil {
		status = "settled"
		b = append(append(b, `,"settlement":`...), a.settlement.text...)
	}
	return append(append(append(b, `,"status":"`...), status...), `"}`...)
}

func (n *Snapshot) append(b []byte) []byte {
	b = n.appendCoverage(append(b, `{"coverage":`...))
	b = append(append(b, `,"frameId":"`...), n.open.Basis.Frame...)
	b = strconv.AppendInt(append(b, `","frameRevision":`...), n.open.Basis.Revision, 10)
	b = append(append(b, `,"snapshotId":"`...), n.open.Manifest.Snapshot...)
	if n.Completed() {
		return append(b, `","status":"completed"}`...)
	}
	return append(b, `","status":"collecting"}`...)
}

func (n *Snapshot) appendCoverage(b []byte) []byte {
	b = append(append(b, `{"basis":`...), n.open.Basis.text...)
	if n.Completed() {
		b = append(append(append(b, `,"coverageSha256":"`...), n.digest...), '"')
	}
	b = append(append(b, `,"manifest":`...), n.open.Manifest.text...)
	b = strconv.AppendInt(append(b, `,"nextPageIndex":`...), n.page, 10)
	b = append(append(b, `,"obligations":`...), n.asked.obligations...)
	b = strconv.AppendInt(append(b, `,"observedCandidateCount":`...), n.observed, 10)
	b = append(append(b, `,"pageChainSha256":"`...), n.chain...)
	b = appendList(append(b, `","selectedCandidates":`...), n.selected.slice(), func(b []byte, c *Candidate) []byte { return append(b, c.text...) })
	return append(n.appendSummaries(append(b, `,"targetSummaries":`...)), '}')
}
