package work_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/work"
)

// history is stored canonical text by entry, and the projection it comes to.
type history struct {
	texts      [][]byte
	bytes      int64
	projection string // empty when nobody else computed it
}

// projections are what the histories of the larger set come to.
var projections = map[string]string{
	"multi-1k":   "b6d3fadeb4200348a7580210f6065e9e6748ff8285e09fc9c3a3f8c30dca6834",
	"single-1k":  "2acf6b5d9c031f014024905d423911959faf10bebcccc76616d4a97530284f2e",
	"multi-10k":  "6f38ddb0a8bb19cc358f4318568335cdb1ec0939a15bbede0f0f89312a0d7617",
	"single-10k": "6cdccdb6771f9750ace38e8abfbe039ede48cf1d3c4ea291a1f4971ef30c96b9",
}

// perf reads a history of the larger set; without one there is nothing to measure.
func perf(t testing.TB, name string) history {
	t.Helper()
	big := os.Getenv("REEVE_VECTORS")
	path := filepath.Join(big, "developer-v8", "perf", name+".jsonl.gz")
	_, err := os.Stat(path)
	reevetest.Need(t, big != "" && err == nil, "performance inputs (REEVE_VECTORS names a folder with developer-v8/perf)")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	h := history{projection: projections[name]}
	for lines := bufio.NewReader(z); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			h.add(t, line)
		}
		if err != nil {
			return h
		}
	}
}

func (h *history) add(t testing.TB, text []byte) {
	t.Helper()
	form, err := canon.Canonicalize(nil, bytes.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	h.texts = append(h.texts, form)
	h.bytes += int64(len(form))
}

// made is a history of our own of at least n events: changes in one scope, or in scopes of
// one change each.
func made(t testing.TB, n int, scopes bool) history {
	t.Helper()
	m := newMaker(t, work.Strict)
	var h history
	for i := 0; m.n < n; i++ {
		if i == 0 || scopes {
			m.must(m.open(fmt.Sprintf("scope:%d", i)))
		}
		name := strconv.Itoa(i)
		m.change(name)
		r, v := reroute("landing:"+name), verification("landing:"+name)
		m.must(m.frame(r, "landing:"+name))
		m.must(m.answer(r))
		m.must(m.frame(v, "landing:"+name))
		m.must(m.answer(v, "landing:"+name))
		if scopes {
			m.must(m.close())
		}
	}
	p := m.b.Projection()
	for i := range p.Len() {
		h.add(t, []byte(p.At(i).Event.Text()))
	}
	h.projection = string(p.Digest())
	return h
}

func (h history) parse() []*work.Entry {
	all := make([]*work.Entry, len(h.texts))
	for i, text := range h.texts {
		all[i] = work.Parse(text)
	}
	return all
}

func (h history) check(t testing.TB, got work.Digest) {
	t.Helper()
	if h.projection != string(got) {
		t.Fatalf("projection %s, want %s", got, h.projection)
	}
}

// TestPerfInputs holds the measured histories to the projections they are known to have.
func TestPerfInputs(t *testing.T) {
	t.Parallel()
	for name := range projections {
		t.Run(name, func(t *testing.T) {
			t.Attr("requirement", "DV-057 DV-058 DV-222")
			t.Parallel()
			h := perf(t, name)
			b := work.Reconstruct(slices.Values(h.parse()), work.All(work.Reference))
			if b.Blocked() != "" {
				t.Fatal(b.Blocked())
			}
			h.check(t, b.Projection().Digest())
		})
	}
}

// per reports a benchmark that works on n events at a time.
func per(b *testing.B, n int, bytes int64) {
	b.Helper()
	b.SetBytes(bytes)
	ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(n)
	b.ReportMetric(ns, "ns/event")
	b.ReportMetric(1e9/ns, "events/s")
	b.ReportMetric(0, "ns/op")
}

func bench(b *testing.B, f func(b *testing.B, h history)) {
	for _, name := range []string{"multi-1k", "single-1k", "multi-10k", "single-10k"} {
		b.Run(name, func(b *testing.B) { f(b, perf(b, name)) })
	}
}

// allocs reports bytes and allocations per event of one run of f.
func allocs(b *testing.B, n int, f func()) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n), "B/event")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/event")
}

// measure runs f, which handles all events of h, again and again.
func measure(b *testing.B, h history, f func()) {
	b.Helper()
	for b.Loop() {
		f()
	}
	per(b, len(h.texts), h.bytes)
	allocs(b, len(h.texts), f)
}

// BenchmarkEnvelope is parse and verify of stored text: canonical form, envelope, digest.
func BenchmarkEnvelope(b *testing.B) {
	bench(b, func(b *testing.B, h history) {
		measure(b, h, func() {
			for _, text := range h.texts {
				if e := work.ParseEnvelope(text); e.Refusal() != nil {
					b.Fatal(e.Refusal())
				}
			}
		})
	})
}

