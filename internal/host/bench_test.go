package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
)

// BenchmarkCell is a cell with its durable intent and outcome, as a caller within
// the core sees it.
func BenchmarkCell(b *testing.B) {
	r := newRig(b)
	c := r.open(b)
	r.run(b, c, "s", "x = 1")
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if res := r.run(b, c, "s", "x"); res.Status != "ok" {
			b.Fatalf("got %+v", res)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/10].Microseconds()), "p10-µs")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

// BenchmarkRecordVerb is a verb that writes only the journal, through gate and audit:
// one durable commit each, before its caller is answered. Every caller has a session
// of its own. Beside it stands what bench measures of the store alone.
func BenchmarkRecordVerb(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			r := newRig(b)
			c := r.open(b)
			var n atomic.Int64
			var wg sync.WaitGroup
			began := time.Now()
			for i := range callers {
				wg.Go(func() {
					call := control.RequestCall{
						Ops: `local.send(text="a line to the operator")`, Session: fmt.Sprintf("s%d", i), Workspace: r.workspace, By: me,
					}
					for n.Add(1) <= int64(b.N) {
						if a, err := c.Request(b.Context(), call); err != nil || a.Failed {
							b.Errorf("%s %v", a.Body, err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "commits/s")
		})
	}
}

// BenchmarkStartAfterKill starts a core where one with 50 living sessions was
// killed. A session costs what its snapshot holds and the few events after it,
// however many cells it has run; the check of the file after an unclean end grows
// with the file, and is measured by bench.
func BenchmarkStartAfterKill(b *testing.B) {
	for _, cells := range []int{5, 50, 500} {
		b.Run(fmt.Sprintf("cells=%d", cells), func(b *testing.B) {
			r := newRig(b)
			runMany(b, r, r.open(b), 50, cells)
			for b.Loop() {
				b.StopTimer()
				killed := *r
				killed.dir = copyKilled(b, r.dir)
				b.StartTimer()
				c := killed.open(b)
				b.StopTimer()
				if err := c.Close(); err != nil {
					b.Fatal(err)
				}
				if err := os.RemoveAll(killed.dir); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// runMany runs cells in every session, a few sessions at a time.
func runMany(b *testing.B, r *rig, c *host.Core, sessions, cells int) {
	b.Helper()
	var wg sync.WaitGroup
	turns := make(chan struct{}, 8)
	for s := range sessions {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			for n := range cells {
				res, err := c.Execute(b.Context(), r.request(fmt.Sprintf("s%d", s), fmt.Sprintf("x = %d", n)), nil)
				if err != nil || res.Status != "ok" {
					b.Errorf("cell %d: %+v, %v", n, res, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// copyKilled copies the journal of a living core, which nothing writes to, with its
// log: as a killed one leaves it.
func copyKilled(b *testing.B, dir string) string {
	b.Helper()
	to := filepath.Join(b.TempDir(), "data")
	if err := os.Mkdir(to, 0o700); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"host.json", "reeve.db", "reeve.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return to
}
