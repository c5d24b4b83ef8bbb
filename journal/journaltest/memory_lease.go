package journaltest

import (
	"context"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// Acquire implements journal.Leaser.
func (m *Memory) Acquire(ctx context.Context, session string, h journal.Host) (journal.Lease, error) {
	if err := checkLease("acquire session", session, h); err != nil {
		return journal.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "acquire session"); err != nil {
		return journal.Lease{}, err
	}
	if err := m.current("acquire session", h); err != nil {
		return journal.Lease{}, err
	}
	o := m.sessions[session]
	if o.host != h.ID && m.holds(o) {
		return journal.Lease{}, fault.New(fault.Conflict, "acquire session", session, "host %q owns it", o.host).Retryable()
	}
	m.renew(h)
	o = owner{host: h.ID, incarnation: h.Incarnation, epoch: o.epoch + 1}
	m.sessions[session] = o
	return journal.Lease{Session: session, Host: h.ID, Epoch: o.epoch}, nil
}

// holds reports whether the owner is alive: its host has the same incarnation
// and time left.
func (m *Memory) holds(o owner) bool {
	h, ok := m.hosts[o.host]
	return ok && h.incarnation == o.incarnation && (h.until.IsZero() || m.now().Before(h.until))
}

// Renew implements journal.Leaser.
func (m *Memory) Renew(ctx context.Context, h journal.Host) (time.Duration, error) {
	if err := checkLease("renew host", "-", h); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "renew host"); err != nil {
		return 0, err
	}
	if err := m.current("renew host", h); err != nil {
		return 0, err
	}
	m.renew(h)
	return h.TTL, nil
}

func (m *Memory) current(op string, h journal.Host) error {
	if known := m.hosts[h.ID]; known.incarnation > h.Incarnation {
		return journal.Superseded(op, h.ID, "incarnation %d has replaced %d", known.incarnation, h.Incarnation)
	}
	return nil
}

func (m *Memory) renew(h journal.Host) {
	row := host{incarnation: h.Incarnation}
	if h.TTL > 0 {
		row.until = m.now().Add(h.TTL)
	}
	m.hosts[h.ID] = row
}

// Release implements journal.Leaser.
func (m *Memory) Release(ctx context.Context, l journal.Lease) error {
	if err := journal.CheckName("release session", l.Session); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx, "release session"); err != nil {
		return err
	}
	o := m.sessions[l.Session]
	if o.host != l.Host || o.epoch != l.Epoch {
		return journal.Superseded("release session", l.Session, "it is at epoch %d, not %d", o.epoch, l.Epoch)
	}
	m.sessions[l.Session] = owner{epoch: o.epoch}
	return nil
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
