package mcpserve_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestNamespaceLivesBetweenCalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cs := h.connect(t)
	if g, res := call(t, cs, "execute", map[string]any{"code": "x = 6 * 7"}); g.Status != "ok" || res.IsError {
		t.Fatal(words(res))
	}
	if g, _ := call(t, cs, "execute", map[string]any{"code": "x"}); printed(t, g) != "42" {
		t.Errorf("x is %q", printed(t, g))
	}
	g, res := call(t, cs, "execute", map[string]any{"code": "1/0"})
	if res.IsError || g.Status != "error" || g.Error == nil || !strings.Contains(*g.Error, "ZeroDivisionError") {
		t.Errorf("%+v", g)
	}
	if g, _ := call(t, cs, "execute", map[string]any{"code": "import os; os.getcwd()"}); printed(t, g) != fmt.Sprintf("'%s'", h.work) {
		t.Errorf("cells start in %s", printed(t, g))
	}
}

func TestNamespacesAreSharedOnlyByName(t *testing.T) {
	t.Parallel()
	t.Attr("row", "W12")
	h := newHouse(t)
	a, b := h.connect(t), h.connect(t)
	call(t, a, "execute", map[string]any{"code": "x = 'a'"})
	call(t, b, "execute", map[string]any{"code": "x = 'b'"})
	for who, cs := range map[string]*mcp.ClientSession{"'a'": a, "'b'": b} {
		if g, _ := call(t, cs, "execute", map[string]any{"code": "x"}); printed(t, g) != who {
			t.Errorf("%s reads %s", who, printed(t, g))
		}
	}
	call(t, a, "execute", map[string]any{"code": "y = 'both'", "session": "common"})
	if g, _ := call(t, b, "execute", map[string]any{"code": "y", "session": "common"}); printed(t, g) != "'both'" {
		t.Errorf("y is %s", printed(t, g))
	}
}

// Two cells of different sessions that can end only together, and two of one
// session that would spoil each other's file if they ran at once.
func TestOneSessionQueuesAndTwoRun(t *testing.T) {
	t.Parallel()
	t.Attr("row", "W6 M21")
	h := newHouse(t)
	cs := h.connect(t)
	const meet = `
import os
os.mkfifo("%[1]s") if not os.path.exists("%[1]s") else None
os.mkfifo("%[2]s") if not os.path.exists("%[2]s") else None
`
	call(t, cs, "execute", map[string]any{"code": fmt.Sprintf(meet, "ab", "ba"), "session": "a"})
	answers := make(chan got, 2)
	for session, code := range map[string]string{
		"a": `open("ab", "w").write("1"); open("ba").read()`,
		"b": `open("ab").read(); open("ba", "w").write("2")`,
	} {
		go func() {
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute",
				Arguments: map[string]any{"code": code, "session": session, "timeout_ms": 20000}})
			if err != nil {
				t.Error(err)
				answers <- got{}
				return
			}
			answers <- decode(t, res)
		}()
	}
	for range 2 {
		if g := <-answers; g.Status != "ok" {
			t.Errorf("two sessions: %+v", g)
		}
	}
	for range 2 {
		go func() {
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute", Arguments: map[string]any{
				"session": "a", "code": "import time\nopen('alone', 'x').close()\ntime.sleep(0.2)\nos.remove('alone')"}})
			if err != nil {
				t.Error(err)
				answers <- got{}
				return
			}
			answers <- decode(t, res)
		}()
	}
	for range 2 {
		if g := <-answers; g.Status != "ok" {
			t.Errorf("one session: %+v", g)
		}
	}
}

func TestEverythingElseAnswersWhileACellBlocks(t *testing.T) {
	t.Parallel()
	t.Attr("row", "W5")
	h := newHouse(t)
	cs := h.connect(t)
	first, _ := call(t, cs, "execute", map[string]any{"code": "print('early')\nx = 1", "session": "s"})
	done := make(chan got, 1)
	go func() {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute",
			Arguments: map[string]any{"code": "import time; time.sleep(600)", "session": "s"}})
		if err != nil {
			t.Error(err)
			close(done)
			return
		}
		done <- decode(t, res)
	}()
	cell := running(t, h.control(t), "s")
	if g, res := call(t, cs, "status", map[string]any{"session": "s"}); len(g.Cells) != 2 || !strings.Contains(words(res), "running") {
		t.Errorf("status: %s", words(res))
	}
	if _, res := call(t, cs, "status", map[string]any{"cell": first.Cell}); !strings.Contains(words(res), "early") {
		t.Errorf("earlier output: %s", words(res))
	}
	g, res := call(t, cs, "interrupt", map[string]any{"cell": cell})
	if !g.Found || res.IsError {
		t.Errorf("interrupt: %s", words(res))
	}
	if g := <-done; g.Status != "interrupted" || g.Cell != cell {
		t.Errorf("%+v", g)
	}
	if g, _ := call(t, cs, "execute", map[string]any{"code": "x", "session": "s"}); printed(t, g) != "1" {
		t.Errorf("the namespace is gone: %+v", g)
	}
}

