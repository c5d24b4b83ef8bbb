package control

import (
	"context"
	"net"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
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
