package journaltest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/reeve-run/reeve/journal"
)

// Events implements journal.Store.
func (m *Memory) Events(ctx context.Context, stream string, after int64, max int) ([]journal.Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "read events"); err != nil {
		return nil, err
	}
	var page []journal.Stored
	for _, i := range m.streams[stream] {
		if m.events[i].Seq > after && len(page) < journal.Page(max) {
			page = append(page, m.copyOf(i))
		}
	}
	return page, nil
}

// ByID implements journal.Store.
func (m *Memory) ByID(ctx context.Context, after int64, max int) ([]journal.Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "read events"); err != nil {
		return nil, err
	}
	var page []journal.Stored
	for i := range m.events {
		if m.events[i].ID > after && len(page) < journal.Page(max) {
			page = append(page, m.copyOf(i))
		}
	}
	return page, nil
}

// copyOf keeps what is stored out of the caller's reach.
func (m *Memory) copyOf(i int) journal.Stored {
	s := m.events[i]
	s.Payload, s.Causes = clone(s.Payload), slices.Clone(s.Causes)
	return s
}

// Find implements journal.Store.
func (m *Memory) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "find records"); err != nil {
		return nil, err
	}
	var page []journal.Record
	for _, id := range slices.SortedFunc(maps.Keys(m.records), compareKeys) {
		if r := m.records[id]; selects(q, &r) && len(page) < journal.Page(q.Max) {
			r.Body = clone(r.Body)
			page = append(page, r)
		}
	}
	return page, nil
}

func compareKeys(a, b [2]string) int { return slices.Compare(a[:], b[:]) }

func selects(q journal.Query, r *journal.Record) bool {
	return (q.Kind == "" || q.Kind == r.Kind) &&
		strings.HasPrefix(r.Key, q.KeyPrefix) &&
		(q.Session == "" || q.Session == r.Session) &&
		(q.State == "" || q.State == r.State) &&
		(q.DueByMS == 0 || r.DueMS > 0 && r.DueMS <= q.DueByMS) &&
		past(q, r)
}

func past(q journal.Query, r *journal.Record) bool {
	if q.After == "" {
		return true
	}
	if q.Kind != "" {
		return r.Key > q.After
	}
	kind, key, _ := journal.SplitKey(q.After)
	return compareKeys([2]string{r.Kind, r.Key}, [2]string{kind, key}) > 0
}

// Heads implements journal.Store.
func (m *Memory) Heads(ctx context.Context, after string, max int) ([]journal.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "read heads"); err != nil {
		return nil, err
	}
	var page []journal.Head
	for _, stream := range slices.Sorted(maps.Keys(m.streams)) {
		if stream <= after || len(page) == journal.Page(max) {
			continue
		}
		at := m.streams[stream]
		last := m.events[at[len(at)-1]]
		page = append(page, journal.Head{Stream: stream, Seq: last.Seq, ID: last.ID, Digest: last.Digest})
	}
	return page, nil
}

// Inbox implements journal.Store.
func (m *Memory) Inbox(ctx context.Context, session string, after int64, max int) ([]journal.Delivered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "read inbox"); err != nil {
		return nil, err
	}
	var page []journal.Delivered
	for _, d := range m.inboxes[session] {
		if d.N > after && len(page) < journal.Page(max) {
			d.Body = clone(d.Body)
			page = append(page, d)
		}
	}
	return page, nil
}

// Info implements journal.Informer.
func (m *Memory) Info(ctx context.Context) (journal.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "read store state"); err != nil {
		return journal.Info{}, err
	}
	info := journal.Info{
		Engine: "memory", State: journal.StateOK, StartCheck: "none",
		Events: int64(len(m.events)), Streams: int64(len(m.streams)),
	}
	for i := range m.events {
		info.PayloadBytes += int64(len(m.events[i].Payload))
	}
	return info, nil
}
