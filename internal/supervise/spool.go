package supervise

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/reeve-run/reeve/fault"
)

// The spool file that a worker writes beside its record of a long output
// (CP-141): a header, the head of the output, then a ring of its newest bytes. It
// is readable whatever became of its writer.
const (
	spoolMagic  = "RVSPOOL1"
	spoolHeader = 16
	spoolHead   = 8 << 20
	spoolRing   = 8 << 20

	// spoolFrom is the size of output from which a worker spools.
	spoolFrom = 32_768
)

const spoolPrefix = "spool-"

func spoolPath(dir, execution string) string {
	return filepath.Join(dir, spoolPrefix+execution)
}

// openSpool opens the spool of an execution and takes it out of the directory: one
// reader is all it has. Nil without an error means that there is none.
func openSpool(dir, execution string) (*Spool, error) {
	path := spoolPath(dir, execution)
	// The worker could put anything at this path; only a plain file is opened.
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, fault.New(fault.Internal, "read spool", execution, "not a plain file")
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "read spool", execution)
	}
	s, err := readSpool(f, execution)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := os.Remove(path); err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Internal, "read spool", execution), f.Close())
	}
	return s, nil
}

// readSpool takes ownership of f when it succeeds.
func readSpool(f *os.File, execution string) (*Spool, error) {
	var header [spoolHeader]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "read spool", execution)
	}
	if string(header[:8]) != spoolMagic {
		return nil, fault.New(fault.Internal, "read spool", execution, "header is not %s", spoolMagic)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "read spool", execution)
	}
	claimed := binary.BigEndian.Uint64(header[8:])
	total := int64(claimed)
	if total < 0 || min(total, spoolHead+spoolRing) > info.Size()-spoolHeader {
		return nil, fault.New(fault.Internal, "read spool", execution,
			"header counts %d bytes, the file holds %d", claimed, info.Size()-spoolHeader)
	}
	s := &Spool{Total: total, DropFrom: total, DropTo: total}
	parts := []io.Reader{io.NewSectionReader(f, spoolHeader, min(total, spoolHead))}
	switch beyond := total - spoolHead; {
	case beyond <= 0:
	case beyond <= spoolRing:
		parts = append(parts, io.NewSectionReader(f, spoolHeader+spoolHead, beyond))
	default:
		s.DropFrom, s.DropTo = spoolHead, total-spoolRing
		at := beyond % spoolRing
		parts = append(parts,
			io.NewSectionReader(f, spoolHeader+spoolHead+at, spoolRing-at),
			io.NewSectionReader(f, spoolHeader+spoolHead, at))
	}
	s.Body = spoolBody{io.MultiReader(parts...), f}
	return s, nil
}

type spoolBody struct {
	io.Reader
	io.Closer
}
