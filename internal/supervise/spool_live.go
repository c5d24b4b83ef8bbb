package supervise

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/fault"
)

// spoolMargin is how far a worker may have written over the ring before its header
// counts it: more than it appends at once unless a cell prints megabytes in one
// call.
const spoolMargin = 1 << 20

// Printed reads what a running execution has spooled so far: at most len(b) bytes
// from offset on, or from at when those at offset have been overwritten meanwhile.
// total is how many bytes it has printed. An execution that has no spool yet is
// not_found. What is read while a cell prints megabytes in one call may be torn;
// the spool that its end hands over is exact.
func (p *Process) Printed(execution string, offset int64, b []byte) (n int, at, total int64, err error) {
	// Not through a link: the worker could put anything at this path.
	f, err := os.OpenFile(spoolPath(p.dir, execution), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, offset, 0, fault.New(fault.NotFound, "read spool", execution, "there is none yet")
	case err != nil:
		return 0, offset, 0, fault.Wrap(err, fault.Internal, "read spool", execution)
	}
	defer f.Close()
	n, at, total, err = readLive(f, offset, b)
	if err != nil {
		err = fault.Wrap(err, fault.Internal, "read spool", execution)
	}
	return n, at, total, err
}

func readLive(f io.ReaderAt, offset int64, b []byte) (n int, at, total int64, err error) {
	if total, err = spoolTotal(f); err != nil {
		return 0, offset, 0, err
	}
	at = offset
	if at >= spoolHead {
		at = max(at, total-spoolRing+spoolMargin)
	}
	var end int64
	place := spoolHeader + at
	if at < spoolHead {
		end = min(total, spoolHead)
	} else {
		turn := (at - spoolHead) % spoolRing
		end, place = min(total, at+spoolRing-turn), spoolHeader+spoolHead+turn
	}
	if at >= end {
		return 0, at, total, nil
	}
	n, err = f.ReadAt(b[:min(int64(len(b)), end-at)], place)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, at, total, err
	}
	if at < spoolHead {
		return n, at, total, nil
	}
	// The worker may have gone on: what it may have written over is left out.
	if total, err = spoolTotal(f); err != nil {
		return 0, at, total, err
	}
	if lost := int(max(0, min(int64(n), total-spoolRing+spoolMargin-at))); lost > 0 {
		n = copy(b, b[lost:n])
		at += int64(lost)
	}
	return n, at, total, nil
}

func spoolTotal(f io.ReaderAt) (int64, error) {
	var header [spoolHeader]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return 0, err
	}
	total := int64(binary.BigEndian.Uint64(header[8:]))
	if string(header[:8]) != spoolMagic || total < 0 {
		return 0, errors.New("the header is not one of a spool")
	}
	return total, nil
}
