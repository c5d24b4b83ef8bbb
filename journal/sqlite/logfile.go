package sqlite

import (
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"modernc.org/libc"
	engine "modernc.org/sqlite/lib"

	"github.com/reeve-run/reeve/fault"
)

// SQLite writes a commit to its log as two small writes for each page: half of what
// a commit costs beside the sync. And while the log grows, the sync has to record its
// new length, which doubles it. logVFS is the machine's file system with two
// differences: what is written to a log one after the other is collected, and goes to
// the file in one write before anything else is done with it; and a log grows by
// growth bytes of zeros at a time, which no reader takes for a transaction.
//
// A transaction becomes valid, and visible to readers, after the sync of the log. So
// this is only for a connection that syncs every commit; readers, which have files
// of their own, never look past what was synced. The mark that makes a transaction
// valid is in the last of its writes, here as there, so an error or a cut before the
// sync leaves as little behind.
const logVFS = "reeve-log"

const (
	// maxCollected bounds the memory of one log.
	maxCollected = 1 << 20
	// onePiece is what goes into one write. SQLite's own looks at the low 17 bits of a
	// length.
	onePiece = 1 << 16
	// growth is a few dozen pages: one commit in ten records a new length.
	growth = 1 << 18
)

var zeros [onePiece]byte

// logFile is the log of one connection.
type logFile struct {
	plain *engine.Tsqlite3_io_methods // of the machine's file system
	at    int64                       // where data belongs
	data  []byte
	size  int64 // nothing that matters is past it
}

// logs holds the open logs by SQLite's handle of the file.
var logs struct {
	sync.Mutex
	open  map[uintptr]*logFile
	plain *engine.Tsqlite3_vfs
}

func logOf(file uintptr) *logFile {
	logs.Lock()
	defer logs.Unlock()
	return logs.open[file]
}

// registerLogs makes logVFS known to the engine, once.
var registerLogs = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	name, err := libc.CString(logVFS)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "register file system", logVFS)
	}
	if code := engine.Xsqlite3_initialize(tls); code != engine.SQLITE_OK {
		return fault.New(fault.Unavailable, "register file system", logVFS, "sqlite reports %d", code)
	}
	plain := engine.Xsqlite3_vfs_find(tls, 0)
	made := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(engine.Tsqlite3_vfs{})))
	if plain == 0 || made == 0 {
		return fault.New(fault.Unavailable, "register file system", logVFS, "there is no file system or no memory")
	}
	logs.open, logs.plain = map[uintptr]*logFile{}, at[engine.Tsqlite3_vfs](plain)
	vfs := at[engine.Tsqlite3_vfs](made)
	*vfs = *logs.plain
	vfs.FpNext, vfs.FzName, vfs.FxOpen = 0, name, address(openLog)
	if code := engine.Xsqlite3_vfs_register(tls, made, 0); code != engine.SQLITE_OK {
		return fault.New(fault.Unavailable, "register file system", logVFS, "sqlite reports %d", code)
	}
	return nil
})

// logURI names the database for a connection whose log is collected.
func logURI(path string) (string, error) {
	if err := registerLogs(); err != nil {
		return "", err
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "open journal", path)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(whole), RawQuery: "vfs=" + logVFS}).String(), nil
}

// at is the structure at an address of the engine's memory, which Go's collector
// knows nothing of.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) } //nolint:gosec // as said

// The engine keeps functions as addresses of Go function values. address gives that
// of one declared at the top level, which never moves; function undoes it.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) } //nolint:gosec // as said

func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) } //nolint:gosec // as said

type (
	openFunc  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	fileFunc  = func(tls *libc.TLS, file uintptr) int32
	rangeFunc = func(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32
	sizeFunc  = func(tls *libc.TLS, file uintptr, size int64) int32
	flagFunc  = func(tls *libc.TLS, file uintptr, flags int32) int32
	outFunc   = func(tls *libc.TLS, file, out uintptr) int32
)

func openLog(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	code := function[openFunc](logs.plain.FxOpen)(tls, vfs, name, file, flags, out)
	if code != engine.SQLITE_OK || flags&engine.SQLITE_OPEN_WAL == 0 {
		return code
	}
	methods := &at[engine.Tsqlite3_file](file).FpMethods
	made := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(engine.Tsqlite3_io_methods{})))
	if made == 0 {
		return engine.SQLITE_OK // the log is written page by page
	}
	l := &logFile{plain: at[engine.Tsqlite3_io_methods](*methods)}
	l.size = l.length(tls, file)
	ours := at[engine.Tsqlite3_io_methods](made)
	*ours = *l.plain
	ours.FxClose, ours.FxRead, ours.FxWrite = address(closeLog), address(readLog), address(writeLog)
	ours.FxTruncate, ours.FxSync, ours.FxFileSize = address(truncateLog), address(syncLog), address(sizeOfLog)
	*methods = made
	logs.Lock()
	defer logs.Unlock()
	logs.open[file] = l
	return engine.SQLITE_OK
}

