package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/reeve-run/reeve/python"
	"github.com/reeve-run/reeve/wire"
)

const (
	session    = "peers"
	generation = "g-1"
	code       = "1+1"
)

// bareWorker is a worker with nothing around it: its process, its socket, and a
// caller that waits for each answer itself.
type bareWorker struct {
	cmd    *exec.Cmd
	conn   net.Conn
	buffer []byte
	n      int
}

func bare(ctx context.Context, o options, source string) (row, error) {
	var ready []time.Duration
	var w *bareWorker
	for range o.starts {
		if w != nil {
			w.stop()
		}
		began := time.Now()
		var err error
		if w, err = startBare(ctx, o, source); err != nil {
			return row{}, fmt.Errorf("start a bare worker: %w", err)
		}
		ready = append(ready, time.Since(began))
	}
	defer w.stop()
	took, err := timed(o.warmup, o.cells, w.cell)
	if err != nil {
		return row{}, fmt.Errorf("run a bare cell: %w", err)
	}
	rss, err := resident(w.cmd.Process.Pid)
	return row{
		Name: "bare framed worker", P50US: quantile(took, 0.5), P99US: quantile(took, 0.99),
		ReadyMS: quantile(ready, 0.5) / 1e3, RSSKiB: rss,
	}, err
}

func startBare(ctx context.Context, o options, source string) (*bareWorker, error) {
	dir, err := os.MkdirTemp(os.TempDir(), "rv-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	var token [32]byte
	_, _ = rand.Read(token[:]) // never fails
	cmd := exec.CommandContext(ctx, o.python, "-I", "-S", "-E", "-B", "-X", "utf8", filepath.Join(source, python.Boot),
		"--socket", socket, "--token-fd", "3", "--session", session, "--generation", generation,
		"--role", "workbench", "--dir", dir)
	cmd.ExtraFiles = []*os.File{read}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := write.WriteString(hex.EncodeToString(token[:])); err != nil {
		return nil, err
	}
	write.Close()
	conn, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	w := &bareWorker{cmd: cmd, conn: conn}
	m, err := w.receive()
	if err != nil {
		return nil, err
	}
	if _, ok := m.(wire.Hello); !ok {
		return nil, fmt.Errorf("it began with %s", m.MessageKind())
	}
	return w, nil
}

func (w *bareWorker) stop() {
	w.conn.Close()
	_ = w.cmd.Wait() // it leaves on end of file, with whatever status
}

func (w *bareWorker) receive() (wire.Message, error) {
	var header [4]byte
	if _, err := io.ReadFull(w.conn, header[:]); err != nil {
		return nil, err
	}
	n, err := wire.Length(header)
	if err != nil {
		return nil, err
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(w.conn, payload); err != nil {
		return nil, err
	}
	e, err := wire.Decode(payload)
	return e.Message, err
}

func (w *bareWorker) cell() error {
	w.n++
	id := fmt.Sprintf("e-%d", w.n)
	var err error
	w.buffer, err = wire.Append(w.buffer[:0], wire.Envelope{
		SessionID: session, Generation: generation, Message: wire.Execute{ID: id, Code: code},
	})
	if err != nil {
		return err
	}
	if _, err := w.conn.Write(w.buffer); err != nil {
		return err
	}
	for {
		m, err := w.receive()
		if err != nil {
			return err
		}
		if c, ok := m.(wire.Completed); ok {
			return check(c.ID == id && c.Cell != nil && len(c.Cell.Output) == 1 && c.Cell.Output[0].Text == "2", c.Cell)
		}
	}
}

func check(ok bool, got any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("1+1 gave %+v", got)
}
