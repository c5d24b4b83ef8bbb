package link_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/link"
)

// asNobody runs f on a thread that has become another user and is thrown away.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		const nobody = 65534
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
			done <- e
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAnotherUser(t *testing.T) {
	t.Parallel()
	// Only root can become another user; for anybody else the cases cannot arise here.
	if os.Geteuid() != 0 {
		return
	}
	t.Run("is not served", func(t *testing.T) {
		t.Attr("requirement", "VD-135 VD-140")
		t.Parallel()
		path := socket(t)
		serve(t, path, link.ServerOptions{Handler: func(context.Context, link.Call) ([]byte, error) {
			t.Error("another user's request was handled")
			return []byte(`1`), nil
		}})
		open(t, path, 0o666)
		open(t, filepath.Dir(path), 0o755)
		asNobody(t, func() {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Errorf("dial: %v", err)
				return
			}
			defer func() { _ = conn.Close() }()
			if got := (peer{t, conn}).receive(); !says(got, "code", "unauthorized") || !says(got, "id", nil) {
				t.Errorf("it is told %s", got)
			}
		})
	})
	// Who may not use the socket is told so; no core is started for him, and no
	// request goes elsewhere.
	t.Run("may not connect", func(t *testing.T) {
		t.Attr("requirement", "VD-147")
		t.Parallel()
		path := socket(t)
		serve(t, path, link.ServerOptions{Handler: echo})
		open(t, path, 0o600)
		open(t, filepath.Dir(path), 0o755)
		c := client(t, link.ClientOptions{
			Dial: func(ctx context.Context) (conn net.Conn, err error) {
				asNobody(t, func() { conn, err = dialer(path)(ctx) })
				return conn, err
			},
			Start:    func(context.Context) error { t.Error("a core was started"); return nil },
			Fallback: func(context.Context, link.Request) ([]byte, error) { t.Error("ran elsewhere"); return nil, nil },
		})
		_, err := c.Call(t.Context(), ask(true))
		if link.ReasonOf(err) != link.Unreachable || !fault.HasCode(err, fault.Unavailable) {
			t.Errorf("%v (%s)", err, link.ReasonOf(err))
		}
	})
}

func open(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
