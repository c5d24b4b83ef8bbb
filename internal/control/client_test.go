package control_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

func TestCancelledCellAnswers(t *testing.T) {
	t.Parallel()
	s := newService()
	interrupted := make(chan string, 1)
	s.inter = func(cell string) { interrupted <- cell }
	s.execute = func(_ context.Context, _ control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
		progress(control.CellProgress{Cell: "cell_1", Kind: "started"})
		cell := <-interrupted
		return control.CellResult{Cell: cell, Status: "interrupted"}, nil
	}
	c := connect(t, serve(t, s))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Execute(ctx, control.ExecuteRequest{Session: "s"}, func(control.CellProgress) { cancel() })
	if err != nil || r.Status != "interrupted" || r.Cell != "cell_1" {
		t.Errorf("Execute = %+v, %v; want the interrupted cell's result", r, err)
	}
}

func TestHangingUpEndsTheCall(t *testing.T) {
	t.Parallel()
	s := newService()
	begun := make(chan struct{})
	ended := make(chan struct{})
	s.execute = func(ctx context.Context, _ control.ExecuteRequest, _ func(control.CellProgress)) (control.CellResult, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return control.CellResult{}, ctx.Err()
	}
	c := connect(t, serve(t, s))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	_, err := c.Execute(ctx, control.ExecuteRequest{}, nil)
	if !fault.HasCode(err, fault.Cancelled) {
		t.Errorf("Execute = %v, want %s", err, fault.Cancelled)
	}
	<-ended
}

// dying answers hello and gives every other connection to f, then drops it.
func dying(t *testing.T, f func(c net.Conn, n int64, request string)) (dir string, calls *atomic.Int64) {
	t.Helper()
	dir, calls = t.TempDir(), new(atomic.Int64)
	l, err := net.Listen("unix", filepath.Join(dir, "core.sock"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			n, _ := c.Read(buf)
			if strings.HasPrefix(string(buf[:n]), "GET /v1/hello") {
				answer(c, `{"ok":true,"kind":"hello","data":{"version":"x","protocol":1,"pid":1},"error":null}`)
			} else {
				f(c, calls.Add(1), string(buf[:n]))
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return dir, calls
}

func answer(c net.Conn, body string) {
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+body)
}

func TestCoreDiesInACall(t *testing.T) {
	t.Parallel()
	t.Run("a cell is not sent again and its handle is named", func(t *testing.T) {
		t.Parallel()
		dir, calls := dying(t, func(c net.Conn, _ int64, _ string) {
			answer(c, "event: progress\ndata: {\"cell\":\"cell_7\",\"kind\":\"started\"}\n\n")
		})
		_, err := connect(t, dir).Execute(t.Context(), control.ExecuteRequest{}, nil)
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != fault.Unknown || e.Subject != "cell_7" || !strings.Contains(e.Next, "cell_7") || e.Retry {
			t.Errorf("Execute = %+v, want unknown about cell_7", err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("sent %d times, want once", n)
		}
	})
	t.Run("before a word", func(t *testing.T) {
		t.Parallel()
		dir, calls := dying(t, func(net.Conn, int64, string) {})
		c := connect(t, dir)
		if _, err := c.Execute(t.Context(), control.ExecuteRequest{}, nil); !fault.HasCode(err, fault.Unknown) {
			t.Errorf("Execute = %v, want unknown", err)
		}
		if _, err := c.Resume(t.Context(), "s", by); !fault.HasCode(err, fault.Unknown) {
			t.Errorf("Resume = %v, want unknown", err)
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("sent %d times, want each once", n)
		}
	})
	t.Run("a read is sent again", func(t *testing.T) {
		t.Parallel()
		dir, _ := dying(t, func(c net.Conn, n int64, _ string) {
			if n == 1 {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"ok\":true,")
				return
			}
			if n > 2 {
				answer(c, `{"ok":true,"kind":"status","data":{"pid":42},"error":null}`)
			}
		})
		v, err := connect(t, dir).Status(t.Context())
		if err != nil || v.PID != 42 {
			t.Errorf("Status = %+v, %v", v, err)
		}
	})
	t.Run("a read gives up in the end", func(t *testing.T) {
		t.Parallel()
		dir, calls := dying(t, func(net.Conn, int64, string) {})
		_, err := connect(t, dir).Status(t.Context())
		if !fault.HasCode(err, fault.Unavailable) {
			t.Errorf("Status = %v, want unavailable", err)
		}
		if n := calls.Load(); n != 3 {
			t.Errorf("sent %d times, want 3", n)
		}
	})
	t.Run("content that breaks is not taken for whole", func(t *testing.T) {
		t.Parallel()
		dir, _ := dying(t, func(c net.Conn, _ int64, _ string) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
		})
		r, err := connect(t, dir).Artifact(t.Context(), "h")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		if b, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("read %q, %v; want an unexpected end", b, err)
		}
	})
}

func TestEventsResume(t *testing.T) {
	t.Parallel()
	dir, _ := dying(t, func(c net.Conn, n int64, request string) {
		if n > 1 != strings.Contains(request, "after_id=2") {
			t.Errorf("request %d does not go on where the rows ended: %s", n, request)
		}
		switch n {
		case 1:
			answer(c, "id: 1\ndata: {\"id\":1}\n\nid: 2\ndata: {\"id\":2}\n\nid: 3\ndata: {\"i")
		case 2: // says nothing at all
		default:
			answer(c, "id: 3\ndata: {\"id\":3}\n\n: alive\n\nevent: answer\ndata: {\"ok\":true,\"data\":{}}\n\n")
		}
	})
	var ids []int64
	err := connect(t, dir).Events(t.Context(), control.EventQuery{}, func(e control.EventRow) error { ids = append(ids, e.ID); return nil })
	if d := cmp.Diff([]int64{1, 2, 3}, ids); d != "" || err != nil {
		t.Errorf("Events: %v, rows (-want +got):\n%s", err, d)
	}
}

