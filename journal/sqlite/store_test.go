package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/journal/journaltest"
	"github.com/reeve-run/reeve/journal/sqlite"
)

func TestStore(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(t testing.TB, now journaltest.Clock) journaltest.Engine {
		t.Helper()
		return openAt(t, filepath.Join(t.TempDir(), "reeve.db"), sqlite.Options{Now: now})
	})
}

func openAt(t testing.TB, path string, opt sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, opt)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	return s
}
