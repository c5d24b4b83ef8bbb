package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
)

// Client is a Service at the other end of a core's socket. It is made by Connect,
// Launch or Reach and is safe for concurrent use.
//
// A read is repeated when its connection breaks. A call with an effect is never
// sent twice: when its answer is lost the error is fault.Unknown. A call that could
// not be sent is fault.Unavailable, or with Launch starts a core and is then sent.
type Client struct {
	dir   string
	http  *http.Client
	start func(context.Context) error // nil: never starts a core
	core  Hello

	framing framing
}

var _ Service = (*Client)(nil)

// attempts of a read, and of a call that needs a core started.
const attempts = 3

// helloWait is far longer than a core takes to say who it is on a machine that is
// busy with other things.
const helloWait = 10 * time.Second

// unsent is an error of a request of which no byte has left.
type unsent struct{ err error }

func (u unsent) Error() string { return u.err.Error() }
func (u unsent) Unwrap() error { return u.err }

// Reach connects to the core of dir whatever its version, for asking it to stop.
func Reach(ctx context.Context, dir string) (*Client, error) {
	return open(ctx, dir, nil, helloWait)
}

// Connect connects to the running core of dir and never starts one.
func Connect(ctx context.Context, dir string) (*Client, error) {
	c, err := Reach(ctx, dir)
	if err != nil {
		return nil, err
	}
	return c, c.compatible()
}

func open(ctx context.Context, dir string, start func(context.Context) error, wait time.Duration) (*Client, error) {
	c := &Client{dir: dir}
	c.http = &http.Client{
		// One connection per call: a Unix connect costs microseconds, and a pooled
		// connection of a core that has died would leave doubt whether a call was sent.
		Transport: &http.Transport{
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn, err := dial(ctx, dir)
				if err != nil {
					return nil, unsent{err}
				}
				return conn, nil
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if err := c.hello(ctx, start, wait); err != nil {
		return nil, err
	}
	return c, nil
}

var errSilent = errors.New("the core says nothing")

// hello asks who listens, and sets whether c may start a core. One that takes the
// connection and says nothing for wait is taken for hung: a core that works answers
// this call at once. The start of one has a limit of its own.
func (c *Client) hello(ctx context.Context, start func(context.Context) error, wait time.Duration) error {
	limit, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(wait, func() { cancel(errSilent) })
	defer silent.Stop()
	if start != nil {
		c.start = func(context.Context) error {
			silent.Stop()
			defer silent.Reset(wait)
			return start(ctx)
		}
	}
	err := c.read(limit, "hello", "/v1/hello", &c.core)
	c.start = start
	if err == nil || !errors.Is(context.Cause(limit), errSilent) {
		return err
	}
	who := "a core"
	if core, err := ReadCore(c.dir); err == nil {
		who = fmt.Sprintf("the core, process %d,", core.PID)
	}
	return fault.New(fault.Unavailable, "connect to core", c.dir, "%s listens and has said nothing for %s: it is stopped or hangs", who, wait).
		Retryable().WithNext("continue it with kill -CONT, or end it with kill -KILL, which loses nothing that was acknowledged")
}

// Core says which core was found when the client was made.
func (c *Client) Core() Hello { return c.core }

func (c *Client) compatible() error {
	if c.core.Protocol == Protocol {
		return nil
	}
	return fault.New(fault.Unavailable, "connect to core", c.dir, "the running core is version %s with protocol %d, this reeve is %s with protocol %d",
		c.core.Version, c.core.Protocol, Version, Protocol).WithNext("restart the core: reeve down, then reeve up")
}

// read calls a call without effect, and again when the connection breaks.
func (c *Client) read(ctx context.Context, op, path string, out any) error {
	for n := 1; ; n++ {
		resp, err := c.send(ctx, op, http.MethodGet, path, nil, "")
		if err == nil {
			err = receive(resp, op, out)
		}
		if err == nil || !broken(err) || n == attempts {
			return settled(err, fault.Unavailable)
		}
		if err := pause(ctx, op, time.Duration(n)*50*time.Millisecond); err != nil {
			return err
		}
	}
}

// effect calls a call that must not be sent twice.
func (c *Client) effect(ctx context.Context, op, path string, in, out any) error {
	resp, err := c.send(ctx, op, http.MethodPost, path, in, "")
	if err == nil {
		err = receive(resp, op, out)
	}
	return settled(err, fault.Unknown)
}

// lost is a connection that broke with a request on its way.
type lost struct {
	op  string
	err error
}

func (l lost) Error() string { return l.op + ": the core went away: " + l.err.Error() }
func (l lost) Unwrap() error { return l.err }

func broken(err error) bool { return errors.As(err, new(lost)) }

// settled gives a broken call its code.
func settled(err error, code fault.Code) error {
	var l lost
	if !errors.As(err, &l) {
		return err
	}
	e := fault.New(code, l.op, "", "the core went away before it answered")
	e.Err, e.Retry = l.err, code == fault.Unavailable
	if code == fault.Unknown {
		return e.WithNext("see what happened with reeve events, then decide")
	}
	return e.WithNext("reeve status")
}

// send sends one request and returns the response to a request that was admitted;
// any other response becomes its fault. A core is started when there is none and
// the client may.
func (c *Client) send(ctx context.Context, op, method, path string, in any, accept string) (*http.Response, error) {
	var body []byte
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fault.Wrap(err, fault.InvalidRequest, op, "")
		}
		body = b
	}
	for n := 1; ; n++ {
		req, err := http.NewRequestWithContext(ctx, method, "http://core"+path, bytes.NewReader(body))
		if err != nil {
			return nil, fault.Wrap(err, fault.InvalidRequest, op, path)
		}
		if in != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		resp, err := c.http.Do(req)
		if err == nil {
			if resp.StatusCode == http.StatusOK {
				return resp, nil
			}
			return nil, receive(resp, op, nil)
		}
		if ctx.Err() != nil {
			return nil, ended(ctx, op)
		}
		var u unsent
		switch {
		case !errors.As(err, &u):
			return nil, lost{op, err}
		case c.start == nil || n == attempts || !fault.HasCode(u.err, fault.Unavailable):
			return nil, u.err
		}
		if err := c.start(ctx); err != nil {
			return nil, err
		}
	}
}

