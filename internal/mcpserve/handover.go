package mcpserve

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errHandover is what an input reads when the client is to be handed to a newer
// binary.
var errHandover = errors.New("the client is handed over")

// successor hands the client to the binary that has taken the place of the running
// one: the process goes on with its descriptors, and the client greets nobody a
// second time (VD-152). It acts between two calls, when every answer has been
// written, so that no call sees the change.
type successor interface {
	// due reports whether the binary has been replaced by one that is not known to
	// fail, and then makes the input read errHandover.
	due()
	// exec becomes the new binary and returns only when it cannot.
	exec(handed) error
}

// handed is what the new binary needs to go on.
type handed struct {
	Session string                  `json:"session"`
	State   *mcp.ServerSessionState `json:"state"`
	Out     int                     `json:"out"`  // descriptor of the client's end
	Rest    []byte                  `json:"rest"` // read from the client and not acted on
}

// memory is what the client and the server have agreed on so far.
type memory struct {
	mu    sync.Mutex // guards state
	state mcp.ServerSessionState
}

// remember is middleware that notes what a successor must know.
func (m *memory) remember(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err != nil {
			return res, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		switch p := req.GetParams().(type) {
		case *mcp.InitializeParams:
			m.state.InitializeParams = p
			if r, ok := res.(*mcp.InitializeResult); ok {
				m.state.NegotiatedProtocolVersion = r.ProtocolVersion
			}
		case *mcp.InitializedParams:
			if p == nil {
				p = &mcp.InitializedParams{}
			}
			m.state.InitializedParams = p
		}
		return res, nil
	}
}

// known returns a copy of the state, or nothing while the greeting is not over.
func (m *memory) known() *mcp.ServerSessionState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.InitializeParams == nil || m.state.InitializedParams == nil {
		return nil
	}
	state := m.state
	return &state
}

// handOver is called by the reader when its input says so, with the line that has
// begun. It returns when there is to be no handover, and reading goes on.
func (c *lineConn) handOver(line []byte, r *bufio.Reader) {
	state := c.memory.known()
	if state == nil || c.opened() > 0 {
		return // the next idle moment is as good
	}
	rest, err := r.Peek(r.Buffered())
	if err == nil {
		err = c.next.exec(handed{Session: c.session, State: state, Rest: append(line, rest...)})
	}
	c.log.Warn("the newer binary is not used", "cause", err)
}

// resumed is an input that begins with what a predecessor has read.
type resumed struct {
	io.Reader
	io.Closer
}
