package host

import (
	"io"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// printer is a Worker that can be read while it prints, as supervise.Process can.
type printer interface {
	Printed(execution string, offset int64, b []byte) (n int, at, total int64, err error)
}

// liveOutput reads what a running cell has printed so far. It reports false when
// only what came live is known, which is all as long as there is little.
func (l *lane) liveOutput(t *cellTask, offset int64) (control.OutputRange, bool, error) {
	l.mu.Lock()
	p, ok := l.worker.(printer)
	execution := t.execution
	l.mu.Unlock()
	if !ok || execution == "" || offset < 0 {
		return control.OutputRange{}, false, nil
	}
	first := make([]byte, liveChunk)
	n, at, total, err := p.Printed(execution, offset, first)
	if fault.HasCode(err, fault.NotFound) {
		return control.OutputRange{}, false, nil
	}
	if err != nil {
		return control.OutputRange{}, false, err
	}
	body := &liveReader{from: p, execution: execution, at: at + int64(n), end: total, left: first[:n]}
	return control.OutputRange{Offset: at, Total: max(total, offset), Body: io.NopCloser(body)}, true, nil
}

const liveChunk = 64 << 10

// liveReader reads on to where the output ended when it was asked for. It ends
// early where bytes have been overwritten since: the next call says where to go on.
type liveReader struct {
	from      printer
	execution string
	at, end   int64
	left      []byte
	buffer    [liveChunk]byte
}

func (r *liveReader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		if r.at >= r.end {
			return 0, io.EOF
		}
		n, at, _, err := r.from.Printed(r.execution, r.at, r.buffer[:min(liveChunk, r.end-r.at)])
		switch {
		case fault.HasCode(err, fault.NotFound): // the cell has ended
			return 0, io.EOF
		case err != nil:
			return 0, err
		case n == 0 || at != r.at:
			return 0, io.EOF
		}
		r.at, r.left = r.at+int64(n), r.buffer[:n]
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}