func TestTimeoutAnswersWithTheHandle(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-145")
	h := newHouse(t)
	cs := h.connect(t)
	// The time limit is the call's, waiting for a worker included; here only the cell's
	// share is meant.
	call(t, cs, "execute", map[string]any{"code": "'ready'"})
	for _, code := range []string{
		"print('before', flush=True)\nimport time\ntime.sleep(600)",
		// Catches what it is asked with, so that only a kill ends it.
		"print('before', flush=True)\nimport time\nwhile True:\n    try:\n        time.sleep(600)\n    except BaseException:\n        pass",
	} {
		begun := time.Now()
		g, res := call(t, cs, "execute", map[string]any{"code": code, "timeout_ms": 500})
		if res.IsError || g.Cell == "" || g.Notice == nil || g.Notice.Kind != "timeout" {
			t.Errorf("%+v: %s", g, words(res))
			continue
		}
		// 0.5 s and the ladder's 5.5 s; the rest is the mercy of a busy machine.
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("answered after %s", took)
		}
		if _, res := call(t, cs, "status", map[string]any{"cell": g.Cell}); !strings.Contains(words(res), "before") {
			t.Errorf("what it printed is not there: %s", words(res))
		}
		// The second one costs the namespace; the next worker is started in peace.
		call(t, cs, "execute", map[string]any{"code": "'ready'"})
	}
}

func TestCancelledCellStopsAndItsNamespaceStays(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M5 M6")
	h := newHouse(t)
	cs := h.connect(t)
	call(t, cs, "execute", map[string]any{"code": "x = 'kept'", "session": "s"})
	ctx, cancel := context.WithCancel(t.Context())
	c := h.control(t)
	go func() {
		running(t, c, "s")
		cancel()
	}()
	_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "execute",
		Arguments: map[string]any{"code": "import asyncio; await asyncio.sleep(600)", "session": "s"}})
	if err == nil {
		t.Error("the cancelled call was answered")
	}
	// The session is free again: the next cell does not wait for 600 s.
	if g, res := call(t, cs, "execute", map[string]any{"code": "x", "session": "s"}); printed(t, g) != "'kept'" {
		t.Errorf("%s", words(res))
	}
	cells, err := c.ListCells(t.Context(), "s", 2)
	if err != nil || len(cells) != 2 || cells[1].Status != "interrupted" {
		t.Errorf("%+v, %v", cells, err)
	}
}

func TestFloodIsCutSaidAndReadBack(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-141")
	t.Attr("row", "M14 W18")
	h := newHouse(t)
	cs := h.connect(t)
	g, res := call(t, cs, "execute", map[string]any{"code": `
import hashlib
text = "".join(f"{n:07d} \u00e9\u4e2d\U0001f600\n" for n in range(12000))
print(text, end="")
hashlib.sha256(text.encode()).hexdigest()`})
	if g.Status != "ok" || g.TruncatedBytes == 0 || len(g.Output) > 80<<10 {
		t.Fatalf("status %s, %d bytes cut", g.Status, g.TruncatedBytes)
	}
	if !strings.HasPrefix(words(res), "[cut by reeve: ") {
		t.Errorf("the text begins %.100q", words(res))
	}
	all := output(t, g)
	result := all[len(all)-1].Text
	want := strings.Trim(result, "'\n")
	var back []byte
	for offset := int64(0); ; {
		_, res := call(t, cs, "status", map[string]any{"cell": g.Cell, "offset": offset, "limit": 65536})
		var s struct {
			Output struct {
				Text  string
				Lossy bool
				Next  *int64 `json:"next_offset"`
			}
		}
		b, err := json.Marshal(res.StructuredContent)
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil || s.Output.Lossy {
			t.Fatalf("%v in %.300s", err, b)
		}
		back = append(back, s.Output.Text...)
		if s.Output.Next == nil {
			break
		}
		offset = *s.Output.Next
	}
	// The displayed value stands behind what was printed.
	back, found := bytes.CutSuffix(back, []byte(result))
	sum := sha256.Sum256(back)
	if !found || hex.EncodeToString(sum[:]) != want {
		t.Errorf("%d bytes read back are not what was printed", len(back))
	}
	r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf("reeve://cell/%v/output?offset=40000&limit=17", g.Cell)})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Contents[0]; !bytes.Equal(append(c.Blob, c.Text...), back[40000:40017]) {
		t.Errorf("resource %q, status %q", append(c.Blob, c.Text...), back[40000:40017])
	}
}

