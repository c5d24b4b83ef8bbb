package work_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/work"
)

// reference reconstructs a vector's entries as a history made elsewhere.
func reference(t testing.TB, v canon.Value) *work.Branch {
	t.Helper()
	return work.Reconstruct(slices.Values(entries(t, v)), work.All(work.Reference))
}

func TestReceiptVectors(t *testing.T) {
	t.Parallel()
	for name, v := range replays(t) {
		t.Run(name, func(t *testing.T) {
			t.Attr("requirement", "DV-055 DV-056 DV-057 DV-058 DV-059 DV-060 DV-061 DV-220 DV-221 DV-222 DV-223")
			t.Parallel()
			expect := member(t, v, "expect")
			b := reference(t, v)
			p := b.Projection()
			receipts := []byte{'['}
			for i := range p.Len() {
				if i > 0 {
					receipts = append(receipts, ',')
				}
				receipts = p.At(i).Append(receipts)
			}
			receipts = append(receipts, ']')
			if want, there := expect.Member("receipts"); there {
				same(t, "receipts", parsed(t, receipts), want)
			}
			if err := canon.Verify(receipts); err != nil {
				t.Error(err)
			}
			if got, want := canon.Hash(receipts), text(t, expect, "receiptsSha256"); got != want {
				t.Errorf("receipts hash to %s, want %s", got, want)
			}
			same(t, "projection", parsed(t, p.Append(nil)), member(t, expect, "projection"))
			for size, pages := range member(t, expect, "paging").Members() {
				checkPages(t, p, size, pages)
			}
			checkReconstruction(t, b, member(t, expect, "reconstruction"))
			checkInterruptions(t, b, member(t, expect, "reload"))
		})
	}
}

func checkPages(t *testing.T, p *work.Projection, size string, want canon.Value) {
	t.Helper()
	n, err := strconv.Atoi(size)
	if err != nil {
		t.Fatal(err)
	}
	var got []canon.Value
	for at, more := (*work.Cursor)(nil), true; more; more = at != nil {
		page, no := work.Read(work.Target{Current: p}, at, n)
		if no == nil {
			no = page.Verify(p)
		}
		if no != nil {
			t.Fatal(no)
		}
		at = page.Next()
		next := canon.Value{}
		if at != nil {
			next = canon.OfObject(item("projectionSha256", string(at.Projection())), canon.Item{Name: "nextOrdinal", Value: canon.OfNumber(float64(at.Next()))},
				item("cursorSha256", string(at.Digest())))
		}
		got = append(got, canon.OfObject(canon.Item{Name: "startOrdinal", Value: canon.OfNumber(float64(page.Start()))},
			canon.Item{Name: "entryCount", Value: canon.OfNumber(float64(len(page.Receipts())))}, item("pageSha256", string(page.Digest())),
			canon.Item{Name: "nextCursor", Value: next}))
	}
	same(t, "pages of "+size, canon.OfArray(got...), want)
}

func item(name, s string) canon.Item { return canon.Item{Name: name, Value: canon.OfString(s)} }

// plainRuntime writes how a branch stands as the vectors do.
func plainRuntime(r work.Runtime) canon.Value {
	return canon.OfObject(item("state", string(r.State)), canon.Item{Name: "reroutePending", Value: canon.OfBool(r.RerouteDue)},
		canon.Item{Name: "verificationPending", Value: canon.OfBool(r.VerifyDue)})
}

func orNull(s string) canon.Value {
	if s == "" {
		return canon.Value{}
	}
	return canon.OfString(s)
}

