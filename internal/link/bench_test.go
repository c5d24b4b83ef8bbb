package link_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/internal/link"
)

// benchEnv makes the test binary the other end of a benchmark, at the socket that it
// names: of frames, or of bare bytes when the name ends so.
const benchEnv = "REEVE_TEST_LINK_BENCH"

// serveBench serves until standard input ends.
func serveBench(path string) int {
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "ready")
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
		_ = l.Close()
	}()
	if strings.HasSuffix(path, ".bytes") {
		conn, err := l.Accept()
		if err != nil {
			return 1
		}
		// Without the copies that the kernel could do by itself: a program has a look.
		_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 4096))
		return 0
	}
	s, err := link.NewServer(link.ServerOptions{Handler: echo})
	if err == nil {
		err = s.Serve(ctx, l)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// elsewhere starts serveBench in a process of its own.
func elsewhere(b *testing.B, path string) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchEnv+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 16)); err != nil {
		b.Fatal(err)
	}
}

// The cost of a call to another process, beside the same bytes going there and back
// on the same kind of socket.
func BenchmarkCall(b *testing.B) {
	body := []byte(`{"ops":"get(id=\"0123456789abcdef\")","session":"mcp-x-abcdefgh","visible":["` + string(bytes.Repeat([]byte("x"), 200)) + `"]}`)
	b.Run("bytes", func(b *testing.B) {
		path := socket(b) + ".bytes"
		elsewhere(b, path)
		conn, err := net.Dial("unix", path)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for b.Loop() {
			if _, err := conn.Write(body); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(conn, body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("link", func(b *testing.B) {
		path := socket(b)
		elsewhere(b, path)
		c := client(b, link.ClientOptions{Dial: dialer(path)})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Call(context.Background(), link.Request{Method: "m", Body: body, RequestID: "r"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
