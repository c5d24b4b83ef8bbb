package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/link"
)

// closing is connect for a client that keeps a connection.
func closing(t *testing.T, dir string) *control.Client {
	t.Helper()
	c := connect(t, dir)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func asking() control.RequestCall {
	return control.RequestCall{
		Ops: "get(id=\"\u2028\")", Presentation: "agent", PerOp: []string{"human"}, Format: "json", FormatPerOp: []string{"auto"},
		SaveTo: "out", RequestID: 1<<64 - 2, Session: "s", Workspace: "/w", By: event.Actor{Kind: "client", Name: "n", Surface: "mcp"},
		Agent: true, Visible: []string{"a", "b"}, Process: "p", TimeoutMS: 60_000,
	}
}

// withoutLink makes the core of dir look like one that has no link.
func withoutLink(t *testing.T, dir string) {
	t.Helper()
	core, err := control.ReadCore(dir)
	if err != nil {
		t.Fatal(err)
	}
	core.Link = ""
	b, err := json.Marshal(core)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "core.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Retire takes away only what is as it was written.
	t.Cleanup(func() { _ = os.Remove(filepath.Join(dir, "core.json")) })
}

// A request arrives whole, by the link and, from a core that has none, by HTTP.
func TestRequestArrivesWhole(t *testing.T) {
	t.Attr("requirement", "VD-136 VD-146")
	t.Parallel()
	for name, reasons := range map[string]int64{"link": 0, "HTTP": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService()
			var got control.RequestCall
			s.request = func(_ context.Context, r control.RequestCall) (control.RequestAnswer, error) {
				got = r
				return control.RequestAnswer{Body: control.Raw(`{"results":[1,"é"]}`), Failed: true}, nil
			}
			dir := serve(t, s)
			if name == "HTTP" {
				withoutLink(t, dir)
			}
			c := closing(t, dir)
			a, err := c.Request(t.Context(), asking())
			if err != nil || string(a.Body) != `{"results":[1,"é"]}` || !a.Failed {
				t.Errorf("answer %s, %v, %v", a.Body, a.Failed, err)
			}
			if d := cmp.Diff(asking(), got); d != "" {
				t.Errorf("request (-sent +received):\n%s", d)
			}
			if d := c.Link(); d.Fallbacks[link.NoSocket] != reasons || d.FallbacksTotal != reasons {
				t.Errorf("counted %+v", d)
			}
		})
	}
}

// A request without an id gets one before it is sent, each another.
func TestRequestsHaveIDs(t *testing.T) {
	t.Attr("requirement", "VD-006")
	t.Parallel()
	s := newService()
	seen := map[uint64]bool{}
	s.request = func(_ context.Context, r control.RequestCall) (control.RequestAnswer, error) {
		seen[r.RequestID] = true
		return control.RequestAnswer{Body: control.Raw(`{}`)}, nil
	}
	c := closing(t, serve(t, s))
	for range 3 {
		if _, err := c.Request(t.Context(), control.RequestCall{Ops: "stats()"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 || seen[0] {
		t.Errorf("ids %v", seen)
	}
}

func TestRequestErrors(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	s := newService()
	s.request = func(context.Context, control.RequestCall) (control.RequestAnswer, error) {
		return control.RequestAnswer{}, fault.New(fault.InvalidRequest, "read request", "", "a value is due at byte 3").WithNext("mend it")
	}
	_, err := closing(t, serve(t, s)).Request(t.Context(), control.RequestCall{Ops: "x("})
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.InvalidRequest || e.Next != "mend it" || !strings.Contains(e.Error(), "byte 3") {
		t.Errorf("%v", err)
	}
}

// Who cancels gets the envelope that says what was done.
func TestCancelledRequestKeepsItsOutcome(t *testing.T) {
	t.Attr("requirement", "VD-010")
	t.Parallel()
	s := newService()
	entered := make(chan struct{})
	s.request = func(ctx context.Context, _ control.RequestCall) (control.RequestAnswer, error) {
		close(entered)
		<-ctx.Done()
		return control.RequestAnswer{Body: control.Raw(`{"summary":{"aborted":1}}`), Failed: true}, nil
	}
	c := closing(t, serve(t, s))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	a, err := c.Request(ctx, control.RequestCall{Ops: "a()"})
	if err != nil || !a.Failed || !strings.Contains(string(a.Body), "aborted") {
		t.Errorf("%s, %v, %v", a.Body, a.Failed, err)
	}
}

// The core is killed under a request: what came of it is not known, and nobody asks
// again. The next request starts a core.
func TestRequestToAKilledCore(t *testing.T) {
	t.Attr("requirement", "VD-148 VD-145")
	t.Parallel()
	l := launching(t, "hangs")
	c, err := l.Launch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	killed := make(chan error, 1)
	go func() {
		for {
			if b, err := os.ReadFile(filepath.Join(l.Dir, "asked")); err == nil && len(b) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		p, err := os.FindProcess(c.Core().PID)
		if err == nil {
			err = p.Kill()
		}
		killed <- err
	}()
	_, err = c.Request(t.Context(), control.RequestCall{Ops: "a()", RequestID: 77})
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Unknown || e.Retry || !strings.Contains(e.Error(), "request 77") {
		t.Errorf("%v", err)
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(l.Dir, "asked")); err != nil || strings.Count(string(b), "asked") != 1 {
		t.Errorf("asked %q, %v", b, err)
	}
	if err := os.WriteFile(filepath.Join(l.Dir, "mode"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Request(t.Context(), control.RequestCall{Ops: "a()"}); err != nil {
		t.Errorf("the next request: %v", err)
	}
	if n := starts(t, l.Dir); n != 2 {
		t.Errorf("%d starts", n)
	}
}
