package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/configid"
	"github.com/reeve-run/reeve/internal/peercred"
)

// Call is one request as a handler sees it.
type Call struct {
	Method    string
	Body      []byte // one JSON value; the handler's to keep
	RequestID string // the caller's, the same for a request that was sent twice
	Replay    bool   // the caller says that doing it twice is doing it once
	Peer      Peer
}

// Peer is what the other end said of itself. Nothing is decided by it.
type Peer struct {
	Client  string // mcp, cli, …
	Version string
}

// Handler answers one request with one JSON value. Its context ends when the caller
// cancels or goes away, shortly before the request's deadline, and when the server
// has waited long enough to stop; the answer is sent all the same, so a handler
// that is cut short answers what has come of it.
type Handler func(ctx context.Context, c Call) ([]byte, error)

// Subscriber sends events until ctx ends or it has no more. emit returns an error
// when the peer has gone.
type Subscriber func(ctx context.Context, c Call, emit func(body []byte) error) error

// ServerOptions say what a Server is. Handler is required; the zero value of every
// other member is the default.
type ServerOptions struct {
	Handler    Handler
	Subscriber Subscriber // nil: there is nothing to subscribe to
	Version    string     // of reeve
	Identity   configid.Identity
	ReadOnly   bool
	Log        *slog.Logger

	Admit    func(net.Conn) error // nil: peercred.SameUser
	Greeting time.Duration        // for the first frame, from accept; 0: 30 s
	Drain    time.Duration        // for open calls when the server stops; 0: 10 s
}

// Server answers clients.
type Server struct {
	o   ServerOptions
	own greeting

	mu    sync.Mutex // guards conns
	conns map[*serverConn]struct{}
}

// NewServer makes a Server. The error is of the identity.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Admit == nil {
		o.Admit = peercred.SameUser
	}
	if o.Greeting == 0 {
		o.Greeting = 30 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	s := &Server{o: o, conns: map[*serverConn]struct{}{}}
	var err error
	s.own, err = greetingOf(o.Identity)
	return s, err
}

// Serve answers on l until ctx ends. Then it takes no new calls, gives open ones
// time to finish, cancels what is left, tells every client that what has no answer
// has not begun, and returns nil. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	unhook := context.AfterFunc(ctx, func() { _ = l.Close() }) // Accept says what came of it
	var all sync.WaitGroup
	err := s.accept(ctx, l, func(c net.Conn) {
		all.Go(func() { s.serve(ctx, base, c) })
	})
	if unhook() {
		err = errors.Join(err, l.Close())
	}
	s.each((*serverConn).stop)
	settled := make(chan struct{})
	go func() { all.Wait(); close(settled) }()
	late := time.NewTimer(s.o.Drain)
	defer late.Stop()
	select {
	case <-settled:
		return err
	case <-late.C:
	}
	s.o.Log.Warn("calls were cut off", "after", s.o.Drain)
	abandon(errStopped)
	for _, last := range []func(*serverConn){func(*serverConn) {}, (*serverConn).giveUp} {
		s.each(last)
		late.Reset(2 * time.Second)
		select {
		case <-settled:
			return err
		case <-late.C:
		}
	}
	s.o.Log.Error("calls hang and are left behind")
	return err
}

// errStopped is the cause of a call's end when the server does not wait any longer.
var errStopped = errors.New("the core is stopping")

