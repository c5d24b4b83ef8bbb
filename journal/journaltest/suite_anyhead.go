package journaltest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// beside adds to b an append at any head.
func beside(b journal.Batch, stream string, payloads ...string) journal.Batch {
	b.Append = append(b.Append, journal.Append{Stream: stream, Head: journal.AnyHead, Events: events(payloads...)})
	return b
}

func testAnyHead(t *testing.T, s suite) {
	st := s.fresh(t)
	got := must(t, st, beside(appendTo("1", "a", 0, "one"), "audit", "x", "y"))
	want := journal.Result{Heads: map[string]int64{"a": 1, "audit": 2}, FirstID: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first batch (-want +got):\n%s", diff)
	}
	got = must(t, st, beside(appendTo("2", "b", 0, "two"), "audit", "z"))
	want = journal.Result{Heads: map[string]int64{"b": 1, "audit": 3}, FirstID: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("second batch, which has not seen the first (-want +got):\n%s", diff)
	}
	refused(t, st, beside(appendTo("3", "a", 0, "late"), "audit", "never"), fault.Conflict)
	if got := payloads(page[journal.Stored](t)(st.Events(t.Context(), "audit", 0, 0))); !slices.Equal(got, []string{"x", "y", "z"}) {
		t.Errorf("the stream holds %q", got)
	}
	if r := journal.Verify(t.Context(), st, nil); r.Code() != "" || r.Events != 5 {
		t.Errorf("verification: %+v", r)
	}
}

func testAnyHeadReplay(t *testing.T, s suite) {
	st := s.fresh(t)
	must(t, st, beside(appendTo("0", "other", 0, "o"), "audit", "before"))
	between := journal.Batch{ID: "1", Append: []journal.Append{
		{Stream: "audit", Head: journal.AnyHead, Events: events("x", "x")},
		{Stream: "a", Head: 0, Events: events("one", "two")},
		{Stream: "log", Head: journal.AnyHead, Events: events("z", "z")},
	}}
	first := must(t, st, between)
	must(t, st, beside(appendTo("2", "a", 2, "three"), "audit", "after"))
	again := must(t, st, between)
	first.Replayed = true
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("replay (-first +again):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"audit": 3, "a": 2, "log": 2}, again.Heads); diff != "" {
		t.Errorf("heads of the replay (-want +got):\n%s", diff)
	}
	for name, change := range map[string]func([]journal.Append) []journal.Append{
		"other payload":           func(a []journal.Append) []journal.Append { a[0].Events = events("x", "!"); return a },
		"other stream":            func(a []journal.Append) []journal.Append { a[0].Stream = "log"; a[2].Stream = "audit"; return a },
		"without the first event": func(a []journal.Append) []journal.Append { a[0].Events = events("x"); return a },
		"without the last event":  func(a []journal.Append) []journal.Append { a[2].Events = events("z"); return a },
		"past the last event":     func(a []journal.Append) []journal.Append { a[2].Events = events("z", "z", "after"); return a },
		"one stream more": func(a []journal.Append) []journal.Append {
			return append(a, journal.Append{Stream: "more", Head: journal.AnyHead, Events: events("m")})
		},
		"before the first event": func(a []journal.Append) []journal.Append { a[0].Events = events("o", "o", "o", "x", "x"); return a },
		"last stream shorter": func(a []journal.Append) []journal.Append {
			return append([]journal.Append{{Stream: "audit", Head: journal.AnyHead, Events: events("x")}}, a[1])
		},
	} {
		b := between
		b.Append = change(slices.Clone(between.Append))
		if _, err := st.Commit(t.Context(), b); fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%s: %v, want %s", name, err, fault.InvalidRequest)
		}
	}
	if got := len(all(t, st)); got != 10 {
		t.Errorf("%d events are stored, want 10", got)
	}
}

// testAnyHeadRecord sends a batch again that only the revision of its record tells
// from a new one.
func testAnyHeadRecord(t *testing.T, s suite) {
	st := s.fresh(t)
	b := beside(journal.Batch{ID: "1", Put: []journal.Record{{Kind: "k", Key: "x"}}}, "audit", "x")
	if got := must(t, st, b); got.Replayed || got.Heads["audit"] != 1 {
		t.Errorf("first: %+v", got)
	}
	want := journal.ConflictError{What: journal.RevIs, Key: "k/x", Want: 0, Now: 1}
	if diff := cmp.Diff(want, *refused(t, st, b, fault.Conflict)); diff != "" {
		t.Errorf("sent again (-want +got):\n%s", diff)
	}
	if got := payloads(all(t, st)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("the store holds %q", got)
	}
}

// testAnyHeadMany lets sessions write a stream beside their own, none knowing of the
// others: nobody conflicts, and the stream has no gap and nothing twice.
func testAnyHeadMany(t *testing.T, s suite) {
	st := s.fresh(t)
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				name := fmt.Sprintf("%d.%d", w, n)
				if _, err := st.Commit(t.Context(), beside(appendTo(name, fmt.Sprintf("own/%d", w), int64(n), "x"), "audit", name)); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for e, err := range journal.Stream(t.Context(), st, "audit", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(e.Payload)] || e.Seq != int64(len(seen))+1 {
			t.Fatalf("event %d holds %q, seen: %v", e.Seq, e.Payload, seen[string(e.Payload)])
		}
		seen[string(e.Payload)] = true
	}
	if len(seen) != writers*each {
		t.Errorf("%d events, want %d", len(seen), writers*each)
	}
	if r := journal.Verify(t.Context(), st, nil); r.Code() != "" {
		t.Errorf("verification: %+v", r)
	}
}
