package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/link"
)

// counting sends as many events as a method is called, "endless" without end, and
// "hold" a few before it waits.
func counting(ended chan<- error) link.Subscriber {
	return func(ctx context.Context, c link.Call, emit func([]byte) error) (err error) {
		defer func() { ended <- err }()
		most := -1
		switch c.Method {
		case "endless":
		case "hold":
			for n := range 20 {
				if err := emit(fmt.Appendf(nil, "%d", n)); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return ctx.Err()
		case "fail":
			return fault.New(fault.NotFound, "follow", "x", "gone")
		case "panic":
			panic("at the disco")
		default:
			if _, err := fmt.Sscan(c.Method, &most); err != nil {
				return err
			}
		}
		for n := 0; n != most; n++ {
			if err := emit(fmt.Appendf(nil, "%d", n)); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestSubscriptions(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	ended := make(chan error, 10)
	serve(t, path, link.ServerOptions{Handler: echo, Subscriber: counting(ended)})
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	follow := func(ctx context.Context, method string, f func(n string) error) error {
		return c.Subscribe(ctx, link.Request{Method: method, Body: []byte(`{}`)}, func(b []byte) error { return f(string(b)) })
	}
	within := func(what string) error {
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the core goes on", what)
			return nil
		}
	}

	var got []string
	if err := follow(t.Context(), "100", func(n string) error { got = append(got, n); return nil }); err != nil {
		t.Errorf("a subscription that ends: %v", err)
	}
	if len(got) != 100 || !slices.IsSortedFunc(got, func(a, b string) int { return len(a) - len(b) }) || got[99] != "99" {
		t.Errorf("%d events: %v", len(got), got)
	}
	if err := within("its end"); err != nil {
		t.Errorf("the core's side: %v", err)
	}

	if err := follow(t.Context(), "fail", nil); !fault.HasCode(err, fault.NotFound) {
		t.Errorf("a subscription that fails: %v", err)
	}
	if err := follow(t.Context(), "panic", nil); !fault.HasCode(err, fault.Internal) {
		t.Errorf("a subscription that panics: %v", err)
	}
	_, _ = within("a failure"), within("a panic")

	enough := errors.New("enough")
	if err := follow(t.Context(), "hold", func(n string) error {
		if n == "10" {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) {
		t.Errorf("left by its reader: %v", err)
	}
	if err := within("left by its reader"); err == nil {
		t.Error("a subscription that waits has come to its end")
	}

	ctx, cancel := context.WithCancel(t.Context())
	if err := follow(ctx, "hold", func(n string) error {
		if n == "10" {
			cancel()
		}
		return nil
	}); !fault.HasCode(err, fault.Cancelled) {
		t.Errorf("cancelled: %v", err)
	}
	_ = within("cancelled")

	// A reader that stops taking events loses them, and nobody else waits for it.
	release := make(chan struct{})
	slow := make(chan error, 1)
	go func() { slow <- follow(t.Context(), "endless", func(string) error { <-release; return nil }) }()
	_ = within("a slow reader")
	if got, err := c.Call(t.Context(), ask(false)); err != nil || string(got) != "1" {
		t.Errorf("a call beside a slow reader: %s, %v", got, err)
	}
	close(release)
	if err := <-slow; link.ReasonOf(err) != link.SlowReader {
		t.Errorf("the slow reader is told %v", err)
	}
}

func TestSubscriptionsEndWithTheCore(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	began := make(chan struct{})
	stop := serve(t, path, link.ServerOptions{Handler: echo, Subscriber: func(ctx context.Context, _ link.Call, emit func([]byte) error) error {
		if err := emit([]byte(`1`)); err != nil {
			return err
		}
		close(began)
		<-ctx.Done()
		return fault.Wrap(ctx.Err(), fault.Unavailable, "follow", "").Retryable()
	}})
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	go func() { <-began; stop() }()
	err := c.Subscribe(t.Context(), link.Request{Method: "m", Body: []byte(`{}`)}, func([]byte) error { return nil })
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Unavailable || !e.Retry {
		t.Errorf("%v", err)
	}
	if err := c.Subscribe(t.Context(), link.Request{Method: "m", Body: []byte(`{}`)}, nil); !fault.HasCode(err, fault.Unavailable) {
		t.Errorf("without a core: %v", err)
	}
}

// Events are numbered, and a gap is no stream.
func TestEventsHaveNoGap(t *testing.T) {
	t.Attr("requirement", "VD-140")
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
		p.send(`{"kind":"subscribe_ack","id":1}`)
		p.send(`{"kind":"event","id":1,"seq":1,"body":1}`)
		p.send(`{"kind":"event","id":1,"seq":3,"body":3}`)
		p.receive()
		_ = conn.Close()
	}()
	c := client(t, link.ClientOptions{Dial: dialer(path)})
	var got []string
	err = c.Subscribe(t.Context(), link.Request{Method: "m", Body: []byte(`{}`)}, func(b []byte) error {
		got = append(got, string(b))
		return nil
	})
	if !fault.HasCode(err, fault.Unavailable) || len(got) != 1 {
		t.Errorf("%v after %v", err, got)
	}
}

func TestNothingToSubscribeTo(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	path := socket(t)
	serve(t, path, link.ServerOptions{Handler: echo})
	err := client(t, link.ClientOptions{Dial: dialer(path)}).Subscribe(t.Context(), link.Request{Method: "m", Body: []byte(`{}`)}, nil)
	if !fault.HasCode(err, fault.UnknownMethod) {
		t.Errorf("%v", err)
	}
}
