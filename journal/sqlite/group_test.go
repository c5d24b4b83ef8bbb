package sqlite_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// TestRefusedInAGroup lets the engine refuse the last write of some batches while
// others are committed beside them: the others stand whole, of the refused nothing
// is left, and everyone gets an answer of its own.
func TestRefusedInAGroup(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	defer closeStore(t, s)
	mustRaw(t, path, `CREATE TRIGGER poison BEFORE INSERT ON records WHEN NEW.key LIKE 'poison%'
		BEGIN SELECT RAISE(ABORT, 'poisoned'); END;`)
	const writers, each = 12, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			stream := fmt.Sprintf("s/%d", w)
			for i := range each {
				bad := small(stream, int64(i), "bad")
				bad.Put = []journal.Record{{Kind: "k", Key: fmt.Sprintf("poison/%d/%d", w, i)}}
				if w%3 == 0 {
					if _, err := s.Commit(t.Context(), bad); fault.CodeOf(err) != fault.Internal {
						t.Errorf("refused write: %v, want %s", err, fault.Internal)
						return
					}
				}
				good := small(stream, int64(i), "good")
				good.Put = []journal.Record{{Kind: "k", Key: fmt.Sprintf("%d/%d", w, i)}}
				if r, err := s.Commit(t.Context(), good); err != nil || r.Replayed || r.Heads[stream] != int64(i)+1 {
					t.Errorf("write beside a refused one: %+v, %v", r, err)
					return
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for e, err := range journal.All(t.Context(), s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; string(e.Payload) != "good" || e.ID != int64(n) {
			t.Errorf("event %d holds %q", e.ID, e.Payload)
		}
	}
	if n != writers*each {
		t.Errorf("%d events, want %d", n, writers*each)
	}
	if r := journal.Verify(t.Context(), s, nil); r.Code() != "" {
		t.Errorf("verification: %+v", r)
	}
}
