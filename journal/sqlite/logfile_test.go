package sqlite_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// TestPathIsTakenAsItIs opens a store whose path would mean something else in a URI.
func TestPathIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b%41?mode=memory#c", "é&vfs=none")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "reeve?.db")
	s := openAt(t, path, sqlite.Options{})
	write(t, s, "s", 0, "x")
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"reeve?.db", "reeve?.db-shm", "reeve?.db-wal"}; !slices.Equal(names, want) {
		t.Errorf("the directory holds %q, want %q", names, want)
	}
	closeStore(t, s)
	s = openAt(t, path, sqlite.Options{ReadOnly: true})
	defer closeStore(t, s)
	if rows, err := s.Events(t.Context(), "s", 0, 0); err != nil || len(rows) != 1 {
		t.Errorf("after reopening: %v, %v", rows, err)
	}
}

// TestLogOfEverySize commits batches around the sizes at which what is collected for
// the log goes to the file, up to several times what is ever held, and reads each
// from another connection, from the log and after it was folded.
func TestLogOfEverySize(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "reeve.db")
	s := openAt(t, path, sqlite.Options{LogPages: 300})
	const page = 4 << 10
	var sizes []int
	for _, about := range []int{page, 64 << 10, 128 << 10, 1 << 20, 4 << 20} {
		sizes = append(sizes, about-1, about, about+1, about+page)
	}
	for i, size := range sizes {
		write(t, s, "s", int64(i), strings.Repeat("x", size))
		rows, err := s.Events(t.Context(), "s", int64(i), 0)
		if err != nil || len(rows) != 1 || len(rows[0].Payload) != size {
			t.Fatalf("batch %d of %d bytes: %d rows, %v", i, size, len(rows), err)
		}
	}
	if r := journal.Verify(t.Context(), s, nil); r.Code() != "" || r.Events != int64(len(sizes)) {
		t.Errorf("verification: %+v", r)
	}
	closeStore(t, s)
	s = openAt(t, path, sqlite.Options{})
	defer closeStore(t, s)
	if r := journal.Verify(t.Context(), s, nil); r.Code() != "" || r.Events != int64(len(sizes)) {
		t.Errorf("verification after reopening: %+v", r)
	}
}
