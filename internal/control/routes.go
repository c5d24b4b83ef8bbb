package control

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
)

// byRequest is the body of calls that only name who asks.
type byRequest struct {
	By event.Actor `json:"by"`
}

// interruptRequest names a cell handle or a session.
type interruptRequest struct {
	Target string      `json:"target"`
	By     event.Actor `json:"by"`
}

type accepted struct{}

func (s *Server) routes(mux *http.ServeMux) {
	get := func(path, kind string, f func(ctx context.Context) (any, error)) {
		mux.HandleFunc("GET "+path, answer(kind, func(r *http.Request) (any, error) {
			if err := known(r); err != nil {
				return nil, err
			}
			return f(r.Context())
		}))
	}
	of := func(path, kind string, f func(ctx context.Context, id string) (any, error)) {
		mux.HandleFunc("GET "+path, answer(kind, func(r *http.Request) (any, error) {
			if err := known(r); err != nil {
				return nil, err
			}
			return f(r.Context(), r.PathValue("id"))
		}))
	}
	do := func(path, kind string, f func(ctx context.Context, id string, by event.Actor) (any, error)) {
		mux.HandleFunc("POST "+path, answer(kind, func(r *http.Request) (any, error) {
			b, err := decode[byRequest](r)
			if err != nil {
				return nil, err
			}
			return f(r.Context(), r.PathValue("id"), b.By)
		}))
	}
	c := s.service

	mux.HandleFunc("GET /v1/hello", answer("hello", hello))
	get("/v1/status", "status", func(ctx context.Context) (any, error) { return c.Status(ctx) })
	get("/v1/processes", "processes", func(ctx context.Context) (any, error) { return list(c.Processes(ctx)) })
	do("/v1/shutdown", "accepted", func(ctx context.Context, _ string, by event.Actor) (any, error) {
		return accepted{}, c.Shutdown(ctx, by)
	})

	mux.HandleFunc("POST /v1/cells", s.execute)
	mux.HandleFunc("GET /v1/cells", answer("cells", s.listCells))
	of("/v1/cells/{id}", "cell", func(ctx context.Context, id string) (any, error) { return c.Cell(ctx, id) })
	mux.HandleFunc("GET /v1/cells/{id}/output", s.output)
	mux.HandleFunc("POST /v1/interrupt", answer("interrupt", func(r *http.Request) (any, error) {
		b, err := decode[interruptRequest](r)
		if err != nil {
			return nil, err
		}
		return c.Interrupt(r.Context(), b.Target, b.By)
	}))

	mux.HandleFunc("POST /v1/request", answer("request", func(r *http.Request) (any, error) {
		b, err := decode[RequestCall](r)
		if err != nil {
			return nil, err
		}
		return c.Request(r.Context(), b)
	}))

	get("/v1/sessions", "sessions", func(ctx context.Context) (any, error) { return list(c.ListSessions(ctx)) })
	of("/v1/sessions/{id}", "session", func(ctx context.Context, id string) (any, error) { return c.Session(ctx, id) })
	do("/v1/sessions/{id}/resume", "session", func(ctx context.Context, id string, by event.Actor) (any, error) { return c.Resume(ctx, id, by) })
	do("/v1/sessions/{id}/close", "session", func(ctx context.Context, id string, by event.Actor) (any, error) { return c.CloseSession(ctx, id, by) })
	do("/v1/sessions/{id}/reset", "session", func(ctx context.Context, id string, by event.Actor) (any, error) {
		return c.ResetNamespace(ctx, id, by)
	})
	of("/v1/sessions/{id}/names", "namespace", func(ctx context.Context, id string) (any, error) { return c.Namespace(ctx, id) })
	get("/v1/namespaces", "namespaces", func(ctx context.Context) (any, error) { return list(c.ListNamespaces(ctx)) })

	mux.HandleFunc("GET /v1/events", s.events)
	mux.HandleFunc("GET /v1/artifacts/{id}", s.artifact)
	get("/v1/verify", "verify", func(ctx context.Context) (any, error) { return c.Verify(ctx) })
	do("/v1/anchor", "anchor", func(ctx context.Context, _ string, _ event.Actor) (any, error) { return c.Anchor(ctx) })
	get("/v1/usage", "usage", func(ctx context.Context) (any, error) { return c.Usage(ctx) })

	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, fault.New(fault.UnknownMethod, "call", r.Method+" "+r.URL.Path, "no such call").
			WithNext("compare reeve version with reeve status: the core may be of another version"))
	})
}

// list keeps an empty list from becoming null, whoever implements the service.
func list[T any](v []T, err error) (any, error) {
	if v == nil {
		v = []T{}
	}
	return v, err
}

func (s *Server) listCells(r *http.Request) (any, error) {
	if err := known(r, "session", "max"); err != nil {
		return nil, err
	}
	max, err := number(r.URL.Query(), "max")
	if err != nil {
		return nil, err
	}
	return list(s.service.ListCells(r.Context(), r.URL.Query().Get("session"), int(max)))
}

func number(q url.Values, name string) (int64, error) {
	v := q.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 53)
	if err != nil || n < 0 {
		return 0, fault.New(fault.InvalidRequest, "read query", name, "%q is not a whole number from 0", v)
	}
	return n, nil
}

// Headers of an output range.
const (
	headerOffset  = "Reeve-Offset"
	headerTotal   = "Reeve-Total"
	headerGapFrom = "Reeve-Gap-From"
	headerGapTo   = "Reeve-Gap-To"
)

func (s *Server) output(w http.ResponseWriter, r *http.Request) {
	if err := known(r, "offset"); err != nil {
		fail(w, err)
		return
	}
	offset, err := number(r.URL.Query(), "offset")
	if err != nil {
		fail(w, err)
		return
	}
	o, err := s.service.Output(r.Context(), r.PathValue("id"), offset)
	if err != nil {
		fail(w, err)
		return
	}
	h := w.Header()
	h.Set(headerOffset, strconv.FormatInt(o.Offset, 10))
	h.Set(headerTotal, strconv.FormatInt(o.Total, 10))
	if o.Gap != nil {
		h.Set(headerGapFrom, strconv.FormatInt(o.Gap.From, 10))
		h.Set(headerGapTo, strconv.FormatInt(o.Gap.To, 10))
	}
	s.body(w, o.Body)
}

func (s *Server) artifact(w http.ResponseWriter, r *http.Request) {
	if err := known(r); err != nil {
		fail(w, err)
		return
	}
	b, err := s.service.Artifact(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	s.body(w, b)
}

// body sends bytes; when they cannot be read to their end the response is cut, so
// that a part is never taken for the whole.
func (s *Server) body(w http.ResponseWriter, b io.ReadCloser) {
	defer func() {
		if err := b.Close(); err != nil {
			s.log.Warn("close content", "cause", err)
		}
	}()
	w.Header().Set("Content-Type", "application/octet-stream")
	ctl := http.NewResponseController(w)
	buf := make([]byte, 64<<10)
	for {
		n, err := b.Read(buf)
		if n > 0 {
			if ctl.SetWriteDeadline(time.Now().Add(stuck)) != nil {
				panic(http.ErrAbortHandler)
			}
			if _, err := w.Write(buf[:n]); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			s.log.Error("read content", "cause", err)
			panic(http.ErrAbortHandler)
		}
	}
}
