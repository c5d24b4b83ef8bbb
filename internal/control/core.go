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
	"github.com/reeve-run/reeve/internal/peercred"
)

// Version of this build; set by the linker for releases.
var Version = "0.1.0-dev"

// maxSocketPath keeps room below the 104 to 108 bytes that systems allow.
const maxSocketPath = 100

// Core is the file core.json: where the core of a data directory is reached. It is
// a hint for clients; the lock, not this file, says whether a core lives.
type Core struct {
	PID         int    `json:"pid"`
	Socket      string `json:"socket"`
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

// Listen makes the socket of dir's core, only for this user, and announces it in
// core.json. The caller holds the lock of dir: whatever an earlier core left is
// replaced. Retire takes both away again.
func Listen(dir string) (net.Listener, Core, error) {
	path := filepath.Join(dir, "core.sock")
	sweep(dir)
	if len(path) > maxSocketPath {
		private, err := os.MkdirTemp("", "reeve-")
		if err != nil {
			return nil, Core{}, fault.Wrap(err, fault.Unavailable, "make socket directory", "")
		}
		path = filepath.Join(private, "core.sock")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, Core{}, fault.Wrap(err, fault.Unavailable, "remove stale socket", path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, Core{}, fault.Wrap(err, fault.Unavailable, "listen", path)
	}
	c := Core{PID: os.Getpid(), Socket: path, Version: Version, StartedAtMS: time.Now().UnixMilli()}
	err = os.Chmod(path, 0o600)
	if err == nil {
		err = announce(dir, c)
	}
	if err != nil {
		return nil, Core{}, errors.Join(fault.Wrap(err, fault.Unavailable, "announce core", dir), l.Close())
	}
	return l, c, nil
}

// sweep removes the private socket directory of an earlier core of dir that was
// killed. What cannot be removed is left: it is empty of meaning by now.
func sweep(dir string) {
	old, err := ReadCore(dir)
	private := filepath.Dir(old.Socket)
	if err != nil || private == dir || !strings.HasPrefix(filepath.Base(private), "reeve-") || filepath.Base(old.Socket) != "core.sock" {
		return
	}
	_ = os.Remove(old.Socket)
	_ = os.Remove(private)
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

// Retire removes what Listen made, after the server has stopped. The caller still
// holds the lock.
func Retire(dir string, c Core) error {
	err := os.Remove(corePath(dir))
	for _, path := range []string{c.Socket, filepath.Dir(c.Socket)} {
		if path == dir {
			continue
		}
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fault.Wrap(err, fault.Internal, "retire core", dir)
	}
	return nil
}

// dial connects to the core of dir, if one listens.
func dial(ctx context.Context, dir string) (net.Conn, error) {
	path := filepath.Join(dir, "core.sock")
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
