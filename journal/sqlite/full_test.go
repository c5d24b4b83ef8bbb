package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// TestDiskFull fills a real, small disk.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reevetest.Need(t, os.Geteuid() == 0, "root, to mount a small tmpfs")
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=12m")
	reevetest.Need(t, err == nil, "permission to mount a small tmpfs")
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, filepath.Join(dir, "reeve.db"), sqlite.Options{})
	head := fillUp(t, s)

	// Refused is refused: reads work, more writes are refused the same way, and what
	// was refused is nowhere.
	for range 3 {
		if _, err := s.Commit(t.Context(), large(head)); fault.CodeOf(err) != fault.StoreFull {
			t.Fatalf("commit to a full disk: %v", err)
		}
	}
	if got := state(t, s); got != journal.StateFull {
		t.Errorf("state %q on a full disk", got)
	}
	if r := journal.Verify(t.Context(), s, nil); r.Code() != "" || r.Events != head {
		t.Errorf("verify on a full disk: %+v, %d were acknowledged", r, head)
	}

	// Space returns: the same batch is taken without any other step.
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	r, err := s.Commit(t.Context(), large(head))
	if err != nil || r.Replayed || r.Heads["s"] != head+1 {
		t.Fatalf("commit after space returned: %+v, %v", r, err)
	}
	if got := state(t, s); got != journal.StateOK {
		t.Errorf("state %q after space returned", got)
	}
	if r := journal.Verify(t.Context(), s, nil); r.Code() != "" || r.Events != head+1 {
		t.Errorf("verify at the end: %+v", r)
	}

	// And when nobody writes, the store looks by itself.
	if err := os.WriteFile(ballast, make([]byte, 3<<20), 0o600); err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	fillUpFrom(t, s, head+1)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for given := time.Now().Add(time.Minute); state(t, s) != journal.StateOK; <-tick.C {
		if time.Now().After(given) {
			t.Fatal("the store stays full")
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func large(head int64) journal.Batch {
	return journal.Batch{ID: fmt.Sprint(head), Append: []journal.Append{{Stream: "s", Head: head, Events: []journal.Event{
		{Kind: "k", Version: 1, Payload: make([]byte, 100_000)},
	}}}}
}

// fillUp commits until the disk is full and returns the head that was acknowledged.
func fillUp(t *testing.T, s *sqlite.Store) int64 {
	t.Helper()
	return fillUpFrom(t, s, 0)
}

func fillUpFrom(t *testing.T, s *sqlite.Store, head int64) int64 {
	t.Helper()
	for end := head + 1000; head < end; head++ {
		_, err := s.Commit(t.Context(), large(head))
		if fault.CodeOf(err) == fault.StoreFull {
			return head
		}
		if err != nil {
			t.Fatalf("commit %d: %v", head, err)
		}
	}
	t.Fatal("the disk does not fill")
	return 0
}

func state(t *testing.T, s *sqlite.Store) string {
	t.Helper()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State
}
