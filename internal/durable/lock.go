package durable

import (
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/fault"
)

// Owner tells who holds a lock. It is for people: the lock itself is the kernel's
// and ends with the process, so a left-over text means nothing.
type Owner struct {
	PID       int    `json:"pid"`
	Version   string `json:"version"`
	StartedMS int64  `json:"started_ms"` // Unix milliseconds
}

// Lock is an exclusive lock held by this process.
type Lock struct {
	f     *os.File
	named bool // the file says who holds it
}

// LockedError says that another process holds the lock. It is found by errors.As
// below a fault.Conflict.
type LockedError struct {
	Path  string
	Owner Owner // zero when the holder has not written who it is
}

func (e *LockedError) Error() string { return "lock " + e.Path + " is held" }

// AcquireLock takes the lock at path without waiting, making the file when needed,
// and writes owner into it. The descriptor is close-on-exec: children do not
// inherit the lock.
func AcquireLock(path string, owner Owner) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, wrap(err, "lock", path)
	}
	if err := flock(f, path); err != nil {
		return nil, wrap(err, "lock", path)
	}
	// The file may have been removed and made anew between the two calls: a lock on
	// one that nobody else can find keeps nobody out.
	if err := named(f, path); err != nil {
		return nil, wrap(errors.Join(err, f.Close()), "lock", path)
	}
	if err := writeOwner(f, owner); err != nil {
		return nil, wrap(errors.Join(err, f.Close()), "lock", path)
	}
	return &Lock{f, true}, nil
}

// HoldLock is AcquireLock where nothing may be written: the lock is the same and the
// file does not say whose. Without a file nobody holds the lock or can take it there,
// and it returns nil, which may be released.
func HoldLock(path string) (*Lock, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = flock(f, path)
	}
	if err != nil {
		return nil, wrap(err, "lock", path)
	}
	return &Lock{f, false}, nil
}

// flock takes the lock, or closes f.
func flock(f *os.File, path string) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return nil
	}
	defer f.Close()
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	return lockedBy(path, readOwner(f))
}

// Writable reports whether this process may make files in dir.
func Writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// named reports whether path still names f.
func named(f *os.File, path string) error {
	held, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(held, found) {
		return errors.New("another file has taken its name")
	}
	return nil
}

func lockedBy(path string, o Owner) error {
	e := fault.Wrap(&LockedError{Path: path, Owner: o}, fault.Conflict, "lock", path)
	if o.PID == 0 {
		e.Message = "another process holds it"
		return e.Retryable()
	}
	e.Message = "process " + strconv.Itoa(o.PID) + " (reeve " + o.Version + ", since " +
		time.UnixMilli(o.StartedMS).UTC().Format(time.RFC3339) + ") holds it"
	return e
}

// LockOwner reads who last took the lock at path, and whether it is held now.
func LockOwner(path string) (owner Owner, held bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Owner{}, false, wrap(err, "read lock", path)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	switch {
	case err == nil:
		return readOwner(f), false, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return readOwner(f), true, nil
	default:
		return Owner{}, false, wrap(err, "read lock", path)
	}
}

// Release gives the lock up. The file stays: removing it would let two processes
// hold locks on two files of one name.
//
// It unlocks before it closes: a child between its fork and its exec has the
// descriptor too, and would hold the lock a moment longer.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	var err error
	if l.named {
		err = l.f.Truncate(0)
	}
	return errors.Join(err, unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
}

func writeOwner(f *os.File, o Owner) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt(append(b, '\n'), 0); err != nil {
		return err
	}
	return f.Sync()
}

// readOwner returns the zero Owner for a text it cannot read: the text is a
// courtesy and may be caught half written.
func readOwner(f *os.File) Owner {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil {
		return Owner{}
	}
	var o Owner
	if err := json.Unmarshal(b, &o); err != nil {
		return Owner{}
	}
	return o
}
