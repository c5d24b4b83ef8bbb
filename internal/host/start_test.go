package host_test

import (
	"context"
	"sync"
	"testing"

	"github.com/reeve-run/reeve/journal"
)

// counted is a store that counts the events it hands out by stream.
type counted struct {
	*unruly
	mu   sync.Mutex
	read map[string]int
}

func (c *counted) Events(ctx context.Context, stream string, after int64, max int) ([]journal.Stored, error) {
	page, err := c.unruly.Events(ctx, stream, after, max)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read[stream] += len(page)
	return page, err
}

// A start after a kill reads of a session what came after its last snapshot, not
// its whole stream, and nothing at all of one that was at rest.
func TestStartReadsFromTheSnapshot(t *testing.T) {
	t.Parallel()
	r, u, c := unrulyRig(t)
	r.run(t, c, "rests", "1")
	if _, err := c.CloseSession(t.Context(), "rests", me); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		r.run(t, c, "s", "x += 1")
	}
	before, err := c.Session(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	left := &counted{unruly: u.snapshot(), read: map[string]int{}}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	r.dir += "-copy"
	r.store = func() journal.Store { return left }
	c = r.open(t)
	after, err := c.Session(t.Context(), "s")
	if err != nil || after.Cells != before.Cells || after.Cells != 301 {
		t.Errorf("%d cells are known of %d, %v", after.Cells, before.Cells, err)
	}
	left.mu.Lock()
	defer left.mu.Unlock()
	if n := left.read["session/s"]; before.Head < 600 || n > 128 {
		t.Errorf("%d of %d events were read", n, before.Head)
	}
	if n := left.read["session/rests"]; n != 0 {
		t.Errorf("%d events of a session at rest were read", n)
	}
}
