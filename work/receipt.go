package work

import "strconv"

// Receipt is the work receipt of one accepted event (DV-220): a pure function of the
// event and its place.
type Receipt struct {
	Event  *Accepted
	Digest Digest
}

// receiptOf makes the receipt; room is scratch that the caller keeps for the next one.
func receiptOf(a *Accepted, room *[]byte) Receipt {
	w := receiptWriter{b: append((*room)[:0], `{"domain":"developer/v8/receipt","fields":`...), a: a}
	w.write()
	w.b = append(w.b, '}')
	*room = w.b
	return Receipt{Event: a, Digest: digestOfBytes(w.b)}
}

// Append writes the receipt with its digest as canonical JSON.
func (r Receipt) Append(b []byte) []byte {
	w := receiptWriter{b: b, a: r.Event, digest: r.Digest}
	w.write()
	return w.b
}

// receiptWriter writes the members of a receipt in their order. Those that every receipt
// has come in by themselves where they belong among those of the kind.
type receiptWriter struct {
	b      []byte
	a      *Accepted
	digest Digest // empty: the receipt is written without
	common int    // how many of the common members are written
	any    bool
}

// common are the names of the members that all receipts have, in order.
var common = [...]string{"eventRef", "kind", "receiptSha256", "scopeSequence", "storedIndex"}

func (w *receiptWriter) write() {
	w.b = append(w.b, '{')
	w.body()
	w.upTo("~")
	w.b = append(w.b, '}')
}

func (w *receiptWriter) upTo(name string) {
	for ; w.common < len(common) && common[w.common] < name; w.common++ {
		if common[w.common] == "receiptSha256" && w.digest == "" {
			continue
		}
		w.name(common[w.common])
		switch common[w.common] {
		case "eventRef":
			w.b = w.a.Ref().append(w.b)
		case "kind":
			w.b = appendQuoted(w.b, w.a.Kind)
		case "receiptSha256":
			w.b = appendQuoted(w.b, w.digest)
		case "scopeSequence":
			w.b = strconv.AppendInt(w.b, w.a.Sequence, 10)
		case "storedIndex":
			w.b = strconv.AppendInt(w.b, int64(w.a.index), 10)
		}
	}
}

func (w *receiptWriter) name(name string) {
	if w.any {
		w.b = append(w.b, ',')
	}
	w.any = true
	w.b = append(append(append(w.b, '"'), name...), `":`...)
}

func put[T ~string](w *receiptWriter, name string, value T) {
	w.upTo(name)
	w.name(name)
	w.b = appendQuoted(w.b, value)
}