func writeLog(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	l := logOf(file)
	if off != l.at+int64(len(l.data)) || len(l.data)+int(n) > maxCollected {
		if code := l.flush(tls, file); code != engine.SQLITE_OK {
			return code
		}
		l.at = off
	}
	l.data = append(l.data, unsafe.Slice(at[byte](buf), n)...) //nolint:gosec // SQLite lends n bytes at buf
	return engine.SQLITE_OK
}

// flush writes what was collected. After an error it is dropped, as it would be had
// the error met its first write: SQLite rolls back.
func (l *logFile) flush(tls *libc.TLS, file uintptr) int32 {
	defer func() { l.data = l.data[:0] }()
	if code := l.write(tls, file, l.data, l.at); code != engine.SQLITE_OK {
		return code
	}
	if end := l.at + int64(len(l.data)); end > l.size {
		l.grow(tls, file, end)
	}
	return engine.SQLITE_OK
}

func (l *logFile) write(tls *libc.TLS, file uintptr, data []byte, off int64) int32 {
	for piece := range slices.Chunk(data, onePiece) {
		from := uintptr(unsafe.Pointer(&piece[0])) //nolint:gosec // the caller keeps the bytes, and Go does not move them
		code := function[rangeFunc](l.plain.FxWrite)(tls, file, from, int32(len(piece)), off)
		if code != engine.SQLITE_OK {
			return code
		}
		off += int64(len(piece))
	}
	return engine.SQLITE_OK
}

// length is that of the file, or more than any when it cannot be told: what is there
// must not be written over.
func (l *logFile) length(tls *libc.TLS, file uintptr) int64 {
	out := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(int64(0))))
	if out == 0 {
		return math.MaxInt64
	}
	defer libc.Xfree(tls, out)
	if function[outFunc](l.plain.FxFileSize)(tls, file, out) != engine.SQLITE_OK {
		return math.MaxInt64
	}
	return *at[int64](out)
}

// grow writes zeros from end on, where the file has ended before. That there is no
// room for them does not matter.
func (l *logFile) grow(tls *libc.TLS, file uintptr, end int64) {
	l.size = end
	for l.size < end+growth {
		if l.write(tls, file, zeros[:], l.size) != engine.SQLITE_OK {
			return
		}
		l.size += int64(len(zeros))
	}
}

func readLog(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	l := logOf(file)
	if code := l.flush(tls, file); code != engine.SQLITE_OK {
		return code
	}
	return function[rangeFunc](l.plain.FxRead)(tls, file, buf, n, off)
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	l := logOf(file)
	if code := l.flush(tls, file); code != engine.SQLITE_OK {
		return code
	}
	code := function[sizeFunc](l.plain.FxTruncate)(tls, file, size)
	if code == engine.SQLITE_OK {
		l.size = size
	}
	return code
}

func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	l := logOf(file)
	if code := l.flush(tls, file); code != engine.SQLITE_OK {
		return code
	}
	return function[flagFunc](l.plain.FxSync)(tls, file, flags)
}

func sizeOfLog(tls *libc.TLS, file, out uintptr) int32 {
	l := logOf(file)
	if code := l.flush(tls, file); code != engine.SQLITE_OK {
		return code
	}
	return function[outFunc](l.plain.FxFileSize)(tls, file, out)
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	l := logOf(file)
	flushed := l.flush(tls, file)
	methods := at[engine.Tsqlite3_file](file).FpMethods
	code := function[fileFunc](l.plain.FxClose)(tls, file)
	logs.Lock()
	delete(logs.open, file)
	logs.Unlock()
	libc.Xfree(tls, methods)
	if flushed != engine.SQLITE_OK {
		return flushed
	}
	return code
}
