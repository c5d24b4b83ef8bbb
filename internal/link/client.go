package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/configid"
	"github.com/reeve-run/reeve/internal/peercred"
)

const (
	// DefaultTimeout bounds a request that names no bound (VD-009).
	DefaultTimeout = 30 * time.Second
	// NoTimeout waits for as long as the caller does.
	NoTimeout time.Duration = -1

	// resendAfter is the pause before a read is sent a second time (VD-148).
	resendAfter = 100 * time.Millisecond
	// outcomeWait bounds the wait for what came of a cancelled request that has no
	// bound of its own.
	outcomeWait = 30 * time.Second
	// greetWait bounds a handshake. A core that is slower is left to itself.
	greetWait = 30 * time.Second

	// A core that is ending takes connections until its socket is closed. It is looked
	// for again, leaving times after ever longer pauses, before that is an error.
	leaving    = 4
	leaveAfter = 20 * time.Millisecond
)

// errLeft is in the error of a handshake that the other side left without a word.
var errLeft = errors.New("it hung up without a word")

// Request is one call.
type Request struct {
	Method    string
	Body      []byte // one JSON value
	RequestID string // empty: a fresh one
	// Replay says that doing it twice is doing it once. Only the owner of what Body
	// asks for can know.
	Replay  bool
	Timeout time.Duration // 0: DefaultTimeout; NoTimeout: none. An earlier deadline of the context wins.
}

// ClientOptions say what a Client is. Dial is required; the zero value of every
// other member is the default.
type ClientOptions struct {
	// Dial connects to the core's socket and keeps the cause of a failure in its
	// error: that nothing listens and that the socket is forbidden are different
	// things. A core without a link is fault.NotFound.
	Dial     func(ctx context.Context) (net.Conn, error)
	Client   string // mcp, cli, …
	Version  string // of reeve
	ReadOnly bool
	// Identity reads the configuration. It is asked for each connection, since files
	// may have changed between two; nil: the zero identity.
	Identity func() (configid.Identity, error)

	// Start starts a core when nothing listens; nil: none is started.
	Start func(ctx context.Context) error
	// Fallback answers a request without the link; nil: there is no other way.
	Fallback func(ctx context.Context, r Request) ([]byte, error)
	// Strict refuses what Fallback would answer.
	Strict bool

	Admit func(net.Conn) error // nil: peercred.SameUser
	Log   *slog.Logger
}

// Client calls a core, over one connection that it makes again when it has broken.
// It is safe for concurrent use.
type Client struct {
	o        ClientOptions
	instance string

	conn   atomic.Pointer[clientConn] // nil before the first
	turn   chan struct{}              // held while connecting
	closed atomic.Bool

	counts     map[Reason]*atomic.Int64 // not changed after NewClient
	violations atomic.Int64
}

// NewClient makes a Client, which connects at its first call.
func NewClient(o ClientOptions) *Client {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Admit == nil {
		o.Admit = peercred.SameUser
	}
	c := &Client{o: o, instance: rand.Text()[:12], turn: make(chan struct{}, 1), counts: map[Reason]*atomic.Int64{}}
	for _, r := range fallbacks {
		c.counts[r] = new(atomic.Int64)
	}
	return c
}

// Close ends the connection. Open calls end as if the core had gone.
func (c *Client) Close() error {
	c.closed.Store(true)
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if conn := c.conn.Swap(nil); conn != nil {
		conn.close()
	}
	return nil
}

// Call asks the core and returns its answer. Of an error it is known what it means
// for the request: with fault.Unavailable and fault.Cancelled nothing was done, with
// fault.Unknown it is not known (VD-148), and the core's own errors say so
// themselves. When ctx is cancelled after the request was handed over, the core is
// told, and what came of it is waited for until the request's deadline (VD-010).
func (c *Client) Call(ctx context.Context, r Request) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, notBegun(ctx, r)
	}
	if r.RequestID == "" {
		r.RequestID = newRequestID()
	}
	limit, cancel := bounded(ctx, r)
	defer cancel()
	renewed, resent := false, false
	for {
		conn, err := c.connect(limit)
		if err != nil {
			return c.instead(ctx, limit, r, err)
		}
		a := conn.exchange(ctx, limit, r)
		switch {
		case a.state == answered:
			return a.body, a.err
		case a.state == notSent && !renewed:
			// The connection had gone stale; no core has seen the request.
			renewed = true
		case a.state == notSent:
			return nil, a.unsent(r)
		case a.state == lost && r.Replay && !resent:
			resent = true
			if !pause(limit, resendAfter) {
				return nil, a.unknown(r)
			}
		case a.state == lost && r.Replay:
			return nil, fault.Wrap(a.err, fault.Unavailable, "call core", r.Method).Retryable()
		default:
			return nil, a.unknown(r)
		}
	}
}

// bounded is the context of the request's absolute deadline.
func bounded(ctx context.Context, r Request) (context.Context, context.CancelFunc) {
	switch {
	case r.Timeout < 0:
		return context.WithCancel(ctx)
	case r.Timeout == 0:
		return context.WithTimeout(ctx, DefaultTimeout)
	}
	return context.WithTimeout(ctx, r.Timeout)
}

// newRequestID names a request that its caller has not named: 64 random bits.
func newRequestID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	const hex = "0123456789abcdef"
	id := make([]byte, 0, 16)
	for _, c := range b {
		id = append(id, hex[c>>4], hex[c&15])
	}
	return string(id)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// notBegun is the fault for a context that ended before the request was handed over.
func notBegun(ctx context.Context, r Request) error {
	code := fault.Cancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = fault.Timeout
	}
	e := fault.Wrap(context.Cause(ctx), code, "call core", r.Method)
	e.Message = "nothing was done"
	return e
}

