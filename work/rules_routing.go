package work

import (
	"slices"
	"strconv"
)

func (s *step) openSnapshot(p *OpenSnapshot) *Refusal {
	f, found := s.scope.frames.get(p.Basis.Frame)
	if !found || f.asked.Frame.Revision != p.Basis.Revision || !f.Open() {
		return refuse(RoutingMissing, "frame %s is not open at revision %d", p.Basis.Frame, p.Basis.Revision)
	}
	if p.Replaces != f.snapshot {
		return refuse(RoutingMissing, "frame %s has another snapshot than the one to replace", p.Basis.Frame)
	}
	if f.snapshot != "" {
		if old, _ := s.scope.snapshots.get(f.snapshot); old.Completed() {
			return refuse(RoutingMissing, "snapshot %s is completed", f.snapshot)
		}
	}
	id := p.Manifest.Snapshot
	if id != p.Replaces && s.scope.snapshots.has(id) {
		return refuse(RoutingMissing, "snapshot %s exists", id)
	}
	if p.Manifest.Basis != p.Basis.digest || p.Basis.Set != f.asked.set {
		return refuse(InvalidPayload, "the snapshot does not stand on its basis and the frame's obligations")
	}
	sc := s.editScope()
	f = s.editFrame(f)
	if f.snapshot != "" {
		sc.snapshots.remove(s.own, f.snapshot)
	}
	f.snapshot = id
	sc.snapshots.set(s.own, id, &Snapshot{
		open: p, asked: f.asked, counts: make([]effectCounts, len(f.asked.Obligations)),
		chain: digestOf(`{"basisSha256":"`, string(p.Manifest.Basis), `","domain":"developer/v8/routing-page-chain/seed","snapshotId":"`, string(id), `"}`),
	})
	return nil
}

// collecting finds a snapshot that is not completed.
func (s *step) collecting(id SnapshotID) (*Snapshot, *Refusal) {
	n, found := s.scope.snapshots.get(id)
	if !found || n.Completed() {
		return nil, refuse(RoutingMissing, "snapshot %s is absent or completed", id)
	}
	return n, nil
}

func (s *step) accountPage(p *AccountPage) *Refusal {
	n, no := s.collecting(p.Snapshot)
	if no != nil {
		return no
	}
	switch {
	case n.page >= n.open.Manifest.Pages:
		return refuse(InvalidPayload, "snapshot %s has no page left", p.Snapshot)
	case len(p.Candidates) == 0:
		return refuse(InvalidPayload, "the page is empty")
	case p.Digest != p.actual:
		return refuse(InvalidPayload, "pageSha256 is not the digest of the page")
	case p.Index != n.page:
		return refuse(InvalidPayload, "page %d is due", n.page)
	case len(p.Dispositions) != len(p.Candidates):
		return refuse(InvalidPayload, "the page has not one disposition for each candidate")
	}
	for i := range p.Candidates {
		if no := n.fits(&p.Candidates[i], &p.Dispositions[i]); no != nil {
			return no
		}
	}
	next := *n
	if s.scope.rules == Strict {
		if no := n.distinct(p.Candidates); no != nil {
			return no
		}
		for i := range p.Candidates {
			next.seen.set(s.own, p.Candidates[i].Candidate, struct{}{})
		}
	}
	next.account(p)
	s.editScope().snapshots.set(s.own, p.Snapshot, &next)
	return nil
}

// fits reports what is wrong with a disposition: it speaks of its candidate and of all
// obligations of the frame in order.
func (n *Snapshot) fits(c *Candidate, d *Disposition) *Refusal {
	same := d.Candidate == c.Candidate && d.Digest == c.Digest && len(d.Effects) == len(n.asked.Obligations)
	for i := 0; same && i < len(d.Effects); i++ {
		same = d.Effects[i].Obligation == n.asked.Obligations[i].Obligation
	}
	if !same {
		return refuse(InvalidPayload, "the disposition of candidate %s does not fit the frame", c.Candidate)
	}
	return nil
}

