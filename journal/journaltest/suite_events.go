package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

func event(payload string) journal.Event {
	return journal.Event{Kind: "test.happened", Version: 1, AtMS: 1_700_000_000_000, Payload: []byte(payload)}
}

func events(payloads ...string) []journal.Event {
	var all []journal.Event
	for _, p := range payloads {
		all = append(all, event(p))
	}
	return all
}

func appendTo(id, stream string, head int64, payloads ...string) journal.Batch {
	return journal.Batch{ID: id, Append: []journal.Append{{Stream: stream, Head: head, Events: events(payloads...)}}}
}

func must(t testing.TB, s journal.Store, b journal.Batch) journal.Result {
	t.Helper()
	r, err := s.Commit(t.Context(), b)
	if err != nil {
		t.Fatalf("commit %q: %v", b.ID, err)
	}
	return r
}

// refused commits b, wants code, and returns what moved for a conflict.
func refused(t testing.TB, s journal.Store, b journal.Batch, code fault.Code) *journal.ConflictError {
	t.Helper()
	r, err := s.Commit(t.Context(), b)
	if fault.CodeOf(err) != code {
		t.Fatalf("commit %q = %+v, %v; want code %s", b.ID, r, err, code)
	}
	var c *journal.ConflictError
	if errors.As(err, &c) != (code == fault.Conflict) {
		t.Fatalf("commit %q: conflict error in %v is %v", b.ID, err, c)
	}
	return c
}

// page fails the test when a read does.
func page[T any](t testing.TB) func(rows []T, err error) []T {
	return func(rows []T, err error) []T {
		t.Helper()
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		return rows
	}
}

func all(t testing.TB, s journal.Store) []journal.Stored {
	t.Helper()
	var rows []journal.Stored
	for e, err := range journal.All(t.Context(), s, 0) {
		if err != nil {
			t.Fatalf("read all: %v", err)
		}
		rows = append(rows, e)
	}
	return rows
}

func payloads(rows []journal.Stored) []string {
	var got []string
	for _, r := range rows {
		got = append(got, string(r.Payload))
	}
	return got
}

func testAppendRead(t *testing.T, s suite) {
	st := s.fresh(t)
	b := journal.Batch{ID: "first", Append: []journal.Append{
		{Stream: "session/a", Events: []journal.Event{
			{Kind: "cell.started", Version: 3, AtMS: 42, Payload: []byte{0, 1, 0xff}, Causes: []journal.Ref{{Stream: "operator", Seq: 9}, {Stream: "session/a", Seq: 1}}},
			{Kind: "cell.completed", Version: 1, AtMS: 0},
		}},
		{Stream: "audit/h", Events: events("x")},
	}}
	r := must(t, st, b)
	want := journal.Result{Heads: map[string]int64{"session/a": 2, "audit/h": 1}, FirstID: 1}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	got := page[journal.Stored](t)(st.Events(t.Context(), "session/a", 0, 10))
	digests := cmpopts.IgnoreFields(journal.Stored{}, "Prev", "Digest")
	wantRows := []journal.Stored{
		{ID: 1, Stream: "session/a", Seq: 1, Event: b.Append[0].Events[0], Batch: "first"},
		{ID: 2, Stream: "session/a", Seq: 2, Event: b.Append[0].Events[1], Batch: "first"},
	}
	if diff := cmp.Diff(wantRows, got, digests); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	must(t, st, appendTo("second", "session/a", 2, "c", "d"))
	if got := payloads(page[journal.Stored](t)(st.Events(t.Context(), "session/a", 2, 1))); !slices.Equal(got, []string{"c"}) {
		t.Errorf("page of one after 2 = %q", got)
	}
	if got := page[journal.Stored](t)(st.Events(t.Context(), "session/a", 4, 10)); len(got) != 0 {
		t.Errorf("after the end: %v", got)
	}
	if got := payloads(page[journal.Stored](t)(st.Events(t.Context(), "audit/h", -7, 10))); !slices.Equal(got, []string{"x"}) {
		t.Errorf("after a negative sequence: %q", got)
	}
	if got := page[journal.Stored](t)(st.Events(t.Context(), "session/none", 0, 10)); len(got) != 0 {
		t.Errorf("stream that does not exist: %v", got)
	}
	if got := payloads(page[journal.Stored](t)(st.ByID(t.Context(), 2, 2))); !slices.Equal(got, []string{"x", "c"}) {
		t.Errorf("by id after 2 = %q", got)
	}
}

