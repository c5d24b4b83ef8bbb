package journaltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

func keys(rows []journal.Record) []string {
	var got []string
	for _, r := range rows {
		got = append(got, r.Key)
	}
	return got
}

// put commits records with one event on a stream of its own.
func put(id string, records ...journal.Record) journal.Batch {
	b := appendTo(id, "put/"+id, 0, "x")
	b.Put = records
	return b
}

func testRecords(t *testing.T, s suite) {
	st := s.fresh(t)
	r := journal.Record{Kind: "cell", Key: "c1", Session: "s", State: "running", DueMS: 7, Body: []byte("{}")}
	must(t, st, put("1", r))
	stored := r
	stored.Rev = 1
	find := func() []journal.Record {
		return page[journal.Record](t)(st.Find(t.Context(), journal.Query{Kind: "cell"}))
	}
	if diff := cmp.Diff([]journal.Record{stored}, find()); diff != "" {
		t.Errorf("new record (-want +got):\n%s", diff)
	}
	want := journal.ConflictError{What: journal.RevIs, Key: "cell/c1", Want: 0, Now: 1}
	if diff := cmp.Diff(want, *refused(t, st, put("2", r), fault.Conflict)); diff != "" {
		t.Errorf("conflict (-want +got):\n%s", diff)
	}
	next := journal.Record{Kind: "cell", Key: "c1", State: "ok", Rev: 1}
	must(t, st, put("3", next))
	refused(t, st, put("4", next), fault.Conflict)
	next.Rev = 2
	if diff := cmp.Diff([]journal.Record{next}, find()); diff != "" {
		t.Errorf("changed record (-want +got):\n%s", diff)
	}
	refused(t, st, put("5", journal.Record{Kind: "cell", Key: "none", Rev: 1}), fault.Conflict)
}

func testRecordPages(t *testing.T, s suite) {
	st := s.fresh(t)
	b := put("all")
	var model []journal.Record
	for i := range 60 {
		r := journal.Record{
			Kind: fmt.Sprintf("k%d", i%3), Key: fmt.Sprintf("key/%02d", i), Rev: 0,
			Session: []string{"", "s1", "s2"}[i%3], State: []string{"open", "done", ""}[i/2%3], DueMS: int64(i % 7 * 100),
		}
		b.Put = append(b.Put, r)
		r.Rev = 1
		model = append(model, r)
	}
	must(t, st, b)
	slices.SortFunc(model, func(a, b journal.Record) int {
		return compareKeys([2]string{a.Kind, a.Key}, [2]string{b.Kind, b.Key})
	})
	for _, q := range []journal.Query{
		{}, {Kind: "k1"}, {Session: "s1"}, {State: "open"}, {DueByMS: 300}, {KeyPrefix: "key/1"},
		{Kind: "k0", State: "done"}, {Kind: "k2", Session: "s2", State: "open", DueByMS: 500}, {Session: "s1", KeyPrefix: "key/0"}, {Kind: "none"},
	} {
		var want, got []journal.Record
		for i := range model {
			if selects(q, &model[i]) {
				want = append(want, model[i])
			}
		}
		q.Max = 4
		for r, err := range journal.Records(t.Context(), st, q) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", q, diff)
		}
	}
	if _, err := st.Find(t.Context(), journal.Query{After: "bare"}); !fault.HasCode(err, fault.InvalidRequest) {
		t.Errorf("query over all kinds after a bare key: %v", err)
	}
}

