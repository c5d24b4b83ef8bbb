package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// testLostAnswers sends batches through a store that loses answers, until each is
// acknowledged. Whatever was lost, each stands once, and none out of order.
func testLostAnswers(t *testing.T, s suite) {
	rapid.Check(t, func(rt *rapid.T) {
		inner := s.open(t, (&manual{}).read)
		defer func() {
			if err := inner.Close(); err != nil {
				rt.Errorf("close: %v", err)
			}
		}()
		f := NewFaulty(inner)
		f.Fail(rapid.SliceOfN(rapid.SampledFrom([]Failure{None, LostBefore, LostAfter, Full, Unreachable}), 0, 12).Draw(rt, "failures")...)
		const n = 4
		var want []string
		for i := range n {
			b := appendTo(fmt.Sprint(i), "a", int64(i), fmt.Sprint(i))
			b.Put = []journal.Record{{Kind: "k", Key: fmt.Sprint(i)}}
			b.Deliver = []journal.Input{{To: "s", ID: fmt.Sprint(i)}}
			b.If = []journal.Cond{{Kind: journal.InboxIs, Key: "s", N: int64(i)}}
			want = append(want, fmt.Sprint(i))
			for {
				r, err := f.Commit(rt.Context(), b)
				if err == nil {
					if r.Heads["a"] != int64(i)+1 || r.FirstID != int64(i)+1 {
						rt.Fatalf("batch %d: %+v", i, r)
					}
					break
				}
				var e *fault.Error
				if !errors.As(err, &e) || !e.Retry {
					rt.Fatalf("batch %d: %v", i, err)
				}
			}
		}
		rows, err := inner.Events(rt.Context(), "a", 0, 0)
		if err != nil || !slices.Equal(payloads(rows), want) {
			rt.Fatalf("events %q, %v; want %q", payloads(rows), err, want)
		}
		records, err := inner.Find(rt.Context(), journal.Query{})
		if err != nil || !slices.Equal(keys(records), want) {
			rt.Fatalf("records %v, %v", records, err)
		}
		box, err := inner.Inbox(rt.Context(), "s", 0, 0)
		if err != nil || len(box) != n {
			rt.Fatalf("inbox %v, %v", box, err)
		}
	})
}
