package host_test

import (
	"testing"
)

// BenchmarkCell is a cell with its durable intent and outcome, as a caller within
// the core sees it.
func BenchmarkCell(b *testing.B) {
	r := newRig(b)
	c := r.open(b)
	r.run(b, c, "s", "x = 1")
	b.ReportAllocs()
	for b.Loop() {
		if res := r.run(b, c, "s", "x"); res.Status != "ok" {
			b.Fatalf("got %+v", res)
		}
	}
}