func testInbox(t *testing.T, s suite) {
	st := s.fresh(t)
	deliver := func(id string, inputs ...journal.Input) {
		b := appendTo(id, "d/"+id, 0, "x")
		b.Deliver = inputs
		must(t, st, b)
	}
	deliver("1", journal.Input{To: "s", ID: "i1", Body: []byte("one")}, journal.Input{To: "other", ID: "i1"})
	deliver("2", journal.Input{To: "s", ID: "i1", Body: []byte("again")}, journal.Input{To: "s", ID: "i2"})
	want := []journal.Delivered{
		{N: 1, Input: journal.Input{To: "s", ID: "i1", Body: []byte("one")}},
		{N: 2, Input: journal.Input{To: "s", ID: "i2"}},
	}
	if diff := cmp.Diff(want, page[journal.Delivered](t)(st.Inbox(t.Context(), "s", 0, 0))); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], page[journal.Delivered](t)(st.Inbox(t.Context(), "s", 1, 1))); diff != "" {
		t.Errorf("inbox after 1 (-want +got):\n%s", diff)
	}
	// Owning a session does not touch its inbox, and delivering not its owner.
	l, err := st.Acquire(t.Context(), "s", host1)
	if err != nil {
		t.Fatal(err)
	}
	deliver("3", journal.Input{To: "s", ID: "i3"})
	b := appendTo("owned", "o", 0, "x")
	b.Lease = &l
	b.If = []journal.Cond{{Kind: journal.InboxIs, Key: "s", N: 3}}
	must(t, st, b)
}

// testWaitUnlessInput races a wait, which is refused when input has arrived, with
// the input. Whatever wins, no session waits while input it has not seen is there.
func testWaitUnlessInput(t *testing.T, s suite) {
	st := s.fresh(t)
	for i := range 30 {
		id := fmt.Sprintf("s%d", i)
		wait := appendTo("wait", "w/"+id, 0, "wait")
		wait.If = []journal.Cond{{Kind: journal.InboxIs, Key: id, N: 0}}
		wait.Put = []journal.Record{{Kind: "wait", Key: id, State: "open"}}
		input := appendTo("input", "i/"+id, 0, "input")
		input.Deliver = []journal.Input{{To: id, ID: "i"}}
		delivered := make(chan error, 1)
		go func() {
			_, err := st.Commit(t.Context(), input)
			delivered <- err
		}()
		_, waitErr := st.Commit(t.Context(), wait)
		if err := <-delivered; err != nil {
			t.Fatal(err)
		}
		events := all(t, st)
		inputFirst := indexOf(events, "i/"+id) < indexOf(events, "w/"+id) || indexOf(events, "w/"+id) < 0
		if inputFirst != fault.HasCode(waitErr, fault.Conflict) {
			t.Fatalf("round %d: input first: %v, wait: %v", i, inputFirst, waitErr)
		}
	}
}

func indexOf(rows []journal.Stored, stream string) int {
	return slices.IndexFunc(rows, func(e journal.Stored) bool { return e.Stream == stream })
}

func testCancelled(t *testing.T, s suite) {
	st := s.fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.Commit(ctx, appendTo("1", "a", 0, "x")); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("commit: %v, want cancelled", err)
	}
	if _, err := st.Events(ctx, "a", 0, 0); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("events: %v, want cancelled", err)
	}
	if _, err := st.Find(ctx, journal.Query{}); fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("find: %v, want cancelled", err)
	}
	if rows := all(t, st); len(rows) != 0 {
		t.Errorf("cancelled commit left %v", rows)
	}
	must(t, st, appendTo("1", "a", 0, "x"))
}

func testClosed(t *testing.T, s suite) {
	st := s.open(t, time.Now)
	must(t, st, appendTo("1", "a", 0, "x"))
	for range 2 {
		if err := st.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	_, commitErr := st.Commit(t.Context(), appendTo("2", "a", 1, "y"))
	_, readErr := st.Events(t.Context(), "a", 0, 0)
	_, leaseErr := st.Acquire(t.Context(), "s", host1)
	for _, err := range []error{commitErr, readErr, leaseErr} {
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("after close: %v, want unavailable", err)
		}
	}
}

func testInfo(t *testing.T, s suite) {
	st := s.fresh(t)
	must(t, st, appendTo("1", "a", 0, "four", "five5"))
	must(t, st, appendTo("2", "b", 0, ""))
	info, err := st.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Events != 3 || info.Streams != 2 || info.PayloadBytes != 9 || info.State != journal.StateOK || info.Engine == "" {
		t.Errorf("info = %+v", info)
	}
}
