package control_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

var by = event.Actor{Kind: "operator", Name: "ann", Surface: "cli"}

// exercise makes every call of s once with the same arguments and returns what came
// of it, by method.
func exercise(t *testing.T, s control.Service) map[string]any {
	t.Helper()
	ctx := t.Context()
	got := map[string]any{}
	put := func(name string, v any, err error) {
		got[name] = v
		if err != nil {
			got[name] = said(err)
		}
	}
	req := control.ExecuteRequest{Session: "s/1 ü?", Code: "x = '\x00\u2028'", TimeoutMS: 5, Workspace: "/w", By: by, Detach: true}
	var seen []control.CellProgress
	r, err := s.Execute(ctx, req, func(p control.CellProgress) { seen = append(seen, p) })
	put("Execute", r, err)
	got["progress"] = seen
	r, err = s.Execute(ctx, req, nil)
	put("Execute quietly", r, err)
	d, err := s.Cell(ctx, "cell_a/b c")
	put("Cell", d, err)
	l, err := s.ListCells(ctx, "s&1", 3)
	put("ListCells", l, err)
	i, err := s.Interrupt(ctx, "cell_x", by)
	put("Interrupt", i, err)
	o, err := s.Output(ctx, "cell_x", 1<<40)
	put("Output", output(t, o), err)
	one, err := s.Session(ctx, "a%2Fb")
	put("Session", one, err)
	all, err := s.ListSessions(ctx)
	put("ListSessions", all, err)
	one, err = s.Resume(ctx, "s", by)
	put("Resume", one, err)
	one, err = s.CloseSession(ctx, "s", by)
	put("CloseSession", one, err)
	one, err = s.ResetNamespace(ctx, "s", by)
	put("ResetNamespace", one, err)
	n, err := s.Namespace(ctx, "s")
	put("Namespace", n, err)
	ns, err := s.ListNamespaces(ctx)
	put("ListNamespaces", ns, err)
	q := control.EventQuery{
		AfterID: 9, Stream: "session/a b", Session: "s", Kinds: []string{"a", "b"}, Not: []string{"c"},
		Failed: true, Grep: "&=?", Since: when, Max: 50, Tail: true, Follow: true,
	}
	var rows []control.EventRow
	err = s.Events(ctx, q, func(e control.EventRow) error { rows = append(rows, e); return nil })
	put("Events", rows, err)
	a, err := s.Artifact(ctx, "abc")
	put("Artifact", content(t, a), err)
	v, err := s.Verify(ctx)
	put("Verify", v, err)
	an, err := s.Anchor(ctx)
	put("Anchor", an, err)
	u, err := s.Usage(ctx)
	put("Usage", u, err)
	st, err := s.Status(ctx)
	put("Status", st, err)
	ps, err := s.Processes(ctx)
	put("Processes", ps, err)
	put("Shutdown", nil, s.Shutdown(ctx, by))
	return got
}

// said is what a caller can tell from an error.
func said(err error) control.Fault { return *control.Failure(err).Error }

func output(t *testing.T, o control.OutputRange) map[string]any {
	return map[string]any{"offset": o.Offset, "total": o.Total, "gap": o.Gap, "body": content(t, o.Body)}
}

func content(t *testing.T, r io.ReadCloser) []byte {
	t.Helper()
	if r == nil {
		return nil
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Errorf("read content: %v", err)
	}
	return b
}

// serve serves s until the test ends and returns the data directory.
func serve(t *testing.T, s control.Service) string {
	t.Helper()
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- control.NewServer(s, slog.New(slog.DiscardHandler)).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := l.Retire(); err != nil {
			t.Errorf("Retire: %v", err)
		}
	})
	return dir
}