// connect returns the connection, a new one when there is none that works.
func (c *Client) connect(ctx context.Context) (*clientConn, error) {
	if conn := c.conn.Load(); conn != nil && conn.usable() {
		return conn, nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	if conn := c.conn.Load(); conn != nil && conn.usable() {
		return conn, nil
	}
	if c.closed.Load() {
		return nil, fault.New(fault.Unavailable, "call core", "", "the client is closed")
	}
	conn, err := c.open(ctx)
	for n := 1; n <= leaving && errors.Is(err, errLeft) && pause(ctx, time.Duration(n)*leaveAfter); n++ {
		conn, err = c.open(ctx)
	}
	if ReasonOf(err) == NoSocket && c.o.Start != nil {
		if err := c.o.Start(ctx); err != nil {
			return nil, refused(fault.Wrap(err, fault.CodeOf(err), "start core", ""), RespawnFailed)
		}
		conn, err = c.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.conn.Store(conn)
	return conn, nil
}

// open dials and shakes hands.
func (c *Client) open(ctx context.Context) (*clientConn, error) {
	const op = "connect to core"
	ctx, cancel := context.WithTimeout(ctx, greetWait)
	defer cancel()
	conn, err := c.o.Dial(ctx)
	switch {
	case err == nil:
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED), fault.HasCode(err, fault.NotFound):
		return nil, refused(fault.Wrap(err, fault.Unavailable, op, "").Retryable(), NoSocket)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return nil, refused(fault.Wrap(err, fault.Unavailable, op, "").
			WithNext("run reeve as the user who owns the data directory"), Unreachable)
	default:
		return nil, fault.Wrap(err, fault.Unavailable, op, "").Retryable()
	}
	if err := c.o.Admit(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	// Whatever ends ctx ends a handshake that hangs.
	unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
	p := newPipe(conn)
	peer, err := c.greet(p)
	if !unhook() && err == nil {
		err = fault.Wrap(context.Cause(ctx), fault.Unavailable, op, "").Retryable()
	}
	if err != nil {
		_ = conn.Close() // unused, or closed already
		return nil, err
	}
	return newClientConn(p, peer), nil
}

// greet sends the handshake and reads what the core says to it.
func (c *Client) greet(p *pipe) (Core, error) {
	const op = "greet core"
	own, err := c.identify()
	if err != nil {
		return Core{}, err
	}
	err = p.write(&frame{kind: handshake, hello: &hello{
		min: oldest, max: newest, client: c.o.Client, version: c.o.Version,
		configID: own.id, config: own.text, readOnly: c.o.ReadOnly,
	}})
	if err != nil && isFault(err) {
		return Core{}, err
	}
	// A core that refuses before it reads may have closed its end: its word is read
	// even so.
	f, readErr := p.read(MaxFrame)
	switch {
	case readErr == nil:
	case isFault(readErr):
		return Core{}, refused(fault.Wrap(readErr, fault.Unavailable, op, "").Retryable(), ParseFailure)
	case errors.Is(readErr, io.EOF), errors.Is(readErr, syscall.ECONNRESET):
		return Core{}, fault.Wrap(fmt.Errorf("%w: %w", errLeft, errors.Join(err, readErr)), fault.Unavailable, op, "").Retryable()
	default:
		return Core{}, fault.Wrap(errors.Join(err, readErr), fault.Unavailable, op, "").Retryable()
	}
	switch {
	case f.kind == failure && f.id == 0:
		return Core{}, f.fault.err()
	case f.kind != handshakeAck:
		return Core{}, refused(fault.New(fault.Unavailable, op, "", "it answers with %s", f.kind).Retryable(), ParseFailure)
	case f.hello.protocol < oldest || f.hello.protocol > newest:
		return Core{}, refused(fault.New(fault.Unavailable, op, "", "it chose protocol %d of %d to %d", f.hello.protocol, oldest, newest).Retryable(), ProtocolMismatch)
	}
	fields, err := own.differ(f.hello, configid.Diff)
	if err != nil {
		return Core{}, refused(fault.Wrap(err, fault.Unavailable, op, ""), ParseFailure)
	}
	if err := mismatch(c.o.Client, fields); err != nil {
		return Core{}, err
	}
	return Core{Version: f.hello.version, PID: int(f.hello.pid), Protocol: int(f.hello.protocol)}, nil
}

func (c *Client) identify() (greeting, error) {
	if c.o.Identity == nil {
		return greetingOf(configid.Identity{})
	}
	id, err := c.o.Identity()
	if err != nil {
		return greeting{}, err
	}
	return greetingOf(id)
}

// Core is what a core said of itself.
type Core struct {
	Version  string
	PID      int
	Protocol int
}

// Core returns which core is connected, if one is.
func (c *Client) Core() (Core, bool) {
	if conn := c.conn.Load(); conn != nil && conn.usable() {
		return conn.core, true
	}
	return Core{}, false
}

// Diagnostics is what a front end can tell of its link without asking anybody.
type Diagnostics struct {
	Instance         string           `json:"instance"`
	PID              int              `json:"pid"`
	Fallbacks        map[Reason]int64 `json:"fallbacks"`
	FallbacksTotal   int64            `json:"fallbacks_total"`
	StrictViolations int64            `json:"strict_violations"`
}

// Diagnostics reads the counters.
func (c *Client) Diagnostics() Diagnostics {
	d := Diagnostics{Instance: c.instance, PID: os.Getpid(), Fallbacks: map[Reason]int64{}, StrictViolations: c.violations.Load()}
	for r, n := range c.counts {
		d.Fallbacks[r] = n.Load()
		d.FallbacksTotal += d.Fallbacks[r]
	}
	return d
}
