package host_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/journaltest"
)

func TestCellsShareTheirSessionsNamespace(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-120")
	r := newRig(t)
	r.store = func() journal.Store { return journaltest.NewMemory(nil) }
	c := r.open(t)
	first := r.run(t, c, "s", "x = 6*7\nprint('set')")
	second := r.run(t, c, "s", "x")
	if first.Status != "ok" || text(first, "stdout") != "set\n" || second.Status != "ok" || text(second, "result") != "42" {
		t.Errorf("got %+v, then %+v", first, second)
	}
	if first.Cell == second.Cell || first.Generation != "g-1" || second.Execution != "e-2" || first.Notice != nil || first.Unrecorded {
		t.Errorf("got %+v, then %+v", first, second)
	}
	want := []string{"session.opened", "kernel.reset", "cell.started", "cell.completed", "cell.started", "cell.completed"}
	if diff := cmp.Diff(want, kinds(t, c, "s")); diff != "" {
		t.Error(diff)
	}
	n, err := c.Namespace(t.Context(), "s")
	if err != nil || !n.Live || !cmp.Equal(n.Names, []string{"x"}) {
		t.Errorf("namespace %+v, %v", n, err)
	}
	other := r.run(t, c, "other", "x")
	if other.Status != "error" || other.Error == nil {
		t.Errorf("another session sees x: %+v", other)
	}
}