// distinct refuses a candidate that the page or an earlier one has too (DV-406).
func (n *Snapshot) distinct(candidates []Candidate) *Refusal {
	for i := range candidates {
		id := candidates[i].Candidate
		if n.seen.has(id) || slices.ContainsFunc(candidates[:i], func(c Candidate) bool { return c.Candidate == id }) {
			return refuse(InvalidPayload, "candidate %s was accounted for before", id)
		}
	}
	return nil
}

// account adds a page to a copy of a snapshot that nobody else has yet.
func (n *Snapshot) account(p *AccountPage) {
	counts := make([]effectCounts, len(n.counts))
	copy(counts, n.counts)
	for i := range p.Dispositions {
		selected := false
		for j, t := range p.Dispositions[i].Effects {
			switch t.Effect {
			case Selected:
				counts[j].selected++
				selected = true
			case Cleared:
				counts[j].cleared++
			case Blocked:
				counts[j].blocked++
			case OptionalLimitation:
				counts[j].limited++
			}
		}
		if selected {
			n.selected.push(&p.Candidates[i])
		}
	}
	n.counts = counts
	n.page++
	n.observed += int64(len(p.Candidates))
	n.chain = digestOf(`{"domain":"developer/v8/routing-page-chain/link","pageIndex":`, strconv.FormatInt(p.Index, 10),
		`,"pageSha256":"`, string(p.Digest), `","previousSha256":"`, string(n.chain), `"}`)
}

func (s *step) completeCoverage(p *CompleteCoverage) *Refusal {
	n, no := s.collecting(p.Snapshot)
	if no != nil {
		return no
	}
	m := &n.open.Manifest
	complete := n.page == m.Pages && n.observed == m.Candidates && n.chain == m.Root
	for i := range n.counts {
		complete = complete && n.counts[i].blocked == 0
	}
	if !complete {
		return refuse(InvalidPayload, "the coverage of snapshot %s is incomplete or blocked", p.Snapshot)
	}
	selected := n.selected.slice()
	digest := n.coverageDigest(selected)
	if digest != p.Expected {
		return refuse(RoutingMissing, "expectedCoverageSha256 is not the digest of the coverage")
	}
	f, no := s.openFrameOf(n.open.Basis.Frame)
	if no != nil {
		return no
	}
	if q := &f.asked.Frame; f.routing != nil || q.Revision != n.open.Basis.Revision || q.Set != n.open.Basis.Set {
		return deny(RoutingNotCurrent, "frame %s has a coverage, or another revision", q.Frame)
	}
	next := *n
	next.digest = digest
	next.seen = table[CandidateID, struct{}]{}
	next.byID = make(map[CandidateID]*Candidate, len(selected))
	for _, c := range selected {
		if _, twice := next.byID[c.Candidate]; !twice {
			next.byID[c.Candidate] = c
		}
	}
	s.editScope().snapshots.set(s.own, p.Snapshot, &next)
	s.editFrame(f).routing = &next
	return nil
}

// coverageDigest is DV-039.
func (n *Snapshot) coverageDigest(selected []*Candidate) Digest {
	var room [usual]byte
	b := append(append(room[:0], `{"basisSha256":"`...), n.open.Manifest.Basis...)
	b = append(append(b, `","domain":"developer/v8/completed-routing-coverage","manifest":`...), n.open.Manifest.text...)
	b = appendList(append(b, `,"selectedCandidates":`...), selected, func(b []byte, c *Candidate) []byte {
		b = append(append(b, `{"candidateId":"`...), c.Candidate...)
		return append(append(append(b, `","descriptorSha256":"`...), c.Digest...), `"}`...)
	})
	b = append(n.appendSummaries(append(b, `,"targetSummaries":`...)), '}')
	return digestOfBytes(b)
}

