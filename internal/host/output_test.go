package host_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
)

type output struct {
	offset, total int64
	gap           *control.Gap
	body          string
}

func readOutput(t *testing.T, c *host.Core, cell string, offset int64) output {
	t.Helper()
	r, err := c.Output(t.Context(), cell, offset)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return output{r.Offset, r.Total, r.Gap, string(b)}
}

func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// M14: a reply that was cut says by how much, and the handle gives the rest byte
// for byte.
func TestTheRestOfACutOutputIsReadByHandle(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-141")
	r := newRig(t)
	c := r.open(t)
	var want bytes.Buffer
	for i := range 20_000 {
		want.WriteString(strings.Repeat("é", i%7) + itoa(i) + "\n")
	}
	res := r.run(t, c, "s", "for i in range(20_000): print('é' * (i % 7) + str(i))\n'end'")
	var shown int64
	for _, o := range res.Output {
		shown += int64(len(o.Text))
	}
	whole := want.String() + "'end'"
	if res.TruncatedBytes == 0 || shown > 65_536 || shown+res.TruncatedBytes != int64(len(whole)) || res.BytesTotal != int64(len(whole)) || res.Spool == nil {
		t.Fatalf("shown %d, truncated %d, total %d of %d, spool %+v", shown, res.TruncatedBytes, res.BytesTotal, len(whole), res.Spool)
	}
	if !strings.HasPrefix(whole, res.Output[0].Text) || text(res, "result") != "'end'" {
		t.Errorf("the record begins %.40q", res.Output[0].Text)
	}
	for _, offset := range []int64{0, 1, 70_000, int64(len(whole)) - 2, int64(len(whole))} {
		got := readOutput(t, c, res.Cell, offset)
		if got.body != whole[offset:] || got.offset != offset || got.total != int64(len(whole)) || got.gap != nil {
			t.Errorf("from %d: %d bytes of %d, gap %v", offset, len(got.body), got.total, got.gap)
		}
	}
	if _, err := c.Output(t.Context(), res.Cell, int64(len(whole))+1); fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("beyond the end: %v", err)
	}
	artifact, err := c.Artifact(t.Context(), res.Spool.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	defer artifact.Close()
	if b, err := io.ReadAll(artifact); err != nil || string(b) != want.String() {
		t.Errorf("the artifact has %d bytes, %v", len(b), err)
	}
}

// W18: of output without end the first and the last part are kept, with the
// dropped range named.
func TestOutputBeyondTheSpoolNamesWhatWasDropped(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-141")
	r := newRig(t)
	c := r.open(t)
	const line, n = 100, 200_000 // 20 MB
	res := r.run(t, c, "s", "for i in range(200_000): print(f'{i:099d}')")
	want := func(offset int64) string { // the line at an offset that starts one
		return strings.Repeat("0", 99-len(itoa(int(offset/line)))) + itoa(int(offset/line)) + "\n"
	}
	if res.BytesTotal != line*n || res.Spool == nil || res.Spool.DropFrom == 0 {
		t.Fatalf("total %d, spool %+v", res.BytesTotal, res.Spool)
	}
	got := readOutput(t, c, res.Cell, 0)
	if got.gap == nil || got.gap.From != res.Spool.DropFrom || got.gap.To != res.Spool.DropTo || got.total != line*n {
		t.Fatalf("gap %+v, total %d", got.gap, got.total)
	}
	if int64(len(got.body)) != got.gap.From+line*n-got.gap.To {
		t.Errorf("%d bytes around the gap %+v", len(got.body), got.gap)
	}
	if !strings.HasPrefix(got.body, want(0)+want(line)) || !strings.HasSuffix(got.body, want(line*(n-1))) {
		t.Errorf("it begins %.120q and ends %.120q", got.body, got.body[len(got.body)-120:])
	}
	after := readOutput(t, c, res.Cell, got.gap.From+5)
	if after.offset != got.gap.To || after.gap != nil || int64(len(after.body)) != line*n-got.gap.To || after.body != got.body[got.gap.From:] {
		t.Errorf("from within the gap: offset %d, %d bytes", after.offset, len(after.body))
	}
}

