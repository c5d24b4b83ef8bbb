package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	lite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// raw runs SQL on the file past the engine, as somebody else on the machine could.
func raw(t *testing.T, path, script string) error {
	t.Helper()
	c, err := lite.OpenConn(path, lite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	return sqlitex.ExecuteScript(c, script, nil)
}

func mustRaw(t *testing.T, path, script string) {
	t.Helper()
	if err := raw(t, path, script); err != nil {
		t.Fatal(err)
	}
}

func fresh(t *testing.T) (*sqlite.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reeve.db")
	return openAt(t, path, sqlite.Options{}), path
}

func closeStore(t *testing.T, s *sqlite.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func write(t *testing.T, s *sqlite.Store, stream string, head int64, payload string) {
	t.Helper()
	if _, err := s.Commit(t.Context(), small(stream, head, payload)); err != nil {
		t.Fatal(err)
	}
}

func small(stream string, head int64, payload string) journal.Batch {
	return journal.Batch{ID: fmt.Sprintf("%s.%d", stream, head), Append: []journal.Append{{Stream: stream, Head: head, Events: []journal.Event{
		{Kind: "k", Version: 1, Payload: []byte(payload)},
	}}}}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	write(t, s, "a", 0, "x")
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Synchronous != "full" || info.StartCheck != "none" || info.WALBytes == 0 {
		t.Errorf("info %+v: want synchronous full, no start check, a log", info)
	}
	for _, file := range []string{path, path + "-wal"} {
		st, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", filepath.Base(file), st.Mode().Perm())
		}
	}
	closeStore(t, s)
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("an orderly end leaves a log behind")
	}
	again := openAt(t, path, sqlite.Options{})
	defer closeStore(t, again)
	after, err := again.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.StartCheck != "none" || after.Events != 1 {
		t.Errorf("info after an orderly end %+v", after)
	}
	if diff := cmp.Diff([]string{"0001_journal"}, after.Migrations); diff != "" {
		t.Errorf("migrations (-want +got):\n%s", diff)
	}
}

func TestEventsAreAppendOnly(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	write(t, s, "a", 0, "x")
	closeStore(t, s)
	for _, script := range []string{
		"UPDATE events SET payload = x'00';",
		"UPDATE events SET batch = 'other';",
		"DELETE FROM events;",
		"PRAGMA recursive_triggers = ON; INSERT OR REPLACE INTO events SELECT * FROM events;",
	} {
		if err := raw(t, path, script); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want a refusal by trigger", script, err)
		}
	}
}

func TestStrangeFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		code   fault.Code
	}{
		"newer migration":   {"INSERT INTO migrations VALUES ('9999_later', 'x', 0);", fault.Unavailable},
		"changed migration": {"UPDATE migrations SET sha256 = 'x';", fault.Unavailable},
		"another program's": {"PRAGMA application_id = 1;", fault.InvalidRequest},
		"missing table":     {"DROP TABLE records;", fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, path := fresh(t)
			closeStore(t, s)
			mustRaw(t, path, c.script)
			again, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err == nil {
				closeStore(t, again)
			}
			if fault.CodeOf(err) != c.code {
				t.Errorf("open: %v, want %q", err, c.code)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); fault.CodeOf(err) != fault.Altered {
		t.Errorf("open a text file: %v, want altered", err)
	}
	if _, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "none", "db"), sqlite.Options{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("open below a missing directory: %v, want not_found", err)
	}
}

// TestForeignWrite changes an event past the engine while it runs. The next append
// to the stream notices, and so does verification; other streams go on.
func TestForeignWrite(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	defer closeStore(t, s)
	write(t, s, "a", 0, "x")
	write(t, s, "b", 0, "x")
	mustRaw(t, path, "DROP TRIGGER events_are_not_updated; UPDATE events SET payload = x'00' WHERE id = 1;")
	if _, err := s.Commit(t.Context(), small("a", 1, "y")); fault.CodeOf(err) != fault.Altered {
		t.Errorf("append after a change: %v, want altered", err)
	}
	write(t, s, "b", 1, "y")
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Foreign != 1 || info.State != journal.StateOK {
		t.Errorf("info %+v, want one foreign change noticed", info)
	}
	if r := journal.Verify(t.Context(), s, nil); r.Code() != fault.Altered || r.Findings[0].Stream != "a" {
		t.Errorf("verify: %+v", r)
	}
}

// TestReadOnly reads a store that another process has open, and one that nobody
// has.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s, path := fresh(t)
	write(t, s, "a", 0, "x")
	for _, live := range []bool{true, false} {
		if !live {
			closeStore(t, s)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r := openAt(t, path, sqlite.Options{ReadOnly: true})
		if rep := journal.Verify(t.Context(), r, nil); rep.Code() != "" || rep.Events != 1 {
			t.Errorf("live %v: verify: %+v", live, rep)
		}
		if _, err := r.Commit(t.Context(), small("a", 1, "y")); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("live %v: commit: %v, want unavailable", live, err)
		}
		closeStore(t, r)
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(before) != string(after) {
			t.Errorf("live %v: reading changed the file", live)
		}
	}
	if _, err := sqlite.Open(t.Context(), path+".none", sqlite.Options{ReadOnly: true}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("read a file that is not there: %v, want not_found", err)
	}
}

// TestManyClients writes small batches from eight clients beside one that writes
// large ones, while a reader pages: nobody meets a lock, and the log stays short.
func TestManyClients(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	defer closeStore(t, s)
	const large = 10 // of 4 MiB
	each := 100
	if testing.Short() {
		each = 50
	}
	var writers, readers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range each {
				if _, err := s.Commit(t.Context(), small(fmt.Sprintf("s/%d", w), int64(i), "x")); err != nil {
					t.Errorf("client %d: %v", w, err)
					return
				}
			}
		})
	}
	writers.Go(func() {
		for i := range large {
			if _, err := s.Commit(t.Context(), small("large", int64(i), strings.Repeat("x", 4<<20))); err != nil {
				t.Errorf("large: %v", err)
				return
			}
		}
	})
	stop := make(chan struct{})
	readers.Go(func() {
		for {
			for _, err := range journal.All(t.Context(), s, 0) {
				if err != nil {
					t.Errorf("reader: %v", err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}
	})
	writers.Wait()
	close(stop)
	readers.Wait()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(8*each + large); info.Events != want {
		t.Errorf("%d events, want %d", info.Events, want)
	}
	// More than 40 MiB were written; a log that a reader pins would hold them all.
	if limit := int64(32 << 20); info.WALBytes > limit {
		t.Errorf("the log has %d bytes, more than %d", info.WALBytes, limit)
	}
}
