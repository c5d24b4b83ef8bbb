package sqlite_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/journal/sqlite"
)

func powerTrials() int {
	if testing.Short() {
		return 3
	}
	return 20
}

// powerLoss lets a child write to a file system that loses power, and returns how
// many acknowledged events are not on the disk afterwards.
func powerLoss(t *testing.T, half *rand.Rand, rnd *rand.Rand, env ...string) int64 {
	t.Helper()
	l, mount := mountLoss(t)
	c := startChild(t, filepath.Join(mount, "reeve.db"), env...)
	c.until(t, "ack", 1+rnd.IntN(300))
	disk := t.TempDir()
	l.powerCut(t, disk, half)
	// Every line that the child has printed by now is an answer given before the cut:
	// a later one would have needed a sync.
	c.kill(t)
	s := openAt(t, filepath.Join(disk, "reeve.db"), sqlite.Options{})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	return lost(t, s, c.acked)
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestPowerLoss is not parallel: each trial mounts a file system and keeps a
// process busy.
func TestPowerLoss(t *testing.T) {
	t.Attr("requirement", "CP-120")
	for _, mode := range []string{"unsynced writes are gone", "half of the unsynced pages are there"} {
		t.Run(mode, func(t *testing.T) {
			rnd := seeded(t)
			var half *rand.Rand
			if mode[0] == 'h' {
				half = rnd
			}
			for trial := range powerTrials() {
				if n := powerLoss(t, half, rnd); n > 0 {
					t.Errorf("trial %d: %d acknowledged events are gone", trial, n)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestPowerLossControl shows that the test above can fail: with
// synchronous=NORMAL acknowledged events are lost, though the store stays whole.
func TestPowerLossControl(t *testing.T) {
	for _, mode := range []string{"unsynced writes are gone", "half of the unsynced pages are there"} {
		t.Run(mode, func(t *testing.T) {
			rnd := seeded(t)
			var half *rand.Rand
			if mode[0] == 'h' {
				half = rnd
			}
			losses := 0
			for range powerTrials() {
				if powerLoss(t, half, rnd, childUnsafe+"=1") > 0 {
					losses++
				}
			}
			t.Logf("%d of %d power losses lost acknowledged events", losses, powerTrials())
			if losses == 0 {
				t.Error("synchronous=NORMAL lost nothing: the file system does not lose what is not synced")
			}
		})
	}
}
