package supervise_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/internal/supervise"
)

// ended cells of every kind: what the host itself observes of a worker's end.
func TestCausesAreToldApart(t *testing.T) {
	t.Parallel()
	seven, zero := 7, 0
	signal := func(name string) *string { return &name }
	tests := []struct {
		name, code string
		want       event.Cause
	}{
		{"os._exit", "import os\nos._exit(7)", event.Cause{Kind: event.CauseExit, Code: &seven}},
		{"os._exit well", "import os\nos._exit(0)", event.Cause{Kind: event.CauseExit, Code: &zero}},
		{"SIGKILL", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
			event.Cause{Kind: event.CauseSignal, Signal: signal("SIGKILL")}},
		{"SIGSEGV", "import os, signal, time\nos.kill(os.getpid(), signal.SIGSEGV)\ntime.sleep(600)",
			event.Cause{Kind: event.CauseSignal, Signal: signal("SIGSEGV")}},
		{"abort", "import os\nos.abort()", event.Cause{Kind: event.CauseSignal, Signal: signal("SIGABRT")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Attr("requirement", "CP-024 CP-142")
			t.Parallel()
			sp, _ := workbench(t)
			p := start(t, sp)
			exit := lost(t, p, "import os\nos.write(2, b'last words')\n"+tt.code)
			if exit.Cause.Text == "" {
				t.Error("no text")
			}
			t.Log(exit.Cause.Text)
			text := exit.Cause.Text
			exit.Cause.Text = ""
			if diff := cmp.Diff(tt.want, exit.Cause); diff != "" {
				t.Errorf("cause %q (-want +got):\n%s", text, diff)
			}
			if !strings.Contains(exit.Stderr.Text, "last words") {
				t.Errorf("stderr %q", exit.Stderr.Text)
			}
		})
	}
}

// TestClosedDescriptors: a cell that closes the worker's connection costs the worker
// at once, and the cause says why.
func TestClosedDescriptors(t *testing.T) {
	t.Attr("requirement", "CP-024")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	exit := lost(t, p, "import os\nos.closerange(3, 21)")
	if exit.Cause.Kind != event.CauseExit || exit.Cause.Code == nil || *exit.Cause.Code != 71 ||
		!strings.Contains(exit.Cause.Text, "a cell has closed its connection") {
		t.Errorf("cause %+v", exit.Cause)
	}
}

// TestSysExitKeepsTheWorker is the one end that is the cell's alone (W26).
func TestSysExitKeepsTheWorker(t *testing.T) {
	t.Attr("requirement", "CP-142")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	c, err := p.Execute(t.Context(), "e-1", "kept = 5\nimport sys\nsys.exit(3)")
	if err != nil || c.Cell.Status != "error" || c.Cell.Error == nil || !strings.Contains(*c.Cell.Error, "3") {
		t.Errorf("Execute = %+v, %v", c.Cell, err)
	}
	if got := result(t, p, "e-2", "kept"); got != "5" {
		t.Errorf("kept = %s", got)
	}
}

// TestOutOfMemory lets the kernel kill a worker in a small control group: the cause
// is memory, and the text names the limit that was reached (W26, W30).
func TestOutOfMemory(t *testing.T) {
	t.Attr("requirement", "CP-024 CP-142")
	t.Parallel()
	const limit = 64 << 20
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("reeve-test-%d", os.Getpid()))
	limitFile := filepath.Join(group, "memory.limit_in_bytes")
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group = filepath.Join("/sys/fs/cgroup", filepath.Base(group))
		limitFile = filepath.Join(group, "memory.max")
	}
	err := os.Mkdir(group, 0o755)
	if err == nil {
		t.Cleanup(func() {
			if err := os.Remove(group); err != nil {
				t.Error(err)
			}
		})
		err = os.WriteFile(limitFile, []byte(strconv.Itoa(limit)), 0)
	}
	reevetest.Need(t, err == nil, fmt.Sprintf("a memory control group this user may make: %v", err))

	sp, _ := workbench(t)
	python := sp.Python
	sp.Python = filepath.Join(t.TempDir(), "python3")
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs || exit 1\nexec %s \"$@\"\n", group, python)
	if err := os.WriteFile(sp.Python, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, sp)
	exit := lost(t, p, "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 20)))")
	if exit.Cause.Kind != event.CauseMemory || !strings.Contains(exit.Cause.Text, strconv.Itoa(limit)) {
		t.Errorf("cause %+v", exit.Cause)
	}
	t.Log(exit.Cause.Text)
}

