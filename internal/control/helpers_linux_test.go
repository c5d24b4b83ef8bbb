package control_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func parent(dir string) string { return filepath.Dir(dir) }

// asNobody asks for the status from a thread that has become another user and is
// thrown away afterwards.
func asNobody(t *testing.T, socket string) int {
	t.Helper()
	type got struct {
		status int
		err    error
	}
	c := make(chan got)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		const nobody = 65534
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
			c <- got{0, e}
			return
		}
		conn, err := net.Dial("unix", socket)
		if err != nil {
			c <- got{0, err}
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			c <- got{0, err}
			return
		}
		_ = resp.Body.Close()
		c <- got{resp.StatusCode, nil}
	}()
	g := <-c
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g.status
}
