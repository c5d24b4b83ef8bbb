package mcpserve_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reeve-run/reeve/internal/reevetest"
)

// typed is a client that types its lines: it greets once and asks by number.
type typed struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
	n   int
}

func (c *typed) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads messages until the answer to the request n.
func (c *typed) answer(n int) string {
	c.t.Helper()
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			c.t.Fatalf("request %d: %v", n, err)
		}
		var m struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		if m.ID == nil {
			continue
		}
		if *m.ID != n {
			c.t.Fatalf("an answer to %d where one to %d is due: %s", *m.ID, n, line)
		}
		return string(m.Result) + string(m.Error)
	}
}

func (c *typed) line(method, params string) string {
	c.n++
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.n, method, params)
}

func (c *typed) ask(method, params string) string {
	c.t.Helper()
	c.write(c.line(method, params))
	return c.answer(c.n)
}

func code(text string) string {
	b, _ := json.Marshal(text)
	return `{"name":"execute","arguments":{"code":` + string(b) + `}}`
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", b, 0o700)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runs reports whether the process runs the file at path.
func (c *typed) runs(path string) bool {
	c.t.Helper()
	image, err := os.Stat(fmt.Sprintf("/proc/%d/exe", c.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	file, err := os.Stat(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return os.SameFile(image, file)
}

func typing(t *testing.T, exe string) *typed {
	t.Helper()
	home, err := os.MkdirTemp("", "handover")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "mcp")
	cmd.Env = append(os.Environ(), "REEVE_HOME="+filepath.Join(home, "data"))
	cmd.Dir = home
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("reeve mcp: %v", err)
		}
		down := exec.Command(exe, "down")
		down.Env = cmd.Env
		if b, err := down.CombinedOutput(); err != nil {
			t.Errorf("reeve down: %v\n%s", err, b)
		}
		_ = os.RemoveAll(home)
	})
	c := &typed{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	c.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"typist","version":"1"}}`)
	c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	return c
}

// The binary is replaced under a client that goes on typing, in the middle of a line
// too: the same process becomes the new binary, no message is lost or answered
// twice, the session is the same, and nobody greets again.
func TestAReplacedBinaryTakesTheClientOver(t *testing.T) {
	t.Attr("requirement", "VD-152")
	t.Parallel()
	built := reevetest.Binary(t)
	dir := t.TempDir()
	exe := filepath.Join(dir, "reeve")
	copyFile(t, built, exe)
	c := typing(t, exe)
	if got := c.ask("tools/call", code("x = 41")); strings.Contains(got, `"isError":true`) {
		t.Fatalf("the first cell: %s", got)
	}
	copyFile(t, built, exe)
	if c.runs(exe) {
		t.Fatal("the new file is the old one")
	}
	until := time.Now().Add(20 * time.Second)
	for !c.runs(exe) {
		if time.Now().After(until) {
			t.Fatal("the new binary is not used")
		}
		// Two lines at once, and the beginning of a third.
		first, second, third := c.line("ping", `{}`), c.line("ping", `{}`), c.line("ping", `{}`)
		n := c.n
		c.write(first + second + third[:len(third)/2])
		c.answer(n - 2)
		c.answer(n - 1)
		c.write(third[len(third)/2:])
		c.answer(n)
	}
	got := c.ask("tools/call", code("print(x + 1)"))
	if !strings.Contains(got, "42") {
		t.Errorf("after the change: %s", got)
	}
}

// A new binary that does not run is left alone, and the client is served on.
func TestABrokenBinaryTakesNobodyOver(t *testing.T) {
	t.Attr("requirement", "VD-152")
	t.Parallel()
	built := reevetest.Binary(t)
	dir := t.TempDir()
	exe := filepath.Join(dir, "reeve")
	copyFile(t, built, exe)
	c := typing(t, exe)
	c.ask("ping", `{}`)
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	copyFile(t, broken, exe)
	for range 20 {
		c.ask("ping", `{}`)
	}
	if c.runs(exe) {
		t.Error("the broken file runs")
	}
	copyFile(t, built, exe) // mended, and used
	until := time.Now().Add(20 * time.Second)
	for !c.runs(exe) {
		if time.Now().After(until) {
			t.Fatal("the mended binary is not used")
		}
		c.ask("ping", `{}`)
	}
	c.ask("ping", `{}`)
}
