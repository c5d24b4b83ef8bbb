package mcpserve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/worker"
)

// memory is a core without Python: its cells are lines of a few words. It keeps the
// contract of control.Service for what the front end uses; a method it does not
// have panics, as a broken core would.
//
//	print TEXT     prints a line
//	flood N        prints N bytes and keeps the first and last 100
//	queue          is told twice that it must wait
//	raise TEXT     ends with an error
//	wait           goes on until it is interrupted
//	ignore         goes on even then
//	mute           goes on without a word, not even of its handle
//	image          shows a picture
//	die            the core goes away
type memory struct {
	control.Service

	mu      sync.Mutex
	sent    []control.ExecuteRequest
	cells   map[string]*cell
	notice  *control.Notice // for the next result
	refuse  error           // of every call
	quit    chan struct{}   // closed when the core is gone
	ended   chan string     // cells that have ended, by handle
	closing sync.Once
}

type cell struct {
	detail control.CellDetail
	bytes  []byte
	gap    *control.Gap
	stop   chan struct{}
	once   sync.Once
}

const picture = "\x89PNG\r\n\x1a\nnot really"

func newMemory() *memory {
	return &memory{cells: map[string]*cell{}, quit: make(chan struct{}), ended: make(chan string, 100)}
}

func (m *memory) leave() { m.closing.Do(func() { close(m.quit) }) }

func (m *memory) here() error {
	select {
	case <-m.quit:
		return fault.New(fault.Unavailable, "call core", "", "no core").Retryable()
	default:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refuse
}

func (m *memory) Execute(ctx context.Context, r control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
	if err := m.here(); err != nil {
		return control.CellResult{}, err
	}
	m.mu.Lock()
	m.sent = append(m.sent, r)
	id := fmt.Sprintf("cell_%012d", len(m.sent))
	c := &cell{stop: make(chan struct{})}
	c.detail = control.CellDetail{Code: r.Code, By: r.By, Result: control.CellResult{
		Cell: id, Session: r.Session, Generation: "g-1", Execution: fmt.Sprintf("e-%d", len(m.sent)), Status: "running",
	}}
	m.cells[id] = c
	notice := m.notice
	m.notice = nil
	m.mu.Unlock()

	if r.Code == "mute" {
		<-ctx.Done()
		return control.CellResult{}, fault.Wrap(ctx.Err(), fault.Cancelled, "execute", r.Session)
	}
	progress(control.CellProgress{Cell: id, Kind: "started"})
	status, failure, artifacts := "ok", "", []event.Artifact(nil)
	for _, line := range strings.Split(r.Code, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "print":
			m.print(c, rest+"\n", progress)
		case "flood":
			n, _ := strconv.Atoi(rest)
			m.print(c, strings.Repeat("x", n), progress)
			c.gap = &control.Gap{From: 100, To: int64(n) - 100}
		case "queue":
			progress(control.CellProgress{Cell: id, Kind: "queued", Ahead: 2})
			progress(control.CellProgress{Cell: id, Kind: "queued", Ahead: 1})
		case "raise":
			status, failure = "error", rest
		case "image":
			artifacts = append(artifacts, event.Artifact{SHA256: strings.Repeat("a", 64), MIME: "image/png", Size: int64(len(picture)), ID: "figure-1"})
		case "die":
			m.leave()
			return control.CellResult{}, fault.New(fault.Unknown, "call core", "execute", "the connection ended before the answer")
		case "wait", "ignore":
			stop := c.stop
			if word == "ignore" {
				stop = nil
			}
			select {
			case <-stop:
				status = "interrupted"
			case <-ctx.Done():
				return control.CellResult{}, fault.Wrap(ctx.Err(), fault.Cancelled, "execute", r.Session)
			case <-m.quit:
				return control.CellResult{}, fault.New(fault.Unknown, "call core", "execute", "the connection ended before the answer")
			}
		}
	}
	defer func() { m.ended <- id }()
	m.mu.Lock()
	defer m.mu.Unlock()
	res := &c.detail.Result
	res.Status, res.Notice, res.BytesTotal, res.Artifacts = status, notice, int64(len(c.bytes)), artifacts
	if failure != "" {
		res.Error = &failure
	}
	shown := c.bytes
	if g := c.gap; g != nil {
		shown = append(append([]byte{}, c.bytes[:g.From]...), c.bytes[g.To:]...)
		res.TruncatedBytes = g.To - g.From
	}
	if len(shown) > 0 {
		res.Output = []event.Output{{Stream: "stdout", Text: string(shown)}}
	}
	return *res, nil
}

