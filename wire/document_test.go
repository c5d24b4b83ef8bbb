package wire_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/wire"
)

// documented is the worker printed in docs/protocol/worker.md, running.
type documented struct {
	t    *testing.T
	conn net.Conn
	cmd  *exec.Cmd
}

func startDocumented(t *testing.T) *documented {
	t.Helper()
	python := reevetest.Python(t)
	page, err := os.ReadFile(filepath.Join(reevetest.Root(t), "docs", "protocol", "worker.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```python\n")
	program, _, ended := strings.Cut(program, "```\n")
	if !found || !ended {
		t.Fatal("the page prints no worker")
	}
	dir, err := os.MkdirTemp("", "wire") // shorter than t.TempDir: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := write.WriteString(hex64); err != nil {
		t.Fatal(err)
	}
	write.Close()
	cmd := exec.CommandContext(t.Context(), python.Path, "-I", "-c", program, "--socket", path, "--token-fd", "3",
		"--session", "root", "--generation", "g-1", "--role", "workbench", "--dir", dir)
	cmd.ExtraFiles = []*os.File{read}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &documented{t, conn, cmd}
}

func (d *documented) receive() wire.Message {
	d.t.Helper()
	var header [4]byte
	if _, err := io.ReadFull(d.conn, header[:]); err != nil {
		d.t.Fatal(err)
	}
	n, err := wire.Length(header)
	if err != nil {
		d.t.Fatal(err)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(d.conn, payload); err != nil {
		d.t.Fatal(err)
	}
	e, err := wire.Decode(payload)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := wire.Check(e, "root", "g-1"); err != nil {
		d.t.Fatal(err)
	}
	return e.Message
}

func (d *documented) send(m wire.Message) {
	d.t.Helper()
	if _, err := d.conn.Write(frame(d.t, m)); err != nil {
		d.t.Fatal(err)
	}
}

// A worker that does no more than the page says speaks with a strict host.
func TestDocumentedWorker(t *testing.T) {
	t.Attr("requirement", "CP-005 CP-006")
	t.Parallel()
	d := startDocumented(t)
	if diff := cmp.Diff(wire.Message(wire.Hello{Token: hex64, Role: "workbench", Slots: []string{}}), d.receive()); diff != "" {
		t.Fatal(diff)
	}
	for _, c := range []struct {
		code, status, printed string
		cut                   int64
	}{
		{"x = 40", "ok", "", 0},
		{"print('é', x + 2)", "ok", "é 42\n", 0},
		{"print(y)", "error", "", 0},
		{"print('한' * 20000)", "ok", strings.Repeat("한", 16384), 3*(20000-16384) + 1},
		{"raise SystemExit(3)", "error", "", 0},
	} {
		d.send(wire.Execute{ID: "e-1", Code: c.code})
		done, ok := d.receive().(wire.Completed)
		if !ok || done.ID != "e-1" || done.Cell == nil {
			t.Fatalf("%s: got %+v", c.code, done)
		}
		var printed string
		for _, r := range done.Cell.Output {
			printed += r.Text
		}
		if done.Cell.Status != c.status || printed != c.printed || done.Cell.TruncatedBytes != c.cut {
			t.Errorf("%s: %s, %d bytes, %d cut", c.code, done.Cell.Status, len(printed), done.Cell.TruncatedBytes)
		}
	}
	d.send(wire.Shutdown{})
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}
