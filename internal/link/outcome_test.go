package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/link"
)

// pipes is a listener of connections in memory, whose timeouts a synctest bubble
// can see.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, syscall.ECONNREFUSED
	}
}

func anybody(net.Conn) error { return nil }

func ask(replay bool) link.Request {
	return link.Request{Method: "m", Body: []byte(`1`), RequestID: "r7", Replay: replay}
}

func TestCancelBeforeAnythingIsHandedOver(t *testing.T) {
	t.Attr("requirement", "VD-010")
	t.Parallel()
	path := socket(t)
	var calls atomic.Int64
	serve(t, path, link.ServerOptions{Handler: func(context.Context, link.Call) ([]byte, error) {
		calls.Add(1)
		return []byte(`1`), nil
	}})
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Call(ctx, ask(false))
	if !fault.HasCode(err, fault.Cancelled) || !strings.Contains(err.Error(), "nothing was done") || calls.Load() != 0 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

// Who cancels a request that was handed over learns what came of it all the same.
func TestCancelledRequestIsAnsweredWithItsOutcome(t *testing.T) {
	t.Attr("requirement", "VD-010")
	t.Parallel()
	path := socket(t)
	entered := make(chan struct{})
	serve(t, path, link.ServerOptions{Handler: func(ctx context.Context, _ link.Call) ([]byte, error) {
		close(entered)
		<-ctx.Done()
		return []byte(`["committed","not_committed"]`), nil
	}})
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	body, err := c.Call(ctx, ask(false))
	if err != nil || string(body) != `["committed","not_committed"]` {
		t.Errorf("got %s, %v", body, err)
	}
}

// The wait for an outcome ends at the request's own deadline, which a cancel does
// not move; the outcome is then unknown, and the core is left to go on.
func TestOutcomeIsUnknownAtTheDeadline(t *testing.T) {
	t.Attr("requirement", "VD-010 VD-009")
	for name, c := range map[string]struct {
		timeout, callers time.Duration
		cancelAfter      time.Duration
		want             time.Duration
	}{
		"default bound":              {0, 0, 0, 30 * time.Second},
		"own bound":                  {7 * time.Second, 0, 0, 7 * time.Second},
		"an earlier caller wins":     {7 * time.Second, 3 * time.Second, 0, 3 * time.Second},
		"a cancel keeps the bound":   {7 * time.Second, 0, time.Second, 7 * time.Second},
		"a cancel without any bound": {link.NoTimeout, 0, time.Second, 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				var finished atomic.Bool
				stop := serveOn(t, l, link.ServerOptions{Admit: anybody, Handler: func(context.Context, link.Call) ([]byte, error) {
					time.Sleep(time.Minute) // hears no cancel
					finished.Store(true)
					return []byte(`1`), nil
				}, Drain: time.Hour})
				cl := client(t, link.ClientOptions{Dial: l.dial, Admit: anybody})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.callers > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.callers)
					defer cancel()
				}
				if c.cancelAfter > 0 {
					time.AfterFunc(c.cancelAfter, cancel)
				}
				start := time.Now()
				r := ask(true)
				r.Timeout = c.timeout
				_, err := cl.Call(ctx, r)
				var e *fault.Error
				if !errors.As(err, &e) || e.Code != fault.Unknown || e.Retry || !strings.Contains(e.Error(), "r7") {
					t.Errorf("%v (%+v)", err, e)
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("waited %s, want %s", took, c.want)
				}
				time.Sleep(time.Minute)
				if !finished.Load() {
					t.Error("the request was not left to go on")
				}
				// What comes late disturbs nobody.
				go func() {
					_, err = cl.Call(t.Context(), link.Request{Method: "m", Body: []byte(`2`), Timeout: time.Hour})
				}()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if err != nil {
					t.Errorf("afterwards: %v", err)
				}
				stop()
			})
		})
	}
}