func TestEventsResumeWhereTheyWere(t *testing.T) {
	t.Parallel()
	s := newService()
	cut := errors.New("cut")
	c := connect(t, serve(t, s))
	err := c.Events(t.Context(), control.EventQuery{Max: 9}, func(control.EventRow) error { return cut })
	if !errors.Is(err, cut) {
		t.Errorf("Events = %v, want the caller's own error", err)
	}
	if n := s.count(); n != 1 {
		t.Errorf("asked %d times, want once: the caller said no", n)
	}
}

func TestFollowersEndWithTheServer(t *testing.T) {
	t.Parallel()
	s := newService()
	s.follow = func(ctx context.Context, _ control.EventQuery, row func(control.EventRow) error) error {
		if err := row(control.EventRow{ID: 1}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- control.NewServer(s, quiet()).Serve(ctx, l) }()
	err = connect(t, dir).Events(t.Context(), control.EventQuery{Follow: true}, func(control.EventRow) error { stop(); return nil })
	if !fault.HasCode(err, fault.Unavailable) {
		t.Errorf("Events = %v, want unavailable", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestSlowReaderDoesNotHoldACell(t *testing.T) {
	t.Parallel()
	s := newService()
	overflown, caught := make(chan struct{}), make(chan struct{})
	s.execute = func(_ context.Context, _ control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
		say := func(from, to int) {
			for i := from; i < to; i++ {
				progress(control.CellProgress{Kind: "output", Text: strings.Repeat("x", 4096), Ahead: i})
			}
		}
		say(0, 3_000)
		close(overflown)
		<-caught
		say(3_000, 3_010) // there is room again, but a hole before it
		progress(control.CellProgress{Kind: "interrupting"})
		return control.CellResult{Status: "ok"}, nil
	}
	c := connect(t, serve(t, s))
	next, other := 0, 0
	r, err := c.Execute(t.Context(), control.ExecuteRequest{}, func(p control.CellProgress) {
		<-overflown
		if p.Kind != "output" {
			other++
			return
		}
		if p.Ahead != next {
			t.Errorf("piece %d came after %d: a hole", p.Ahead, next-1)
		}
		if next++; next == 200 { // of at least the 256 that were kept
			close(caught)
		}
	})
	if err != nil || r.Status != "ok" {
		t.Errorf("Execute = %+v, %v", r, err)
	}
	if next >= 3_000 || other != 1 {
		t.Errorf("%d pieces and %d others arrived, want fewer than were said, and 1", next, other)
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	t.Parallel()
	s := newService()
	s.execute = func(context.Context, control.ExecuteRequest, func(control.CellProgress)) (control.CellResult, error) {
		panic("boom")
	}
	s.inter = func(string) { panic("boom") }
	c := connect(t, serve(t, s))
	if _, err := c.Execute(t.Context(), control.ExecuteRequest{}, nil); !fault.HasCode(err, fault.Internal) {
		t.Errorf("Execute = %v, want internal", err)
	}
	if _, err := c.Interrupt(t.Context(), "x", by); !fault.HasCode(err, fault.Internal) {
		t.Errorf("Interrupt = %v, want internal", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("Status after a panic = %v", err)
	}
}

func TestNoCore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := control.Connect(t.Context(), dir)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Unavailable || e.Next == "" {
		t.Errorf("Connect = %+v, want unavailable with what to do", err)
	}
	// A core that was killed leaves its file and its socket.
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Connect(t.Context(), dir); !fault.HasCode(err, fault.Unavailable) {
		t.Errorf("Connect to a dead core = %v, want unavailable", err)
	}
	l, err = control.Listen(dir)
	if err != nil {
		t.Fatalf("Listen over what a dead core left: %v", err)
	}
	if err := errors.Join(l.Close(), l.Retire()); err != nil {
		t.Error(err)
	}
}

func TestOtherProtocolIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "core.sock"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			answer(c, `{"ok":true,"kind":"hello","data":{"version":"9.9.9","protocol":99,"pid":1},"error":null}`)
			_ = c.Close()
		}
	}()
	_, err = control.Connect(t.Context(), dir)
	if !fault.HasCode(err, fault.Unavailable) || !strings.Contains(err.Error(), "9.9.9") || !strings.Contains(err.Error(), control.Version) {
		t.Errorf("Connect = %v, want both versions named", err)
	}
	if _, err := control.Reach(t.Context(), dir); err != nil {
		t.Errorf("Reach = %v, want it to work whatever the version", err)
	}
	<-done
	_ = l.Close()
}

func TestDeadlineIsATimeout(t *testing.T) {
	t.Parallel()
	dir, _ := dying(t, func(c net.Conn, _ int64, _ string) { _, _ = c.Read(make([]byte, 1)) }) // until the client hangs up
	c := connect(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Status(ctx); !fault.HasCode(err, fault.Timeout) {
		t.Errorf("Status = %v, want timeout", err)
	}
}

func TestIDsThatAPathCannotHold(t *testing.T) {
	t.Parallel()
	s := newService()
	c := connect(t, serve(t, s))
	for _, id := range []string{"", ".", ".."} {
		if _, err := c.Session(t.Context(), id); !fault.HasCode(err, fault.InvalidRequest) {
			t.Errorf("Session(%q) = %v, want %s", id, err, fault.InvalidRequest)
		}
	}
	if n := s.count(); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
}

func TestForeignFileInPlaceOfCoreFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Connect(t.Context(), dir); !fault.HasCode(err, fault.Unavailable) {
		t.Errorf("Connect = %v, want unavailable", err)
	}
}
