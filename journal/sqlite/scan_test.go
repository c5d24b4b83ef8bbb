package sqlite_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// lend copies what a scan lends.
func lend(t *testing.T, s *sqlite.Store, after int64) []journal.Stored {
	t.Helper()
	var rows []journal.Stored
	err := s.Scan(t.Context(), after, func(e *journal.Stored) {
		row := *e
		row.Payload = append([]byte(nil), e.Payload...)
		rows = append(rows, row)
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestScan holds what a scan lends against what reading by id returns, over several
// pages that end by their number of events and by their bytes.
func TestScan(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	defer closeStore(t, s)
	for i := range 5 {
		stream := fmt.Sprintf("s/%d", i%3)
		b := journal.Batch{ID: fmt.Sprint(i), Append: []journal.Append{{Stream: stream, Head: int64(i / 3 * 500)}}}
		for j := range 500 {
			e := journal.Event{Kind: fmt.Sprintf("k%d", j%2), Version: 1 + j, AtMS: int64(j), Payload: fmt.Append(nil, i, j)}
			switch {
			case j%7 == 0:
				e.Payload = nil
			case j%100 == 1:
				e.Payload = []byte(strings.Repeat(fmt.Sprint(j), 100_000))
			case j%7 == 2:
				e.Causes = []journal.Ref{{Stream: "other", Seq: int64(j)}}
			}
			b.Append[0].Events = append(b.Append[0].Events, e)
		}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, after := range []int64{0, 1200, 2499, 2500} {
		var want []journal.Stored
		for e, err := range journal.All(t.Context(), s, after) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, e)
		}
		got := lend(t, s, after)
		if reflect.DeepEqual(want, got) {
			continue // cmp is for the difference: it is slow on digests
		}
		t.Errorf("after %d (-by id +scanned):\n%s", after, cmp.Diff(want, got))
	}
}

// TestScanThatEnds ends scans before their time: that must be told from the end of
// the store, and leave no goroutine (which TestMain looks for).
func TestScanThatEnds(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	for i := range int64(3) {
		b := journal.Batch{ID: fmt.Sprint(i), Append: []journal.Append{{Stream: "s", Head: i * 1000}}}
		for range 1000 {
			b.Append[0].Events = append(b.Append[0].Events, journal.Event{Kind: "k", Version: 1})
		}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := s.Scan(ctx, 0, func(*journal.Stored) {
		if n++; n == 10 {
			cancel()
		}
	})
	if fault.CodeOf(err) != fault.Cancelled || n == 3000 {
		t.Errorf("cancelled after 10 of 3000: %d seen, %v", n, err)
	}
	func() {
		defer func() {
			if recover() != "enough" {
				t.Error("the panic did not come through")
			}
		}()
		_ = s.Scan(t.Context(), 0, func(*journal.Stored) { panic("enough") }) // panics
	}()
	closeStore(t, s)
	if err := s.Scan(t.Context(), 0, func(*journal.Stored) {}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("scan of a closed store: %v", err)
	}
}

// TestScanWithoutItsStream takes the row of a stream away: its events are still
// seen, and verification says that they are not as they were.
func TestScanWithoutItsStream(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	defer closeStore(t, s)
	write(t, s, "a", 0, "one")
	write(t, s, "b", 0, "two")
	mustRaw(t, path, `DELETE FROM streams WHERE name = 'a'`)
	if rows := lend(t, s, 0); len(rows) != 2 || rows[0].Stream != "" || rows[1].Stream != "b" {
		t.Errorf("scan: %v", rows)
	}
	if r := journal.Verify(t.Context(), s, nil); r.Code() != fault.Altered || r.Events != 2 {
		t.Errorf("verification: %+v", r)
	}
}