// A handler that obeys its context is heard before its caller gives up.
func TestAHandlerThatRunsOutOfTimeStillAnswers(t *testing.T) {
	t.Attr("requirement", "VD-009 VD-010")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		stop := serveOn(t, l, link.ServerOptions{Admit: anybody, Handler: func(ctx context.Context, _ link.Call) ([]byte, error) {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond) // to say what has come of it
			return nil, fault.Wrap(ctx.Err(), fault.Timeout, "work", "")
		}})
		c := client(t, link.ClientOptions{Dial: l.dial, Admit: anybody})
		if _, err := c.Call(t.Context(), ask(false)); !fault.HasCode(err, fault.Timeout) {
			t.Errorf("%v", err)
		}
		_ = c.Close()
		stop()
	})
}

// breaking is a core that reads requests and breaks the connection instead of
// answering, for as long as it is told to.
func breaking(t *testing.T, path string, breaks int) (seen func() []string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p := peer{t, conn}
			p.receive()
			p.send("%s", handAck)
			for {
				text := p.receive()
				if text == "" {
					break
				}
				requests <- text
				if n < breaks {
					break
				}
				p.send(`{"kind":"response","id":1,"body":"at last"}`)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return func() (all []string) {
		for len(requests) > 0 {
			all = append(all, <-requests)
		}
		return all
	}
}

// A request that was handed over and lost is sent again only when it is a read, and
// once; of any other it is not known what came, and it goes nowhere else.
func TestALostAnswer(t *testing.T) {
	t.Attr("requirement", "VD-148")
	t.Parallel()
	for name, c := range map[string]struct {
		replay bool
		breaks int
		sent   int
		code   fault.Code
	}{
		"of a write":      {false, 1, 1, fault.Unknown},
		"of a read":       {true, 1, 2, ""},
		"of a read twice": {true, 2, 2, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := socket(t)
			seen := breaking(t, path, c.breaks)
			cl := client(t, link.ClientOptions{Dial: dialer(path), Fallback: func(context.Context, link.Request) ([]byte, error) {
				t.Error("it was carried out elsewhere")
				return nil, nil
			}})
			start := time.Now()
			body, err := cl.Call(t.Context(), ask(c.replay))
			if fault.CodeOf(err) != c.code || (c.code == "") != (string(body) == `"at last"`) {
				t.Errorf("got %s, %v", body, err)
			}
			var e *fault.Error
			if errors.As(err, &e) && e.Retry != (c.code == fault.Unavailable) {
				t.Errorf("retryable is %v", e.Retry)
			}
			if c.code == fault.Unknown && !strings.Contains(err.Error(), "r7") {
				t.Errorf("the request is not named: %v", err)
			}
			if c.sent == 2 && time.Since(start) < 100*time.Millisecond {
				t.Error("it was sent again at once")
			}
			all := seen()
			if len(all) != c.sent {
				t.Errorf("sent %d times, want %d", len(all), c.sent)
			}
			for _, text := range all {
				if !says(text, "request_id", "r7") {
					t.Errorf("sent under another name: %s", text)
				}
			}
		})
	}
}

// A connection that broke between two calls costs nothing: the next call makes
// another one.
func TestAStaleConnectionIsReplaced(t *testing.T) {
	t.Attr("requirement", "VD-148")
	t.Parallel()
	path := socket(t)
	stop := serve(t, path, link.ServerOptions{Handler: echo, Version: "old"})
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	if _, err := c.Call(t.Context(), ask(false)); err != nil {
		t.Fatal(err)
	}
	stop()
	_, err := c.Call(t.Context(), ask(false))
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Unavailable || !e.Retry || link.ReasonOf(err) != link.NoSocket {
		t.Errorf("without a core: %v (%s)", err, link.ReasonOf(err))
	}
	serve(t, path, link.ServerOptions{Handler: echo, Version: "new"})
	if _, err := c.Call(t.Context(), ask(false)); err != nil {
		t.Errorf("with another core: %v", err)
	}
	if core, ok := c.Core(); !ok || core.Version != "new" {
		t.Errorf("connected to %+v, %v", core, ok)
	}
}

