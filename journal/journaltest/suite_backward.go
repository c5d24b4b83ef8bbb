package journaltest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reeve-run/reeve/journal"
)

// testBackward walks streams of every length around a window from their end.
func testBackward(t *testing.T, s suite) {
	st := s.fresh(t)
	heads := map[string]int64{"x/a": 0, "x/b": 1, "x/bb": 63, "x/c": 64, "x/é": 65, "x/éé": 200, "y": 128}
	for stream, n := range heads {
		if n == 0 {
			continue
		}
		b := journal.Batch{ID: stream, Append: []journal.Append{{Stream: stream}}}
		for i := range n {
			b.Append[0].Events = append(b.Append[0].Events, event(fmt.Sprint(i+1)))
		}
		must(t, st, b)
	}
	for stream, n := range heads {
		end, err := journal.End(t.Context(), st, stream)
		if err != nil || end.Seq != n || n > 0 && end.Stream != stream {
			t.Errorf("end of %q: %+v, %v, want %d", stream, end, err, n)
		}
		seen := n
		for e, err := range journal.Backward(t.Context(), st, stream) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Stream != stream || e.Seq != seen || string(e.Payload) != fmt.Sprint(seen) {
				t.Errorf("%q: event %d of %q holds %q, want %d", stream, e.Seq, e.Stream, e.Payload, seen)
			}
			seen--
		}
		if seen != 0 {
			t.Errorf("%q: the walk ended before event %d", stream, seen)
		}
	}
	var some []int64
	for e, err := range journal.Backward(t.Context(), st, "y") {
		if err != nil {
			t.Fatal(err)
		}
		if some = append(some, e.Seq); len(some) == 2 {
			break
		}
	}
	if !slices.Equal(some, []int64{128, 127}) {
		t.Errorf("a walk that was left saw %v", some)
	}
}