// W19: what a thread prints after the end of its cell is filed under that cell.
func TestLateOutputIsFiledUnderItsCell(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-143")
	r := newRig(t)
	c := r.open(t)
	first := r.run(t, c, "s", `import os, threading, time
def tick():
    while not os.path.exists('go'): time.sleep(.01)
    print('late', flush=True)
    open('said', 'w').close()
threading.Thread(target=tick).start()`)
	touch(t, r.workspace, "go")
	second := r.run(t, c, "s", "while not os.path.exists('said'): time.sleep(.01)\nprint('mine')")
	if text(second, "stdout") != "mine\n" {
		t.Errorf("the second cell has %+v", second.Output)
	}
	waitForEvent(t, c, "s", event.CellLateOutput)
	d, err := c.Cell(t.Context(), first.Cell)
	if err != nil || d.Late != "late\n" || text(d.Result, "stdout") != "" {
		t.Errorf("the first cell: late %q, %+v, %v", d.Late, d.Result.Output, err)
	}
}

// What a running cell prints can be read while it runs, also beyond the part that
// comes live.
func TestOutputOfARunningCellIsRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	var want strings.Builder
	for i := range 20_000 {
		want.WriteString("line " + itoa(i) + "\n")
	}
	p, got := start(t.Context(), c.Execute, r.request("s", "for i in range(20_000): print('line', i)\nopen('said', 'w').close()\nimport time\ntime.sleep(600)"))
	cell := p.wait(t, "output").Cell
	waitForFile(t, r.workspace, "said")
	var all strings.Builder
	for all.Len() < want.Len() {
		part := readOutput(t, c, cell, int64(all.Len()))
		if part.offset != int64(all.Len()) || part.gap != nil {
			t.Fatalf("asked for %d, got %+v", all.Len(), part.offset)
		}
		all.WriteString(part.body)
	}
	if all.String() != want.String() {
		t.Errorf("read %d bytes, want %d", all.Len(), want.Len())
	}
	if end := readOutput(t, c, cell, int64(want.Len())); end.body != "" || end.total != int64(want.Len()) {
		t.Errorf("at the end: %+v", end)
	}
	if _, err := c.Interrupt(t.Context(), cell, me); err != nil {
		t.Fatal(err)
	}
	<-got
	if after := readOutput(t, c, cell, 0); after.body != want.String() {
		t.Errorf("after its end: %d bytes", len(after.body))
	}
}

func waitForFile(t *testing.T, dir, name string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(time.Minute); ; {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("no file %s within a minute", name)
		}
	}
}

func TestALongRunningOutputIsReadAroundItsGap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	const line, n = 100, 200_000 // 20 MB
	p, got := start(t.Context(), c.Execute, r.request("s", "for i in range(200_000): print(f'{i:099d}')\nopen('said', 'w').close()\nimport time\ntime.sleep(600)"))
	cell := p.wait(t, "output").Cell
	waitForFile(t, r.workspace, "said")
	byteAt := func(at int64) byte {
		number := itoa(int(at / line))
		switch column := int(at % line); {
		case column == 99:
			return '\n'
		case column < 99-len(number):
			return '0'
		default:
			return number[column-(99-len(number))]
		}
	}
	at, kept, gaps := int64(0), 0, 0
	for at < line*n {
		part := readOutput(t, c, cell, at)
		if part.offset != at {
			gaps++
		}
		for i := range len(part.body) {
			if want := byteAt(part.offset + int64(i)); part.body[i] != want {
				t.Fatalf("byte %d is %q, want %q", part.offset+int64(i), part.body[i], want)
			}
		}
		kept += len(part.body)
		at = part.offset + int64(len(part.body))
	}
	if gaps != 1 || kept < 15<<20 {
		t.Errorf("%d gaps, %d bytes kept", gaps, kept)
	}
	if _, err := c.Interrupt(t.Context(), cell, me); err != nil {
		t.Fatal(err)
	}
	<-got
}

