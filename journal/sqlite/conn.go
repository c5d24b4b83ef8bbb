package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
)

// minVersion is the first SQLite without the defect by which two connections that
// write and checkpoint together can damage a WAL file.
var minVersion = [3]int{3, 51, 3}

// busyTimeout covers another process that looks into the file; the writer itself
// has no rival.
const busyTimeout = 5 * time.Second

// conn is a connection with its settings read back.
type conn struct {
	*lite.Conn
	path string
}

func open(path string, flags lite.OpenFlags, synchronous int, pragmas ...string) (*conn, error) {
	return openAs(path, path, flags, synchronous, pragmas...)
}

// openAs opens the file path by another name for it, such as a URI.
func openAs(name, path string, flags lite.OpenFlags, synchronous int, pragmas ...string) (*conn, error) {
	raw, err := lite.OpenConn(name, flags)
	if err != nil {
		return nil, classify(err, "open journal", path)
	}
	c := &conn{raw, path}
	if err := c.setUp(synchronous, pragmas); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// openStill opens a file that nobody writes, without locks or a log. How durable it
// would be written does not matter.
func openStill(path string) (*conn, error) {
	name := url.URL{Scheme: "file", Path: path, RawQuery: "immutable=1"}
	raw, err := lite.OpenConn(name.String(), lite.OpenReadOnly|lite.OpenURI)
	if err != nil {
		return nil, classify(err, "open journal", path)
	}
	c := &conn{raw, path}
	for _, p := range []string{"cell_size_check=ON", "mmap_size=0", "trusted_schema=OFF", "cache_size=-16384", "query_only=ON"} {
		if err := c.exec("PRAGMA " + p); err != nil {
			return nil, errors.Join(c.fail(err, "open journal"), c.Close())
		}
	}
	return c, nil
}

func (c *conn) setUp(synchronous int, pragmas []string) error {
	c.SetBusyTimeout(busyTimeout)
	v, err := c.text("SELECT sqlite_version()")
	if err != nil {
		return c.fail(err, "open journal")
	}
	if !newEnough(v) {
		return fault.New(fault.Unavailable, "open journal", c.path, "sqlite %s is older than %d.%d.%d, which may damage a log", v, minVersion[0], minVersion[1], minVersion[2])
	}
	pragmas = append([]string{
		"synchronous=" + strconv.Itoa(synchronous),
		"foreign_keys=ON", "recursive_triggers=ON", "cell_size_check=ON",
		"mmap_size=0", "trusted_schema=OFF", "cache_size=-16384",
	}, pragmas...)
	for _, p := range pragmas {
		if err := c.exec("PRAGMA " + p); err != nil {
			return c.fail(err, "open journal")
		}
	}
	return c.readBack(synchronous)
}

// readBack refuses a connection that is less durable than asked: drivers differ in
// what they set by themselves.
func (c *conn) readBack(synchronous int) error {
	mode, err := c.text("PRAGMA journal_mode")
	if err != nil {
		return c.fail(err, "open journal")
	}
	got, err := c.number("PRAGMA synchronous")
	if err != nil {
		return c.fail(err, "open journal")
	}
	if mode != "wal" || got != int64(synchronous) {
		return fault.New(fault.Unavailable, "open journal", c.path, "journal_mode is %s and synchronous is %d; want wal and %d", mode, got, synchronous).
			WithNext("move %s to a local file system that supports write-ahead logging", filepath.Dir(c.path))
	}
	return nil
}

func newEnough(version string) bool {
	parts := strings.Split(version, ".")
	for i, want := range minVersion {
		if i >= len(parts) {
			return false
		}
		got, err := strconv.Atoi(parts[i])
		if err != nil {
			return false
		}
		if got != want {
			return got > want
		}
	}
	return true
}

// prepare compiles a statement that lives as long as the connection.
func (c *conn) prepare(query string) (*lite.Stmt, error) {
	stmt, err := c.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare %.40q: %w", query, err)
	}
	return stmt, nil
}

// exec runs one statement to its end, once.
func (c *conn) exec(query string) error {
	return c.rows(query, func(*lite.Stmt) {})
}

func (c *conn) text(query string) (string, error) {
	var s string
	err := c.rows(query, func(stmt *lite.Stmt) { s = stmt.ColumnText(0) })
	return s, err
}

func (c *conn) number(query string) (int64, error) {
	var n int64
	err := c.rows(query, func(stmt *lite.Stmt) { n = stmt.ColumnInt64(0) })
	return n, err
}

// rows runs a statement to its end and shows every row to see.
func (c *conn) rows(query string, see func(*lite.Stmt)) (err error) {
	stmt, _, err := c.PrepareTransient(query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Finalize()) }()
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		see(stmt)
	}
}

// run steps a statement that returns no row and leaves it ready for the next use.
func run(stmt *lite.Stmt) error {
	_, err := stmt.Step()
	if err != nil {
		return err // Step has reset it
	}
	return stmt.Reset()
}

func (c *conn) fail(err error, op string) error { return classify(err, op, c.path) }

// classify gives an error of the driver the code that fits it, once. Full, damaged
// and unusable are told apart by the result code, never by the text.
func classify(err error, op, subject string) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	switch code := lite.ErrCode(err); code.ToPrimary() {
	case lite.ResultFull:
		return fault.Wrap(err, fault.StoreFull, op, subject).WithNext("free space on the disk that holds the journal, then try again").Retryable()
	case lite.ResultCorrupt, lite.ResultNotADB:
		return fault.Wrap(err, fault.Altered, op, subject).WithNext("stop, keep a copy of the file, and restore a backup")
	case lite.ResultInterrupt:
		return fault.Wrap(err, fault.Cancelled, op, subject)
	case lite.ResultBusy, lite.ResultIOErr, lite.ResultCantOpen, lite.ResultReadOnly, lite.ResultPerm, lite.ResultProtocol, lite.ResultNoMem, lite.ResultLocked:
		return fault.Wrap(err, fault.Unavailable, op, subject).Retryable()
	default:
		return fault.Wrap(err, fault.Internal, op, subject)
	}
}