func testChain(t *testing.T, s suite) {
	st := s.fresh(t)
	must(t, st, appendTo("1", "a", 0, "one", "two"))
	must(t, st, appendTo("2", "b", 0, "other"))
	must(t, st, appendTo("3", "a", 2, "three"))
	chain := journal.NewChain()
	prev := map[string]journal.Digest{}
	for _, e := range all(t, st) {
		if e.Prev != prev[e.Stream] {
			t.Errorf("%s %d: prev %s, want %s", e.Stream, e.Seq, e.Prev, prev[e.Stream])
		}
		if want := chain.Link(e.Prev, e.Stream, e.Seq, &e.Event); e.Digest != want {
			t.Errorf("%s %d: digest %s, want %s", e.Stream, e.Seq, e.Digest, want)
		}
		prev[e.Stream] = e.Digest
	}
	heads := page[journal.Head](t)(st.Heads(t.Context(), "", 0))
	want := []journal.Head{{Stream: "a", Seq: 3, ID: 4, Digest: prev["a"]}, {Stream: "b", Seq: 1, ID: 3, Digest: prev["b"]}}
	if diff := cmp.Diff(want, heads); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
	if got := page[journal.Head](t)(st.Heads(t.Context(), "a", 1)); len(got) != 1 || got[0].Stream != "b" {
		t.Errorf("page of heads after a = %v", got)
	}
}

func testHeads(t *testing.T, s suite) {
	st := s.fresh(t)
	must(t, st, appendTo("1", "a", 0, "one"))
	for _, head := range []int64{0, 2} {
		got := refused(t, st, appendTo("2", "a", head, "x"), fault.Conflict)
		want := journal.ConflictError{What: journal.HeadIs, Key: "a", Want: head, Now: 1}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("conflict (-want +got):\n%s", diff)
		}
	}
	if got := payloads(all(t, st)); !slices.Equal(got, []string{"one"}) {
		t.Errorf("after refusals the store holds %q", got)
	}
}

func testConditions(t *testing.T, s suite) {
	st := s.fresh(t)
	b := appendTo("1", "a", 0, "one")
	b.Put = []journal.Record{{Kind: "wait", Key: "k/1"}}
	b.Deliver = []journal.Input{{To: "s", ID: "i"}}
	must(t, st, b)
	for i, c := range []struct {
		cond journal.Cond
		now  int64
		ok   bool
	}{
		{journal.Cond{Kind: journal.HeadIs, Key: "a", N: 1}, 0, true},
		{journal.Cond{Kind: journal.HeadIs, Key: "a", N: 0}, 1, false},
		{journal.Cond{Kind: journal.HeadIs, Key: "none", N: 0}, 0, true},
		{journal.Cond{Kind: journal.HeadIs, Key: "none", N: 1}, 0, false},
		{journal.Cond{Kind: journal.InboxIs, Key: "s", N: 1}, 0, true},
		{journal.Cond{Kind: journal.InboxIs, Key: "s", N: 0}, 1, false},
		{journal.Cond{Kind: journal.InboxIs, Key: "none", N: 0}, 0, true},
		{journal.Cond{Kind: journal.RevIs, Key: "wait/k/1", N: 1}, 0, true},
		{journal.Cond{Kind: journal.RevIs, Key: "wait/k/1", N: 2}, 1, false},
		{journal.Cond{Kind: journal.RevIs, Key: "wait/none", N: 0}, 0, true},
		{journal.Cond{Kind: journal.Absent, Key: "wait/none"}, 0, true},
		{journal.Cond{Kind: journal.Absent, Key: "wait/k/1"}, 1, false},
	} {
		stream := fmt.Sprintf("cond/%d", i)
		b := appendTo("c", stream, 0, "x")
		b.If = []journal.Cond{c.cond}
		if c.ok {
			must(t, st, b)
			continue
		}
		want := journal.ConflictError{What: c.cond.Kind, Key: c.cond.Key, Want: c.cond.N, Now: c.now}
		if diff := cmp.Diff(want, *refused(t, st, b, fault.Conflict)); diff != "" {
			t.Errorf("conflict %d (-want +got):\n%s", i, diff)
		}
		if got := page[journal.Stored](t)(st.Events(t.Context(), stream, 0, 1)); len(got) != 0 {
			t.Errorf("refused batch %d left %v", i, got)
		}
	}
}

