package mcpserve_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// house is a data directory and a workspace for the built binary.
type house struct {
	bin, data, work string
}

func newHouse(t *testing.T) house {
	t.Helper()
	reevetest.Python(t)
	// Not t.TempDir: its name holds the test's, and a socket's path is short.
	root, err := os.MkdirTemp("", "rvmcp")
	if err != nil {
		t.Fatal(err)
	}
	h := house{bin: reevetest.Binary(t), data: filepath.Join(root, "d"), work: filepath.Join(root, "w")}
	if err := os.Mkdir(h.work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.down(t)
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	return h
}

// down ends the core, and with it every worker, if one runs.
func (h house) down(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := control.Reach(ctx, h.data)
	if err != nil {
		return // none runs
	}
	if err := c.Shutdown(ctx, event.Actor{Kind: "operator", Name: "test", Surface: "control"}); err != nil {
		t.Errorf("stop core: %v", err)
	}
	waitGone(t, c.Core().PID)
}

// waitGone waits for the end of a process that is not ours to wait for.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("process %d is still there", pid)
			return
		}
	}
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(b, []byte(") "))
	return !bytes.HasPrefix(rest, []byte("Z")) && !bytes.HasPrefix(rest, []byte("X"))
}

func (h house) control(t *testing.T) *control.Client {
	t.Helper()
	c, err := control.Connect(t.Context(), h.data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// command is reeve mcp as a client starts it.
func (h house) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.bin, append([]string{"mcp", "--dir", h.data}, args...)...)
	cmd.Dir = h.work
	return cmd
}

func (h house) connect(t *testing.T, args ...string) *mcp.ClientSession {
	t.Helper()
	cmd := h.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).
		Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	t.Cleanup(func() {
		if err := cs.Close(); err != nil {
			t.Errorf("close: %v: %s", err, stderr.String())
		}
	})
	return cs
}

func printed(t *testing.T, g got) string {
	t.Helper()
	var b strings.Builder
	for _, o := range output(t, g) {
		b.WriteString(o.Text)
	}
	return strings.TrimSpace(b.String())
}

// running waits until a session runs a cell, and gives its handle.
func running(t *testing.T, c *control.Client, session string) string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		cells, err := c.ListCells(t.Context(), session, 1)
		if err != nil && !fault.HasCode(err, fault.NotFound) {
			t.Fatal(err)
		}
		if len(cells) == 1 && cells[0].Status == "running" {
			return cells[0].Cell
		}
	}
	t.Fatal("no cell runs")
	return ""
}