// TestForkedChildFallsOffTheEnd: the child of a fork leaves by itself and only the
// worker answers (W13).
func TestForkedChildFallsOffTheEnd(t *testing.T) {
	t.Attr("requirement", "CP-142")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	pid, err := strconv.Atoi(result(t, p, "e-1", "import os\nchild = os.fork()\nchild"))
	if err != nil || pid <= 0 {
		t.Fatalf("child %d %v", pid, err)
	}
	if got := result(t, p, "e-2", "os.waitpid(child, 0)[1]"); got != "0" {
		t.Errorf("the child's status: %s", got)
	}
	gone(t, pid)
}

// TestChattySubprocess fills one pipe after the other, and leaves a child behind
// that holds both (W14).
func TestChattySubprocess(t *testing.T) {
	t.Attr("requirement", "CP-032")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	child := `import os; os.write(2, b"e" * (1 << 20)); os.write(1, b"o" * (1 << 20))`
	got := result(t, p, "e-1", fmt.Sprintf(`import subprocess, sys
a = subprocess.run([sys.executable, "-c", %q]).returncode
b = subprocess.run([sys.executable, "-c", %q], capture_output=True)
left = subprocess.Popen(["/bin/sleep", "1000"])
a, b.returncode, len(b.stdout), len(b.stderr)`, child, child))
	if got != "(0, 0, 1048576, 1048576)" {
		t.Errorf("result %s", got)
	}
	p.Stop(t.Context())
	stdout, stderr := p.Tails()
	if stdout.Dropped+int64(len(stdout.Text)) != 1<<20 || stderr.Dropped+int64(len(stderr.Text)) != 1<<20 {
		t.Errorf("tails count %d and %d", stdout.Dropped+int64(len(stdout.Text)), stderr.Dropped+int64(len(stderr.Text)))
	}
}

// TestMultiprocessing ends with a result under both ways of starting (W15).
func TestMultiprocessing(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"fork", "spawn"} {
		t.Run(method, func(t *testing.T) {
			t.Attr("requirement", "CP-033")
			t.Parallel()
			sp, _ := workbench(t)
			p := start(t, sp)
			got := result(t, p, "e-1", fmt.Sprintf(`import multiprocessing
def f(n):
    print("working on", n)
    return n * n
with multiprocessing.get_context(%q).Pool(2) as pool:
    squares = pool.map(f, range(4))
squares`, method))
			if got != "[0, 1, 4, 9]" {
				t.Errorf("result %s", got)
			}
		})
	}
}

// TestInputSaysTheWayOut: nothing to read, at once (W20).
func TestInputSaysTheWayOut(t *testing.T) {
	t.Attr("requirement", "CP-142")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	c, err := p.Execute(t.Context(), "e-1", "input('name? ')")
	if err != nil || c.Cell.Status != "error" || !strings.Contains(*c.Cell.Error, "EOFError") {
		t.Errorf("Execute = %+v, %v", c.Cell, err)
	}
	if got := result(t, p, "e-2", "import sys\nsys.stdin.read()"); got != "''" {
		t.Errorf("stdin.read() = %s", got)
	}
}

// TestObjectsStayInTheWorker: no method of a cell's object runs in this process
// (W25).
func TestObjectsStayInTheWorker(t *testing.T) {
	t.Attr("requirement", "CP-007")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	log := filepath.Join(t.TempDir(), "log")
	result(t, p, "e-1", fmt.Sprintf(`import os
class Trap:
    def note(self, *_):
        with open(%q, "a") as f:
            f.write("%%d\n" %% os.getpid())
        return "trap"
    __repr__ = __eq__ = __hash__ = __reduce__ = __del__ = note
trap = Trap()
trap`, log))
	p.Stop(t.Context())
	raw, err := os.ReadFile(log)
	if err != nil || len(raw) == 0 {
		t.Fatalf("the trap was never touched: %v", err)
	}
	for pid := range strings.FieldsSeq(string(raw)) {
		if pid != strconv.Itoa(p.PID()) {
			t.Errorf("a method ran in process %s, the worker is %d", pid, p.PID())
		}
	}
}