func (m *memory) print(c *cell, text string, progress func(control.CellProgress)) {
	m.mu.Lock()
	c.bytes = append(c.bytes, text...)
	m.mu.Unlock()
	progress(control.CellProgress{Cell: c.detail.Result.Cell, Kind: "output", Stream: "stdout", Text: text})
}

func (m *memory) find(id string) (*cell, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.cells[id]; c != nil {
		return c, nil
	}
	return nil, fault.New(fault.NotFound, "look up cell", id, "no such cell").WithNext("reeve cell list")
}

func (m *memory) Cell(_ context.Context, id string) (control.CellDetail, error) {
	if err := m.here(); err != nil {
		return control.CellDetail{}, err
	}
	c, err := m.find(id)
	if err != nil {
		return control.CellDetail{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.detail, nil
}

func (m *memory) Output(_ context.Context, id string, offset int64) (control.OutputRange, error) {
	c, err := m.find(id)
	if err != nil {
		return control.OutputRange{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	total := int64(len(c.bytes))
	kept := c.bytes[min(offset, total):]
	if g := c.gap; g != nil {
		switch {
		case offset < g.From:
			kept = append(append([]byte{}, c.bytes[offset:g.From]...), c.bytes[g.To:]...)
		case offset < g.To:
			offset, kept = g.To, c.bytes[g.To:]
		}
	}
	return control.OutputRange{Offset: offset, Total: total, Gap: c.gap, Body: io.NopCloser(bytes.NewReader(kept))}, nil
}

func (m *memory) Interrupt(_ context.Context, id string, _ event.Actor) (control.InterruptReport, error) {
	if err := m.here(); err != nil {
		return control.InterruptReport{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.cells {
		r := c.detail.Result
		if (r.Cell == id || r.Session == id) && r.Status == "running" {
			c.once.Do(func() { close(c.stop) })
			return control.InterruptReport{Cell: r.Cell, Found: true, Rung: worker.RungCancel, NamespaceKept: true, Text: "stopped"}, nil
		}
	}
	for _, c := range m.cells {
		if r := c.detail.Result; r.Cell == id || r.Session == id {
			return control.InterruptReport{Cell: id, Text: "nothing runs there"}, nil
		}
	}
	return control.InterruptReport{}, fault.New(fault.NotFound, "look up cell", id, "no cell has such a handle").WithNext("reeve cell list")
}

func (m *memory) Status(context.Context) (control.Status, error) {
	if err := m.here(); err != nil {
		return control.Status{}, err
	}
	return control.Status{Version: "test", PID: 1}, nil
}

func (m *memory) Session(_ context.Context, id string) (control.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.sent {
		if r.Session == id {
			return control.Session{Session: id, State: "idle", Generation: "g-1", Cells: int64(len(m.sent))}, nil
		}
	}
	return control.Session{}, fault.New(fault.NotFound, "look up session", id, "no such session")
}

func (m *memory) ListCells(_ context.Context, session string, max int) ([]control.Cell, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []control.Cell
	for _, c := range m.cells {
		if r := c.detail.Result; r.Session == session && len(out) < max {
			out = append(out, control.Cell{Cell: r.Cell, Session: session, Status: r.Status, Code: c.detail.Code})
		}
	}
	return out, nil
}

func (m *memory) Artifact(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(picture)), nil
}

func (m *memory) requests() []control.ExecuteRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]control.ExecuteRequest(nil), m.sent...)
}