// checkReconstruction compares what a replay and a branch vector say of the branch.
func checkReconstruction(t *testing.T, b *work.Branch, want canon.Value) {
	t.Helper()
	if got := text(t, want, "historyMode"); string(b.Mode()) != got {
		t.Errorf("mode %s, want %s", b.Mode(), got)
	}
	if why := member(t, want, "blockedReason"); why.IsNull() != (b.Blocked() == "") {
		t.Errorf("blocked %q", b.Blocked())
	}
	if all := b.Rejections(); len(all) > 0 && !strings.Contains(b.Blocked(), strconv.Itoa(all[0].StoredIndex)+" was rejected: "+all[0].Message) {
		t.Errorf("blocked %q does not tell of the first rejection", b.Blocked())
	}
	active := ""
	if sc := b.Active(); sc != nil {
		active = string(sc.ID())
	}
	same(t, "active scope", orNull(active), member(t, want, "activeScopeId"))
	if got := text(t, want, "projectionRevisionSha256"); string(b.Revision()) != got {
		t.Errorf("revision %s, want %s", b.Revision(), got)
	}
	legal, no := b.Legal()
	if _, refused := want.Member("error"); refused || no != nil {
		if !refused || no == nil {
			t.Errorf("operations %v, %v", legal, no)
		}
		return
	}
	var operations []canon.Value
	for _, o := range legal {
		operations = append(operations, canon.OfString(string(o)))
	}
	same(t, "operations", canon.OfArray(operations...), member(t, want, "operations"))
	same(t, "runtime", plainRuntime(b.Runtime()), member(t, want, "runtime"))
	if got := text(t, want, "purpose"); string(b.Purpose()) != got {
		t.Errorf("purpose %s, want %s", b.Purpose(), got)
	}
}

func plainRef(r work.EventRef) canon.Value {
	return canon.OfObject(item("workScopeId", string(r.Scope)), item("eventId", string(r.Event)), item("eventSha256", string(r.Digest)))
}

func checkInterruptions(t *testing.T, b *work.Branch, want canon.Value) {
	t.Helper()
	var all []canon.Value
	for _, i := range b.Interruptions() {
		all = append(all, canon.OfObject(item("workScopeId", string(i.Scope)), canon.Item{Name: "expectedScopeSequence", Value: canon.OfNumber(float64(i.Sequence))},
			item("previousScopeEventSha256", string(i.Previous)), canon.Item{Name: "causalRefs", Value: canon.OfArray(plainRef(i.Cause))},
			item("kind", string(work.InvocationSettled)), canon.Item{Name: "settlement", Value: parsed(t, i.Settlement())}))
	}
	same(t, "reload", canon.OfArray(all...), want)
}

func TestBranchVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectorLines(t, "branches.jsonl") {
		t.Run(text(t, v, "name"), func(t *testing.T) {
			t.Attr("requirement", "DV-190 DV-191 DV-192 DV-193 DV-194 DV-195 DV-055 DV-241 DV-250 DV-255")
			t.Parallel()
			var all []*work.Entry
			for _, e := range member(t, v, "entries").Items() {
				if data, runtime := work.RuntimeData(e); runtime {
					all = append(all, work.Parse(form(t, data)))
				}
			}
			b := work.Reconstruct(slices.Values(all), work.All(work.Reference))
			expect := member(t, v, "expect")
			checkReconstruction(t, b, expect)
			p := b.Projection()
			if b.Stored() != number(t, expect, "runtimeEntryCount") || b.State().Len() != number(t, expect, "acceptedCount") ||
				len(b.Rejections()) != number(t, expect, "rejectedCount") || p.Len() != number(t, expect, "receiptCount") {
				t.Errorf("%d stored, %d accepted, %d rejected, %d receipts", b.Stored(), b.State().Len(), len(b.Rejections()), p.Len())
			}
			if got := text(t, expect, "projectionSha256"); string(p.Digest()) != got {
				t.Errorf("projection %s, want %s", p.Digest(), got)
			}
		})
	}
}

// request reads the request of a batch vector.
func request(t testing.TB, v canon.Value) work.Request {
	t.Helper()
	var q work.Request
	if s, there := v.Member("workScopeId"); there {
		named, _ := s.Text()
		q.Scope = work.ScopeID(named)
	}
	for _, d := range member(t, v, "drafts").Items() {
		draft := work.Draft{Event: work.EventID(text(t, d, "eventId")), Kind: work.Kind(text(t, d, "kind")), Payload: form(t, member(t, d, "payload")), At: text(t, d, "occurredAt")}
		if refs, there := d.Member("causalRefs"); there {
			for _, r := range refs.Items() {
				draft.Causes = append(draft.Causes, work.EventRef{Scope: work.ScopeID(text(t, r, "workScopeId")), Event: work.EventID(text(t, r, "eventId")), Digest: work.Digest(text(t, r, "eventSha256"))})
			}
		}
		if ids, there := d.Member("causalEventIds"); there {
			for _, id := range ids.Items() {
				s, _ := id.Text()
				draft.CausedBy = append(draft.CausedBy, work.EventID(s))
			}
		}
		q.Drafts = append(q.Drafts, draft)
	}
	return q
}

func TestBatchVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectorLines(t, "batches.jsonl") {
		t.Run(text(t, v, "name"), func(t *testing.T) {
			t.Attr("requirement", "DV-200 DV-201 DV-202 DV-203 DV-204")
			t.Parallel()
			b := reference(t, v)
			before := b.State().AppendScopes(nil)
			batch, no := b.Preflight(request(t, member(t, v, "request")))
			expect := member(t, v, "expect")
			if ok, _ := member(t, expect, "ok").Bool(); !ok {
				if no == nil || string(no.Code) != text(t, expect, "code") || batch != nil {
					t.Fatalf("refusal %v, want %s", no, text(t, expect, "code"))
				}
			} else {
				if no != nil {
					t.Fatal(no)
				}
				checkBatch(t, b, batch, expect)
			}
			if got := b.State().AppendScopes(nil); string(got) != string(before) {
				t.Error("the branch was changed by a preflight")
			}
		})
	}
}

func checkBatch(t *testing.T, b *work.Branch, batch *work.Batch, expect canon.Value) {
	t.Helper()
	var envelopes []canon.Value
	for _, e := range batch.Entries() {
		envelopes = append(envelopes, parsed(t, []byte(e.Text())))
	}
	same(t, "envelopes", canon.OfArray(envelopes...), member(t, expect, "envelopes"))
	after := batch.After()
	if string(batch.Scope()) != text(t, expect, "workScopeId") || after.State().Len() != number(t, expect, "acceptedCount") ||
		string(after.Projection().Digest()) != text(t, expect, "projectionSha256") || string(after.Revision()) != text(t, expect, "projectionRevisionSha256") {
		t.Errorf("scope %s, %d accepted, projection %s, revision %s", batch.Scope(), after.State().Len(), after.Projection().Digest(), after.Revision())
	}
	if batch.Before() != b || !batch.Genuine() || !after.Genuine() {
		t.Error("a handle is not genuine")
	}
	// What is stored reads as the batch predicted.
	stored := b.Extend(slices.Values(batch.Entries()), work.All(work.Reference))
	if stored.Revision() != after.Revision() || stored.Projection().Digest() != after.Projection().Digest() {
		t.Error("the stored batch reads otherwise than predicted")
	}
}

func TestResultSummaryVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectorLines(t, "result-summaries.jsonl") {
		t.Run(text(t, v, "name"), func(t *testing.T) {
			t.Attr("requirement", "DV-242 DV-412")
			t.Parallel()
			expect := member(t, v, "expect")
			s, ours, err := work.ParseSummary(member(t, v, "value"))
			got := "ignored"
			switch {
			case err != nil:
				got = "rejected"
			case ours:
				got = "accepted"
				same(t, "summary", parsed(t, s.Append(nil)), member(t, expect, "value"))
			}
			if got != text(t, expect, "kind") {
				t.Errorf("%s: %v", got, err)
			}
		})
	}
}

func TestReceiptLineVectors(t *testing.T) {
	t.Attr("requirement", "DV-374")
	t.Parallel()
	v := vectorFile(t, "receipt-tui.json")
	p := reference(t, v).Projection()
	lines := member(t, v, "receiptLines")
	if p.Len() != lines.Len() {
		t.Fatalf("%d receipts, %d lines", p.Len(), lines.Len())
	}
	for i, want := range lines.Items() {
		if got := p.At(i).Line(); got != text(t, want, "summary") {
			t.Errorf("line %d %q, want %q", i, got, text(t, want, "summary"))
		}
	}
}
