package link_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/internal/link"
	"github.com/reeve-run/reeve/internal/reevetest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(benchEnv); path != "" {
		os.Exit(serveBench(path))
	}
	status := reevetest.Main(m)
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// socket is a place for a Unix socket: short, whatever the test is called.
func socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "link")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "link.sock")
}

// serve runs a server on path until the test ends, or stop is called, which may be
// done early and returns when Serve has.
func serve(t testing.TB, path string, o link.ServerOptions) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, o)
}

func serveOn(t testing.TB, l net.Listener, o link.ServerOptions) (stop func()) {
	t.Helper()
	if o.Version == "" {
		o.Version = "core-version"
	}
	s, err := link.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func dialer(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", path) }
}

func client(t testing.TB, o link.ClientOptions) *link.Client {
	t.Helper()
	if o.Client == "" {
		o.Client = "test"
	}
	c := link.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// peer speaks frames by hand, as JSON.
type peer struct {
	t    testing.TB
	conn net.Conn
}

func dialPeer(t testing.TB, path string) peer {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return peer{t, conn}
}

func (p peer) send(format string, args ...any) {
	p.t.Helper()
	text := fmt.Sprintf(format, args...)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	if _, err := p.conn.Write(append(b, text...)); err != nil {
		p.t.Errorf("write %s: %v", text, err)
	}
}

// receive returns the JSON of the next frame, or nothing at the end.
func (p peer) receive() string {
	p.t.Helper()
	var header [4]byte
	if _, err := io.ReadFull(p.conn, header[:]); err != nil {
		// A peer that closes before it has read everything resets the connection.
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			p.t.Errorf("read: %v", err)
		}
		return ""
	}
	text := make([]byte, binary.BigEndian.Uint32(header[:]))
	if _, err := io.ReadFull(p.conn, text); err != nil {
		p.t.Errorf("read: %v", err)
	}
	return string(text)
}

const (
	hand    = `{"kind":"handshake","min":1,"max":1,"client":"hand","version":"0","config_id":"","config":{},"read_only":false}`
	handAck = `{"kind":"handshake_ack","protocol":1,"version":"hand","pid":1,"config_id":"","config":{}}`
)

// greeted is a peer after its handshake with a server of the zero identity.
func greeted(t testing.TB, path string) peer {
	t.Helper()
	p := dialPeer(t, path)
	p.send("%s", hand)
	if got := p.receive(); !says(got, "kind", "handshake_ack") {
		t.Fatalf("the greeting was answered with %s", got)
	}
	return p
}
