package mcpserve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
)

const (
	// Path is where the protocol is served.
	Path = "/mcp"

	// maxConnections bounds the stateful sessions that are open at once, and
	// maxCalls the requests, streams that only listen among them.
	maxConnections = 64
	maxCalls       = 1024
	// idleConnection is how long a session may be silent before it is closed. Its
	// names live on in the core.
	idleConnection = time.Hour

	// stateless is the first version of the protocol that knows no sessions.
	stateless = "2026-07-28"
	// versionMember tells in a message of such a version which one it is.
	versionMember = "io.modelcontextprotocol/protocolVersion"
)

// HTTPOptions say how the protocol is served over HTTP.
type HTTPOptions struct {
	// Token is what a client must present as bearer. It is required.
	Token string
	// Expose allows an address that other machines can reach.
	Expose bool
	// Hosts are names, beside the address itself, under which clients may ask for it.
	Hosts []string
	// Connections bounds the stateful sessions open at once; 0: 64.
	Connections int
}

// Web serves many clients over streamable HTTP. A client of a version with sessions
// has a front end, and so a session of reeve, of its own. One of a version without
// has none: it must name a session to run code in.
type Web struct {
	opt    Options
	http   HTTPOptions
	digest [sha256.Size]byte // of the token
	hosts  map[string]bool
	sdk    struct{ stateful, stateless http.Handler }
	plain  *Server // for what belongs to no session
	calls  chan struct{}

	mu      sync.Mutex // guards the rest
	open    []*Server  // may have a session
	pending int        // being opened
}

// NewWeb makes a Web for a listener of address. It refuses an address that is open
// to other machines unless that was asked for.
func NewWeb(o Options, h HTTPOptions, address net.Addr) (*Web, error) {
	const op = "serve MCP over HTTP"
	at, ok := address.(*net.TCPAddr)
	switch {
	case !ok:
		return nil, fault.New(fault.Usage, op, address.String(), "not a TCP address")
	case len(h.Token) < 32:
		return nil, fault.New(fault.Usage, op, "token", "a token of at least 32 characters is required")
	case !at.IP.IsLoopback() && !h.Expose:
		return nil, fault.New(fault.Usage, op, address.String(), "other machines can reach this address, and whoever has the token can run code").
			WithNext("listen on 127.0.0.1, or add --expose if that is meant")
	}
	if h.Connections == 0 {
		h.Connections = maxConnections
	}
	w := &Web{opt: o, http: h, digest: sha256.Sum256([]byte(h.Token)), hosts: map[string]bool{}, calls: make(chan struct{}, maxCalls)}
	port := strconv.Itoa(at.Port)
	names := append([]string{at.IP.String()}, h.Hosts...)
	if at.IP.IsLoopback() || at.IP.IsUnspecified() {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	for _, name := range names {
		w.hosts[strings.ToLower(net.JoinHostPort(name, port))] = true
	}
	o.Sessionless = o.Session == ""
	w.plain = New(o)
	w.sdk.stateless = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return w.plain.protocol },
		&mcp.StreamableHTTPOptions{Stateless: true, Logger: w.plain.opt.Log, MaxRequestBodyBytes: maxLine, PropagateRequestCancellation: true, DisableLocalhostProtection: true})
	w.sdk.stateful = mcp.NewStreamableHTTPHandler(w.serverOf,
		&mcp.StreamableHTTPOptions{Logger: w.plain.opt.Log, MaxRequestBodyBytes: maxLine, SessionTimeout: idleConnection, DisableLocalhostProtection: true})
	return w, nil
}

// Serve answers on l until ctx ends, and then gives open calls a short time.
func (w *Web) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{
		Handler: w, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return fault.Wrap(err, fault.Unavailable, "serve MCP over HTTP", l.Addr().String())
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	closed := w.closeAll()
	if err := s.Shutdown(last); err != nil {
		// A cell may run for hours. Its call is left behind: the process ends, and the
		// core interrupts what nobody waits for.
		return s.Close()
	}
	select {
	case <-closed:
	case <-last.Done():
	}
	return nil
}

