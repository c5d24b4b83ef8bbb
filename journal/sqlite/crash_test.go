package sqlite_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/journal/sqlite"
)

// TestKill kills a writing process at random points of one store's life.
func TestKill(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-120")
	trials := 25
	if testing.Short() {
		trials = 5
	}
	path := filepath.Join(t.TempDir(), "reeve.db")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	acked := map[string]int64{}
	for trial := range trials {
		c := startChild(t, path)
		c.until(t, "ack", 1+rnd.IntN(150))
		c.kill(t)
		for stream, seq := range c.acked {
			acked[stream] = seq
		}
		s := openAt(t, path, sqlite.Options{})
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.StartCheck != "full" {
			t.Errorf("trial %d: start check %q after a kill, want full", trial, info.StartCheck)
		}
		if n := lost(t, s, acked); n > 0 {
			t.Errorf("trial %d: %d acknowledged events are gone", trial, n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
}
