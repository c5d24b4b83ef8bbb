package journaltest

import (
	"sync"
	"testing"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

var (
	host1 = journal.Host{ID: "h1", Incarnation: 1}
	host2 = journal.Host{ID: "h2", Incarnation: 1}
)

// acquire takes the session "s".
func acquire(t testing.TB, s journal.Leaser, h journal.Host) journal.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), "s", h)
	if err != nil {
		t.Fatalf("acquire for %q: %v", h.ID, err)
	}
	return l
}

func denied(t testing.TB, s journal.Leaser, session string, h journal.Host, code fault.Code) {
	t.Helper()
	if l, err := s.Acquire(t.Context(), session, h); fault.CodeOf(err) != code {
		t.Fatalf("acquire %q for %q = %+v, %v; want %s", session, h.ID, l, err, code)
	}
}

func testLeases(t *testing.T, s suite) {
	st := s.fresh(t)
	l := acquire(t, st, host1)
	if l != (journal.Lease{Session: "s", Host: "h1", Epoch: 1}) {
		t.Errorf("first lease = %+v", l)
	}
	denied(t, st, "s", host2, fault.Conflict)
	if l := acquire(t, st, host1); l.Epoch != 2 {
		t.Errorf("own lease again = %+v, want epoch 2", l)
	}
	if err := st.Release(t.Context(), l); fault.CodeOf(err) != fault.StaleEpoch {
		t.Errorf("release of an old epoch: %v", err)
	}
	if err := st.Release(t.Context(), journal.Lease{Session: "s", Host: "h1", Epoch: 2}); err != nil {
		t.Fatal(err)
	}
	if l := acquire(t, st, host2); l.Epoch != 3 {
		t.Errorf("lease after release = %+v, want epoch 3", l)
	}
	// A new incarnation of the owner means that the process that owned it is gone.
	newer := journal.Host{ID: "h2", Incarnation: 2}
	if _, err := st.Renew(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if l := acquire(t, st, host1); l.Epoch != 4 {
		t.Errorf("lease from a dead incarnation = %+v, want epoch 4", l)
	}
	denied(t, st, "t", host2, fault.StaleEpoch)
	if _, err := st.Renew(t.Context(), host2); fault.CodeOf(err) != fault.StaleEpoch {
		t.Errorf("renew of an old incarnation: %v", err)
	}
	denied(t, st, "", host1, fault.InvalidRequest)
	denied(t, st, "s", journal.Host{ID: "h"}, fault.InvalidRequest)
}

type manual struct {
	mu  sync.Mutex
	now time.Time
}

func (m *manual) read() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *manual) add(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

func testLeaseExpiry(t *testing.T, s suite) {
	clock := &manual{now: time.Unix(1_700_000_000, 0)}
	st := s.freshAt(t, clock.read)
	h1 := journal.Host{ID: "h1", Incarnation: 1, TTL: 10 * time.Second}
	acquire(t, st, h1)
	clock.add(9 * time.Second)
	denied(t, st, "s", host2, fault.Conflict)
	if left, err := st.Renew(t.Context(), h1); err != nil || left != 10*time.Second {
		t.Fatalf("renew = %v, %v", left, err)
	}
	clock.add(9 * time.Second)
	denied(t, st, "s", host2, fault.Conflict)
	clock.add(time.Second)
	if l := acquire(t, st, host2); l.Epoch != 2 {
		t.Errorf("lease after expiry = %+v, want epoch 2", l)
	}
	// host2 never expires.
	clock.add(1000 * time.Hour)
	denied(t, st, "s", h1, fault.Conflict)
}

func testFencing(t *testing.T, s suite) {
	st := s.fresh(t)
	old := acquire(t, st, host1)
	b := appendTo("1", "session/s", 0, "by epoch 1")
	b.Lease = &old
	must(t, st, b)
	young := acquire(t, st, journal.Host{ID: "h1", Incarnation: 2})
	late := appendTo("2", "session/s", 1, "late")
	late.Lease = &old
	refused(t, st, late, fault.StaleEpoch)
	stranger := appendTo("3", "session/s", 1, "stranger")
	stranger.Lease = &journal.Lease{Session: "s", Host: "h9", Epoch: young.Epoch}
	refused(t, st, stranger, fault.StaleEpoch)
	if err := st.Release(t.Context(), young); err != nil {
		t.Fatal(err)
	}
	released := appendTo("4", "session/s", 1, "after release")
	released.Lease = &young
	refused(t, st, released, fault.StaleEpoch)
	now := acquire(t, st, host2)
	good := appendTo("5", "session/s", 1, "by epoch 3")
	good.Lease = &now
	must(t, st, good)
	if n := len(all(t, st)); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}