// appendSummaries writes the counts by obligation.
func (n *Snapshot) appendSummaries(b []byte) []byte {
	b = append(b, '[')
	for i := range n.counts {
		c := &n.counts[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"blockedCount":`...), int64(c.blocked), 10)
		b = strconv.AppendInt(append(b, `,"clearedCount":`...), int64(c.cleared), 10)
		b = append(append(b, `,"obligationId":"`...), n.asked.Obligations[i].Obligation...)
		b = strconv.AppendInt(append(b, `","optionalLimitationCount":`...), int64(c.limited), 10)
		b = strconv.AppendInt(append(b, `,"selectedCount":`...), int64(c.selected), 10)
		b = append(b, '}')
	}
	return append(b, ']')
}

func (s *step) createBasis(p *CreateBasis) *Refusal {
	n, found := s.scope.snapshots.get(p.Snapshot)
	if !found || !n.Completed() {
		return refuse(RoutingMissing, "snapshot %s is absent or not completed", p.Snapshot)
	}
	c, selected := n.byID[p.Candidate]
	f, _ := s.scope.frames.get(n.open.Basis.Frame)
	switch {
	case !selected:
		return refuse(InvalidPayload, "candidate %s was not selected", p.Candidate)
	case c.Kind != Capability:
		return refuse(InvalidPayload, "candidate %s is no capability", p.Candidate)
	case len(p.Targets) == 0 || !rising(p.Targets, asString[ObligationID]):
		return refuse(InvalidPayload, "the targets are not a list in rising order")
	}
	if _, ok := f.bits(p.Targets...); !ok {
		return refuse(InvalidPayload, "a target is no obligation of frame %s", f.ID())
	}
	basis := &Basis{CreateBasis: p, candidate: c, coverage: n}
	if basis.digest() != p.Expected {
		return refuse(BasisMissing, "expectedBasisSha256 is not the digest of the basis")
	}
	if s.scope.bases.has(p.Basis) {
		return refuse(BasisMissing, "basis %s exists", p.Basis)
	}
	sc := s.editScope()
	s.editFrame(f).bases.push(p.Basis)
	sc.bases.set(s.own, p.Basis, basis)
	return nil
}

// digest is DV-040.
func (v *Basis) digest() Digest {
	var room [usual]byte
	b := v.append(append(room[:0], `{"basis":`...), "")
	return digestOfBytes(append(b, `,"domain":"developer/v8/can-serve-routing-basis"}`...))
}

// append writes the basis, with its digest when one is given.
func (v *Basis) append(b []byte, digest Digest) []byte {
	p, c, n := v.CreateBasis, v.candidate, v.coverage
	b = append(append(b, `{"basisId":"`...), p.Basis...)
	if digest != "" {
		b = append(append(b, `","basisSha256":"`...), digest...)
	}
	b = append(append(b, `","candidateId":"`...), c.Candidate...)
	b = append(append(b, `","capabilityId":"`...), c.Subject...)
	b = append(append(b, `","capabilityRevisionSha256":"`...), c.Revision...)
	b = append(append(b, `","contextBasisSha256":"`...), n.digest...)
	b = append(append(b, `","descriptorSha256":"`...), c.Digest...)
	b = append(append(b, `","frameId":"`...), n.open.Basis.Frame...)
	b = strconv.AppendInt(append(b, `","frameRevision":`...), n.open.Basis.Revision, 10)
	b = append(append(b, `,"kind":"can-serve","methodRevisionSha256":"`...), p.Method...)
	if p.Policy == "" {
		b = append(b, `","policy":{"kind":"absent"`...)
	} else {
		b = append(append(append(b, `","policy":{"kind":"complete","revisionSha256":"`...), p.Policy...), '"')
	}
	b = append(append(b, `},"rootApplicability":"applicable","snapshotId":"`...), p.Snapshot...)
	return append(appendIDs(append(b, `","targetObligationIds":`...), p.Targets), '}')
}

// appendIDs writes a list of identifiers, which need no escapes.
func appendIDs[T ~string](b []byte, ids []T) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), id...), '"')
	}
	return append(b, ']')
}
