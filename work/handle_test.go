package work_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/work"
)

// A copy of a handle is refused wherever the handle is demanded.
func TestCopiesAreRefused(t *testing.T) {
	t.Attr("requirement", "DV-205 DV-210 DV-223 DV-224 DV-414")
	t.Parallel()
	m := newMaker(t, work.Strict)
	m.must(m.open("scope:a"))
	m.must(m.support("a"))
	b := *m.b
	draft := []work.Draft{{Event: "event:x", Kind: work.ScopeClosed, Payload: form(t, val(o{"closure": closure("Done.")})), At: someTime}}
	if _, no := b.Preflight(work.Request{Drafts: draft}); no == nil || no.Code != work.InvalidReconstruction {
		t.Errorf("a copied branch: %v", no)
	}
	batch, no := m.b.Preflight(work.Request{Drafts: draft})
	if no != nil {
		t.Fatal(no)
	}
	if c := *batch; c.Genuine() || !batch.Genuine() {
		t.Error("a copied batch is genuine")
	}
	p := m.b.Projection()
	current := work.Target{Current: p}
	page, no := work.Read(current, nil, 1)
	if no != nil {
		t.Fatal(no)
	}
	code := func(what string, no *work.Refusal, want work.Code) {
		t.Helper()
		if no == nil || no.Code != want {
			t.Errorf("%s: %v, want %s", what, no, want)
		}
	}
	copied, cursor, sheet, event := *p, *page.Next(), *page, *p.At(0).Event
	_, no = work.Read(work.Target{Current: &copied}, nil, 1)
	code("copied projection", no, work.InvalidProjection)
	_, no = work.Read(work.Target{}, nil, 1)
	code("no projection", no, work.InvalidProjection)
	_, no = work.Read(work.Target{Refreshing: true, Current: p}, &cursor, 0)
	code("refreshing, before all else", no, work.ProjectionRefreshing)
	_, no = work.Read(current, &cursor, 0)
	code("copied cursor, before the size", no, work.InvalidCursor)
	_, no = work.Read(work.Target{Current: batch.After().Projection()}, page.Next(), 0)
	code("cursor of another projection", no, work.StaleCursor)
	for _, size := range []int{-1, 0, work.MaxPage + 1} {
		_, no = work.Read(current, nil, size)
		code("size", no, work.InvalidReceiptInput)
	}
	code("copied page", sheet.Verify(p), work.InvalidPage)
	code("page of another projection", page.Verify(batch.After().Projection()), work.StalePage)
	code("copied projection of a page", page.Verify(&copied), work.InvalidProjection)
	if no := page.Verify(p); no != nil {
		t.Error(no)
	}
	// Cursors bind to content: another projection of the same events takes them.
	same, no := work.Project(slices.Values([]*work.Accepted{p.At(0).Event, p.At(1).Event}))
	if no != nil {
		t.Fatal(no)
	}
	if _, no := work.Read(work.Target{Current: same}, page.Next(), 1); no != nil {
		t.Error(no)
	}
	_, no = work.Project(slices.Values([]*work.Accepted{&event}))
	code("copied event", no, work.UnacceptedEvent)
	_, no = work.Project(slices.Values([]*work.Accepted{p.At(0).Event, p.At(0).Event}))
	code("event twice", no, work.DuplicateEventID)
	_, no = work.Project(slices.Values([]*work.Accepted{p.At(1).Event, p.At(0).Event}))
	code("events out of order", no, work.NoncanonicalOrder)
}

// The rejection of a huge message is cut, and names what the entry said of itself.
func TestRejectionIsBounded(t *testing.T) {
	t.Attr("requirement", "DV-155 DV-084")
	t.Parallel()
	e := work.Parse([]byte(`{"protocolVersion":"` + strings.Repeat("\U0001f600", 2000) + `","eventId":5}`))
	b := work.Reconstruct(slices.Values([]*work.Entry{e}), work.All(work.Reference))
	r := b.Rejections()[0]
	if r.Code != work.UnsupportedProtocol || len(*r.Observed.Protocol) != 4*80 || r.Observed.Event != nil || len(r.Message) > 1000 {
		t.Errorf("%s of %d bytes, %+v", r.Code, len(r.Message), r.Observed)
	}
}