// testAllOrNothing makes the last part of a batch fail in each way and looks for
// remains of the first parts.
func testAllOrNothing(t *testing.T, s suite) {
	st := s.fresh(t)
	must(t, st, appendTo("0", "taken", 0, "x"))
	whole := func(id string) journal.Batch {
		b := appendTo(id, "a", 0, "one", "two")
		b.Put = []journal.Record{{Kind: "k", Key: "new"}}
		b.Deliver = []journal.Input{{To: "s", ID: "i"}}
		return b
	}
	badHead := whole("h")
	badHead.Append = append(badHead.Append, journal.Append{Stream: "taken", Head: 0, Events: events("y")})
	badRev := whole("r")
	badRev.Put = append(badRev.Put, journal.Record{Kind: "k", Key: "none", Rev: 3})
	badCond := whole("c")
	badCond.If = []journal.Cond{{Kind: journal.InboxIs, Key: "s", N: 1}}
	for _, b := range []journal.Batch{badHead, badRev, badCond} {
		refused(t, st, b, fault.Conflict)
	}
	if got := payloads(all(t, st)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("events: %q", got)
	}
	if got := page[journal.Record](t)(st.Find(t.Context(), journal.Query{})); len(got) != 0 {
		t.Errorf("records: %v", got)
	}
	if got := page[journal.Delivered](t)(st.Inbox(t.Context(), "s", 0, 0)); len(got) != 0 {
		t.Errorf("inbox: %v", got)
	}
	if r := must(t, st, whole("ok")); r.FirstID != 2 {
		t.Errorf("first id %d after refusals, want 2", r.FirstID)
	}
}

func testReplay(t *testing.T, s suite) {
	st := s.fresh(t)
	b := journal.Batch{ID: "intent", Append: []journal.Append{
		{Stream: "a", Events: events("one", "two")}, {Stream: "b", Events: events("three")},
	}, If: []journal.Cond{{Kind: journal.Absent, Key: "k/x"}}, Put: []journal.Record{{Kind: "k", Key: "x"}}}
	first := must(t, st, b)
	must(t, st, appendTo("later", "a", 2, "four"))
	for i := range b.Append[0].Events {
		b.Append[0].Events[i].AtMS += 5000 // a second try takes the time anew
	}
	again := must(t, st, b)
	first.Replayed = true
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("replay (-first +again):\n%s", diff)
	}
	if got := payloads(all(t, st)); !slices.Equal(got, []string{"one", "two", "three", "four"}) {
		t.Errorf("after the replay the store holds %q", got)
	}
	if got := page[journal.Record](t)(st.Find(t.Context(), journal.Query{})); len(got) != 1 || got[0].Rev != 1 {
		t.Errorf("after the replay the record is %v", got)
	}
	// An owner that was replaced still learns that its write was applied.
	b.Lease = &journal.Lease{Session: "gone", Host: "h", Epoch: 1}
	if r := must(t, st, b); !r.Replayed {
		t.Errorf("replay under a lost lease = %+v", r)
	}
}

