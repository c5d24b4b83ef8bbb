package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/peercred"
)

// Limits of the server.
const (
	// maxBody holds the largest cell (256 KiB) with every byte escaped as \uXXXX.
	maxBody = 2 << 20
	// heartbeat is how long a stream may be silent; half of what common readers
	// wait for.
	heartbeat = 10 * time.Second
	// stuck is how long one write to a reader may take before it is cut off.
	stuck = 30 * time.Second
	// drain is how long open calls get to end by themselves when the core stops:
	// longer than an interrupt may take.
	drain = 10 * time.Second
)

// Protocol rises when a released client could misread a newer core.
const Protocol = 1

// Server serves a Service on a Unix socket to processes of the same user.
type Server struct {
	service   Service
	log       *slog.Logger
	heartbeat time.Duration
}

// NewServer makes a Server. log receives panics and nothing per request.
func NewServer(s Service, log *slog.Logger) *Server {
	return &Server{service: s, log: log, heartbeat: heartbeat}
}

// Hello is what a core says about itself before anything else.
type Hello struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	PID      int    `json:"pid"`
}

type peerKey struct{}

// streamKey holds the context that ends when the server starts to stop, for
// requests that would otherwise never end.
type streamKey struct{}

// Serve answers on both sockets until ctx ends; then it takes no new calls, ends
// followers at once, gives the other calls time to finish, and returns nil. It
// closes the sockets.
func (s *Server) Serve(ctx context.Context, at *Sockets) error {
	frames, err := s.frames(at.identity)
	if err != nil {
		return errors.Join(err, at.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	for _, serve := range []func() error{
		func() error { return s.serveHTTP(ctx, at.http) },
		func() error { return frames.Serve(ctx, at.link) },
	} {
		go func() {
			defer stop() // one that cannot go on does not leave the other alone
			ended <- serve()
		}()
	}
	return errors.Join(<-ended, <-ended)
}

func (s *Server) serveHTTP(ctx context.Context, l net.Listener) error {
	calls, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: stuck,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(calls, streamKey{}, ctx)
		},
		ConnContext: func(c context.Context, conn net.Conn) context.Context {
			return context.WithValue(c, peerKey{}, peer{peercred.SameUser(conn)})
		},
	}
	stopped := make(chan error, 1)
	unhook := context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		err := srv.Shutdown(limit)
		if err != nil {
			abandon()
			err = errors.Join(err, srv.Close())
		}
		stopped <- err
	})
	err := srv.Serve(l)
	if unhook() {
		return fault.Wrap(err, fault.Unavailable, "serve control socket", l.Addr().String())
	}
	if err := <-stopped; err != nil {
		s.log.Warn("control calls were cut off", "cause", err)
	}
	return nil
}

// Handler is the routes behind the checks. A request whose connection was not
// admitted by Serve is refused.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.routes(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.recovered(w, r)
		if err := admitted(r); err != nil {
			fail(w, err)
			return
		}
		if r.Method == http.MethodPost {
			if t := r.Header.Get("Content-Type"); t != "application/json" {
				fail(w, fault.New(fault.InvalidRequest, "read request", t, "content type must be application/json"))
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		mux.ServeHTTP(w, r)
	})
}

// peer is the verdict on a connection.
type peer struct{ err error }

func admitted(r *http.Request) error {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok {
		return p.err
	}
	return fault.New(fault.Unauthorized, "accept connection", "", "the peer is not known")
}

// recovered turns a panic of a call into its answer, when none has begun, and a log
// entry; the core goes on.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v) // net/http's own way to cut a response
	}
	s.log.Error("panic in a control call", "path", r.URL.Path, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	fail(w, fault.New(fault.Internal, "answer", r.URL.Path, "panic: %v", v).WithNext("read core.log in the data directory"))
}

// answer makes a handler of a function that gives data.
func answer(kind string, f func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := f(r)
		if err != nil {
			fail(w, err)
			return
		}
		e, err := Success(kind, data)
		if err != nil {
			fail(w, err)
			return
		}
		write(w, http.StatusOK, e)
	}
}

func fail(w http.ResponseWriter, err error) {
	write(w, HTTPStatus(fault.CodeOf(err)), Failure(err))
}

// write sends e. An error here means that the peer has gone, which nobody is left
// to be told of.
func write(w http.ResponseWriter, status int, e Envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, e)
}

// decode reads a body strictly: unknown, duplicate and case-variant members, bad
// UTF-8, trailing bytes and more than maxBody are refused.
func decode[T any](r *http.Request) (T, error) {
	var v T
	err := json.UnmarshalRead(r.Body, &v, json.RejectUnknownMembers(true))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return v, fault.New(fault.LimitExceeded, "read request", r.URL.Path, "body is over %d bytes", tooLarge.Limit)
	case err != nil:
		return v, fault.Wrap(err, fault.InvalidRequest, "read request", r.URL.Path)
	}
	return v, nil
}

// known refuses query parameters that the route does not have.
func known(r *http.Request, names ...string) error {
	for k := range r.URL.Query() {
		found := false
		for _, n := range names {
			found = found || n == k
		}
		if !found {
			return fault.New(fault.InvalidRequest, "read query", k, "no such parameter; there is %s", strings.Join(names, ", "))
		}
	}
	return nil
}

func hello(*http.Request) (any, error) {
	return Hello{Version: Version, Protocol: Protocol, PID: os.Getpid()}, nil
}
