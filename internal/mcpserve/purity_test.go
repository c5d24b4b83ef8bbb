package mcpserve_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/internal/reevetest"
)

// converse gives a server in as its whole input and returns all of its standard
// output and error.
func converse(t *testing.T, cmd *exec.Cmd, in string) (stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &log
	if err := cmd.Run(); err != nil {
		t.Errorf("the server ended with %v: %s", err, log.String())
	}
	return out.String(), log.String()
}

func TestStandardOutputOfRealBinaryIsOnlyProtocol(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M4")
	h := newHouse(t)
	cmd := h.command("-v")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	pr, pw := io.Pipe()
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, pw), &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := make(chan string, 100)
	go func() {
		buf := make([]byte, 1<<20)
		rest := ""
		for {
			n, err := pr.Read(buf)
			rest += string(buf[:n])
			for {
				line, after, found := strings.Cut(rest, "\n")
				if !found {
					break
				}
				rest = after
				answers <- line
			}
			if err != nil {
				close(answers)
				return
			}
		}
	}()
	say := func(line string) {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	hear := func(id string) string {
		for line := range answers {
			if strings.Contains(line, `"id":`+id) && !strings.Contains(line, `"method"`) {
				return line
			}
		}
		t.Fatalf("no answer to %s: %s", id, log.String())
		return ""
	}
	say(strings.TrimSpace(hello))
	hear("0")
	for i, code := range []string{
		`import os; os.write(1, b"raw bytes\nto descriptor 1\n")`,
		`import subprocess; subprocess.run(["sh", "-c", "echo from a child; echo and on stderr >&2"])`,
		`import sys; sys.__stdout__.write("past the capture\n"); sys.__stdout__.flush()`,
		`import ctypes; ctypes.CDLL(None).puts(b"from C"); ctypes.CDLL(None).fflush(None)`,
		`print('{"jsonrpc":"2.0","id":99,"result":{}}'); raise SystemExit("bye")`,
	} {
		id := string(rune('1' + i))
		say("not a message " + code)
		say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"execute","arguments":{"code":` + quote(t, code) + `},"_meta":{"progressToken":` + id + `}}}`)
		if answer := hear(id); !strings.Contains(answer, `"structuredContent"`) {
			t.Errorf("%s: %.300s", code, answer)
		}
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, log.String())
	}
	pw.Close()
	if all := messages(t, out.String()); len(all) < 11 {
		t.Errorf("%d messages, want hello, five refusals and five answers", len(all))
	}
	if !strings.Contains(log.String(), "level=DEBUG") && !strings.Contains(log.String(), "level=INFO") {
		t.Errorf("it was not at debug level: %q", log.String())
	}
}

func TestStrayPrintsAndPanicsDoNotReachTheClient(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M4")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), noisyEnv+"=1")
	stdout, stderr := converse(t, cmd, hello+
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute","arguments":{"code":"print x"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute","arguments":{"code":"panic"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"status","arguments":{}}}`+"\n"+
		`{"jsonrpc":"2.0","id":4,"method":"ping"}`+"\n")
	if all := messages(t, stdout); len(all) != 5 {
		t.Errorf("%d messages, want 5: %s", len(all), stdout)
	}
	for _, want := range []string{"a stray print", "on purpose", "on purpose too", "half a line", "goroutine "} {
		if !strings.Contains(stderr, want) {
			t.Errorf("standard error lacks %q", want)
		}
	}
}

// The Inspector is the reference client of the protocol's makers.
func TestInspectorListsAndCalls(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M8")
	dir := os.Getenv("REEVE_NODE_DIR")
	cli := filepath.Join(dir, "node_modules", ".bin", "mcp-inspector")
	node := filepath.Join(dir, "node_modules", "node", "bin")
	_, err := os.Stat(cli)
	reevetest.Need(t, dir != "" && err == nil, "the MCP Inspector (set REEVE_NODE_DIR to a folder with npm's node@22 and @modelcontextprotocol/inspector)")
	h := newHouse(t)
	inspect := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(cli, append([]string{"--cli", h.bin, "mcp", "--dir", h.data}, args...)...)
		cmd.Dir = h.work
		cmd.Env = append(os.Environ(), "PATH="+node+string(filepath.ListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("mcp-inspector %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	list := inspect("--method", "tools/list")
	for _, tool := range []string{"execute", "interrupt", "status"} {
		if !strings.Contains(list, `"name": "`+tool+`"`) {
			t.Errorf("the list lacks %s: %s", tool, list)
		}
	}
	if out := inspect("--method", "tools/call", "--tool-name", "execute", "--tool-arg", "code=6*7", "--tool-arg", "session=inspected"); !strings.Contains(out, `"text": "42`) || !strings.Contains(out, `"status": "ok"`) {
		t.Errorf("execute: %s", out)
	}
	if out := inspect("--method", "tools/call", "--tool-name", "status", "--tool-arg", "session=inspected"); !strings.Contains(out, `"reachable": true`) || !strings.Contains(out, "6*7") {
		t.Errorf("status: %s", out)
	}
	if out := inspect("--method", "tools/call", "--tool-name", "interrupt", "--tool-arg", "session=inspected"); !strings.Contains(out, `"found": false`) {
		t.Errorf("interrupt: %s", out)
	}
}

func quote(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