func testReusedID(t *testing.T, s suite) {
	st := s.fresh(t)
	must(t, st, appendTo("id", "a", 0, "one", "two"))
	must(t, st, appendTo("next", "a", 2, "three"))
	for _, other := range []journal.Batch{
		appendTo("id", "a", 0, "one", "other"),
		appendTo("id", "a", 0, "one"),
		appendTo("id", "a", 0, "one", "two", "three"),
		appendTo("id", "a", 0, "one", "two", "three", "four", "five"),
	} {
		refused(t, st, other, fault.InvalidRequest)
	}
	refused(t, st, appendTo("another", "a", 0, "one", "two"), fault.Conflict)
	// At another place the same id is another write.
	must(t, st, appendTo("id", "b", 0, "one"))
}

func testBadBatches(t *testing.T, s suite) {
	st := s.fresh(t)
	change := func(f func(*journal.Batch)) journal.Batch {
		b := appendTo("id", "a", 0, "x")
		b.Put = []journal.Record{{Kind: "k", Key: "x"}}
		b.Deliver = []journal.Input{{To: "s", ID: "i"}}
		f(&b)
		return b
	}
	long := strings.Repeat("n", journal.MaxName+1)
	for name, c := range map[string]struct {
		b    journal.Batch
		code fault.Code
	}{
		"no id":          {change(func(b *journal.Batch) { b.ID = "" }), fault.InvalidRequest},
		"long id":        {change(func(b *journal.Batch) { b.ID = strings.Repeat("i", 201) }), fault.InvalidRequest},
		"no event":       {journal.Batch{ID: "id", Put: []journal.Record{{Kind: "k", Key: "x"}}}, fault.InvalidRequest},
		"empty append":   {change(func(b *journal.Batch) { b.Append[0].Events = nil }), fault.InvalidRequest},
		"stream twice":   {change(func(b *journal.Batch) { b.Append = append(b.Append, b.Append[0]) }), fault.InvalidRequest},
		"no stream":      {change(func(b *journal.Batch) { b.Append[0].Stream = "" }), fault.InvalidRequest},
		"long stream":    {change(func(b *journal.Batch) { b.Append[0].Stream = long }), fault.InvalidRequest},
		"line in stream": {change(func(b *journal.Batch) { b.Append[0].Stream = "a\nb" }), fault.InvalidRequest},
		"nul in stream":  {change(func(b *journal.Batch) { b.Append[0].Stream = "a\x00b" }), fault.InvalidRequest},
		"bad utf-8":      {change(func(b *journal.Batch) { b.Append[0].Stream = "a\xff" }), fault.InvalidRequest},
		"negative head":  {change(func(b *journal.Batch) { b.Append[0].Head = -2 }), fault.InvalidRequest},
		"any head alone": {change(func(b *journal.Batch) { b.Append[0].Head, b.Put = journal.AnyHead, nil }), fault.InvalidRequest},
		"no kind":        {change(func(b *journal.Batch) { b.Append[0].Events[0].Kind = "" }), fault.InvalidRequest},
		"version 0":      {change(func(b *journal.Batch) { b.Append[0].Events[0].Version = 0 }), fault.InvalidRequest},
		"time":           {change(func(b *journal.Batch) { b.Append[0].Events[0].AtMS = journal.MaxID + 1 }), fault.InvalidRequest},
		"cause":          {change(func(b *journal.Batch) { b.Append[0].Events[0].Causes = []journal.Ref{{Stream: "a"}} }), fault.InvalidRequest},
		"record twice":   {change(func(b *journal.Batch) { b.Put = append(b.Put, b.Put[0]) }), fault.InvalidRequest},
		"kind/slash":     {change(func(b *journal.Batch) { b.Put[0].Kind = "a/b" }), fault.InvalidRequest},
		"negative rev":   {change(func(b *journal.Batch) { b.Put[0].Rev = -1 }), fault.InvalidRequest},
		"negative due":   {change(func(b *journal.Batch) { b.Put[0].DueMS = -1 }), fault.InvalidRequest},
		"input twice":    {change(func(b *journal.Batch) { b.Deliver = append(b.Deliver, b.Deliver[0]) }), fault.InvalidRequest},
		"input to none":  {change(func(b *journal.Batch) { b.Deliver[0].To = "" }), fault.InvalidRequest},
		"zero condition": {change(func(b *journal.Batch) { b.If = []journal.Cond{{Key: "a"}} }), fault.InvalidRequest},
		"keyless cond":   {change(func(b *journal.Batch) { b.If = []journal.Cond{{Kind: journal.RevIs, Key: "k"}} }), fault.InvalidRequest},
		"zero lease":     {change(func(b *journal.Batch) { b.Lease = &journal.Lease{} }), fault.InvalidRequest},
		"payload": {change(func(b *journal.Batch) { b.Append[0].Events[0].Payload = make([]byte, journal.MaxPayload+1) }),
			fault.LimitExceeded},
		"many": {change(func(b *journal.Batch) { b.Append[0].Events = slices.Repeat(events("x"), journal.MaxItems) }), fault.LimitExceeded},
	} {
		if _, err := st.Commit(t.Context(), c.b); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if rows := all(t, st); len(rows) != 0 {
		t.Errorf("bad batches left %v", rows)
	}
}

func testHostileNames(t *testing.T, s suite) {
	st := s.fresh(t)
	names := []string{
		`'; DROP TABLE events; --`, `"quoted"`, "ünïcödé/日本語", "%", "_", "a%", "A", "a", "a ", " a", "\\", "?", "𝒳", "a/", "a//b", "\u00a0", "\ufeff",
		strings.Repeat("x", journal.MaxName),
	}
	for i, n := range names {
		b := appendTo("b", n, 0, n)
		b.Put = []journal.Record{{Kind: "kind", Key: n, Session: n, State: n, Body: []byte(n)}}
		b.Deliver = []journal.Input{{To: n, ID: n, Body: []byte(n)}}
		if r := must(t, st, b); r.FirstID != int64(i)+1 {
			t.Errorf("%q: id %d", n, r.FirstID)
		}
	}
	for _, n := range names {
		if got := payloads(page[journal.Stored](t)(st.Events(t.Context(), n, 0, 0))); !slices.Equal(got, []string{n}) {
			t.Errorf("stream %q holds %q", n, got)
		}
		for _, q := range []journal.Query{{Session: n}, {State: n}} {
			if got := page[journal.Record](t)(st.Find(t.Context(), q)); len(got) != 1 || got[0].Key != n {
				t.Errorf("find %+v = %v", q, got)
			}
		}
		var want []string
		for _, k := range names {
			if strings.HasPrefix(k, n) {
				want = append(want, k)
			}
		}
		slices.Sort(want)
		if got := keys(page[journal.Record](t)(st.Find(t.Context(), journal.Query{KeyPrefix: n}))); !slices.Equal(got, want) {
			t.Errorf("prefix %q = %q, want %q", n, got, want)
		}
		if got := page[journal.Delivered](t)(st.Inbox(t.Context(), n, 0, 0)); len(got) != 1 || got[0].ID != n {
			t.Errorf("inbox %q = %v", n, got)
		}
	}
	slices.Sort(names)
	var got []string
	for h, err := range journal.AllHeads(t.Context(), st) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Stream)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("heads in order of bytes (-want +got):\n%s", diff)
	}
}

