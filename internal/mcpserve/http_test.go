package mcpserve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/mcpserve"
)

// secret is any token; it is put together so that nothing takes it for a real one.
var secret = strings.Repeat("ab01", 8)

// web serves over a real socket and gives its address.
func web(t *testing.T, o mcpserve.Options, h mcpserve.HTTPOptions) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if h.Token == "" {
		h.Token = secret
	}
	if o.Workspace == "" {
		o.Workspace = "/srv/project"
	}
	w, err := mcpserve.NewWeb(o, h, l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// bearer adds the token to what a client sends.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// surf connects a client of the official SDK by HTTP.
func surf(t *testing.T, address, version string) (*mcp.ClientSession, error) {
	t.Helper()
	return surfAs(t, address, version, secret)
}

func surfAs(t *testing.T, address, version, token string) (*mcp.ClientSession, error) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: "http://" + address + mcpserve.Path, HTTPClient: &http.Client{Transport: bearer{transport, token}}, MaxRetries: -1,
		}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { cs.Close() })
	}
	return cs, err
}

const opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// Whoever has no token, comes by another name, from another site, or with a body that
// a page can send unasked, is refused before anything is read.
func TestHTTPRefusesStrangers(t *testing.T) {
	t.Parallel()
	at := web(t, mcpserve.Options{Dial: dialled(newMemory())}, mcpserve.HTTPOptions{Hosts: []string{"box.example"}})
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"as it should be":     {func(*http.Request) {}, 200},
		"localhost":           {func(r *http.Request) { r.Host = "LocalHost:" + port }, 200},
		"named":               {func(r *http.Request) { r.Host = "box.example:" + port }, 200},
		"own origin":          {func(r *http.Request) { r.Header.Set("Origin", "http://"+at) }, 200},
		"scheme in any case":  {func(r *http.Request) { r.Header.Set("Authorization", "bEARER "+secret) }, 200},
		"with a charset":      {func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, 200},
		"no token":            {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"empty token":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"wrong token":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret[1:]+"0") }, 401},
		"other scheme":        {func(r *http.Request) { r.Header.Set("Authorization", "Basic "+secret) }, 401},
		"other host":          {func(r *http.Request) { r.Host = "evil.example:" + port }, 403},
		"other port":          {func(r *http.Request) { r.Host = "127.0.0.1:1" }, 403},
		"no port":             {func(r *http.Request) { r.Host = "localhost" }, 403},
		"other origin":        {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"origin null":         {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"origin is a prefix":  {func(r *http.Request) { r.Header.Set("Origin", "http://"+at+".evil.example") }, 403},
		"origin of https":     {func(r *http.Request) { r.Header.Set("Origin", "https://"+at) }, 403},
		"two origins":         {func(r *http.Request) { r.Header["Origin"] = []string{"http://" + at, "http://evil.example"} }, 403},
		"other path":          {func(r *http.Request) { r.URL.Path = "/" }, 404},
		"text":                {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		"form":                {func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415},
		"no type":             {func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"a body without end":  {func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(spaces{}, 5<<20)); r.ContentLength = -1 }, 413},
		"an unknown session":  {func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "nobody") }, 404},
		"an unspoken version": {func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "2020-01-01") }, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+at+mcpserve.Path, strings.NewReader(opening))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+secret)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			c.change(r)
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d: %s", res.StatusCode, c.status, text)
			}
			if res.StatusCode == 401 && res.Header.Get("WWW-Authenticate") == "" {
				t.Error("it is not said what is required")
			}
			if strings.Contains(string(text), secret) {
				t.Error("the answer has the token")
			}
		})
	}
}

type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// Each client of a version with sessions has a session of reeve of its own.
func TestHTTPClientsShareNoSession(t *testing.T) {
	t.Parallel()
	at := web(t, mcpserve.Options{Dial: dialled(newMemory())}, mcpserve.HTTPOptions{})
	seen := map[any]bool{}
	for range 2 {
		cs, err := surf(t, at, "2025-11-25")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			g, res := call(t, cs, "execute", map[string]any{"code": "print hello"})
			if res.IsError || g.Session == "" {
				t.Fatal(words(res))
			}
			seen[g.Session] = true
		}
		if v := cs.InitializeResult().ProtocolVersion; v != "2025-11-25" {
			t.Errorf("version %s", v)
		}
	}
	if len(seen) != 2 {
		t.Errorf("two clients ran in %v", seen)
	}
}

