package supervise_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkCell is one cell through supervisor and worker, real Python: the call
// of Execute to its return.
func BenchmarkCell(b *testing.B) {
	for name, code := range map[string]string{"expression": "1+1", "statement": "x = 1", "print": "print('x')"} {
		b.Run(name, func(b *testing.B) {
			sp, _ := workbench(b)
			p := start(b, sp)
			n := 0
			run := func() {
				n++
				c, err := p.Execute(b.Context(), fmt.Sprintf("e-%d", n), code)
				if err != nil || c.Cell.Status != "ok" {
					b.Fatal(c, err)
				}
			}
			for range 1000 {
				run()
			}
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				run()
				took = append(took, time.Since(began))
			}
			percentiles(b, took)
			b.ReportMetric(float64(residentKB(b, p.PID())), "worker-kB")
			b.ReportMetric(float64(residentKB(b, p.ShimPID())), "shim-kB")
		})
	}
}

// BenchmarkSpawn is Start to a worker that is ready.
func BenchmarkSpawn(b *testing.B) {
	sp, _ := workbench(b)
	var took, ends []time.Duration
	for b.Loop() {
		p := start(b, sp)
		_, ready := p.Started()
		took = append(took, ready)
		began := time.Now()
		p.Stop(b.Context())
		ends = append(ends, time.Since(began))
	}
	percentiles(b, took)
	slices.Sort(ends)
	b.ReportMetric(float64(ends[len(ends)/2].Microseconds())/1000, "stop-p50-ms")
}

func percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
	b.ReportMetric(float64(took[0].Nanoseconds())/1000, "min-µs")
}

// residentKB is the resident size of a process in KiB.
func residentKB(t testing.TB, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no resident size of %d", pid)
	return 0
}
