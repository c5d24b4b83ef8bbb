package control

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/configid"
	"github.com/reeve-run/reeve/internal/peercred"
)

// Version of this build; set by the linker for releases.
var Version = "0.1.0-dev"

// maxSocketPath keeps room below the 104 to 108 bytes that systems allow.
const maxSocketPath = 100

// Names of the sockets, both of one length.
const (
	httpSocket = "core.sock"
	linkSocket = "link.sock"
)

// Core is the file core.json: where the core of a data directory is reached. It is
// a hint for clients; the lock, not this file, says whether a core lives.
type Core struct {
	PID         int    `json:"pid"`
	Socket      string `json:"socket"`
	Link        string `json:"link"` // socket of frames; empty for a core that has none
	Version     string `json:"version"`
	StartedAtMS int64  `json:"started_at_ms"`
}

func corePath(dir string) string { return filepath.Join(dir, "core.json") }

// ReadCore reads dir/core.json. A missing file is fault.NotFound.
func ReadCore(dir string) (Core, error) {
	var c Core
	b, err := os.ReadFile(corePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return c, fault.New(fault.NotFound, "read", corePath(dir), "no core has announced itself")
	}
	if err != nil {
		return c, fault.Wrap(err, fault.Unavailable, "read", corePath(dir))
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fault.Wrap(err, fault.Unavailable, "read", corePath(dir))
	}
	return c, nil
}

// Sockets are where the core of a data directory is reached.
type Sockets struct {
	Core     Core
	dir      string
	identity configid.Identity
	http     *bound
	link     *bound
}

// Listen makes the sockets of dir's core, only for this user, and announces them in
// core.json. The caller holds the lock of dir: whatever an earlier core left is
// replaced. Server.Serve closes them, Retire takes them away again.
func Listen(dir string) (*Sockets, error) {
	s := &Sockets{dir: dir, Core: Core{PID: os.Getpid(), Version: Version, StartedAtMS: time.Now().UnixMilli()}}
	var err error
	if s.identity, err = config.Identity(dir); err != nil {
		return nil, err
	}
	sweep(dir)
	in := dir
	if len(filepath.Join(dir, httpSocket)) > maxSocketPath {
		if in, err = os.MkdirTemp("", "reeve-"); err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "make socket directory", "")
		}
	}
	s.Core.Socket, s.Core.Link = filepath.Join(in, httpSocket), filepath.Join(in, linkSocket)
	if s.http, err = bind(s.Core.Socket); err != nil {
		return nil, err
	}
	if s.link, err = bind(s.Core.Link); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := announce(dir, s.Core); err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Unavailable, "announce core", dir), s.Close())
	}
	return s, nil
}

// Close stops listening. What Listen made is still there, as after a crash.
func (s *Sockets) Close() error {
	var err error
	for _, b := range []*bound{s.http, s.link} {
		if b != nil {
			if e := b.Close(); !errors.Is(e, net.ErrClosed) {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// bound is a listener that knows its socket file from any other of the same name.
type bound struct {
	net.Listener
	path string
	file fs.FileInfo
}

func bind(path string) (*bound, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.Unavailable, "remove stale socket", path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "listen", path)
	}
	l.SetUnlinkOnClose(false)
	b := &bound{Listener: l, path: path}
	err = os.Chmod(path, 0o600)
	if err == nil {
		b.file, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Unavailable, "listen", path), l.Close())
	}
	return b, nil
}

// unlink removes the socket file unless another one has taken its name.
func (b *bound) unlink() error {
	now, err := os.Lstat(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !os.SameFile(now, b.file):
		return nil
	}
	return os.Remove(b.path)
}

// sweep removes the private socket directory of an earlier core of dir that was
// killed. What cannot be removed is left: it is empty of meaning by now.
func sweep(dir string) {
	old, err := ReadCore(dir)
	private := filepath.Dir(old.Socket)
	if err != nil || private == dir || !strings.HasPrefix(filepath.Base(private), "reeve-") || filepath.Base(old.Socket) != httpSocket {
		return
	}
	for _, name := range []string{httpSocket, linkSocket, ""} {
		_ = os.Remove(filepath.Join(private, name))
	}
}

func announce(dir string, c Core) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	tmp := corePath(dir) + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, corePath(dir))
}

// Retire removes what Listen made and nothing else, after the server has stopped. The
// caller still holds the lock.
func (s *Sockets) Retire() error {
	var err error
	now, readErr := ReadCore(s.dir)
	if readErr == nil && now == s.Core {
		err = os.Remove(corePath(s.dir))
	} else if !fault.HasCode(readErr, fault.NotFound) {
		err = readErr
	}
	err = errors.Join(err, s.http.unlink(), s.link.unlink())
	if private := filepath.Dir(s.Core.Socket); private != s.dir {
		if e := os.Remove(private); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fault.Wrap(err, fault.Internal, "retire core", s.dir)
	}
	return nil
}

// dial connects to the core of dir, if one listens.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	path := filepath.Join(dir, httpSocket)
	c, err := ReadCore(dir)
	switch {
	case err == nil:
		path = c.Socket
	case !fault.HasCode(err, fault.NotFound):
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		e := &fault.Error{Code: fault.Unavailable, Op: "connect to core", Subject: dir, Err: err, Retry: true, Next: "reeve up"}
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
			e.Message, e.Err = "no core runs", nil
		}
		return nil, e
	}
	if err := peercred.SameUser(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
