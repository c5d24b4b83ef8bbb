package link_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/configid"
	"github.com/reeve-run/reeve/internal/link"
)

// The first frame is complete within 30 s of accept, or there is none; bytes that
// drip in buy no time.
func TestTheFirstFrameIsInTime(t *testing.T) {
	t.Attr("requirement", "VD-135")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		stop := serveOn(t, l, link.ServerOptions{Admit: anybody, Handler: echo})
		dripping, _ := l.dial(t.Context())
		start := time.Now()
		go func() {
			for _, b := range []byte{0, 0, 0, 200, '{', '"', 'k'} {
				if _, err := dripping.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(9 * time.Second)
			}
		}()
		got := peer{t, dripping}.receive()
		if took := time.Since(start); took != 30*time.Second || !says(got, "code", "timeout") {
			t.Errorf("after %s: %s", took, got)
		}
		_ = dripping.Close()
		// Who has greeted may be silent for as long as he likes.
		conn, _ := l.dial(t.Context())
		p := peer{t, conn}
		p.send("%s", hand)
		p.receive()
		time.Sleep(time.Hour)
		p.send(`{"kind":"request","id":1,"method":"m","request_id":"a","replay":false,"timeout_ms":0,"body":1}`)
		if got := p.receive(); !says(got, "kind", "response") {
			t.Errorf("after an hour: %s", got)
		}
		_ = conn.Close()
		stop()
	})
}

// What may not be on a connection ends it, with an error that has no id, and ends no
// other one.
func TestViolationsEndTheConnection(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	serve(t, path, link.ServerOptions{Handler: echo})
	other := greeted(t, path)
	ok := `{"kind":"request","id":5,"method":"m","request_id":"a","replay":false,"timeout_ms":0,"body":1}`
	for name, c := range map[string]struct {
		frames []string // each but the last is answered
		code   string
	}{
		"no handshake":           {[]string{ok}, "invalid_request"},
		"a second handshake":     {[]string{hand, hand}, "invalid_request"},
		"an unknown kind":        {[]string{hand, `{"kind":"hello"}`}, "invalid_request"},
		"an unknown member":      {[]string{hand, `{"kind":"cancel","id":1,"x":1}`}, "invalid_request"},
		"a core's kind":          {[]string{hand, `{"kind":"response","id":1,"body":1}`}, "invalid_request"},
		"no JSON":                {[]string{hand, `{`}, "invalid_request"},
		"an id again":            {[]string{hand, ok, ok}, "invalid_request"},
		"a greeting too long":    {[]string{strings.Replace(hand, `"hand"`, `"`+strings.Repeat("x", 70<<10)+`"`, 1)}, "limit_exceeded"},
		"a handshake that is it": {[]string{strings.Replace(hand, `"config":{}`, `"config":[]`, 1)}, "invalid_request"},
	} {
		p := dialPeer(t, path)
		got := ""
		for _, f := range c.frames {
			p.send("%s", f)
			got = p.receive()
		}
		if !says(got, "kind", "error") || !says(got, "code", c.code) || !says(got, "reason", "protocol_violation") || !says(got, "id", nil) {
			t.Errorf("%s: %s", name, got)
		}
		if got := p.receive(); got != "" {
			t.Errorf("%s: the connection goes on with %s", name, got)
		}
	}
	long := greeted(t, path)
	if _, err := long.conn.Write([]byte{0, 0x80, 0, 1}); err != nil {
		t.Fatal(err)
	}
	if got := long.receive(); !says(got, "code", "limit_exceeded") {
		t.Errorf("a frame of a byte too many: %s", got)
	}
	other.send("%s", ok)
	if got := other.receive(); !says(got, "kind", "response") {
		t.Errorf("another connection: %s", got)
	}
}