// CP-144: a picture is kept by its digest; the record names it.
func TestPicturesAreArtifacts(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-144 CP-035")
	r := newRig(t)
	c := r.open(t)
	res := r.run(t, c, "s", `class P:
    def _repr_png_(self): return b'\x89PNG\r\n\x1a\n' + bytes(700_000)
P()`)
	if res.Status != "ok" || len(res.Artifacts) != 1 || res.Artifacts[0].MIME != "image/png" || res.Artifacts[0].Size != 700_008 {
		t.Fatalf("got %+v", res)
	}
	a, err := c.Artifact(t.Context(), res.Artifacts[0].SHA256)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := io.ReadAll(a)
	if err != nil || !bytes.HasPrefix(b, []byte("\x89PNG")) || len(b) != 700_008 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// D11: the same picture twice is one artifact; W21: many pictures leave the record
// small.
func TestManyPicturesLeaveTheRecordSmall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	const show = "class P:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n' + bytes(100_000)\nP()"
	for range 3 {
		if res := r.run(t, c, "s", show); len(res.Artifacts) != 1 || res.BytesTotal > 1000 {
			t.Fatalf("got %+v", res)
		}
	}
	u, err := c.Usage(t.Context())
	if err != nil || u.Artifacts != 1 || u.PayloadBytes > 20_000 {
		t.Errorf("usage %+v, %v", u, err)
	}
}

// W18: output without end does not grow the core, and ends with head, tail, count
// and a handle. Not parallel: it measures this process.
func TestAFloodDoesNotGrowTheCore(t *testing.T) {
	t.Attr("requirement", "CP-141")
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "1")
	before := heap()
	q := r.request("s", "while True: print('x' * 1000)")
	q.TimeoutMS = 3000
	res, err := c.Execute(t.Context(), q, nil)
	if err != nil || res.Status != "interrupted" || res.Notice == nil || res.Spool == nil {
		t.Fatalf("got status %s, notice %+v, spool %+v, %v", res.Status, res.Notice, res.Spool, err)
	}
	if grown := int64(heap()) - int64(before); grown > 50<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	line := strings.Repeat("x", 1000) + "\n"
	record := text(res, "stdout")
	if res.BytesTotal != res.Spool.Total || res.TruncatedBytes == 0 || len(record) > 65_536 || !strings.HasPrefix(record, line) {
		t.Errorf("total %d, truncated %d, %d bytes in the record", res.BytesTotal, res.TruncatedBytes, len(record))
	}
	whole := readOutput(t, c, res.Cell, 0)
	if whole.total != res.BytesTotal || strings.Trim(whole.body, "x\n") != "" || int64(len(whole.body)) != res.Spool.Size {
		t.Errorf("by handle: total %d, %d bytes", whole.total, len(whole.body))
	}
	if after := r.run(t, c, "s", "2"); text(after, "result") != "2" || after.Generation != "g-1" {
		t.Errorf("after the flood: %+v", after)
	}
}

// heap is the memory in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// What a child process prints is nobody's output: the answer says so once, with its
// end, beside an output that stays as it was.
func TestRawOutputIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	if res := r.run(t, c, "s", "import subprocess, os\nprint('mine')"); res.Notice != nil {
		t.Errorf("a cell that prints: %+v", res.Notice)
	}
	res := r.run(t, c, "s", "print('mine')\n_ = subprocess.run(['/bin/echo', 'from a child'])")
	if n := res.Notice; n == nil || n.Kind != "unattributed_output" ||
		!strings.Contains(n.Text, `13 bytes to its stdout, which end with "from a child\n"`) || strings.Contains(n.Text, "stderr, which") {
		t.Errorf("notice %+v", n)
	}
	if text(res, "stdout") != "mine\n" || res.BytesTotal != 5 {
		t.Errorf("output %+v of %d bytes", res.Output, res.BytesTotal)
	}
	if res := r.run(t, c, "s", "1"); res.Notice != nil {
		t.Errorf("told again: %+v", res.Notice)
	}
	res = r.run(t, c, "s", "_ = os.write(2, ('é' * 1000).encode() + b'last words')\nos._exit(3)")
	n := res.Notice
	if n == nil || n.Kind != "namespace_lost" || !strings.Contains(n.Text, "2010 bytes to its stderr") || !strings.Contains(n.Text, `élast words"`) {
		t.Fatalf("notice %+v", n)
	}
	if strings.Contains(n.Text, "\uFFFD") || len(n.Text) > 2000 {
		t.Errorf("notice of %d bytes: %s", len(n.Text), n.Text)
	}
	if n := r.run(t, c, "s", "1").Notice; n == nil || strings.Contains(n.Text, "wrote outside") {
		t.Errorf("the next generation is told of the last one's: %+v", n)
	}
}
