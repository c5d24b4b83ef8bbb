package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	lite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// The batch of the figures: two events of 512 bytes and one record, as the start or
// the end of a cell writes it.
const payloadBytes = 512

func payload(seed int) []byte {
	b := make([]byte, payloadBytes)
	for i := range b {
		b[i] = byte(seed*31 + i)
	}
	return b
}

// handles stands for the time that begins the handle of a cell: keys rise, whatever
// the session.
var handles atomic.Int64

func figureBatch(stream string, n int64) journal.Batch {
	return journal.Batch{
		ID: fmt.Sprintf("cell-%08d", n),
		Append: []journal.Append{{Stream: stream, Head: 2 * n, Events: []journal.Event{
			{Kind: "cell.started", Version: 1, AtMS: 1_700_000_000_000 + n, Payload: payload(int(n))},
			{Kind: "cell.completed", Version: 1, AtMS: 1_700_000_000_000 + n, Payload: payload(int(n) + 1)},
		}}},
		Put: []journal.Record{{
			Kind: "cell", Key: fmt.Sprintf("cell_%012x", handles.Add(1000)), Session: stream, State: "ok",
			Body: []byte(`{"execution":"e-1","generation":"g-1","started_at_ms":1700000000000,"elapsed_ms":1}`),
		}},
	}
}

// bareBytes is what a batch of figureBatch amounts to, written plainly.
const bareBytes = 2*payloadBytes + 200

