package sqlite

import (
	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// commit checks a batch and writes it into the open transaction. Everything is
// checked before anything is written, so a refusal has left nothing behind.
func (w *writer) commit(b *journal.Batch) (journal.Result, error) {
	heads := make([]*head, len(b.Append))
	for i := range b.Append {
		h, err := w.head(b.Append[i].Stream)
		if err != nil {
			return journal.Result{}, err
		}
		heads[i] = h
	}
	res, replayed, err := w.replayed(b, heads)
	if replayed || err != nil {
		return res, err
	}
	if err := w.admit(b, heads); err != nil {
		return journal.Result{}, err
	}
	res, err = w.write(b, heads)
	if err != nil {
		w.forget() // the cache ran ahead of what the rollback leaves
		w.spoiled = true
		return journal.Result{}, err
	}
	return res, nil
}

// head returns the end of a stream, with n 0 for one that does not exist. One that
// comes from the file is checked against its last event: appending to a damaged end
// would sign the damage.
func (w *writer) head(stream string) (*head, error) {
	if h, ok := w.heads[stream]; ok {
		return h, nil
	}
	if len(w.heads) >= maxHeads {
		clear(w.heads)
	}
	h := &head{}
	stmt := w.stmt.of(sqlHead)
	stmt.BindText(1, stream)
	found, err := one(stmt, func(s *lite.Stmt) {
		h.n, h.seq, h.id, h.bytes = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(4)
		s.ColumnBytes(3, h.digest[:])
	})
	if err != nil {
		return nil, &engineError{err}
	}
	if found {
		if err := w.checkEnd(stream, h); err != nil {
			return nil, err
		}
	}
	w.heads[stream] = h
	return h, nil
}

func (w *writer) checkEnd(stream string, h *head) error {
	last, err := w.events(stream, h.seq-1, 2)
	if err != nil {
		return err
	}
	if len(last) != 1 || last[0].Digest != h.digest || w.chain.Link(last[0].Prev, stream, h.seq, &last[0].Event) != h.digest {
		return fault.New(fault.Altered, "append", stream, "its last event is not the one that was committed").
			WithNext("run reeve verify")
	}
	return nil
}

func (w *writer) events(stream string, after int64, max int) ([]journal.Stored, error) {
	page, err := eventPage(w.stmt.of(sqlEventsOf), max, func(s *lite.Stmt) {
		s.BindText(1, stream)
		s.BindInt64(2, after)
	})
	if err != nil && !fault.HasCode(err, fault.Altered) {
		return nil, &engineError{err}
	}
	return page, err
}

// admit checks ownership, conditions, heads and revisions, in this order.
func (w *writer) admit(b *journal.Batch, heads []*head) error {
	if l := b.Lease; l != nil {
		o, err := w.session(l.Session)
		if err != nil {
			return err
		}
		if o.host != l.Host || o.epoch != l.Epoch {
			return journal.Superseded("commit batch", b.ID, "session %q is at epoch %d, not %d", l.Session, o.epoch, l.Epoch)
		}
	}
	for _, c := range b.If {
		now, err := w.value(c)
		if err != nil {
			return err
		}
		want := c.N
		if c.Kind == journal.Absent {
			want = 0
		}
		if now != want {
			return journal.Conflicted(b.ID, c.Kind, c.Key, want, now)
		}
	}
	for i, a := range b.Append {
		if heads[i].seq != a.Head && a.Head != journal.AnyHead {
			return journal.Conflicted(b.ID, journal.HeadIs, a.Stream, a.Head, heads[i].seq)
		}
	}
	for i := range b.Put {
		r := &b.Put[i]
		now, err := w.revision(r.Kind, r.Key)
		if err != nil {
			return err
		}
		if now != r.Rev {
			return journal.Conflicted(b.ID, journal.RevIs, journal.RecordKey(r.Kind, r.Key), r.Rev, now)
		}
	}
	return nil
}

func (w *writer) value(c journal.Cond) (int64, error) {
	switch c.Kind {
	case journal.HeadIs:
		h, err := w.head(c.Key)
		if err != nil {
			return 0, err
		}
		return h.seq, nil
	case journal.InboxIs:
		o, err := w.session(c.Key)
		return o.inbox, err
	default:
		kind, key, _ := journal.SplitKey(c.Key)
		return w.revision(kind, key)
	}
}

func (w *writer) revision(kind, key string) (rev int64, err error) {
	stmt := w.stmt.of(sqlRevision)
	stmt.BindText(1, kind)
	stmt.BindText(2, key)
	if _, err := one(stmt, func(s *lite.Stmt) { rev = s.ColumnInt64(0) }); err != nil {
		return 0, &engineError{err}
	}
	return rev, nil
}

func (w *writer) write(b *journal.Batch, heads []*head) (journal.Result, error) {
	if w.nextID == 0 {
		n, err := w.stmt.number(sqlNextID)
		if err != nil {
			return journal.Result{}, &engineError{err}
		}
		w.nextID = n
	}
	res := journal.Result{Heads: make(map[string]int64, len(b.Append)), FirstID: w.nextID}
	for i := range b.Append {
		if err := w.append(b.ID, &b.Append[i], heads[i]); err != nil {
			return journal.Result{}, writeError(err)
		}
		res.Heads[b.Append[i].Stream] = heads[i].seq
	}
	for i := range b.Put {
		if err := w.put(&b.Put[i]); err != nil {
			return journal.Result{}, writeError(err)
		}
	}
	for i := range b.Deliver {
		if err := w.deliver(&b.Deliver[i]); err != nil {
			return journal.Result{}, err
		}
	}
	return res, nil
}

// writeError tells a batch that the engine cannot take, which is rolled back alone,
// from an engine that cannot go on.
func writeError(err error) error {
	switch lite.ErrCode(err).ToPrimary() {
	case lite.ResultConstraint, lite.ResultTooBig, lite.ResultMismatch, lite.ResultRange:
		return fault.Wrap(err, fault.Internal, "commit batch", "")
	default:
		return &engineError{err}
	}
}

// append chains the events to the end of the stream and moves the end.
func (w *writer) append(batch string, a *journal.Append, h *head) error {
	last, err := w.insert(batch, a, h)
	if err != nil {
		return err
	}
	if h.n == 0 {
		stmt := w.stmt.of(sqlNewHead)
		stmt.BindText(1, a.Stream)
		stmt.BindInt64(2, last.seq)
		stmt.BindInt64(3, last.id)
		stmt.BindBytes(4, last.digest[:])
		stmt.BindInt64(5, last.bytes)
		stmt.BindInt64(6, last.n)
		if err := run(stmt); err != nil {
			return err
		}
	} else {
		stmt := w.stmt.of(sqlMoveHead)
		stmt.BindInt64(1, last.seq)
		stmt.BindInt64(2, last.id)
		stmt.BindBytes(3, last.digest[:])
		stmt.BindInt64(4, last.bytes)
		stmt.BindInt64(5, last.n)
		if err := run(stmt); err != nil {
			return err
		}
	}
	*h = last
	return nil
}

// insert writes the events and returns the new end.
func (w *writer) insert(batch string, a *journal.Append, h *head) (head, error) {
	last := *h
	if last.n == 0 {
		n, err := w.stmt.number(sqlNextN)
		if err != nil {
			return head{}, err
		}
		last.n = n
	}
	stmt := w.stmt.of(sqlEvent)
	stmt.BindInt64(2, last.n)
	stmt.BindText(7, batch)
	for i := range a.Events {
		e := &a.Events[i]
		digest := w.chain.Link(last.digest, a.Stream, last.seq+1, e)
		stmt.BindInt64(1, w.nextID)
		stmt.BindInt64(3, last.seq+1)
		stmt.BindText(4, e.Kind)
		stmt.BindInt64(5, int64(e.Version))
		stmt.BindInt64(6, e.AtMS)
		stmt.BindBytes(8, last.digest[:])
		stmt.BindBytes(9, digest[:])
		if len(e.Causes) == 0 {
			stmt.BindNull(10)
		} else {
			w.causes = journal.AppendCauses(w.causes[:0], e.Causes)
			stmt.BindBytes(10, w.causes)
		}
		stmt.BindBytes(11, e.Payload)
		if err := run(stmt); err != nil {
			return head{}, err
		}
		last.seq++
		last.id = w.nextID
		last.digest = digest
		last.bytes += int64(len(e.Payload))
		w.nextID++
	}
	return last, nil
}

func (w *writer) put(r *journal.Record) error {
	if r.Rev == 0 {
		stmt := w.stmt.of(sqlNewRecord)
		stmt.BindText(1, r.Kind)
		stmt.BindText(2, r.Key)
		stmt.BindText(3, r.Session)
		stmt.BindText(4, r.State)
		stmt.BindInt64(5, r.DueMS)
		stmt.BindBytes(6, r.Body)
		return run(stmt)
	}
	stmt := w.stmt.of(sqlPutRecord)
	stmt.BindText(1, r.Session)
	stmt.BindText(2, r.State)
	stmt.BindInt64(3, r.Rev+1)
	stmt.BindInt64(4, r.DueMS)
	stmt.BindBytes(5, r.Body)
	stmt.BindText(6, r.Kind)
	stmt.BindText(7, r.Key)
	return run(stmt)
}

// deliver puts an input into an inbox unless it is there.
func (w *writer) deliver(in *journal.Input) error {
	stmt := w.stmt.of(sqlDelivered)
	stmt.BindText(1, in.To)
	stmt.BindText(2, in.ID)
	known, err := one(stmt, func(*lite.Stmt) {})
	if err != nil {
		return &engineError{err}
	}
	if known {
		return nil
	}
	o, err := w.session(in.To)
	if err != nil {
		return err
	}
	stmt = w.stmt.of(sqlPutInbox)
	stmt.BindText(1, in.To)
	stmt.BindInt64(2, o.inbox+1)
	if err := run(stmt); err != nil {
		return writeError(err)
	}
	stmt = w.stmt.of(sqlDeliver)
	stmt.BindText(1, in.To)
	stmt.BindInt64(2, o.inbox+1)
	stmt.BindText(3, in.ID)
	stmt.BindBytes(4, in.Body)
	if err := run(stmt); err != nil {
		return writeError(err)
	}
	return nil
}
