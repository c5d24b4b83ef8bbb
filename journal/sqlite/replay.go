package sqlite

import (
	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// replayed answers a batch that is already there, with its first result.
func (w *writer) replayed(b *journal.Batch, heads []*head) (journal.Result, bool, error) {
	var res journal.Result
	origin := int64(0) // id of the batch's first event, as its first definite append tells
	before := int64(0) // events of the appends already seen
	for i := range b.Append {
		a := &b.Append[i]
		if a.Head == journal.AnyHead {
			before += int64(len(a.Events))
			continue
		}
		if heads[i].seq <= a.Head {
			return journal.Result{}, false, nil
		}
		first, err := w.sameEvents(b.ID, a)
		if first == 0 || err != nil {
			return journal.Result{}, false, err
		}
		if res.FirstID == 0 {
			origin = first - before
			res = journal.Result{Heads: make(map[string]int64, len(b.Append)), FirstID: first, Replayed: true}
		}
		res.Heads[a.Stream] = a.Head + int64(len(a.Events))
		res.FirstID = min(res.FirstID, first)
		before += int64(len(a.Events))
	}
	if res.FirstID == 0 {
		return journal.Result{}, false, nil
	}
	if err := w.replayedAnywhere(b, origin, &res); err != nil {
		return journal.Result{}, false, err
	}
	return res, true, nil
}

// replayedAnywhere looks for the appends at any head where the batch that begins at
// origin has put them: its ids are consecutive.
func (w *writer) replayedAnywhere(b *journal.Batch, origin int64, res *journal.Result) error {
	for i := range b.Append {
		a := &b.Append[i]
		if a.Head == journal.AnyHead {
			end, err := w.sameEventsAt(b, a, origin)
			if err != nil {
				return err
			}
			res.Heads[a.Stream] = end
			res.FirstID = min(res.FirstID, origin)
		}
		origin += int64(len(a.Events))
	}
	return nil
}

// sameEventsAt is sameEvents by id, for an append that has no place in its stream.
// It looks at one event on either side, and returns the sequence of the last event.
func (w *writer) sameEventsAt(b *journal.Batch, a *journal.Append, first int64) (end int64, err error) {
	n := int64(len(a.Events))
	next := first
	for at := first - 2; next <= first+n; {
		page, err := w.eventsFrom(at, int(min(n+2, journal.MaxPage)))
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			e := &page[i]
			at = e.ID
			ours := e.Batch == b.ID && e.Stream == a.Stream
			switch {
			case e.ID < first && !ours:
				continue
			case next == first+n && !ours:
				return end, nil
			case next == first+n || e.ID != next || !ours || !journal.Same(e, &a.Events[next-first]):
				return 0, journal.ReusedElsewhere(b)
			}
			end = e.Seq
			next++
		}
	}
	if next < first+n {
		return 0, journal.ReusedElsewhere(b)
	}
	return end, nil
}

func (w *writer) eventsFrom(after int64, max int) ([]journal.Stored, error) {
	page, err := eventPage(w.stmt.of(sqlEventsByID), max, func(s *lite.Stmt) { s.BindInt64(1, after) })
	if err != nil && !fault.HasCode(err, fault.Altered) {
		return nil, &engineError{err}
	}
	return page, err
}

// sameEvents returns the id of the first event after a.Head when the batch id wrote
// it, 0 when another did. It looks one event past the end: a batch that once held
// more was another one.
func (w *writer) sameEvents(id string, a *journal.Append) (first int64, err error) {
	n := int64(len(a.Events))
	at := a.Head
	for at <= a.Head+n {
		page, err := w.events(a.Stream, at, int(min(n+1, journal.MaxPage)))
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			nth := page[i].Seq - a.Head - 1
			switch ours := page[i].Batch == id; {
			case nth == 0 && !ours:
				return 0, nil
			case nth == n && !ours:
				return first, nil
			case nth >= n || !ours || !journal.Same(&page[i], &a.Events[nth]):
				return 0, journal.Reused(id, a.Stream, page[i].Seq)
			case nth == 0:
				first = page[i].ID
			}
			at = page[i].Seq
		}
	}
	if at < a.Head+n {
		return 0, journal.Reused(id, a.Stream, at+1)
	}
	return first, nil
}