// receive reads an envelope into out, which may be nil.
func receive(resp *http.Response, op string, out any) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	err = errors.Join(err, resp.Body.Close())
	if err != nil {
		if ctx := resp.Request.Context(); ctx.Err() != nil {
			return ended(ctx, op)
		}
		return lost{op, err}
	}
	return unwrap(b, op, out)
}

func unwrap(b []byte, op string, out any) error {
	var e Envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return fault.Wrap(err, fault.Internal, op, "answer of the core")
	}
	if !e.OK {
		if e.Error == nil {
			return fault.New(fault.Internal, op, "answer of the core", "neither a result nor an error")
		}
		return e.Error.Err()
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(e.Data, out); err != nil {
		return fault.Wrap(err, fault.Internal, op, "answer of the core")
	}
	return nil
}

// ended is the fault for a caller's context that ended.
func ended(ctx context.Context, op string) *fault.Error {
	code := fault.Cancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = fault.Timeout
	}
	return fault.Wrap(context.Cause(ctx), code, op, "")
}

func pause(ctx context.Context, op string, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ended(ctx, op)
	case <-t.C:
		return nil
	}
}

// segment escapes an id for a path. An id that a path cannot hold is refused here
// with what a core would say.
func segment(op, id string) (string, error) {
	if id == "" || id == "." || id == ".." {
		return "", fault.New(fault.InvalidRequest, op, id, "not an id")
	}
	return url.PathEscape(id), nil
}

// messages reads the events of a stream until f says stop or fails. The body is
// closed in every case.
func messages(resp *http.Response, op string, f func(m message) (stop bool, err error)) error {
	defer func() { _ = resp.Body.Close() }() // everything wanted has been read by then
	r := reader{bufio.NewReader(resp.Body)}
	for {
		m, err := r.next()
		if err != nil {
			if ctx := resp.Request.Context(); ctx.Err() != nil {
				return ended(ctx, op)
			}
			if fault.HasCode(err, fault.LimitExceeded) {
				return err
			}
			return lost{op, fmt.Errorf("stream: %w", err)}
		}
		if stop, err := f(m); stop || err != nil {
			return err
		}
	}
}
