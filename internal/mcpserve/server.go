package mcpserve

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/verbs"
	"github.com/reeve-run/reeve/worker"
)

// Options configure one connection.
type Options struct {
	Dial      Dial
	Version   string // of reeve
	Workspace string // absolute; where sessions opened by this connection start
	// Session is used by calls that name none. Empty: a fresh one, so that two
	// clients never share a namespace unless both name it.
	Session string
	// Sessionless is for calls that belong to no connection: there is no session to
	// fall back to, and a call that needs one must name it.
	Sessionless bool
	// Verbs are the public verbs of this build: they stand in the description of the
	// request tool. Surface is request, agent or developer; empty is agent.
	Verbs   []*verbs.Verb
	Surface string
	Log     *slog.Logger
	// Progress is the pause between two progress messages of a running cell.
	// Zero: 5 s, half of what clients must be promised.
	Progress time.Duration

	extend func(*mcp.Server) // registers more, for tests of the protocol; may be nil
}

// Server is the front end for one client.
type Server struct {
	core     *core
	session  string
	opt      Options
	bound    time.Duration // of an interrupt
	protocol *mcp.Server
	memory   *memory
}

// New makes a Server. It does not reach for the core yet.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == 0 {
		o.Progress = 5 * time.Second
	}
	if o.Session == "" && !o.Sessionless {
		o.Session = freshSession(o.Workspace)
	}
	s := &Server{
		core:    &core{dial: o.Dial},
		session: o.Session,
		opt:     o,
		memory:  &memory{},
		// What a core takes for its ladder and the answer on top of it.
		bound: worker.DefaultTiming().Bound() + 2*time.Second,
	}
	s.protocol = mcp.NewServer(
		&mcp.Implementation{Name: "reeve", Title: "reeve", Version: o.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			Logger:       o.Log,
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
		},
	)
	s.protocol.AddReceivingMiddleware(s.guard, s.memory.remember)
	s.register()
	if o.extend != nil {
		o.extend(s.protocol)
	}
	return s
}

// Session is the one used by calls that name none; empty when those are refused.
func (s *Server) Session() string { return s.session }

// Protocol is the SDK's server, for tests that connect a client in memory.
func (s *Server) Protocol() *mcp.Server { return s.protocol }

// Run serves the client at the other end of in and out until it goes away or ctx
// ends. It closes both. Cells that run then are interrupted by the core, which
// sees their callers go.
func (s *Server) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return s.attend(ctx, &lines{in: in, out: out, log: s.opt.Log}, nil)
}

// attend serves the client of t, with the state that a predecessor has left.
func (s *Server) attend(ctx context.Context, t *lines, state *mcp.ServerSessionState) error {
	t.session, t.memory = s.session, s.memory
	var o *mcp.ServerSessionOptions
	if state != nil {
		s.memory.state = *state
		o = &mcp.ServerSessionOptions{State: state}
	}
	session, err := s.protocol.Connect(ctx, t, o)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err = <-ended:
		return err
	case <-ctx.Done():
	}
	// Close waits for open calls, and a cell may run for hours. It is left behind:
	// the process ends, and the core interrupts what nobody waits for.
	go session.Close()
	select {
	case <-ended: //nolint:errcheck // nobody is left to tell
	case <-time.After(drain):
	}
	return nil
}

// Stdio serves standard input and output, which it takes for itself: from then on
// nothing else in the process can write to the client.
func Stdio(ctx context.Context, o Options) error {
	t, before, err := stdio()
	if err != nil {
		return err
	}
	// A client that closes only our stderr must not kill the front end by SIGPIPE.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	var state *mcp.ServerSessionState
	if before != nil {
		o.Session, state = before.Session, before.State
	}
	s := New(o)
	t.log = s.opt.Log
	return s.attend(ctx, t, state)
}

// guard turns a panic of a call into its answer. The front end goes on.
func (s *Server) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				s.panicked(method, v)
				res, err = nil, &jsonrpc.Error{
					Code:    jsonrpc.CodeInternalError,
					Message: fmt.Sprintf("%s: panic in reeve: %v; the stack is on standard error", method, v),
				}
			}
		}()
		return next(ctx, method, req)
	}
}

func (s *Server) panicked(where string, v any) {
	s.opt.Log.Error("panic", "in", where, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
}

// actor names the client of a call as it introduced itself.
func actor(session *mcp.ServerSession) event.Actor {
	a := event.Actor{Kind: "client", Name: "unknown", Surface: "mcp"}
	if session == nil {
		return a
	}
	if p := session.InitializeParams(); p != nil && p.ClientInfo != nil && p.ClientInfo.Name != "" {
		a.Name = clip(p.ClientInfo.Name, 128)
	}
	return a
}

// freshSession makes mcp-<base of the directory>-<8 random base32>.
func freshSession(workspace string) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		default:
			return '-'
		}
	}, filepath.Base(workspace))
	if len(base) > 64 {
		base = base[:64]
	}
	var b [5]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return "mcp-" + base + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}