// A core that stops finishes what it has begun, and says of the rest that it has not
// begun.
func TestStopping(t *testing.T) {
	t.Attr("requirement", "VD-148 VD-010")
	t.Parallel()
	path := socket(t)
	entered, release := make(chan struct{}), make(chan struct{})
	stop := serve(t, path, link.ServerOptions{Handler: func(_ context.Context, c link.Call) ([]byte, error) {
		if c.Method == "slow" {
			close(entered)
			<-release
		}
		return c.Body, nil
	}})
	slow := greeted(t, path)
	slow.send(`{"kind":"request","id":1,"method":"slow","request_id":"a","replay":false,"timeout_ms":0,"body":1}`)
	<-entered
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	// Requests are refused from some moment on; until then they are answered.
	for id := 2; ; id++ {
		slow.send(`{"kind":"request","id":%d,"method":"m","request_id":"b","replay":false,"timeout_ms":0,"body":1}`, id)
		got := slow.receive()
		if says(got, "kind", "response") {
			continue
		}
		if !says(got, "code", "unavailable") || !says(got, "reason", "closing") || !says(got, "retryable", true) || !says(got, "id", id) {
			t.Errorf("refused with %s", got)
		}
		break
	}
	close(release)
	if got := slow.receive(); !says(got, "kind", "response") || !says(got, "id", 1) {
		t.Errorf("the open request was answered with %s", got)
	}
	if got := slow.receive(); !says(got, "reason", "closing") || says(got, "id", 1) {
		t.Errorf("the last word is %s", got)
	}
	_ = slow.conn.Close()
	<-stopped
}

// A request that crosses the farewell on its way has not begun, and its caller
// learns that.
func TestARequestThatCrossesTheFarewell(t *testing.T) {
	t.Attr("requirement", "VD-148")
	t.Parallel()
	path := socket(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		p := peer{t, conn}
		p.receive()
		p.send("%s", handAck)
		p.receive()
		p.send(`{"kind":"error","code":"unavailable","message":"the core is stopping","next":"","retryable":true,"reason":"closing"}`)
		p.receive()
		_ = conn.Close()
	}()
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	_, err = c.Call(t.Context(), ask(false))
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Unavailable || !e.Retry {
		t.Errorf("%v", err)
	}
}

// What hangs when the core stops is answered as unknown and does not keep it.
func TestStoppingWithACallThatHangs(t *testing.T) {
	t.Attr("requirement", "VD-010")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		hang := make(chan struct{})
		cause := make(chan error, 1)
		stop := serveOn(t, l, link.ServerOptions{Admit: anybody, Handler: func(ctx context.Context, _ link.Call) ([]byte, error) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			<-hang
			return []byte(`1`), nil
		}})
		c := client(t, link.ClientOptions{Dial: l.dial, Admit: anybody})
		got := make(chan error)
		go func() {
			r := ask(false)
			r.Timeout = time.Hour
			_, err := c.Call(t.Context(), r)
			got <- err
		}()
		synctest.Wait()
		start := time.Now()
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		if err := <-got; !fault.HasCode(err, fault.Unknown) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("after %s", took)
		}
		if err := <-cause; err == nil || !strings.Contains(fmt.Sprint(err), "stopping") {
			t.Errorf("the handler was told %v", err)
		}
		<-stopped
		close(hang)
	})
}

// Nobody waits for what a client that went away has asked.
func TestAClientThatGoesAwayCancelsItsCalls(t *testing.T) {
	t.Attr("requirement", "VD-011")
	t.Parallel()
	path := socket(t)
	entered, ended := make(chan struct{}), make(chan error, 1)
	serve(t, path, link.ServerOptions{Handler: func(ctx context.Context, _ link.Call) ([]byte, error) {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return []byte(`1`), nil
	}})
	p := greeted(t, path)
	p.send(`{"kind":"request","id":1,"method":"m","request_id":"a","replay":false,"timeout_ms":0,"body":1}`)
	<-entered
	_ = p.conn.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
