package sqlite_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/anchor"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// TestFlippedBytes damages one byte of a copy at a time. Either opening refuses, or
// verification finds it, or what the chain covers is still as it was.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	for i := range 60 {
		write(t, s, fmt.Sprintf("s/%d", i%3), int64(i/3), fmt.Sprintf("payload %0100d", i))
	}
	notes := anchor.In(t.TempDir())
	if _, err := notes.Take(t.Context(), s, time.UnixMilli(1_700_000_000_000)); err != nil {
		t.Fatal(err)
	}
	want := chained(t, s)
	closeStore(t, s)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	outcomes := map[string]int{}
	trials := 80
	if testing.Short() {
		trials = 20
	}
	for range trials {
		at := rnd.IntN(len(whole))
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= byte(1 + rnd.IntN(255))
		outcomes[judge(t, damaged, notes, want, at)]++
	}
	t.Logf("%v", outcomes)
	if outcomes["found"] == 0 {
		t.Error("no damage was found")
	}
}

func judge(t *testing.T, file []byte, notes anchor.Dir, want []journal.Stored, at int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reeve.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true})
	if err != nil {
		return "refused"
	}
	defer closeStore(t, s)
	if r := notes.Verify(t.Context(), s, ""); r.Code() != "" {
		return "found"
	}
	if diff := cmp.Diff(want, chained(t, s), notChained); diff != "" {
		t.Errorf("byte %d: verified as good, but (-want +got):\n%s", at, diff)
	}
	return "harmless"
}

// notChained are the members that no digest covers.
var notChained = cmpopts.IgnoreFields(journal.Stored{}, "ID", "Batch")

func chained(t *testing.T, s *sqlite.Store) []journal.Stored {
	t.Helper()
	var all []journal.Stored
	for h, err := range journal.AllHeads(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range journal.Stream(t.Context(), s, h.Stream, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
	}
	return all
}

// TestTornLog cuts the log of a running store at every kind of place, as a power
// loss in the middle of a write would: what is whole is loaded, the rest is gone,
// and the store goes on.
func TestTornLog(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	const n = 30
	for i := range n {
		write(t, s, "a", int64(i), fmt.Sprintf("payload %0100d", i))
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	// The log ends in zeros, which are not torn: a header, then frames of a page each.
	const header, frame = 32, 24 + 4096
	log = log[:header+(len(bytes.TrimRight(log, "\x00"))-header+frame-1)/frame*frame]
	last := int64(n)
	for _, cut := range []int{0, 1, 100, 4095, 4096, 4097, 10_000, 50_000, len(log) / 2} {
		torn := filepath.Join(t.TempDir(), "reeve.db")
		if err := os.WriteFile(torn, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(torn+"-wal", log[:len(log)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := openAt(t, torn, sqlite.Options{})
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Events > last || cut == 0 && info.Events != n || cut > 10_000 && info.Events == n {
			t.Errorf("cut by %d: %d events, %d with the cut before", cut, info.Events, last)
		}
		last = info.Events
		if r := journal.Verify(t.Context(), s, nil); r.Code() != "" {
			t.Errorf("cut by %d: %+v", cut, r)
		}
		write(t, s, "a", info.Events, "more")
		closeStore(t, s)
	}
}

// TestIndexThatHidesAnEvent takes one event out of the index by which streams are
// read, and leaves the rows alone: a walk over the rows is good, but readers would
// fold a stream with a hole.
func TestIndexThatHidesAnEvent(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	for i := range 3 {
		write(t, s, "a", int64(i), "x")
	}
	closeStore(t, s)
	mustRaw(t, path, `DROP INDEX events_by_stream;
		CREATE UNIQUE INDEX events_by_stream ON events (stream, seq) WHERE seq <> 2;
		PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX events_by_stream ON events (stream, seq)' WHERE name = 'events_by_stream';`)
	s = openAt(t, path, sqlite.Options{})
	defer closeStore(t, s)
	if page, err := s.Events(t.Context(), "a", 0, 0); fault.CodeOf(err) != fault.Altered {
		t.Errorf("read: %d events, %v; want altered", len(page), err)
	}
	if r := journal.Verify(t.Context(), s, nil); r.Code() != "" {
		t.Errorf("the rows themselves: %+v", r)
	}
	if r := anchor.In(t.TempDir()).Verify(t.Context(), s, ""); r.Code() != fault.Altered {
		t.Errorf("verify: %+v, want altered", r)
	}
}
