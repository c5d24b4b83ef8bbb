package mcpserve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxLine bounds one incoming message. A cell's source is at most 256 KiB, six
	// times that as \u escapes, so nothing that could be carried out is refused.
	maxLine = 4 << 20

	// codeBusy answers a request beyond maxCalls (VD-011).
	codeBusy = -32000

	// drain is how long calls may still finish when the client has closed its end.
	// It is below the 5 s after which clients send SIGTERM.
	drain = 2 * time.Second
)

// lines is newline-delimited JSON-RPC. Unlike the transport of the SDK it survives
// a line that is no message: the sender is told, and the next line is read.
type lines struct {
	in  io.ReadCloser
	out io.WriteCloser
	log *slog.Logger

	next    successor // nil: there is none
	memory  *memory
	session string
}

// Connect implements mcp.Transport.
func (t *lines) Connect(context.Context) (mcp.Connection, error) {
	c := &lineConn{
		in: t.in, out: t.out, log: t.log, next: t.next, memory: t.memory, session: t.session,
		incoming: make(chan jsonrpc.Message),
		closed:   make(chan struct{}),
		idle:     make(chan struct{}, 1),
		open:     map[jsonrpc.ID]bool{},
	}
	go c.read()
	return c, nil
}

type lineConn struct {
	in  io.ReadCloser
	out io.WriteCloser
	log *slog.Logger

	next    successor
	memory  *memory
	session string

	incoming chan jsonrpc.Message // closed by read at the end of in
	closed   chan struct{}
	once     sync.Once

	writing sync.Mutex // one whole line at a time on out

	mu   sync.Mutex // guards open; never held while reading or writing
	open map[jsonrpc.ID]bool
	idle chan struct{} // nudged when open has become empty
}

// SessionID implements mcp.Connection; stdio has no session ids.
func (c *lineConn) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *lineConn) Close() error {
	var err error
	c.once.Do(func() {
		close(c.closed)
		err = errors.Join(c.in.Close(), c.out.Close())
	})
	return err
}

// Read implements mcp.Connection. The end of the input is passed on only when no
// call is open any more or the drain time is over, because the SDK cancels what is
// open as soon as it sees it.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, ok := <-c.incoming:
		if ok {
			return m, nil
		}
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	over := time.NewTimer(drain)
	defer over.Stop()
	for c.opened() > 0 {
		select {
		case <-c.idle:
		case <-over.C:
			return nil, io.EOF
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, io.EOF
}

// Write implements mcp.Connection.
func (c *lineConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	resp, isResponse := m.(*jsonrpc.Response)
	if isResponse {
		defer c.finish(resp.ID)
		resp = coded(resp)
		m = resp
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err == nil {
		return c.line(b)
	}
	if !isResponse {
		return fmt.Errorf("encode message: %w", err)
	}
	// A result that does not encode must not leave its caller waiting.
	c.log.Error("encode response", "error", err)
	b, err = jsonrpc.EncodeMessage(&jsonrpc.Response{ID: resp.ID, Error: &jsonrpc.Error{
		Code: jsonrpc.CodeInternalError, Message: "encode response: " + err.Error(),
	}})
	if err != nil {
		return fmt.Errorf("encode error response: %w", err)
	}
	return c.line(b)
}

// coded is r with a code that says something: the SDK refuses requests that come at
// the wrong time with an error that has none.
func coded(r *jsonrpc.Response) *jsonrpc.Response {
	var e *jsonrpc.Error
	if r.Error == nil || errors.As(r.Error, &e) && e.Code != 0 {
		return r
	}
	out := *r
	out.Error = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: r.Error.Error()}
	return &out
}

func (c *lineConn) line(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(b, '\n'))
	return err
}

func (c *lineConn) opened() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

func (c *lineConn) finish(id jsonrpc.ID) {
	c.mu.Lock()
	delete(c.open, id)
	none := len(c.open) == 0
	c.mu.Unlock()
	if none {
		select {
		case c.idle <- struct{}{}:
		default:
		}
		if c.next != nil {
			c.next.due()
		}
	}
}

// read owns in until its end. It stays blocked on an input that nobody closes;
// the process ends all the same.
func (c *lineConn) read() {
	defer close(c.incoming)
	r := bufio.NewReaderSize(c.in, 64<<10)
	var begun []byte // of a line, when reading it was interrupted
	for {
		line, err := readLine(r, maxLine, begun)
		if errors.Is(err, errHandover) {
			begun = line
			c.handOver(line, r)
			continue
		}
		begun = nil
		if line = bytes.TrimSpace(line); len(line) > 0 && !errors.Is(err, errTooLong) {
			if !c.accept(line) {
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, errTooLong):
			c.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("message is longer than %d bytes", maxLine))
		default:
			if !errors.Is(err, io.EOF) {
				c.log.Debug("read input", "error", err)
			}
			return
		}
	}
}

// accept passes one line on and reports whether reading goes on.
func (c *lineConn) accept(line []byte) bool {
	var probe struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
	}
	if !json.Valid(line) {
		c.refuse(nil, jsonrpc.CodeParseError, "the line is not JSON")
		return true
	}
	if line[0] == '[' {
		c.refuse(nil, jsonrpc.CodeInvalidRequest, "batches are not supported: send one message a line")
		return true
	}
	if json.Unmarshal(line, &probe) != nil || !scalar(probe.ID) {
		probe.ID = nil
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err == nil && probe.Method != nil && probe.ID != nil && !answerable(probe.ID) {
		err = errors.New("the id of a request is a string or a whole number within 2^53 of zero")
	}
	if err != nil {
		c.refuse(probe.ID, jsonrpc.CodeInvalidRequest, err.Error())
		return true
	}
	if q, ok := m.(*jsonrpc.Request); ok && q.IsCall() {
		c.mu.Lock()
		full := len(c.open) >= maxCalls
		if !full {
			c.open[q.ID] = true
		}
		c.mu.Unlock()
		if full {
			c.refuse(probe.ID, codeBusy, fmt.Sprintf("%d requests are open already; nothing was done", maxCalls))
			return true
		}
	}
	select {
	case c.incoming <- m:
		return true
	case <-c.closed:
		return false
	}
}

// scalar reports whether an id may be repeated in an answer.
func scalar(id json.RawMessage) bool {
	return len(id) > 0 && id[0] != '{' && id[0] != '['
}

// answerable reports whether the SDK can answer under this id: it keeps a number as
// 64 bits, through a float, and would answer under another one or not at all.
func answerable(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	n, err := strconv.ParseFloat(string(id), 64)
	return err == nil && n == math.Trunc(n) && math.Abs(n) <= 1<<53-1
}

// refuse answers a line that is no message. Nothing is left to do when even that
// cannot be written: the next write of the SDK finds the same error and ends.
func (c *lineConn) refuse(id json.RawMessage, code int64, text string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": text},
	})
	if err == nil {
		err = c.line(b)
	}
	if err != nil {
		c.log.Debug("refuse message", "error", err)
	}
}

var errTooLong = errors.New("line too long")

// readLine returns the next line, of which begun has been read before, without its
// end. A line over max is read to its end and dropped.
func readLine(r *bufio.Reader, max int, begun []byte) ([]byte, error) {
	line := begun
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > max {
			long, line = true, nil
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull), long && errors.Is(err, errHandover):
		case err == nil && long:
			return nil, errTooLong
		default:
			return line, err
		}
	}
}
