package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/link"
)

// says reports whether text is an object whose member name is want.
func says(text, name string, want any) bool {
	var m map[string]any
	if json.Unmarshal([]byte(text), &m) != nil {
		return false
	}
	return fmt.Sprint(m[name]) == fmt.Sprint(want)
}

func echo(_ context.Context, c link.Call) ([]byte, error) { return c.Body, nil }

// Calls share a connection, and none waits for another.
func TestCallsAreMultiplexed(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	gates := map[string]chan struct{}{`"a"`: make(chan struct{}), `"b"`: make(chan struct{}), `"c"`: make(chan struct{})}
	entered := make(chan string, len(gates))
	serve(t, path, link.ServerOptions{Handler: func(_ context.Context, c link.Call) ([]byte, error) {
		entered <- string(c.Body)
		<-gates[string(c.Body)]
		return c.Body, nil
	}})
	c := client(t, link.ClientOptions{Dial: dialer(path), Version: "v1"})
	answers := map[string]chan string{}
	for name := range gates {
		ch := make(chan string, 1)
		answers[name] = ch
		go func() {
			body, err := c.Call(t.Context(), link.Request{Method: "m", Body: []byte(name)})
			ch <- fmt.Sprint(string(body), err)
		}()
	}
	for range gates {
		<-entered
	}
	if core, ok := c.Core(); !ok || core.Version != "core-version" || core.Protocol != 1 || core.PID == 0 {
		t.Errorf("the core said of itself %+v, %v", core, ok)
	}
	for _, name := range []string{`"b"`, `"c"`, `"a"`} {
		close(gates[name])
		if got := <-answers[name]; got != name+"<nil>" {
			t.Errorf("%s was answered with %s", name, got)
		}
	}
}

func TestManyCallersGetTheirOwnAnswers(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	serve(t, path, link.ServerOptions{Handler: echo})
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	var all sync.WaitGroup
	for n := range 32 {
		all.Go(func() {
			for m := range 50 {
				body := fmt.Sprintf(`{"n":%d,"text":%q}`, n*1000+m, strings.Repeat("x", n*m*7))
				got, err := c.Call(t.Context(), link.Request{Method: "m", Body: []byte(body)})
				if err != nil || string(got) != body {
					t.Errorf("%.40s was answered with %.40s, %v", body, got, err)
				}
			}
		})
	}
	all.Wait()
}

// What a handler is told, and the identity of a request, come from the request.
func TestHandlerSeesTheCall(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	serve(t, path, link.ServerOptions{Handler: func(ctx context.Context, c link.Call) ([]byte, error) {
		at, ok := ctx.Deadline()
		if left := time.Until(at); !ok || left > 5*time.Second || left < 2*time.Second {
			t.Errorf("%s left, bounded %v", left, ok)
		}
		return fmt.Appendf(nil, `[%q,%q,%v,%q,%q]`, c.Method, c.RequestID, c.Replay, c.Peer.Client, c.Peer.Version), nil
	}})
	c := client(t, link.ClientOptions{Dial: dialer(path), Client: "cli", Version: "9"})
	got, err := c.Call(t.Context(), link.Request{Method: "ask", Body: []byte(`{}`), RequestID: "r1", Replay: true, Timeout: 5 * time.Second})
	if want := `["ask","r1",true,"cli","9"]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	first, err1 := c.Call(t.Context(), link.Request{Method: "ask", Body: []byte(`{}`), Timeout: 5 * time.Second})
	second, err2 := c.Call(t.Context(), link.Request{Method: "ask", Body: []byte(`{}`), Timeout: 5 * time.Second})
	if errors.Join(err1, err2) != nil || string(first) == string(second) {
		t.Errorf("requests without an id are not told apart: %s, %s", first, second)
	}
}

// An error with an id ends its operation and nothing else.
func TestErrorsOfARequest(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	serve(t, path, link.ServerOptions{Handler: func(_ context.Context, c link.Call) ([]byte, error) {
		switch c.Method {
		case "conflict":
			return nil, fault.New(fault.Conflict, "write", "x", "head moved").WithNext("read it again").Retryable()
		case "newer":
			return nil, fault.New("of_tomorrow", "write", "x", "odd")
		case "plain":
			return nil, errors.New("plain")
		case "panic":
			panic("at the disco")
		case "bad":
			return []byte(`{"a":`), nil
		case "big":
			return []byte(`"` + strings.Repeat("x", link.MaxFrame) + `"`), nil
		}
		return c.Body, nil
	}})
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	for method, want := range map[string]struct {
		code   fault.Code
		text   string
		reason link.Reason
	}{
		"conflict": {fault.Conflict, `write "x": head moved`, ""},
		"newer":    {fault.Internal, `of_tomorrow: write "x": odd`, ""},
		"plain":    {fault.Internal, "plain", ""},
		"panic":    {fault.Internal, "at the disco", ""},
		"bad":      {fault.Internal, "a value is due", ""},
		"big":      {fault.LimitExceeded, "was carried out", link.TooLarge},
	} {
		_, err := c.Call(t.Context(), link.Request{Method: method, Body: []byte(`1`)})
		if fault.CodeOf(err) != want.code || !strings.Contains(fmt.Sprint(err), want.text) || link.ReasonOf(err) != want.reason {
			t.Errorf("%s: %s (%s), %v", method, fault.CodeOf(err), link.ReasonOf(err), err)
		}
		var e *fault.Error
		if method == "conflict" && (!errors.As(err, &e) || e.Next != "read it again" || !e.Retry) {
			t.Errorf("the hint was lost: %+v", e)
		}
	}
	for name, body := range map[string]string{"no JSON": `{`, "two values": `1 2`, "no UTF-8": "\"\xff\""} {
		if _, err := c.Call(t.Context(), link.Request{Method: "m", Body: []byte(body)}); !fault.HasCode(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Call(t.Context(), link.Request{Method: "m", Body: []byte(`"` + strings.Repeat("x", link.MaxFrame) + `"`)}); !fault.HasCode(err, fault.LimitExceeded) {
		t.Errorf("a request over the limit: %v", err)
	}
	if got, err := c.Call(t.Context(), link.Request{Method: "m", Body: []byte(`1`)}); err != nil || string(got) != "1" {
		t.Errorf("afterwards: %s, %v", got, err)
	}
}
