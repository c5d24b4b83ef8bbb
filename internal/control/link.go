package control

import (
	"context"
	"net"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/configid"
	"github.com/reeve-run/reeve/internal/link"
)

// frames is the server of calls that are too frequent for HTTP.
func (s *Server) frames(id configid.Identity) (*link.Server, error) {
	return link.NewServer(link.ServerOptions{
		Handler: s.frame, Version: Version, Identity: id, Log: s.log, Drain: drain,
	})
}

// frame answers one call of the link. Its methods say what the routes of the same
// name say.
func (s *Server) frame(ctx context.Context, c link.Call) ([]byte, error) {
	switch c.Method {
	case "request":
		var r RequestCall
		if err := json.Unmarshal(c.Body, &r, json.RejectUnknownMembers(true)); err != nil {
			return nil, fault.Wrap(err, fault.InvalidRequest, "read request", c.Method)
		}
		return framed(s.service.Request(ctx, r))
	case "status":
		return framed(s.service.Status(ctx))
	default:
		return nil, fault.New(fault.UnknownMethod, "answer", c.Method, "the link has no such method")
	}
}

func framed(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "encode answer", "")
	}
	return b, nil
}

// framing is the client's side: made at its first use, and connected then.
type framing struct {
	once sync.Once
	link *link.Client
}

// frames returns the client of the link. What cannot go through it goes by HTTP.
func (c *Client) frames() *link.Client {
	c.framing.once.Do(func() {
		c.framing.link = link.NewClient(link.ClientOptions{
			Client: "reeve", Version: Version,
			Dial:     func(ctx context.Context) (net.Conn, error) { return DialLink(ctx, c.dir) },
			Identity: func() (configid.Identity, error) { return config.Identity(c.dir) },
			Start:    c.start,
			Fallback: func(ctx context.Context, r link.Request) (body []byte, err error) {
				var v jsontext.Value
				return v, c.effect(ctx, r.Method, "/v1/"+r.Method, jsontext.Value(r.Body), &v)
			},
		})
	})
	return c.framing.link
}

// LinkDiagnostics is what a client can tell of its connection.
type LinkDiagnostics = link.Diagnostics

// Link counts the calls that did not go through the link, and why (VD-012).
func (c *Client) Link() LinkDiagnostics { return c.frames().Diagnostics() }

// Close gives up the connection that the client keeps. Calls that are open on it end
// as if the core had gone.
func (c *Client) Close() error { return c.frames().Close() }

// DialLink connects to the link of dir's core. A core without one, and no core, are
// fault.NotFound; other causes are kept.
func DialLink(ctx context.Context, dir string) (net.Conn, error) {
	core, err := ReadCore(dir)
	if err != nil {
		return nil, err
	}
	if core.Link == "" {
		return nil, fault.New(fault.NotFound, "connect to core", dir, "the core, version %s, has no link", core.Version)
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", core.Link)
}
