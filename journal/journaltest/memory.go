// Package journaltest states what a journal.Store does: an engine in memory that
// is the model, a suite that holds any engine against it, and a store that fails
// on purpose.
//
// Invariants: Memory keeps every promise of journal.Store but durability, and is
// short enough to be judged by reading; Run judges an engine only by what its
// interface shows. The package must not know any engine below journal.
package journaltest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// Memory is a Store, Leaser and Informer without a disk.
type Memory struct {
	now func() time.Time

	mu       sync.Mutex
	closed   bool
	events   []journal.Stored // by id, which is the index + 1
	streams  map[string][]int // indexes into events
	records  map[[2]string]journal.Record
	inboxes  map[string][]journal.Delivered
	sessions map[string]owner
	hosts    map[string]host
}

type owner struct {
	host        string // empty: free
	incarnation int64
	epoch       int64
}

type host struct {
	incarnation int64
	until       time.Time // zero: never ends
}

// NewMemory returns an empty store whose leases expire by now; nil means the
// machine's clock.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{
		now:      now,
		streams:  map[string][]int{},
		records:  map[[2]string]journal.Record{},
		inboxes:  map[string][]journal.Delivered{},
		sessions: map[string]owner{},
		hosts:    map[string]host{},
	}
}

// Commit implements journal.Store.
func (m *Memory) Commit(ctx context.Context, b journal.Batch) (journal.Result, error) {
	if err := b.Check(); err != nil {
		return journal.Result{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "commit batch"); err != nil {
		return journal.Result{}, err
	}
	if r, ok, err := m.replayed(&b); ok || err != nil {
		return r, err
	}
	if err := m.admit(&b); err != nil {
		return journal.Result{}, err
	}
	return m.apply(&b), nil
}

func (m *Memory) usable(ctx context.Context, op string) error {
	if m.closed {
		return fault.New(fault.Unavailable, op, "", "the store is closed")
	}
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Cancelled, op, "")
	}
	return nil
}

func (m *Memory) replayed(b *journal.Batch) (journal.Result, bool, error) {
	res := journal.Result{Heads: map[string]int64{}, Replayed: true}
	origin := int64(0) // id of the batch's first event, as its first definite append tells
	before := int64(0) // events of the appends already seen
	for _, a := range b.Append {
		before += int64(len(a.Events))
		if a.Head == journal.AnyHead {
			continue
		}
		at := m.streams[a.Stream]
		if int64(len(at)) <= a.Head || m.events[at[a.Head]].Batch != b.ID {
			return journal.Result{}, false, nil
		}
		for i := range a.Events {
			seq := a.Head + int64(i)
			if seq >= int64(len(at)) || m.events[at[seq]].Batch != b.ID || !journal.Same(&m.events[at[seq]], &a.Events[i]) {
				return journal.Result{}, false, journal.Reused(b.ID, a.Stream, seq+1)
			}
		}
		end := a.Head + int64(len(a.Events))
		if end < int64(len(at)) && m.events[at[end]].Batch == b.ID {
			return journal.Result{}, false, journal.Reused(b.ID, a.Stream, end+1)
		}
		res.Heads[a.Stream] = end
		first := m.events[at[a.Head]].ID
		if res.FirstID == 0 {
			origin, res.FirstID = first-before+int64(len(a.Events)), first
		}
		res.FirstID = min(res.FirstID, first)
	}
	if res.FirstID == 0 {
		return journal.Result{}, false, nil
	}
	if err := m.replayedAnywhere(b, origin, &res); err != nil {
		return journal.Result{}, false, err
	}
	return res, true, nil
}