func TestNextCallWorksAfterTheCoreIsKilled(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M11 M12 D4 D7 W8")
	h := newHouse(t)
	cs := h.connect(t)
	if g, res := call(t, cs, "execute", map[string]any{"code": "kept = 1", "session": "s"}); g.Status != "ok" {
		t.Fatal(words(res))
	}
	c := h.control(t)
	done := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute", Arguments: map[string]any{
			"session": "s", "code": "f = open('ran', 'a'); f.write('once\\n'); f.close()\nimport time; time.sleep(600)"}})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	cell := running(t, c, "s")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if b, _ := os.ReadFile(filepath.Join(h.work, "ran")); len(b) > 0 {
			break
		}
	}
	if err := syscall.Kill(c.Core().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	var res *mcp.CallToolResult
	select {
	case res = <-done:
	case <-time.After(time.Minute):
	}
	if res == nil {
		t.Fatal("no answer")
	}
	g := decode(t, res)
	if res.IsError || g.Status != "interrupted" || g.Cell != cell || g.Notice == nil || !strings.Contains(g.Notice.Text, "not run again") {
		t.Errorf("in flight: %+v, isError %v", g, res.IsError)
	}
	g, res = call(t, cs, "execute", map[string]any{"code": "'on'", "session": "s"})
	if g.Status != "ok" || g.Notice == nil || g.Notice.Kind != "namespace_lost" || !strings.Contains(strings.Join(g.Notice.Names, " "), "kept") {
		t.Errorf("next call: %+v: %s", g, words(res))
	}
	// The promise is 10 s; the machine of a test may be busy with others.
	if took := time.Since(killed); took > 30*time.Second {
		t.Errorf("the next call was answered after %s", took)
	}
	if b, err := os.ReadFile(filepath.Join(h.work, "ran")); err != nil || string(b) != "once\n" {
		t.Errorf("the cell ran like this: %q, %v", b, err)
	}
	if next := h.control(t); next.Core().PID == c.Core().PID {
		t.Error("the core was not killed")
	}
}

func TestStatusOfRealBinaryWithoutACore(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M12")
	h := newHouse(t)
	if err := os.WriteFile(h.data, nil, 0o600); err != nil { // a file where the directory should be
		t.Fatal(err)
	}
	cs := h.connect(t)
	g, res := call(t, cs, "status", nil)
	if res.IsError || g.Core.Reachable == nil || *g.Core.Reachable || g.Core.Fault == nil || g.Core.Fault.Message == "" {
		t.Errorf("%+v: %s", g, words(res))
	}
	if g, res := call(t, cs, "execute", map[string]any{"code": "1"}); !res.IsError || g.Status != "not_run" {
		t.Errorf("%+v: %s", g, words(res))
	}
	if err := os.Remove(h.data); err != nil {
		t.Fatal(err)
	}
	if g, res := call(t, cs, "execute", map[string]any{"code": "1"}); g.Status != "ok" {
		t.Errorf("after the cause is gone: %s", words(res))
	}
}

func TestClosedConnectionsLeaveNothing(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M19")
	h := newHouse(t)
	h.connect(t)
	var pids []int
	for range 3 {
		cmd := h.command()
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).
			Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		call(t, cs, "execute", map[string]any{"code": "import subprocess; p = subprocess.Popen(['sleep', '600'], start_new_session=True)"})
		pids = append(pids, cmd.Process.Pid)
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, pid := range pids {
		waitGone(t, pid)
	}
	all, err := h.control(t).Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 { // the core, and three times shim, worker and sleep
		t.Errorf("only %d processes are named: %+v", len(all), all)
	}
	h.down(t)
	for _, p := range all {
		waitGone(t, p.PID)
	}
}
