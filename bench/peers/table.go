package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is one line of the table. Zero members are not measured.
type row struct {
	Name    string  `json:"name"`
	P50US   float64 `json:"p50_us"`
	P99US   float64 `json:"p99_us"`
	ReadyMS float64 `json:"ready_ms"` // median, spawn to ready
	RSSKiB  int64   `json:"rss_kib"`  // of the worker
}

// print writes rows with their ratios to the first one.
func print(out io.Writer, rows []row) {
	fmt.Fprintf(out, "%-46s %12s %12s %8s %11s %8s %10s\n", "", "p50", "p99", "×", "ready", "×", "memory")
	for _, r := range rows {
		fmt.Fprintf(out, "%-46s %12s %12s %8s %11s %8s %10s\n", r.Name,
			figure(r.P50US, "%.0f µs"), figure(r.P99US, "%.0f µs"), times(rows[0].P50US, r.P50US),
			figure(r.ReadyMS, "%.1f ms"), times(rows[0].ReadyMS, r.ReadyMS),
			figure(float64(r.RSSKiB)/1024, "%.1f MB"))
	}
	fmt.Fprintf(out, "\n× = how many times faster than the first row. Memory is the worker's resident set, before its first await.\n")
}

func figure(v float64, format string) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func times(first, this float64) string {
	if first == 0 || this == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", first/this)
}

// quantile of the durations, in microseconds.
func quantile(d []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(d))
	return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Nanoseconds()) / 1e3
}

// timed calls f so many times after a warm-up and returns how long each took.
func timed(warmup, n int, f func() error) ([]time.Duration, error) {
	for range warmup {
		if err := f(); err != nil {
			return nil, err
		}
	}
	took := make([]time.Duration, 0, n)
	for range n {
		began := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// resident is the resident set of a process in KiB.
func resident(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("process %d has no resident set", pid)
}
