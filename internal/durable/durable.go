// Package durable is file operations that are still true after a power loss, and
// the exclusive lock of a data directory.
//
// Invariants: when a function here returns nil, both the bytes and the directory
// entry have been synced; a file written here is either wholly old or wholly new;
// an error leaves no temporary file behind. The package knows nothing of what the
// files hold.
package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/reeve-run/reeve/fault"
)

// WriteFile replaces path by data with the permissions perm (umask is not applied).
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	_, err := WriteFrom(path, bytes.NewReader(data), perm)
	return err
}

// WriteFrom replaces path by what r holds and returns the number of bytes. The
// bytes go to a temporary file in the same directory, which is synced and renamed.
func WriteFrom(path string, r io.Reader, perm fs.FileMode) (int64, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return 0, wrap(err, "write file", path)
	}
	n, err := fill(f, r, perm)
	if err == nil {
		err = Rename(f.Name(), path)
	}
	if err != nil {
		return n, wrap(errors.Join(err, remove(f.Name())), "write file", path)
	}
	return n, nil
}

func fill(f *os.File, r io.Reader, perm fs.FileMode) (int64, error) {
	n, err := io.Copy(f, r)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	return n, errors.Join(err, f.Close())
}

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Rename moves a file and syncs the directories of both names.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return wrap(err, "rename", from)
	}
	if err := SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return SyncDir(filepath.Dir(from))
}

// Remove deletes a file and syncs its directory. A file that is not there is no
// error.
func Remove(path string) error {
	if err := remove(path); err != nil {
		return wrap(err, "remove", path)
	}
	return SyncDir(filepath.Dir(path))
}

// MkdirAll makes path and its missing parents with the permissions perm, and syncs
// the directory above each one it made.
func MkdirAll(path string, perm fs.FileMode) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fault.New(fault.InvalidRequest, "make directory", path, "a file is in the way").
			WithNext("remove or rename %s", path)
	case !errors.Is(err, fs.ErrNotExist):
		return wrap(err, "make directory", path)
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return wrap(err, "make directory", path)
	}
	return SyncDir(parent)
}

// SyncDir makes the entries of a directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return wrap(err, "sync directory", path)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return wrap(err, "sync directory", path)
	}
	return nil
}

// SyncFile makes the bytes of a file that somebody else wrote durable.
func SyncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return wrap(err, "sync file", path)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return wrap(err, "sync file", path)
	}
	return nil
}

// wrap gives err the code that fits it, once.
func wrap(err error, op, subject string) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case IsFull(err):
		return fault.Wrap(err, fault.StoreFull, op, subject).WithNext("free space on the disk that holds %s", filepath.Dir(subject)).Retryable()
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.NotFound, op, subject)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(err, fault.Denied, op, subject)
	default:
		return fault.Wrap(err, fault.Unavailable, op, subject)
	}
}