// closeAll ends every session, and with it the streams that only listen, and tells
// when all have ended.
func (w *Web) closeAll() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range w.open {
		for session := range s.protocol.Sessions() {
			all.Go(func() {
				if err := session.Close(); err != nil {
					s.opt.Log.Debug("close session", "error", err)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	return done
}

// ServeHTTP implements http.Handler.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if status, text := w.refuse(r); status != 0 {
		if status == http.StatusUnauthorized {
			rw.Header().Set("WWW-Authenticate", `Bearer realm="reeve"`)
		}
		http.Error(rw, text, status)
		return
	}
	select {
	case w.calls <- struct{}{}:
		defer func() { <-w.calls }()
	default:
		busy(rw, "too many requests are open")
		return
	}
	version := r.Header.Get("Mcp-Protocol-Version")
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxLine))
		if err != nil {
			status, over := http.StatusBadRequest, new(http.MaxBytesError)
			if errors.As(err, &over) {
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(rw, "read body: "+err.Error(), status)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if said := versionOf(body); said != "" && r.Header.Get("Mcp-Session-Id") == "" {
			version = max(version, said)
		}
	}
	if version >= stateless {
		w.sdk.stateless.ServeHTTP(rw, r)
		return
	}
	if r.Method != http.MethodPost || r.Header.Get("Mcp-Session-Id") != "" {
		w.sdk.stateful.ServeHTTP(rw, r)
		return
	}
	s, ok := w.reserve()
	if !ok {
		busy(rw, "too many sessions are open")
		return
	}
	defer w.keep(s)
	w.sdk.stateful.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), serverKey{}, s)))
}

func busy(rw http.ResponseWriter, text string) {
	rw.Header().Set("Retry-After", "5")
	http.Error(rw, text, http.StatusServiceUnavailable)
}

// refuse says why a request goes no further, status 0 when it does. A page in a
// browser can send requests to this machine: by another name for it (Host), as
// another site (Origin), without asking first (Content-Type).
func (w *Web) refuse(r *http.Request) (status int, text string) {
	if !w.hosts[strings.ToLower(r.Host)] {
		return http.StatusForbidden, "the Host is not one of this server"
	}
	if origin, has := r.Header["Origin"]; has && !w.sameOrigin(origin) {
		return http.StatusForbidden, "the Origin is not this server"
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	if subtle.ConstantTimeCompare(given[:], w.digest[:]) != 1 || !strings.EqualFold(scheme, "bearer") {
		return http.StatusUnauthorized, "a bearer token is required"
	}
	if r.URL.Path != Path {
		return http.StatusNotFound, "there is nothing here but " + Path
	}
	if r.Method == http.MethodPost {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			return http.StatusUnsupportedMediaType, "the Content-Type must be application/json"
		}
	}
	return 0, ""
}

// sameOrigin reports whether a page of this very server sent the request.
func (w *Web) sameOrigin(origin []string) bool {
	if len(origin) != 1 {
		return false
	}
	host, ok := strings.CutPrefix(strings.ToLower(origin[0]), "http://")
	return ok && w.hosts[host]
}

// versionOf is the version that a message of a protocol without sessions names, or
// nothing. What is no message is left to the SDK to refuse.
func versionOf(body []byte) string {
	if !bytes.Contains(body, []byte(versionMember)) {
		return ""
	}
	var m struct {
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	var version string
	if json.Unmarshal(body, &m) != nil || json.Unmarshal(m.Params.Meta[versionMember], &version) != nil {
		return ""
	}
	return version
}

type serverKey struct{}

// serverOf is the front end of a request that opens a session. The SDK asks for one
// with every request, to learn versions.
func (w *Web) serverOf(r *http.Request) *mcp.Server {
	if s, ok := r.Context().Value(serverKey{}).(*Server); ok {
		return s.protocol
	}
	return w.plain.protocol
}

// reserve makes the front end of a new session, if there may be one more.
func (w *Web) reserve() (*Server, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	live := w.open[:0]
	for _, s := range w.open {
		if connected(s) {
			live = append(live, s)
		}
	}
	clear(w.open[len(live):])
	w.open = live
	if len(live)+w.pending >= w.http.Connections {
		return nil, false
	}
	w.pending++
	return New(w.opt), true
}

// keep counts s for as long as it has a session.
func (w *Web) keep(s *Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending--
	if connected(s) {
		w.open = append(w.open, s)
	}
}

func connected(s *Server) bool {
	for range s.protocol.Sessions() {
		return true
	}
	return false
}