func TestVersionsAreNegotiated(t *testing.T) {
	t.Attr("requirement", "VD-140 VD-138")
	t.Parallel()
	path := socket(t)
	serve(t, path, link.ServerOptions{Handler: echo})
	for span, want := range map[[2]int]bool{{1, 1}: true, {0, 9}: true, {0, 0}: false, {2, 3}: false, {3, 1}: false} {
		p := dialPeer(t, path)
		p.send("%s", strings.Replace(hand, `"min":1,"max":1`, fmt.Sprintf(`"min":%d,"max":%d`, span[0], span[1]), 1))
		got := p.receive()
		if served := says(got, "kind", "handshake_ack") && says(got, "protocol", 1); served != want {
			t.Errorf("%v: %s", span, got)
		}
		if !want && (!says(got, "reason", "protocol_mismatch") || !says(got, "retryable", true)) {
			t.Errorf("%v: refused with %s", span, got)
		}
	}
}

// identity is a configuration with some text in it.
func identity(t testing.TB, set func(i *configid.Identity)) configid.Identity {
	t.Helper()
	var i configid.Identity
	i.Text("gate", "shipped")
	i.AtLeast("embedders", "small")
	if err := i.Path("store", "/data/reeve.db"); err != nil {
		t.Fatal(err)
	}
	if set != nil {
		set(&i)
	}
	return i
}

func reading(i configid.Identity) func() (configid.Identity, error) {
	return func() (configid.Identity, error) { return i, nil }
}

// The configuration is read again for each connection: a client that outlives a core
// gets on with the next one, which was started after a change.
func TestTheIdentityIsReadForEachConnection(t *testing.T) {
	t.Attr("requirement", "VD-133")
	t.Parallel()
	path := socket(t)
	gate := "old"
	setting := func() configid.Identity { return identity(t, func(i *configid.Identity) { i.Text("gate", gate) }) }
	stop := serve(t, path, link.ServerOptions{Handler: echo, Identity: setting()})
	c := client(t, link.ClientOptions{Dial: dialer(path), Identity: func() (configid.Identity, error) { return setting(), nil }})
	if _, err := c.Call(t.Context(), ask(false)); err != nil {
		t.Fatal(err)
	}
	stop()
	gate = "new"
	serve(t, path, link.ServerOptions{Handler: echo, Identity: setting()})
	if _, err := c.Call(t.Context(), ask(false)); err != nil {
		t.Errorf("with the next core: %v", err)
	}
	broken := client(t, link.ClientOptions{Dial: dialer(path), Identity: func() (configid.Identity, error) {
		return configid.Identity{}, fault.New(fault.Usage, "read settings", "x", "broken")
	}})
	if _, err := broken.Call(t.Context(), ask(false)); !fault.HasCode(err, fault.Usage) {
		t.Errorf("with a file that cannot be read: %v", err)
	}
}

// A client of another configuration is refused with the names of all fields that
// differ and no value of either; of embedders the core may have more.
func TestConfigurationsAreCompared(t *testing.T) {
	t.Attr("requirement", "VD-132 VD-133 VD-128 VD-137")
	t.Parallel()
	path := socket(t)
	serve(t, path, link.ServerOptions{Handler: echo, Identity: identity(t, func(i *configid.Identity) { i.AtLeast("embedders", "small", "large") })})
	for name, c := range map[string]struct {
		set      func(*configid.Identity)
		readOnly bool
		differ   string
	}{
		"fewer embedders":   {nil, false, ""},
		"other embedders":   {func(i *configid.Identity) { i.AtLeast("embedders", "tiny") }, false, "embedders"},
		"a snapshot":        {nil, true, "read_only"},
		"two fields differ": {func(i *configid.Identity) { i.Text("gate", "mine"); i.Text("packs", "kg") }, false, "gate, packs"},
	} {
		elsewhere := 0
		cl := client(t, link.ClientOptions{Dial: dialer(path), Identity: reading(identity(t, c.set)), ReadOnly: c.readOnly,
			Fallback: func(context.Context, link.Request) ([]byte, error) { elsewhere++; return nil, nil }})
		_, err := cl.Call(t.Context(), ask(true))
		if c.differ == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		text := fmt.Sprint(err)
		if !fault.HasCode(err, fault.Conflict) || link.ReasonOf(err) != link.ConfigMismatch || !strings.HasSuffix(text, "differ in "+c.differ) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(text, "mine") || strings.Contains(text, "shipped") || elsewhere != 0 {
			t.Errorf("%s: a value is told, or it was answered elsewhere (%d): %v", name, elsewhere, err)
		}
		if n := cl.Diagnostics().Fallbacks[link.ConfigMismatch]; n != 1 {
			t.Errorf("%s: counted %d times", name, n)
		}
	}
}