// A version without sessions has nothing to tell callers apart by: nothing runs until
// a session is named.
func TestHTTPWithoutSessionsNeedsANamedOne(t *testing.T) {
	t.Parallel()
	m := newMemory()
	at := web(t, mcpserve.Options{Dial: dialled(m)}, mcpserve.HTTPOptions{})
	cs, err := surf(t, at, "2026-07-28")
	if err != nil {
		t.Fatal(err)
	}
	if v := cs.InitializeResult().ProtocolVersion; v != "2026-07-28" {
		t.Fatalf("version %s", v)
	}
	for _, tool := range []string{"execute", "interrupt"} {
		g, res := call(t, cs, tool, map[string]any{"execute": map[string]any{"code": "print x"}, "interrupt": map[string]any{}}[tool].(map[string]any))
		if !res.IsError || g.Fault == nil || g.Fault.Code != fault.InvalidRequest || !strings.Contains(g.Fault.Next, "session") {
			t.Errorf("%s: %s", tool, words(res))
		}
	}
	if len(m.sent) != 0 {
		t.Errorf("sent %v", m.sent)
	}
	g, res := call(t, cs, "execute", map[string]any{"code": "print x", "session": "mine"})
	if res.IsError || g.Session != "mine" {
		t.Error(words(res))
	}
	if by := m.sent[0].By; by.Name != "tester" {
		t.Errorf("sent by %v", by)
	}
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(list.Tools[0].InputSchema); !strings.Contains(text, "no default") {
		t.Errorf("the schema does not say so: %s", text)
	}
}

// There are only so many sessions at once; one that is closed makes room.
func TestHTTPBoundsItsSessions(t *testing.T) {
	t.Parallel()
	at := web(t, mcpserve.Options{Dial: dialled(newMemory())}, mcpserve.HTTPOptions{Connections: 2})
	first, err := surf(t, at, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := surf(t, at, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	if _, err := surf(t, at, "2025-11-25"); err == nil || !strings.Contains(err.Error(), "Service Unavailable") {
		t.Fatalf("a third session: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := surf(t, at, "2025-11-25"); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
}

func TestHTTPIsForThisMachineUnlessSaid(t *testing.T) {
	t.Parallel()
	everywhere := &net.TCPAddr{IP: net.IPv4zero, Port: 7333}
	o := mcpserve.Options{Dial: dialled(newMemory())}
	if _, err := mcpserve.NewWeb(o, mcpserve.HTTPOptions{Token: secret}, everywhere); !fault.HasCode(err, fault.Usage) {
		t.Errorf("open to all: %v", err)
	}
	if _, err := mcpserve.NewWeb(o, mcpserve.HTTPOptions{Token: secret, Expose: true}, everywhere); err != nil {
		t.Error(err)
	}
	for _, token := range []string{"", "short"} {
		if _, err := mcpserve.NewWeb(o, mcpserve.HTTPOptions{Token: token, Expose: true}, everywhere); !fault.HasCode(err, fault.Usage) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestTokenIsMadeOnceAndKeptPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, err := mcpserve.Token(dir)
	if err != nil || len(one) < 64 {
		t.Fatal(len(one), err)
	}
	two, err := mcpserve.Token(dir)
	if err != nil || two != one {
		t.Errorf("read back another one: %v", err)
	}
	other, err := mcpserve.Token(t.TempDir())
	if err != nil || other == one {
		t.Errorf("two directories have one token: %v", err)
	}
	path := filepath.Join(dir, mcpserve.TokenFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := mcpserve.Token(dir); !fault.HasCode(err, fault.Usage) {
		t.Errorf("readable by others: %v", err)
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := mcpserve.Token(dir); !fault.HasCode(err, fault.Usage) {
		t.Errorf("empty: %v", err)
	}
}

// The built binary serves HTTP with a token of its own, runs code and answers
// requests there, and ends when it is told to.
func TestBinaryServesHTTP(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	cmd := h.command("--http", "127.0.0.1:0")
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(line, "http://")
	at, _, _ := strings.Cut(rest, "/mcp")
	token, err := os.ReadFile(filepath.Join(h.data, mcpserve.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		cs, err := surfAs(t, at, version, strings.TrimSpace(string(token)))
		if err != nil {
			t.Fatal(err)
		}
		g, res := call(t, cs, "execute", map[string]any{"code": "print(6 * 7)", "session": "web"})
		if res.IsError || printed(t, g) != "42" {
			t.Errorf("%s: %s", version, words(res))
		}
		if e, _ := requested(t, cs, map[string]any{"ops": "whoami()"}); e.Status != "success" {
			t.Errorf("%s: %+v", version, e)
		}
	}
	if _, err := surfAs(t, at, "2025-11-25", secret); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("with another token: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, said); err != nil {
		t.Error(err)
	}
	// Its status tells of the signal, as for every command.
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() < 0 {
		t.Error(err)
	}
}
