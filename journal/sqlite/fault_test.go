package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/journal/sqlite"
)

// TestFailedSync lets syncs fail under a writing process. It says unknown, reads
// the disk again, and goes on by itself with the same ids; then the power goes, and
// nothing acknowledged is lost, although the file system forgot what was dirty when
// the sync failed.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string]string{"of commits": "1000000", "of commits and checkpoints": "20"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Attr("requirement", "CP-120")
			l, mount := mountLoss(t)
			c := startChild(t, filepath.Join(mount, "reeve.db"), childPages+"="+pages)
			for round := range 5 {
				c.until(t, "ack", c.count["ack"]+20)
				l.set(func(l *lossFS) { l.failSync = 1 + round })
				if pages == "1000000" {
					c.until(t, "unknown", c.count["unknown"]+1)
				}
				for failing := true; failing; l.set(func(l *lossFS) { failing = l.failSync > 0 }) {
					c.until(t, "ack", c.count["ack"]+1)
				}
				c.until(t, "ack", c.count["ack"]+20)
			}
			t.Logf("answers: %v", c.count)
			afterPowerCut(t, l, c)
		})
	}
}

// afterPowerCut cuts the power and looks for what was acknowledged.
func afterPowerCut(t *testing.T, l *lossFS, c *child) {
	t.Helper()
	disk := t.TempDir()
	l.powerCut(t, disk, nil)
	c.kill(t)
	s := openAt(t, filepath.Join(disk, "reeve.db"), sqlite.Options{})
	if n := lost(t, s, c.acked); n > 0 {
		t.Errorf("%d acknowledged events are gone", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestDiskFullUnderLoad fills and frees the disk under a writing process.
func TestDiskFullUnderLoad(t *testing.T) {
	t.Parallel()
	l, mount := mountLoss(t)
	c := startChild(t, filepath.Join(mount, "reeve.db"))
	for range 5 {
		c.until(t, "ack", c.count["ack"]+30)
		l.set(func(l *lossFS) { l.full = true })
		c.until(t, "store_full", c.count["store_full"]+10)
		l.set(func(l *lossFS) { l.full = false })
		c.until(t, "ack", c.count["ack"]+30)
	}
	t.Logf("answers: %v", c.count)
	if n := c.count["unknown"]; n > 0 {
		t.Errorf("a full disk was answered %d times with unknown", n)
	}
	afterPowerCut(t, l, c)
}