func connect(t *testing.T, dir string) *control.Client {
	t.Helper()
	c, err := control.Connect(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSameThroughTheSocket(t *testing.T) {
	t.Parallel()
	direct, remote := newService(), newService()
	want := exercise(t, direct)
	got := exercise(t, connect(t, serve(t, remote)))
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("answers differ (-direct +socket):\n%s", d)
	}
	if d := cmp.Diff(direct.calls, remote.calls); d != "" {
		t.Errorf("the service was asked something else (-direct +socket):\n%s", d)
	}
}

func TestSameFaultsThroughTheSocket(t *testing.T) {
	t.Parallel()
	for _, code := range fault.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Attr("requirement", "CP-134")
			t.Parallel()
			err := fault.Wrap(errors.New("cause\nof it"), code, "do", `a "thing"`).WithNext("do %s", "that")
			err.Retry = code == fault.Unavailable || code == fault.Timeout
			direct, remote := newService(), newService()
			direct.err, remote.err = err, err
			want := exercise(t, direct)
			got := exercise(t, connect(t, serve(t, remote)))
			// A follower tries again when the core is not available; the others do not.
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("faults differ (-direct +socket):\n%s", d)
			}
			if n := control.HTTPStatus(code); n < 400 || n > 599 {
				t.Errorf("HTTPStatus(%s) = %d, want an error status", code, n)
			}
		})
	}
}

func TestEmptyListIsAList(t *testing.T) {
	t.Parallel()
	dir := serve(t, newService())
	body, status := raw(t, dir, "GET /v1/sessions HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n")
	if status != 200 || !bytes.Contains(body, []byte(`"data":[]`)) {
		t.Errorf("GET /v1/sessions = %d %s, want an empty list", status, body)
	}
}

func TestListenIsPrivate(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), string(bytes.Repeat([]byte("d"), 90)))
	for name, dir := range map[string]string{"in the directory": t.TempDir(), "path too long for a socket": mkdir(t, long)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := control.Listen(dir)
			if err != nil {
				t.Fatal(err)
			}
			core := l.Core
			for _, path := range []string{core.Socket, core.Link} {
				if got := mode(t, path); got != 0o600 || len(path) > 100 {
					t.Errorf("socket %s has mode %o, want 600 and a path that fits", path, got)
				}
			}
			if read, err := control.ReadCore(dir); err != nil || read != core {
				t.Errorf("ReadCore = %+v, %v, want %+v", read, err, core)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := l.Retire(); err != nil {
				t.Fatal(err)
			}
			if left := entries(t, dir); len(left) != 0 {
				t.Errorf("left after Retire: %v", left)
			}
			if _, err := net.Dial("unix", core.Socket); err == nil {
				t.Error("socket still answers")
			}
		})
	}
}

// A core takes away its own sockets and its own announcement, not those of one that
// has taken its place.
func TestRetireLeavesWhatIsAnothers(t *testing.T) {
	t.Attr("requirement", "VD-149")
	t.Parallel()
	dir := t.TempDir()
	old, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	for time.Now().UnixMilli() == old.Core.StartedAtMS { // two cores differ in their pid, these only in their time
		runtime.Gosched()
	}
	next, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(old.Close(), old.Retire()); err != nil {
		t.Fatal(err)
	}
	if core, err := control.ReadCore(dir); err != nil || core != next.Core {
		t.Errorf("announced is %+v, %v", core, err)
	}
	for _, path := range []string{next.Core.Socket, next.Core.Link} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Errorf("the next core's socket has gone: %v", err)
			continue
		}
		_ = conn.Close()
	}
	if err := errors.Join(next.Close(), next.Retire()); err != nil {
		t.Fatal(err)
	}
	if left := entries(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestListenSweepsWhatAKilledCoreLeft(t *testing.T) {
	t.Parallel()
	dir := mkdir(t, filepath.Join(t.TempDir(), strings.Repeat("d", 90)))
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	killed := l.Core
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(killed.Socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the killed core's socket directory is still there: %v", err)
	}
	if err := errors.Join(l.Close(), l.Retire()); err != nil {
		t.Error(err)
	}
}

func TestMain(m *testing.M) {
	if asCore() {
		return
	}
	goleak.VerifyTestMain(m)
}
