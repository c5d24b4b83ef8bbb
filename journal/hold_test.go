package journal_test

import (
	"fmt"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/journaltest"
)

func TestHold(t *testing.T) {
	t.Parallel()
	store := func(n int, text string) *journaltest.Memory {
		m := journaltest.NewMemory(nil)
		for i := range n {
			_, err := m.Commit(t.Context(), journal.Batch{ID: fmt.Sprint(i), Append: []journal.Append{{
				Stream: "a", Head: int64(i), Events: []journal.Event{{Kind: "k", Version: 1, Payload: fmt.Append(nil, text, i)}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	a, err := journal.TakeAnchor(t.Context(), store(3, "x"), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		n    int
		text string
		want fault.Code
	}{
		{3, "x", ""}, {5, "x", ""}, {2, "x", fault.Truncated}, {0, "x", fault.Truncated},
		{3, "y", fault.Altered}, {5, "y", fault.Altered}, {2, "y", fault.Truncated},
	} {
		if err := a.Hold(t.Context(), store(tt.n, tt.text)); fault.CodeOf(err) != tt.want {
			t.Errorf("%d events %q: %v, want %q", tt.n, tt.text, err, tt.want)
		}
	}
}