// BenchmarkParse is the envelope and the payload with its digests.
func BenchmarkParse(b *testing.B) {
	bench(b, func(b *testing.B, h history) {
		measure(b, h, func() {
			for _, text := range h.texts {
				if p, no := work.Parse(text).Payload(); p == nil {
					b.Fatal(no)
				}
			}
		})
	})
}

// BenchmarkReduce folds parsed entries.
func BenchmarkReduce(b *testing.B) {
	bench(b, func(b *testing.B, h history) { reduce(b, h) })
}

func reduce(b *testing.B, h history) {
	entries := h.parse()
	measure(b, h, func() {
		if s := (work.State{}).Replay(slices.Values(entries), 0, work.All(work.Reference), nil); s.Len() != len(entries) {
			b.Fatalf("%d accepted", s.Len())
		}
	})
}

// BenchmarkProject makes the receipts of accepted events and their chain.
func BenchmarkProject(b *testing.B) {
	bench(b, func(b *testing.B, h history) {
		var events []*work.Accepted
		(work.State{}).Replay(slices.Values(h.parse()), 0, work.All(work.Reference), func(a *work.Accepted, _ *work.Rejection) { events = append(events, a) })
		measure(b, h, func() {
			p, no := work.Project(slices.Values(events))
			if no != nil {
				b.Fatal(no)
			}
			h.check(b, p.Digest())
		})
	})
}

// BenchmarkPipeline is all of it: from stored text to the branch with its projection.
func BenchmarkPipeline(b *testing.B) {
	bench(b, func(b *testing.B, h history) {
		measure(b, h, func() { h.check(b, pipeline(h, 1)) })
	})
}

// BenchmarkPipelineCores parses on all cores and folds on one.
func BenchmarkPipelineCores(b *testing.B) {
	bench(b, func(b *testing.B, h history) {
		measure(b, h, func() { h.check(b, pipeline(h, runtime.GOMAXPROCS(0))) })
	})
}

// piece is how many entries one core parses at a time.
const piece = 64

// pipeline reads a history with some parsers ahead of the one fold.
func pipeline(h history, parsers int) work.Digest {
	if parsers == 1 {
		return work.Reconstruct(func(yield func(*work.Entry) bool) {
			for _, text := range h.texts {
				if !yield(work.Parse(text)) {
					return
				}
			}
		}, work.All(work.Reference)).Projection().Digest()
	}
	pieces := slices.Collect(slices.Chunk(h.texts, piece))
	done := make([]chan []*work.Entry, len(pieces))
	for i := range done {
		done[i] = make(chan []*work.Entry, 1)
	}
	next := make(chan int, len(pieces))
	for i := range pieces {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range parsers {
		wg.Go(func() {
			for i := range next {
				done[i] <- history{texts: pieces[i]}.parse()
			}
		})
	}
	d := work.Reconstruct(func(yield func(*work.Entry) bool) {
		for i := range done {
			for _, e := range <-done[i] {
				if !yield(e) {
					return
				}
			}
		}
	}, work.All(work.Reference)).Projection().Digest()
	wg.Wait()
	return d
}

// BenchmarkGrowth shows the cost per event against the length of the history, which
// REEVE_BENCH_EVENTS names: "10000 100000 1000000".
func BenchmarkGrowth(b *testing.B) {
	sizes := os.Getenv("REEVE_BENCH_EVENTS")
	if sizes == "" {
		sizes = "10000"
	}
	for _, size := range strings.Fields(sizes) {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		for shape, scopes := range map[string]bool{"single": false, "multi": true} {
			b.Run(shape+"-"+size, func(b *testing.B) {
				h := made(b, n, scopes)
				b.Run("reduce", func(b *testing.B) { reduce(b, h) })
				b.Run("pipeline", func(b *testing.B) { measure(b, h, func() { h.check(b, pipeline(h, 1)) }) })
			})
		}
	}
}

// BenchmarkPreflight checks a batch of one event behind a long history.
func BenchmarkPreflight(b *testing.B) {
	bench(b, func(b *testing.B, h history) {
		branch := work.Reconstruct(slices.Values(h.parse()), work.All(work.Reference))
		q := work.Request{Drafts: []work.Draft{{Event: "event:bench", Kind: work.SupportObserved, At: someTime, Payload: form(b, val(o{"support": o{"supportId": "support:bench",
			"sourceKind": "judgment-result", "sourceId": "source:bench", "sourceRevisionSha256": descriptor("x"), "supportSha256": descriptor("y")}}))}}}
		if branch.Active() == nil {
			q = work.Request{Scope: "scope:bench", Drafts: []work.Draft{{Event: "event:bench", Kind: work.ScopeOpened, At: someTime, Payload: []byte("{}")}}}
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, no := branch.Preflight(q); no != nil {
				b.Fatal(no)
			}
		}
	})
}