func open(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func closeStore(tb testing.TB, s *sqlite.Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// rawAppend appends and syncs for a time and returns how long each took.
func rawAppend(tb testing.TB, f *os.File, d time.Duration) []time.Duration {
	tb.Helper()
	b := make([]byte, bareBytes)
	var took []time.Duration
	for end := time.Now().Add(d); time.Now().Before(end); {
		start := time.Now()
		if _, err := f.Write(b); err != nil {
			tb.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			tb.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	return took
}

// commits lets writers commit for a time, each to a stream of its own, from head
// heads[w] on, and returns how long each commit took.
func commits(tb testing.TB, s journal.Store, heads []int64, d time.Duration) []time.Duration {
	tb.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for w := range heads {
		wg.Go(func() {
			var took []time.Duration
			stream := fmt.Sprintf("session/w%d-%d", len(heads), w)
			for time.Now().Before(end) {
				b := figureBatch(stream, heads[w])
				start := time.Now()
				if _, err := s.Commit(context.Background(), b); err != nil {
					tb.Error(err)
					return
				}
				took = append(took, time.Since(start))
				heads[w]++
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	wg.Wait()
	return all
}

// figures collects the rates of rounds taken in turn, so that a change of the
// machine's mood hits every kind alike.
type figures map[string][]float64

func (f figures) rate(kind string, took []time.Duration, d time.Duration) {
	f[kind] = append(f[kind], float64(len(took))/d.Seconds())
	slices.Sort(took)
	f[kind+" p50 µs"] = append(f[kind+" p50 µs"], float64(took[len(took)/2].Microseconds()))
	f[kind+" p99 µs"] = append(f[kind+" p99 µs"], float64(took[len(took)*99/100].Microseconds()))
}

func (f figures) median(kind string) float64 {
	v := slices.Sorted(slices.Values(f[kind]))
	return v[len(v)/2]
}

// ratio is the median of the ratios of each round.
func (f figures) ratio(a, b string) float64 {
	var r []float64
	for i := range f[a] {
		r = append(r, f[a][i]/f[b][i])
	}
	slices.Sort(r)
	return r[len(r)/2]
}

// BenchmarkJournalCommit compares, in alternating rounds of one run, a bare append
// with fdatasync, one writer and 32 writers. One iteration is one round of all
// three; -benchtime=15x is a good length.
func BenchmarkJournalCommit(b *testing.B) {
	dir := b.TempDir()
	raw, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	s := open(b, filepath.Join(dir, "reeve.db"))
	defer closeStore(b, s)
	const round = 300 * time.Millisecond
	one, many := make([]int64, 1), make([]int64, 32)
	commits(b, s, one, round) // the log reaches its length
	f := figures{}
	for b.Loop() {
		f.rate("raw", rawAppend(b, raw, round), round)
		f.rate("1 writer", commits(b, s, one, round), round)
		f.rate("32 writers", commits(b, s, many, round), round)
	}
	for _, kind := range []string{"raw", "1 writer", "32 writers"} {
		b.Logf("%-12s %7.0f/s  p50 %6.0f µs  p99 %6.0f µs", kind, f.median(kind), f.median(kind+" p50 µs"), f.median(kind+" p99 µs"))
	}
	b.ReportMetric(f.ratio("1 writer", "raw"), "writer/raw")
	b.ReportMetric(f.ratio("32 writers", "1 writer"), "32/1")
	b.ReportMetric(f.median("1 writer"), "commits/s")
	b.ReportMetric(0, "ns/op")
}

// fill makes a store with n events.
func fill(tb testing.TB, path string, n int) {
	tb.Helper()
	s := open(tb, path)
	const streams, perBatch = 20, 100
	heads := [streams]int64{}
	for i := 0; i < n; i += perBatch {
		w := i / perBatch % streams
		a := journal.Append{Stream: fmt.Sprintf("session/%d", w), Head: heads[w]}
		for j := range perBatch {
			a.Events = append(a.Events, journal.Event{Kind: "cell.started", Version: 1, AtMS: int64(i + j), Payload: payload(i + j)})
		}
		if _, err := s.Commit(context.Background(), journal.Batch{ID: fmt.Sprintf("fill-%d", i), Append: []journal.Append{a}}); err != nil {
			tb.Fatal(err)
		}
		heads[w] += perBatch
	}
	closeStore(tb, s)
}

// bareScan prepares a walk over the same rows in the same order that copies out
// every column, as the least that any reader does, with the engine's own settings.
func bareScan(tb testing.TB, path string) func() int {
	tb.Helper()
	c, err := lite.OpenConn(path, lite.OpenReadOnly)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	for _, pragma := range []string{"PRAGMA cache_size=-16384", "PRAGMA mmap_size=0"} {
		if err := sqlitex.ExecuteTransient(c, pragma, nil); err != nil {
			tb.Fatal(err)
		}
	}
	stmt := c.Prep(`SELECT e.id, s.name, e.seq, e.kind, e.version, e.at_ms, e.batch, e.prev, e.digest, e.causes, e.payload
		FROM events e JOIN streams s ON s.n = e.stream ORDER BY e.id`)
	buf := make([]byte, 64<<10)
	return func() int { return walk(tb, stmt, buf) }
}

func walk(tb testing.TB, stmt *lite.Stmt, buf []byte) int {
	tb.Helper()
	rows, sum := 0, int64(0)
	for {
		more, err := stmt.Step()
		if err != nil {
			tb.Fatal(err)
		}
		if !more {
			if sum == 0 {
				tb.Fatal("the rows are empty")
			}
			return rows
		}
		for _, col := range []int{0, 2, 4, 5} {
			sum += stmt.ColumnInt64(col)
		}
		for _, col := range []int{1, 3, 6} {
			sum += int64(len(stmt.ColumnText(col)))
		}
		for _, col := range []int{7, 8, 9, 10} {
			sum += int64(stmt.ColumnBytes(col, buf))
		}
		rows++
	}
}

// BenchmarkJournalVerify compares verification with a bare scan of the same rows,
// in turn; one iteration is one round of both over 100,000 events.
func BenchmarkJournalVerify(b *testing.B) {
	const n = 100_000
	path := filepath.Join(b.TempDir(), "reeve.db")
	fill(b, path, n)
	s := open(b, path)
	defer closeStore(b, s)
	scan := bareScan(b, path)
	f := figures{}
	for b.Loop() {
		start := time.Now()
		if rows := scan(); rows != n {
			b.Fatalf("scan saw %d rows", rows)
		}
		f["scan"] = append(f["scan"], n/time.Since(start).Seconds())
		start = time.Now()
		if r := journal.Verify(context.Background(), s, nil); r.Code() != "" || r.Events != n {
			b.Fatalf("verify: %+v", r)
		}
		f["verify"] = append(f["verify"], n/time.Since(start).Seconds())
	}
	b.ReportMetric(f.median("scan"), "scan-rows/s")
	b.ReportMetric(f.median("verify"), "verify-rows/s")
	b.ReportMetric(f.ratio("verify", "scan"), "verify/scan")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkJournalReopen opens a store of 100,000 and of 200,000 events: after an
// orderly end, and after one that left a log behind, which is checked first.
func BenchmarkJournalReopen(b *testing.B) {
	for _, n := range []int{100_000, 200_000} {
		path := filepath.Join(b.TempDir(), "reeve.db")
		fill(b, path, n)
		b.Run(fmt.Sprintf("clean/%d", n), func(b *testing.B) {
			for b.Loop() {
				s := open(b, path)
				b.StopTimer()
				closeStore(b, s)
				b.StartTimer()
			}
		})
		b.Run(fmt.Sprintf("unclean/%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				crashed := crash(b, path)
				b.StartTimer()
				s := open(b, crashed)
				b.StopTimer()
				closeStore(b, s)
				b.StartTimer()
			}
		})
	}
}

// crash copies the store with a log that holds one commit, as a killed process
// leaves it.
func crash(b *testing.B, path string) string {
	b.Helper()
	dir := b.TempDir()
	live := filepath.Join(dir, "live.db")
	copyFile(b, path, live)
	s := open(b, live)
	if _, err := s.Commit(context.Background(), figureBatch("session/last", 0)); err != nil {
		b.Fatal(err)
	}
	crashed := filepath.Join(dir, "crashed.db")
	copyFile(b, live, crashed)
	copyFile(b, live+"-wal", crashed+"-wal")
	closeStore(b, s)
	if err := os.Remove(live); err != nil {
		b.Fatal(err)
	}
	return crashed
}

func copyFile(b *testing.B, from, to string) {
	b.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		b.Fatal(err)
	}
	if err := durable.WriteFile(to, data, 0o600); err != nil {
		b.Fatal(err)
	}
}
