package journaltest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// machine drives a store and the model with the same random steps. After every
// step both have given the same answer, and in the end they hold the same.
type machine struct {
	store  Engine
	model  *Memory
	clock  *manual
	sent   []journal.Batch // for replays
	epochs map[string]int64
	n      int
}

func testStateMachine(t *testing.T, s suite) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := &manual{now: time.Unix(1_700_000_000, 0)}
		m := &machine{store: s.open(t, clock.read), model: NewMemory(clock.read), clock: clock, epochs: map[string]int64{}}
		defer func() {
			if err := m.store.Close(); err != nil {
				rt.Errorf("close: %v", err)
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"commit":  m.commit,
			"replay":  m.replay,
			"acquire": m.acquire,
			"release": m.release,
			"renew":   m.renew,
			"find":    m.find,
			"wait":    func(rt *rapid.T) { clock.add(time.Duration(rapid.IntRange(0, 8).Draw(rt, "seconds")) * time.Second) },
			"":        m.compare,
		})
	})
}

// Small alphabets make streams, keys and heads meet.
var (
	someStream  = rapid.SampledFrom([]string{"a", "b", "session/s"})
	someKey     = rapid.SampledFrom([]string{"x", "y", "x/y"})
	someKind    = rapid.SampledFrom([]string{"wait", "timer"})
	someSession = rapid.SampledFrom([]string{"s", "t"})
	someState   = rapid.SampledFrom([]string{"", "open", "done"})
	someHead    = rapid.Int64Range(-1, 1) // relative to the true one
)

func (m *machine) batch(rt *rapid.T) journal.Batch {
	m.n++
	b := journal.Batch{ID: fmt.Sprintf("b%d", m.n)}
	for _, stream := range rapid.SliceOfNDistinct(someStream, 1, 2, rapid.ID).Draw(rt, "streams") {
		a := journal.Append{Stream: stream, Head: max(0, int64(len(m.model.streams[stream]))+skew(rt))}
		for range rapid.IntRange(1, 3).Draw(rt, "events") {
			e := event(rapid.StringN(0, 6, -1).Draw(rt, "payload"))
			if rapid.Bool().Draw(rt, "caused") {
				e.Causes = []journal.Ref{{Stream: "a", Seq: 1}}
			}
			a.Events = append(a.Events, e)
		}
		b.Append = append(b.Append, a)
	}
	for _, key := range rapid.SliceOfNDistinct(someKey, 0, 2, rapid.ID).Draw(rt, "keys") {
		r := journal.Record{
			Kind: someKind.Draw(rt, "kind"), Key: key, Session: rapid.SampledFrom([]string{"", "s"}).Draw(rt, "session"),
			State: someState.Draw(rt, "state"), DueMS: rapid.Int64Range(0, 3).Draw(rt, "due"),
		}
		r.Rev = max(0, m.model.records[[2]string{r.Kind, r.Key}].Rev+skew(rt))
		b.Put = append(b.Put, r)
	}
	for i := range b.Append {
		// Another is definite, or a record is put, or the batch is refused as it should be.
		if rapid.IntRange(0, 3).Draw(rt, "anywhere") == 0 {
			b.Append[i].Head = journal.AnyHead
		}
	}
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"i1", "i2", "i3"}), 0, 2, rapid.ID).Draw(rt, "inputs") {
		b.Deliver = append(b.Deliver, journal.Input{To: someSession.Draw(rt, "to"), ID: id, Body: []byte(b.ID)})
	}
	if rapid.IntRange(0, 3).Draw(rt, "conditional") == 0 {
		b.If = []journal.Cond{m.cond(rt)}
	}
	if rapid.IntRange(0, 2).Draw(rt, "leased") == 0 {
		b.Lease = m.lease(rt)
	}
	return b
}

// skew is mostly 0, so that most batches pass.
func skew(rt *rapid.T) int64 {
	if rapid.IntRange(0, 5).Draw(rt, "skewed") > 0 {
		return 0
	}
	return someHead.Draw(rt, "skew")
}

func (m *machine) cond(rt *rapid.T) journal.Cond {
	c := journal.Cond{Kind: rapid.SampledFrom([]journal.CondKind{journal.HeadIs, journal.InboxIs, journal.RevIs, journal.Absent}).Draw(rt, "cond")}
	switch c.Kind {
	case journal.HeadIs:
		c.Key = someStream.Draw(rt, "stream")
	case journal.InboxIs:
		c.Key = someSession.Draw(rt, "inbox of")
	default:
		c.Key = journal.RecordKey(someKind.Draw(rt, "kind"), someKey.Draw(rt, "key"))
	}
	if c.Kind != journal.Absent {
		c.N = max(0, m.model.value(c)+skew(rt))
	}
	return c
}

func (m *machine) lease(rt *rapid.T) *journal.Lease {
	s := someSession.Draw(rt, "leased session")
	o := m.model.sessions[s]
	return &journal.Lease{
		Session: s, Host: rapid.SampledFrom([]string{"h1", "h2"}).Draw(rt, "host"),
		Epoch: max(1, o.epoch+skew(rt)),
	}
}