// whole joins what came live and what came with the completion.
func whole(s *sink, id string, c supervise.Completion) string {
	var b strings.Builder
	b.WriteString(s.text(id))
	for _, r := range c.Cell.Output {
		if r.Stream != "result" {
			b.WriteString(r.Text)
		}
	}
	return b.String()
}

// TestFlood prints without end until it is interrupted: this process does not grow,
// and the reply has head, tail, the count, and a spool that gives back the retained
// bytes exactly (W18). Not parallel, as it looks at the memory of the whole process.
func TestFlood(t *testing.T) { //nolint:paralleltest // see above
	t.Attr("requirement", "CP-009 CP-141")
	sp, s := workbench(t)
	p := start(t, sp)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	end := running(t, t.Context(), p, "e-1", "n = 0\n", "while True:\n    print('%08d' % n + 'x' * 991)\n    n += 1")
	time.Sleep(2 * time.Second) // the flood's length is the test's matter, not its order
	if _, kept, err := p.Interrupt(t.Context(), "e-1"); !kept || err != nil {
		t.Fatalf("Interrupt: kept %t, %v", kept, err)
	}
	got := <-end
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 50<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if got.err != nil || got.c.Spool == nil {
		t.Fatalf("Execute = %+v, %v, spool error %v", got.c, got.err, got.c.SpoolErr)
	}
	kept := whole(s, "e-1", got.c)
	total := got.c.Spool.Total
	if int64(len(kept))+got.c.Cell.TruncatedBytes != total {
		t.Errorf("%d bytes kept and %d truncated of %d", len(kept), got.c.Cell.TruncatedBytes, total)
	}
	body, err := io.ReadAll(got.c.Spool.Body)
	if err := errors.Join(err, got.c.Spool.Body.Close()); err != nil {
		t.Fatal(err)
	}
	from, to := got.c.Spool.DropFrom, got.c.Spool.DropTo
	t.Logf("%d bytes printed, %d to %d dropped", total, from, to)
	if int64(len(body)) != total-(to-from) {
		t.Fatalf("the spool holds %d bytes of %d without [%d, %d)", len(body), total, from, to)
	}
	// Every line is 1000 bytes long and tells its own place.
	for at := int64(0); at < total; at += 1000 {
		if at+1000 > from && at < to {
			continue
		}
		i := at
		if at >= to {
			i -= to - from
		}
		if want := fmt.Sprintf("%08d", at/1000); !bytes.HasPrefix(body[i:], []byte(want+"x")) {
			t.Fatalf("byte %d of the output begins %q, want %s", at, body[i:i+9], want)
		}
	}
	if n := bytes.Count(body, []byte("x")); n < len(body)*98/100 {
		t.Errorf("%d of %d bytes are what was printed between the numbers", n, len(body))
	}
	if !strings.HasPrefix(kept, string(body[:1000])) || !strings.HasSuffix(kept, string(body[len(body)-1000:])) {
		t.Error("the record does not begin and end as the output does")
	}
	if got := result(t, p, "e-2", "'afterwards'"); got != "'afterwards'" {
		t.Errorf("next cell: %s", got)
	}
}