// replayedAnywhere looks for the appends at any head where the batch that begins at
// origin has put them: its ids are consecutive.
func (m *Memory) replayedAnywhere(b *journal.Batch, origin int64, res *journal.Result) error {
	ours := func(id int64, stream string) *journal.Stored {
		if id < 1 || id > int64(len(m.events)) || m.events[id-1].Batch != b.ID || m.events[id-1].Stream != stream {
			return nil
		}
		return &m.events[id-1]
	}
	id := origin
	for _, a := range b.Append {
		if a.Head != journal.AnyHead {
			id += int64(len(a.Events))
			continue
		}
		if ours(id-1, a.Stream) != nil {
			return journal.ReusedElsewhere(b)
		}
		res.FirstID = min(res.FirstID, id)
		for i := range a.Events {
			e := ours(id, a.Stream)
			if e == nil || !journal.Same(e, &a.Events[i]) {
				return journal.ReusedElsewhere(b)
			}
			res.Heads[a.Stream] = e.Seq
			id++
		}
		if ours(id, a.Stream) != nil {
			return journal.ReusedElsewhere(b)
		}
	}
	return nil
}

// admit checks in the order in which an engine takes its locks: ownership,
// conditions, heads, revisions.
func (m *Memory) admit(b *journal.Batch) error {
	if l := b.Lease; l != nil {
		if o := m.sessions[l.Session]; o.host != l.Host || o.epoch != l.Epoch {
			return journal.Superseded("commit batch", b.ID, "session %q is at epoch %d, not %d", l.Session, o.epoch, l.Epoch)
		}
	}
	for _, c := range b.If {
		if now := m.value(c); now != wanted(c) {
			return journal.Conflicted(b.ID, c.Kind, c.Key, wanted(c), now)
		}
	}
	for _, a := range b.Append {
		if now := int64(len(m.streams[a.Stream])); now != a.Head && a.Head != journal.AnyHead {
			return journal.Conflicted(b.ID, journal.HeadIs, a.Stream, a.Head, now)
		}
	}
	for _, r := range b.Put {
		if now := m.records[[2]string{r.Kind, r.Key}].Rev; now != r.Rev {
			return journal.Conflicted(b.ID, journal.RevIs, journal.RecordKey(r.Kind, r.Key), r.Rev, now)
		}
	}
	return nil
}

func wanted(c journal.Cond) int64 {
	if c.Kind == journal.Absent {
		return 0
	}
	return c.N
}

func (m *Memory) value(c journal.Cond) int64 {
	switch c.Kind {
	case journal.HeadIs:
		return int64(len(m.streams[c.Key]))
	case journal.InboxIs:
		return int64(len(m.inboxes[c.Key]))
	default:
		kind, key, _ := journal.SplitKey(c.Key)
		return m.records[[2]string{kind, key}].Rev
	}
}

func (m *Memory) apply(b *journal.Batch) journal.Result {
	res := journal.Result{Heads: map[string]int64{}, FirstID: int64(len(m.events)) + 1}
	chain := journal.NewChain()
	for _, a := range b.Append {
		for _, e := range a.Events {
			at := m.streams[a.Stream]
			s := journal.Stored{
				ID: int64(len(m.events)) + 1, Stream: a.Stream, Seq: int64(len(at)) + 1, Event: e, Batch: b.ID,
			}
			if len(at) > 0 {
				s.Prev = m.events[at[len(at)-1]].Digest
			}
			s.Causes, s.Payload = slices.Clone(e.Causes), clone(e.Payload)
			s.Digest = chain.Link(s.Prev, s.Stream, s.Seq, &s.Event)
			m.streams[a.Stream] = append(at, len(m.events))
			m.events = append(m.events, s)
		}
		res.Heads[a.Stream] = int64(len(m.streams[a.Stream]))
	}
	for _, r := range b.Put {
		r.Rev++
		r.Body = clone(r.Body)
		m.records[[2]string{r.Kind, r.Key}] = r
	}
	for _, in := range b.Deliver {
		box := m.inboxes[in.To]
		if !slices.ContainsFunc(box, func(d journal.Delivered) bool { return d.ID == in.ID }) {
			in.Body = clone(in.Body)
			m.inboxes[in.To] = append(box, journal.Delivered{N: int64(len(box)) + 1, Input: in})
		}
	}
	return res
}

// clone copies b, since callers reuse their buffers, and makes empty bytes nil.
func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return slices.Clone(b)
}

// Close implements journal.Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
