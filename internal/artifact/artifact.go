// Package artifact keeps content by its SHA-256 in files: long code, spooled
// output, pictures.
//
// Invariants: an artifact that Put has returned is on the disk, so an event may
// name it; the same content is kept once; what a reader gives out has been checked
// against its name first, so altered bytes are an error and never content. The
// package does not know what refers to an artifact, and removes none.
package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
)

// Store is a directory of artifacts, "<2 hex>/<62 hex>". Its methods may be called
// from any goroutine.
type Store struct {
	dir string
}

// Ref names an artifact.
type Ref struct {
	SHA256 string // 64 lower-case hex digits
	Size   int64  // bytes
}

// Open returns the store in dir, which is made when it does not exist (0700), and
// clears away what a writer left that died.
func Open(dir string) (*Store, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	left, err := filepath.Glob(filepath.Join(dir, incoming+"*"))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "open artifacts", dir)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "open artifacts", dir)
		}
	}
	return &Store{dir: dir}, nil
}

// In is the store in dir for reading only: nothing in it is made or cleared away.
func In(dir string) *Store { return &Store{dir: dir} }

// incoming begins the names of files that are being written.
const incoming = ".incoming-"

// Put keeps what r holds and returns its name when it is on the disk.
func (s *Store) Put(r io.Reader) (Ref, error) {
	f, err := os.CreateTemp(s.dir, incoming)
	if err != nil {
		return Ref{}, fault.Wrap(err, fault.Unavailable, "keep artifact", s.dir)
	}
	ref, err := s.receive(f, r)
	if err != nil {
		if gone := os.Remove(f.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		code := fault.Unavailable
		if durable.IsFull(err) {
			code = fault.StoreFull
		}
		return Ref{}, fault.Wrap(err, code, "keep artifact", s.dir)
	}
	return ref, nil
}

// PutBytes keeps b.
func (s *Store) PutBytes(b []byte) (Ref, error) {
	ref := Ref{SHA256: Sum(b), Size: int64(len(b))}
	if s.has(ref) {
		return ref, nil
	}
	return s.Put(bytes.NewReader(b))
}

// Sum is the name of the content b.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *Store) receive(f *os.File, r io.Reader) (Ref, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), r)
	if err != nil {
		return Ref{}, errors.Join(err, f.Close())
	}
	ref := Ref{SHA256: hex.EncodeToString(h.Sum(nil)), Size: n}
	if s.has(ref) {
		return ref, errors.Join(f.Close(), os.Remove(f.Name()))
	}
	err = f.Chmod(0o400)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return Ref{}, err
	}
	path := s.path(ref.SHA256)
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Ref{}, err
	}
	return ref, durable.Rename(f.Name(), path)
}

// has reports whether the content is kept whole. It reads the file: one that was
// damaged is written anew.
func (s *Store) has(ref Ref) bool {
	r, err := s.Open(ref.SHA256)
	if err != nil {
		return false
	}
	return r.Close() == nil && r.Size == ref.Size
}

func (s *Store) path(sum string) string { return filepath.Join(s.dir, sum[:2], sum[2:]) }

// Reader gives out an artifact that has been checked whole.
type Reader struct {
	*os.File
	Size int64
}

// Open checks the artifact against its name and returns a reader at its start.
// Errors: not_found, altered, invalid_request for what is no name.
func (s *Store) Open(sum string) (*Reader, error) {
	if !valid(sum) {
		return nil, fault.New(fault.InvalidRequest, "open artifact", sum, "a name is 64 lower-case hex digits")
	}
	f, err := os.Open(s.path(sum))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "open artifact", sum, "there is none of this name")
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "open artifact", sum)
	}
	n, err := check(f, sum)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Reader{File: f, Size: n}, nil
}

func check(f *os.File, sum string) (int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return 0, fault.Wrap(err, fault.Unavailable, "open artifact", sum)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return 0, fault.New(fault.Altered, "open artifact", sum, "its %d bytes have the digest %s", n, got).
			WithNext("restore %s from a backup", f.Name())
	}
	return n, nil
}

// ReadAll returns an artifact of at most max bytes, checked.
func (s *Store) ReadAll(sum string, max int64) ([]byte, error) {
	r, err := s.Open(sum)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size > max {
		return nil, fault.New(fault.LimitExceeded, "read artifact", sum, "it has %d bytes, more than %d", r.Size, max)
	}
	b := make([]byte, r.Size)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read artifact", sum)
	}
	return b, nil
}

func valid(sum string) bool {
	if len(sum) != 64 {
		return false
	}
	for _, c := range sum {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Usage is how many artifacts there are and their bytes.
func (s *Store) Usage() (count, size int64, err error) {
	err = filepath.WalkDir(s.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // renamed while we looked
			return nil
		}
		if err != nil {
			return err
		}
		count++
		size += info.Size()
		return nil
	})
	if err != nil {
		return 0, 0, fault.Wrap(err, fault.Unavailable, "measure artifacts", s.dir)
	}
	return count, size, nil
}