// acknowledging is a core that answers the greeting with text, and no request.
func acknowledging(t *testing.T, text string) (path string) {
	t.Helper()
	path = socket(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p := peer{t, conn}
			p.receive()
			p.send("%s", text)
			if got := p.receive(); got != "" {
				t.Errorf("a request went to a core that may not have it: %s", got)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return path
}

// A core that is not understood, or that takes a client it should not take, gets no
// request. Whether there is another way depends on why.
func TestFallbacks(t *testing.T) {
	t.Attr("requirement", "VD-146 VD-137 VD-012")
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		reason link.Reason
		other  bool // there is another way
	}{
		"nothing listens":          {socket(t), link.NoSocket, true},
		"no frame":                 {acknowledging(t, `hello`), link.ParseFailure, true},
		"another frame":            {acknowledging(t, `{"kind":"cancel","id":1}`), link.ParseFailure, true},
		"no echo of the identity":  {acknowledging(t, `{"kind":"handshake_ack","protocol":1,"version":"0","pid":1}`), link.ParseFailure, true},
		"another protocol":         {acknowledging(t, strings.Replace(handAck, `"protocol":1`, `"protocol":2`, 1)), link.ProtocolMismatch, true},
		"it refuses the versions":  {acknowledging(t, `{"kind":"error","code":"unavailable","message":"no","next":"","retryable":true,"reason":"protocol_mismatch"}`), link.ProtocolMismatch, true},
		"it is of another setup":   {acknowledging(t, handAck), link.ConfigMismatch, false},
		"of a different namespace": {acknowledging(t, `{"kind":"error","code":"conflict","message":"no","next":"","retryable":false,"reason":"namespace_mismatch"}`), link.NamespaceMismatch, false},
	} {
		for _, strict := range []bool{false, true} {
			var elsewhere atomic.Int64
			cl := client(t, link.ClientOptions{
				Dial: dialer(c.path), Identity: reading(identity(t, nil)), Strict: strict,
				Fallback: func(_ context.Context, r link.Request) ([]byte, error) { elsewhere.Add(1); return r.Body, nil },
			})
			body, err := cl.Call(t.Context(), ask(false))
			if answered := c.other && !strict; answered != (err == nil) || answered != (string(body) == "1") || elsewhere.Load() != map[bool]int64{true: 1}[answered] {
				t.Errorf("%s, strict %v: %s, %v, answered elsewhere %d times", name, strict, body, err, elsewhere.Load())
			}
			if err != nil && link.ReasonOf(err) != c.reason {
				t.Errorf("%s, strict %v: reason %s of %v", name, strict, link.ReasonOf(err), err)
			}
			if c.other && strict && (!fault.HasCode(err, fault.Unavailable) || !strings.Contains(err.Error(), "nothing was done")) {
				t.Errorf("%s: strict refuses with %v", name, err)
			}
			d := cl.Diagnostics()
			violations := map[bool]int64{true: 1}[c.other && strict]
			if d.Fallbacks[c.reason] != 1 || d.FallbacksTotal != 1 || len(d.Fallbacks) != 5 || d.StrictViolations != violations || d.PID == 0 || d.Instance == "" {
				t.Errorf("%s, strict %v: %+v", name, strict, d)
			}
		}
	}
}

// A core is started when none listens, and only then; what came of the start is
// told.
func TestStartingACore(t *testing.T) {
	t.Attr("requirement", "VD-147 VD-149")
	t.Parallel()
	t.Run("none listens", func(t *testing.T) {
		t.Parallel()
		path := socket(t)
		starts := 0
		c := client(t, link.ClientOptions{Dial: dialer(path), Start: func(context.Context) error {
			starts++
			serve(t, path, link.ServerOptions{Handler: echo})
			return nil
		}})
		for range 2 {
			if _, err := c.Call(t.Context(), ask(false)); err != nil || starts != 1 {
				t.Errorf("%v after %d starts", err, starts)
			}
		}
	})
	t.Run("it does not start", func(t *testing.T) {
		t.Parallel()
		c := client(t, link.ClientOptions{
			Dial:     dialer(socket(t)),
			Start:    func(context.Context) error { return fault.New(fault.StoreFull, "start core", "", "no space") },
			Fallback: func(context.Context, link.Request) ([]byte, error) { t.Error("ran elsewhere"); return nil, nil },
		})
		if _, err := c.Call(t.Context(), ask(true)); link.ReasonOf(err) != link.RespawnFailed || !fault.HasCode(err, fault.StoreFull) {
			t.Errorf("%v (%s)", err, link.ReasonOf(err))
		}
	})
	t.Run("the socket is forbidden", func(t *testing.T) {
		t.Parallel()
		c := client(t, link.ClientOptions{
			Dial:     func(context.Context) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Err: syscall.EACCES} },
			Start:    func(context.Context) error { t.Error("a core was started"); return nil },
			Fallback: func(context.Context, link.Request) ([]byte, error) { t.Error("ran elsewhere"); return nil, nil },
		})
		if _, err := c.Call(t.Context(), ask(true)); link.ReasonOf(err) != link.Unreachable || !fault.HasCode(err, fault.Unavailable) {
			t.Errorf("%v (%s)", err, link.ReasonOf(err))
		}
	})
	t.Run("the core is slow", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			l := newPipes()
			c := client(t, link.ClientOptions{Dial: l.dial, Admit: anybody,
				Start:    func(context.Context) error { t.Error("a second core was started"); return nil },
				Fallback: func(context.Context, link.Request) ([]byte, error) { t.Error("ran elsewhere"); return nil, nil },
			})
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				for {
					if _, err := conn.Read(make([]byte, 100)); err != nil {
						return
					}
				}
			}()
			r := ask(true)
			r.Timeout = time.Hour
			start := time.Now()
			if _, err := c.Call(t.Context(), r); !fault.HasCode(err, fault.Unavailable) || link.ReasonOf(err) != "" {
				t.Errorf("%v (%s)", err, link.ReasonOf(err))
			}
			if took := time.Since(start); took != 30*time.Second {
				t.Errorf("waited %s", took)
			}
		})
	})
}

// More than 1024 operations are not open at once; the one too many is refused alone.
func TestOpenOperationsAreBounded(t *testing.T) {
	t.Attr("requirement", "VD-011")
	t.Parallel()
	path := socket(t)
	release := make(chan struct{})
	serve(t, path, link.ServerOptions{Handler: func(context.Context, link.Call) ([]byte, error) { <-release; return []byte(`1`), nil }})
	p := greeted(t, path)
	for id := 1; id <= 1025; id++ {
		p.send(`{"kind":"request","id":%d,"method":"m","request_id":"a","replay":false,"timeout_ms":0,"body":1}`, id)
	}
	if got := p.receive(); !says(got, "id", 1025) || !says(got, "code", "request_limit") || !says(got, "retryable", true) {
		t.Errorf("%s", got)
	}
	close(release)
	for range 1024 {
		if got := p.receive(); !says(got, "kind", "response") {
			t.Fatalf("%s", got)
		}
	}
}