// same holds two answers against each other: codes, conflicts, results.
func same(rt *rapid.T, what string, want any, wantErr error, got any, gotErr error) {
	rt.Helper()
	if fault.CodeOf(wantErr) != fault.CodeOf(gotErr) {
		rt.Fatalf("%s: store says %v, model %v", what, gotErr, wantErr)
	}
	if diff := cmp.Diff(conflictOf(wantErr), conflictOf(gotErr)); diff != "" {
		rt.Fatalf("%s: conflict (-model +store):\n%s", what, diff)
	}
	if reflect.DeepEqual(want, got) {
		return // cmp is for the difference: it is slow on digests
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		rt.Fatalf("%s (-model +store):\n%s", what, diff)
	}
}

func conflictOf(err error) *journal.ConflictError {
	var c *journal.ConflictError
	errors.As(err, &c)
	return c
}

func (m *machine) commit(rt *rapid.T) { m.send(rt, m.batch(rt)) }

func (m *machine) send(rt *rapid.T, b journal.Batch) {
	want, wantErr := m.model.Commit(rt.Context(), b)
	got, gotErr := m.store.Commit(rt.Context(), b)
	same(rt, "commit "+b.ID, want, wantErr, got, gotErr)
	if gotErr == nil && !got.Replayed {
		m.sent = append(m.sent, b)
		if b.Lease != nil && b.Lease.Epoch < m.epochs[b.Lease.Session] {
			rt.Fatalf("commit %s carried epoch %d of %q after %d", b.ID, b.Lease.Epoch, b.Lease.Session, m.epochs[b.Lease.Session])
		}
	}
}

func (m *machine) replay(rt *rapid.T) {
	if len(m.sent) == 0 {
		rt.Skip("nothing sent")
	}
	b := m.sent[rapid.IntRange(0, len(m.sent)-1).Draw(rt, "which")]
	if rapid.IntRange(0, 3).Draw(rt, "altered") == 0 {
		b.Append = slices.Clone(b.Append)
		a := &b.Append[rapid.IntRange(0, len(b.Append)-1).Draw(rt, "altered append")]
		a.Events = append(slices.Clone(a.Events), event("more"))
	}
	m.send(rt, b)
}

func (m *machine) host(rt *rapid.T) journal.Host {
	return journal.Host{
		ID: rapid.SampledFrom([]string{"h1", "h2"}).Draw(rt, "host"), Incarnation: rapid.Int64Range(1, 3).Draw(rt, "incarnation"),
		TTL: time.Duration(rapid.SampledFrom([]int{0, 5}).Draw(rt, "ttl")) * time.Second,
	}
}

func (m *machine) acquire(rt *rapid.T) {
	s, h := someSession.Draw(rt, "session"), m.host(rt)
	want, wantErr := m.model.Acquire(rt.Context(), s, h)
	got, gotErr := m.store.Acquire(rt.Context(), s, h)
	same(rt, "acquire "+s, want, wantErr, got, gotErr)
	if gotErr == nil {
		if got.Epoch <= m.epochs[s] {
			rt.Fatalf("epoch of %q went from %d to %d", s, m.epochs[s], got.Epoch)
		}
		m.epochs[s] = got.Epoch
	}
}

func (m *machine) release(rt *rapid.T) {
	l := *m.lease(rt)
	same(rt, "release", nil, m.model.Release(rt.Context(), l), nil, m.store.Release(rt.Context(), l))
}

func (m *machine) renew(rt *rapid.T) {
	h := m.host(rt)
	want, wantErr := m.model.Renew(rt.Context(), h)
	got, gotErr := m.store.Renew(rt.Context(), h)
	same(rt, "renew", want, wantErr, got, gotErr)
}

func (m *machine) find(rt *rapid.T) {
	q := journal.Query{
		Kind: rapid.SampledFrom([]string{"", "wait", "timer"}).Draw(rt, "kind"), KeyPrefix: rapid.SampledFrom([]string{"", "x", "x/"}).Draw(rt, "prefix"),
		Session: rapid.SampledFrom([]string{"", "s"}).Draw(rt, "session"), State: someState.Draw(rt, "state"),
		DueByMS: rapid.Int64Range(0, 3).Draw(rt, "due"), Max: rapid.IntRange(0, 2).Draw(rt, "max"),
	}
	if rapid.Bool().Draw(rt, "continued") {
		q.After = someKey.Draw(rt, "after")
		if q.Kind == "" {
			q.After = "timer/" + q.After
		}
	}
	want, wantErr := m.model.Find(rt.Context(), q)
	got, gotErr := m.store.Find(rt.Context(), q)
	same(rt, fmt.Sprintf("find %+v", q), want, wantErr, got, gotErr)
}

// compare holds everything that can be read against the model.
func (m *machine) compare(rt *rapid.T) {
	want, wantErr := m.model.ByID(rt.Context(), 0, 0)
	got, gotErr := m.store.ByID(rt.Context(), 0, 0)
	same(rt, "by id", want, wantErr, got, gotErr)
	wantHeads, wantErr := m.model.Heads(rt.Context(), "", 0)
	gotHeads, gotErr := m.store.Heads(rt.Context(), "", 0)
	same(rt, "heads", wantHeads, wantErr, gotHeads, gotErr)
	wantRecords, wantErr := m.model.Find(rt.Context(), journal.Query{})
	gotRecords, gotErr := m.store.Find(rt.Context(), journal.Query{})
	same(rt, "records", wantRecords, wantErr, gotRecords, gotErr)
	for _, s := range []string{"s", "t"} {
		wantBox, wantErr := m.model.Inbox(rt.Context(), s, 0, 0)
		gotBox, gotErr := m.store.Inbox(rt.Context(), s, 0, 0)
		same(rt, "inbox", wantBox, wantErr, gotBox, gotErr)
	}
}