func (w *receiptWriter) count(name string, n int64) {
	w.upTo(name)
	w.name(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

// body writes the members of the kind, in rising order of their names (DV-220).
func (w *receiptWriter) body() {
	switch p := w.a.payload.(type) {
	case *OpenScope:
		put(w, "workScopeId", w.a.Scope)
	case *CloseScope:
		put(w, "reasonSha256", p.Digest)
		put(w, "workScopeId", w.a.Scope)
	case *Authorize:
		put(w, "authorizationId", p.Authorization)
		put(w, "authorizationSha256", p.Digest)
		put(w, "conclusionSha256", p.Conclusion)
		put(w, "frameId", p.Frame)
		w.count("frameRevision", p.Revision)
	case *Land:
		put(w, "authorizationId", p.Authorization)
		w.count("changedPathCount", int64(len(p.Paths)))
		put(w, "changedPathsSha256", p.PathsDigest)
		put(w, "landingId", p.Landing)
		put(w, "landingSha256", p.Digest)
		put(w, "rerouteFrameId", p.Reroute)
		w.count("verificationCount", int64(len(p.Verification)))
		put(w, "verificationFrameId", p.Verify)
		put(w, "verificationSha256", p.VerifyDigest)
	case *OpenFrame:
		w.asked(&p.Asked)
	case *ReplaceFrame:
		w.asked(&p.Asked)
	case *OpenSnapshot:
		w.count("candidateCount", p.Manifest.Candidates)
		put(w, "frameId", p.Basis.Frame)
		w.count("frameRevision", p.Basis.Revision)
		put(w, "orderedPagesRootSha256", p.Manifest.Root)
		w.count("pageCount", p.Manifest.Pages)
		put(w, "replacesSnapshotId", p.Replaces)
		put(w, "snapshotId", p.Manifest.Snapshot)
	case *AccountPage:
		w.count("candidateCount", int64(len(p.Candidates)))
		w.count("dispositionCount", int64(len(p.Dispositions)))
		w.count("pageIndex", p.Index)
		put(w, "pageSha256", p.Digest)
		put(w, "snapshotId", p.Snapshot)
	case *CompleteCoverage:
		put(w, "coverageSha256", p.Expected)
		put(w, "snapshotId", p.Snapshot)
	case *CreateBasis:
		put(w, "basisId", p.Basis)
		put(w, "basisSha256", p.Expected)
		put(w, "candidateId", p.Candidate)
		put(w, "snapshotId", p.Snapshot)
		w.count("targetCount", int64(len(p.Targets)))
	default:
		w.bodyOfSkill()
	}
}

func (w *receiptWriter) asked(a *Asked) {
	put(w, "frameId", a.Frame.Frame)
	w.count("frameRevision", a.Frame.Revision)
	w.count("obligationCount", int64(len(a.Obligations)))
	put(w, "obligationSetSha256", a.Frame.Set)
	put(w, "parentFrameId", a.Frame.Parent)
	put(w, "routeDefinitionId", a.Frame.Route)
}

func (w *receiptWriter) bodyOfSkill() {
	switch p := w.a.payload.(type) {
	case *RecordAssignment:
		put(w, "assignmentId", p.Assignment)
		put(w, "assignmentRevisionSha256", p.Digest)
		put(w, "basisId", p.Basis)
		put(w, "parentFrameId", p.Frame)
		put(w, "skillCapabilityId", p.Capability)
		w.count("targetCount", int64(len(p.Targets)))
	case *StartInvocation:
		put(w, "assignmentId", p.Assignment)
		put(w, "invocationId", p.Invocation)
	case *Settle:
		put(w, "assignmentId", p.Assignment)
		put(w, "invocationId", p.Invocation)
		put(w, "outcome", p.Outcome.Name)
	case *Observe:
		put(w, "sourceId", p.Source)
		put(w, "sourceKind", p.SourceKind)
		put(w, "sourceRevisionSha256", p.SourceRevision)
		put(w, "supportId", p.Support)
		put(w, "supportSha256", p.Digest)
	case *Admit:
		q := &p.Proposal
		put(w, "admissionBasisSha256", p.Basis)
		put(w, "contributionId", p.Contribution)
		put(w, "frameId", q.Frame)
		w.count("frameRevision", q.Revision)
		put(w, "proposalSha256", q.digest)
		put(w, "sourceId", q.Source)
		put(w, "sourceKind", q.SourceKind)
		put(w, "sourceRevisionSha256", q.SourceRevision)
		w.count("targetCount", int64(len(q.Uses)))
	case *ResolveBlocker:
		put(w, "blockerId", p.Blocker)
		put(w, "frameId", p.Frame)
		put(w, "resolutionBasisSha256", p.Basis)
	case *Discharge:
		w.count("contributionCount", int64(len(p.Contributions)))
		put(w, "dischargeId", p.Discharge)
		put(w, "frameId", p.Frame)
		w.count("frameRevision", p.Revision)
		put(w, "obligationId", p.Obligation)
	case *Conclude:
		put(w, "blockerSetSha256", p.Blockers)
		put(w, "conclusionSha256", p.digest)
		w.count("dischargeCount", int64(len(p.Discharges)))
		put(w, "frameId", p.Frame)
		w.count("frameRevision", p.Revision)
	}
}
