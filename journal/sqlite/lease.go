package sqlite

import (
	"context"
	"time"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// session is a row of the session table; the zero row is one nobody has touched.
type session struct {
	host                      string
	incarnation, epoch, inbox int64
}

func (w *writer) session(id string) (o session, err error) {
	stmt := w.stmt.of(sqlSession)
	stmt.BindText(1, id)
	if _, err := one(stmt, func(s *lite.Stmt) {
		o = session{s.ColumnText(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3)}
	}); err != nil {
		return session{}, &engineError{err}
	}
	return o, nil
}

func (w *writer) setOwner(id string, o session) error {
	stmt := w.stmt.of(sqlPutOwner)
	stmt.BindText(1, id)
	stmt.BindText(2, o.host)
	stmt.BindInt64(3, o.incarnation)
	stmt.BindInt64(4, o.epoch)
	if err := run(stmt); err != nil {
		return &engineError{err}
	}
	return nil
}

// Acquire implements journal.Leaser.
func (s *Store) Acquire(ctx context.Context, id string, h journal.Host) (journal.Lease, error) {
	if err := checkLease("acquire session", id, h); err != nil {
		return journal.Lease{}, err
	}
	var lease journal.Lease
	err := s.change(ctx, "acquire session", id, func(w *writer) error {
		o, err := w.session(id)
		if err != nil {
			return err
		}
		known, err := w.host(h.ID)
		if err != nil {
			return err
		}
		if known.incarnation > h.Incarnation {
			return replaced("acquire session", h, known)
		}
		if o.host != "" && o.host != h.ID {
			holder, err := w.host(o.host)
			if err != nil {
				return err
			}
			if holder.incarnation == o.incarnation && (holder.untilMS == 0 || s.opt.Now().UnixMilli() < holder.untilMS) {
				return fault.New(fault.Conflict, "acquire session", id, "host %q owns it", o.host).Retryable()
			}
		}
		if err := w.setHost(h); err != nil {
			return err
		}
		o.host, o.incarnation, o.epoch = h.ID, h.Incarnation, o.epoch+1
		lease = journal.Lease{Session: id, Host: h.ID, Epoch: o.epoch}
		return w.setOwner(id, o)
	})
	if err != nil {
		return journal.Lease{}, err
	}
	return lease, nil
}

// Renew implements journal.Leaser.
func (s *Store) Renew(ctx context.Context, h journal.Host) (time.Duration, error) {
	if err := checkLease("renew host", "-", h); err != nil {
		return 0, err
	}
	err := s.change(ctx, "renew host", h.ID, func(w *writer) error {
		known, err := w.host(h.ID)
		if err != nil {
			return err
		}
		if known.incarnation > h.Incarnation {
			return replaced("renew host", h, known)
		}
		return w.setHost(h)
	})
	if err != nil {
		return 0, err
	}
	return h.TTL, nil
}

// Release implements journal.Leaser.
func (s *Store) Release(ctx context.Context, l journal.Lease) error {
	if err := journal.CheckName("release session", l.Session); err != nil {
		return err
	}
	return s.change(ctx, "release session", l.Session, func(w *writer) error {
		o, err := w.session(l.Session)
		if err != nil {
			return err
		}
		if o.host != l.Host || o.epoch != l.Epoch {
			return journal.Superseded("release session", l.Session, "it is at epoch %d, not %d", o.epoch, l.Epoch)
		}
		return w.setOwner(l.Session, session{epoch: o.epoch})
	})
}

func (s *Store) change(ctx context.Context, op, subject string, change func(*writer) error) error {
	return s.do(&job{ctx: ctx, op: op, subject: subject, change: change, done: make(chan struct{})})
}

// hostRow is a row of the host table; the zero row is a host that never came.
type hostRow struct{ incarnation, untilMS int64 }

func (w *writer) host(id string) (r hostRow, err error) {
	stmt := w.stmt.of(sqlHost)
	stmt.BindText(1, id)
	if _, err := one(stmt, func(s *lite.Stmt) { r = hostRow{s.ColumnInt64(0), s.ColumnInt64(1)} }); err != nil {
		return hostRow{}, &engineError{err}
	}
	return r, nil
}

func (w *writer) setHost(h journal.Host) error {
	until := int64(0)
	if h.TTL > 0 {
		until = w.store.opt.Now().Add(h.TTL).UnixMilli()
	}
	stmt := w.stmt.of(sqlPutHost)
	stmt.BindText(1, h.ID)
	stmt.BindInt64(2, h.Incarnation)
	stmt.BindInt64(3, until)
	if err := run(stmt); err != nil {
		return &engineError{err}
	}
	return nil
}

func replaced(op string, h journal.Host, known hostRow) error {
	return journal.Superseded(op, h.ID, "incarnation %d has replaced %d", known.incarnation, h.Incarnation)
}

func checkLease(op, session string, h journal.Host) error {
	if err := journal.CheckName(op, session); err != nil {
		return err
	}
	if err := journal.CheckName(op, h.ID); err != nil {
		return err
	}
	if h.Incarnation < 1 || h.TTL < 0 {
		return fault.New(fault.InvalidRequest, op, h.ID, "incarnation %d, time to live %v", h.Incarnation, h.TTL)
	}
	return nil
}
