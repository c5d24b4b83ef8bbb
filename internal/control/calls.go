package control

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
)

// Status implements Service.
func (c *Client) Status(ctx context.Context) (v Status, err error) {
	return v, c.read(ctx, "read status", "/v1/status", &v)
}

// Processes implements Service.
func (c *Client) Processes(ctx context.Context) (v []Process, err error) {
	return v, c.read(ctx, "list processes", "/v1/processes", &v)
}

// Shutdown implements Service.
func (c *Client) Shutdown(ctx context.Context, by event.Actor) error {
	return c.effect(ctx, "stop core", "/v1/shutdown", byRequest{by}, nil)
}

// Cell implements Service.
func (c *Client) Cell(ctx context.Context, cell string) (v CellDetail, err error) {
	return v, c.of(ctx, "read cell", "/v1/cells/", cell, "", &v)
}

// ListCells implements Service.
func (c *Client) ListCells(ctx context.Context, session string, max int) (v []Cell, err error) {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	if max != 0 {
		q.Set("max", strconv.Itoa(max))
	}
	return v, c.read(ctx, "list cells", "/v1/cells?"+q.Encode(), &v)
}

// Interrupt implements Service.
func (c *Client) Interrupt(ctx context.Context, cell string, by event.Actor) (v InterruptReport, err error) {
	return v, c.effect(ctx, "interrupt", "/v1/interrupt", interruptRequest{cell, by}, &v)
}

// Output implements Service.
func (c *Client) Output(ctx context.Context, cell string, offset int64) (OutputRange, error) {
	const op = "read output"
	id, err := segment(op, cell)
	if err != nil {
		return OutputRange{}, err
	}
	resp, err := c.content(ctx, op, "/v1/cells/"+id+"/output?offset="+strconv.FormatInt(offset, 10))
	if err != nil {
		return OutputRange{}, err
	}
	o := OutputRange{Body: resp.Body}
	bad := false
	count := func(name string) int64 {
		n, err := strconv.ParseInt(resp.Header.Get(name), 10, 64)
		bad = bad || err != nil
		return n
	}
	o.Offset, o.Total = count(headerOffset), count(headerTotal)
	if resp.Header.Get(headerGapFrom) != "" {
		o.Gap = &Gap{From: count(headerGapFrom), To: count(headerGapTo)}
	}
	if bad {
		_ = resp.Body.Close()
		return OutputRange{}, fault.New(fault.Internal, op, cell, "the core did not say which range it sent")
	}
	return o, nil
}

// content asks for bytes. They stream, so only the request is repeated when it
// breaks; a body that breaks ends with io.ErrUnexpectedEOF.
func (c *Client) content(ctx context.Context, op, path string) (*http.Response, error) {
	for n := 1; ; n++ {
		resp, err := c.send(ctx, op, http.MethodGet, path, nil, "")
		if err == nil || !broken(err) || n == attempts {
			return resp, settled(err, fault.Unavailable)
		}
	}
}

// Session implements Service.
func (c *Client) Session(ctx context.Context, id string) (v Session, err error) {
	return v, c.of(ctx, "read session", "/v1/sessions/", id, "", &v)
}

// ListSessions implements Service.
func (c *Client) ListSessions(ctx context.Context) (v []Session, err error) {
	return v, c.read(ctx, "list sessions", "/v1/sessions", &v)
}

// Resume implements Service.
func (c *Client) Resume(ctx context.Context, id string, by event.Actor) (Session, error) {
	return c.change(ctx, "resume session", id, "/resume", by)
}

// CloseSession implements Service.
func (c *Client) CloseSession(ctx context.Context, id string, by event.Actor) (Session, error) {
	return c.change(ctx, "close session", id, "/close", by)
}

// ResetNamespace implements Service.
func (c *Client) ResetNamespace(ctx context.Context, session string, by event.Actor) (Session, error) {
	return c.change(ctx, "reset namespace", session, "/reset", by)
}

func (c *Client) change(ctx context.Context, op, id, what string, by event.Actor) (v Session, err error) {
	id, err = segment(op, id)
	if err != nil {
		return v, err
	}
	return v, c.effect(ctx, op, "/v1/sessions/"+id+what, byRequest{by}, &v)
}

// Namespace implements Service.
func (c *Client) Namespace(ctx context.Context, session string) (v Namespace, err error) {
	return v, c.of(ctx, "read namespace", "/v1/sessions/", session, "/names", &v)
}

// ListNamespaces implements Service.
func (c *Client) ListNamespaces(ctx context.Context) (v []Namespace, err error) {
	return v, c.read(ctx, "list namespaces", "/v1/namespaces", &v)
}

func (c *Client) of(ctx context.Context, op, path, id, what string, out any) error {
	id, err := segment(op, id)
	if err != nil {
		return err
	}
	return c.read(ctx, op, path+id+what, out)
}

// Artifact implements Service.
func (c *Client) Artifact(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	const op = "read artifact"
	id, err := segment(op, sha256)
	if err != nil {
		return nil, err
	}
	resp, err := c.content(ctx, op, "/v1/artifacts/"+id)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Verify implements Service.
func (c *Client) Verify(ctx context.Context) (v VerifyReport, err error) {
	return v, c.read(ctx, "verify", "/v1/verify", &v)
}

// Anchor implements Service.
func (c *Client) Anchor(ctx context.Context) (v AnchorReport, err error) {
	return v, c.effect(ctx, "anchor", "/v1/anchor", byRequest{}, &v)
}

// Usage implements Service.
func (c *Client) Usage(ctx context.Context) (v Usage, err error) {
	return v, c.read(ctx, "read usage", "/v1/usage", &v)
}