func (s *Server) accept(ctx context.Context, l net.Listener, f func(net.Conn)) error {
	pause := time.Duration(0)
	for {
		c, err := l.Accept()
		if err == nil {
			pause = 0
			f(c)
			continue
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the listener was closed because ctx has ended
		}
		if errors.Is(err, net.ErrClosed) {
			return fault.Wrap(err, fault.Unavailable, "serve link", l.Addr().String())
		}
		// Out of descriptors or memory: both pass.
		s.o.Log.Warn("accept", "cause", err)
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

func (s *Server) each(f func(*serverConn)) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// serve owns conn until its end. A connection that has not been greeted ends with
// stop; later its calls live as long as base.
func (s *Server) serve(stop, base context.Context, conn net.Conn) {
	p := newPipe(conn)
	deadline := time.Now().Add(s.o.Greeting)
	unhook := context.AfterFunc(stop, func() { _ = conn.Close() })
	defer unhook()
	defer func() { _ = conn.Close() }() // everything that mattered has been written or cannot be
	if err := s.o.Admit(conn); err != nil {
		s.o.Log.Warn("connection refused", "cause", err)
		p.refuse(err, "")
		return
	}
	if err := conn.SetReadDeadline(deadline); err != nil {
		return
	}
	peer, err := s.greet(p)
	if !unhook() {
		return
	}
	if err != nil {
		if !errors.Is(err, errGone) {
			s.o.Log.Warn("greeting refused", "cause", err)
			p.refuse(err, "")
		}
		return
	}
	c := &serverConn{s: s, p: p, peer: peer, open: map[uint64]*call{}, ended: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(base)
	defer c.cancel(nil)
	if !s.enter(c) {
		p.refuse(fault.New(fault.RequestLimit, "connect", "", "%d clients are connected", maxConnections).Retryable(), Crowded)
		return
	}
	defer s.leave(c)
	if stop.Err() != nil {
		c.stop()
	}
	c.calls.Go(c.next)
	<-c.ended
	c.calls.Wait()
}

func (s *Server) enter(c *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= maxConnections {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) leave(c *serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// errGone is a peer that left without a word.
var errGone = errors.New("the peer has gone")

// greet reads the handshake and answers it.
func (s *Server) greet(p *pipe) (Peer, error) {
	const op = "greet client"
	f, err := p.read(maxGreeting)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Peer{}, refused(fault.New(fault.Timeout, op, "", "no whole frame within %s of the connection", s.o.Greeting), Violation)
	case isFault(err):
		return Peer{}, refused(fault.Wrap(err, fault.CodeOf(err), op, ""), Violation)
	default:
		return Peer{}, errGone
	}
	if f.kind != handshake {
		return Peer{}, refused(fault.New(fault.InvalidRequest, op, f.kind.String(), "the first frame is a handshake"), Violation)
	}
	h := f.hello
	if h.min > newest || h.max < oldest || h.min > h.max {
		return Peer{}, refused(fault.New(fault.Unavailable, op, h.client,
			"reeve %s speaks protocol %d to %d, the core (reeve %s) %d to %d", h.version, h.min, h.max, s.o.Version, oldest, newest).
			Retryable().WithNext("restart the core: reeve down, then reeve up"), ProtocolMismatch)
	}
	if err := s.sameConfig(h); err != nil {
		return Peer{}, err
	}
	ack := &hello{protocol: min(h.max, newest), version: s.o.Version, pid: uint64(os.Getpid()), configID: s.own.id, config: s.own.text}
	if err := p.write(&frame{kind: handshakeAck, hello: ack}); err != nil {
		return Peer{}, errGone
	}
	if err := p.conn.SetReadDeadline(time.Time{}); err != nil {
		return Peer{}, errGone
	}
	return Peer{Client: h.client, Version: h.version}, nil
}

// sameConfig refuses a client that means another configuration.
func (s *Server) sameConfig(h *hello) error {
	fields, err := s.own.differ(h, func(mine, theirs configid.Print) []string { return configid.Diff(theirs, mine) })
	if err != nil {
		return refused(err, Violation)
	}
	if h.readOnly != s.o.ReadOnly {
		fields = append(fields, "read_only")
	}
	return mismatch(h.client, fields)
}

func isFault(err error) bool {
	var e *fault.Error
	return errors.As(err, &e)
}

// panicked is the answer to a call whose handler panicked.
func panicked(method string, v any) error {
	return fault.New(fault.Internal, "answer", method, "panic: %s", fmt.Sprint(v)).WithNext("read core.log in the data directory")
}