func testBigBatch(t *testing.T, s suite) {
	st := s.fresh(t)
	b := journal.Batch{ID: "big"}
	const streams, each = 40, 60
	for i := range streams {
		b.Append = append(b.Append, journal.Append{Stream: fmt.Sprintf("s/%02d", i), Events: slices.Repeat(events("x"), each)})
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB, several pages of 4 MiB in all
	b.Append = append(b.Append, journal.Append{Stream: "large", Events: slices.Repeat([]journal.Event{{Kind: "k", Version: 1, Payload: large}}, 10)})
	must(t, st, b)
	if n := len(all(t, st)); n != streams*each+10 {
		t.Errorf("%d events by id, want %d", n, streams*each+10)
	}
	n := 0
	for e, err := range journal.Stream(t.Context(), st, "large", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; e.Seq != int64(n) || !bytes.Equal(e.Payload, large) {
			t.Fatalf("event %d has sequence %d and %d bytes", n, e.Seq, len(e.Payload))
		}
	}
	if n != 10 {
		t.Errorf("stream has %d large events, want 10", n)
	}
	if r := must(t, st, b); !r.Replayed || r.Heads["large"] != 10 {
		t.Errorf("replay of a big batch = %+v", r)
	}
}

// testOwnership changes what it handed in and what it was handed.
func testOwnership(t *testing.T, s suite) {
	st := s.fresh(t)
	b := appendTo("1", "a", 0, "payload")
	b.Append[0].Events[0].Causes = []journal.Ref{{Stream: "c", Seq: 1}}
	b.Put = []journal.Record{{Kind: "k", Key: "x", Body: []byte("body")}}
	must(t, st, b)
	b.Append[0].Events[0].Payload[0] = '!'
	b.Append[0].Events[0].Causes[0].Seq = 2
	b.Put[0].Body[0] = '!'
	for range 2 {
		e := page[journal.Stored](t)(st.Events(t.Context(), "a", 0, 0))[0]
		r := page[journal.Record](t)(st.Find(t.Context(), journal.Query{}))[0]
		if string(e.Payload) != "payload" || e.Causes[0].Seq != 1 || string(r.Body) != "body" {
			t.Errorf("stored: payload %q, causes %v, body %q", e.Payload, e.Causes, r.Body)
		}
		e.Payload[0], e.Causes[0].Seq, r.Body[0] = '!', 2, '!'
	}
}

// testConcurrentWriters lets writers race for one stream by compare-and-set, each
// trying until it is in: no gap, no double, in one order.
func testConcurrentWriters(t *testing.T, s suite) {
	st := s.fresh(t)
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			head := int64(0)
			for n := 0; n < each; {
				b := appendTo(fmt.Sprintf("%d.%d", w, n), "race", head, fmt.Sprintf("%d.%d", w, n))
				b.Append = append(b.Append, journal.Append{Stream: fmt.Sprintf("own/%d", w), Head: int64(n), Events: events("x")})
				_, err := st.Commit(t.Context(), b)
				var c *journal.ConflictError
				switch {
				case err == nil:
					head, n = head+1, n+1
				case errors.As(err, &c) && c.Key == "race":
					head = c.Now
				default:
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	seq := int64(0)
	for e, err := range journal.Stream(t.Context(), st, "race", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq || seen[string(e.Payload)] {
			t.Fatalf("event %d has sequence %d and payload %q (seen: %v)", seq, e.Seq, e.Payload, seen[string(e.Payload)])
		}
		seen[string(e.Payload)] = true
	}
	if seq != writers*each {
		t.Errorf("%d events, want %d", seq, writers*each)
	}
}

// testVerifyLive verifies and signs while writers append: what grows meanwhile is
// never taken for damage.
func testVerifyLive(t *testing.T, s suite) {
	st := s.fresh(t)
	const writers, each = 3, 60
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				if _, err := st.Commit(t.Context(), appendTo(fmt.Sprint(n), fmt.Sprintf("s/%d", w), int64(n), "x")); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	var anchors []journal.Anchor
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		r := journal.Verify(t.Context(), st, anchors)
		if r.Code() != "" || last && r.Events != writers*each {
			t.Errorf("last %v: %+v", last, r)
		}
		a, err := journal.TakeAnchor(t.Context(), st, 0)
		if err != nil {
			t.Fatal(err)
		}
		anchors = append(anchors[:min(len(anchors), 5)], a)
	}
	<-done
}