// TestSpoolOutlivesTheWorker: what a killed worker had printed beyond its record
// can still be read.
func TestSpoolOutlivesTheWorker(t *testing.T) {
	t.Attr("requirement", "CP-024 CP-141")
	t.Parallel()
	sp, s := workbench(t)
	p := start(t, sp)
	exit := lost(t, p, `import os, signal, time
for n in range(100):
    print("%03d" % n + "y" * 996)
time.sleep(1)
os.kill(os.getpid(), signal.SIGKILL)`)
	if exit.Spool == nil {
		t.Fatalf("no spool: %v", exit.SpoolErr)
	}
	body, err := io.ReadAll(exit.Spool.Body)
	if err := errors.Join(err, exit.Spool.Body.Close()); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for n := range 100 {
		fmt.Fprintf(&want, "%03d%s\n", n, strings.Repeat("y", 996))
	}
	if string(body) != want.String() || exit.Spool.Total != int64(want.Len()) {
		t.Errorf("spool: %d bytes, total %d, want %d", len(body), exit.Spool.Total, want.Len())
	}
	if live := s.text("e-lost"); live == "" || !strings.HasPrefix(want.String(), live) {
		t.Errorf("%d bytes came live", len(live))
	}
}

// TestEnvironmentAndDirectory: every generation gets what the spec says and nothing
// more but the marker (W10).
func TestEnvironmentAndDirectory(t *testing.T) {
	t.Parallel()
	sp, _ := workbench(t)
	sp.Env = []string{"PATH=/usr/bin:/bin", "A=1"}
	var last string
	for range 2 {
		p := start(t, sp)
		got := result(t, p, "e-1", "import os\n(os.getcwd(), sorted(k for k in os.environ if k != 'LC_CTYPE'), os.environ['A'])")
		want := fmt.Sprintf("('%s', ['A', 'PATH', '%s'], '1')", sp.Dir, supervise.Marker)
		if got != want || (last != "" && got != last) {
			t.Errorf("worker sees %s, want %s", got, want)
		}
		last = got
		p.Stop(t.Context())
	}
}

// TestChildrenDoNotInherit: a process started by a cell gets neither the token's
// pipe nor the socket.
func TestChildrenDoNotInherit(t *testing.T) {
	t.Attr("requirement", "CP-002")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	got := result(t, p, "e-1", `import subprocess
subprocess.run(["/bin/ls", "/proc/self/fd"], capture_output=True, text=True, close_fds=False).stdout.split()`)
	// 0, 1, 2, and the directory that ls reads.
	if got != "['0', '1', '2', '3']" {
		t.Errorf("descriptors of a child: %s", got)
	}
}

// TestNamesAndArtifactsComeBeforeTheResult: when Execute returns, the sink has what
// the cell bound and the pictures it made.
func TestNamesAndArtifactsComeBeforeTheResult(t *testing.T) {
	t.Attr("requirement", "CP-144")
	t.Parallel()
	sp, s := workbench(t)
	p := start(t, sp)
	result(t, p, "e-1", "class Picture:\n    def _repr_png_(self):\n        return b'\\x89PNG' + b'x' * 700000\nPicture()")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) != 1 || s.names[0].ID != "e-1" || len(s.names[0].Added) != 1 || s.names[0].Added[0] != "Picture" {
		t.Errorf("names %+v", s.names)
	}
	var size int
	for i, a := range s.artifacts {
		if a.ID != "e-1" || a.MIME != "image/png" || a.Index != int64(i) || a.Last != (i == len(s.artifacts)-1) {
			t.Errorf("part %d: %s %s %d %t", i, a.ID, a.MIME, a.Index, a.Last)
		}
		size += len(a.Data)
	}
	if len(s.artifacts) < 2 || size != 700004 {
		t.Errorf("%d parts, %d bytes", len(s.artifacts), size)
	}
}

// TestCPUTime: a cell that computes is charged for it, one that waits is not.
func TestCPUTime(t *testing.T) {
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	spent := func(id, code string) int64 {
		t.Helper()
		c, err := p.Execute(t.Context(), id, code)
		if err != nil || c.Cell.Status != "ok" || c.CPUMS == nil {
			t.Fatalf("Execute = %+v, %v, %v", c.Cell, c.CPUMS, err)
		}
		return *c.CPUMS
	}
	if ms := spent("e-1", "import time\nuntil = time.process_time() + 0.2\nwhile time.process_time() < until: pass"); ms < 195 || ms > 400 {
		t.Errorf("200 ms of computing are charged as %d", ms)
	}
	if ms := spent("e-2", "time.sleep(0.3)"); ms > 100 {
		t.Errorf("waiting is charged as %d ms", ms)
	}
}
