package link

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
)

// stuck is how long a peer may leave a frame unread before the connection is cut.
const stuck = 30 * time.Second

// pipe is a connection as frames. Reading belongs to one goroutine at a time;
// writing is for everybody.
type pipe struct {
	conn net.Conn

	// What of a frame has been read so far belongs to whoever reads.
	in     *bufio.Reader
	header [headerSize]byte
	headed int
	text   []byte

	writing sync.Mutex // held for one frame; guards what follows
	buf     []byte
	until   time.Time // write deadline of conn
	broken  bool      // a frame was cut off: nothing can follow
}

func newPipe(conn net.Conn) *pipe {
	return &pipe{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
}

// read returns the next frame. The error is io.EOF at an end between frames, and
// fault.InvalidRequest or fault.LimitExceeded for what is no frame. After a read
// deadline it goes on where it was.
func (p *pipe) read(limit int) (frame, error) {
	for p.headed < headerSize {
		n, err := p.in.Read(p.header[p.headed:])
		p.headed += n
		if err != nil {
			if p.headed > 0 {
				err = cutOff(err)
			}
			return frame{}, err
		}
	}
	want := int(binary.BigEndian.Uint32(p.header[:]))
	if want > limit {
		return frame{}, fault.New(fault.LimitExceeded, "read frame", "", "%d bytes are over the limit of %d", want, limit)
	}
	for len(p.text) < want {
		// Memory is taken as bytes come, not as a header promises them.
		if len(p.text) == cap(p.text) {
			p.text = slices.Grow(p.text, min(want-len(p.text), max(len(p.text), 64<<10)))
		}
		n, err := p.in.Read(p.text[len(p.text):min(cap(p.text), want)])
		p.text = p.text[:len(p.text)+n]
		if err != nil {
			return frame{}, cutOff(err)
		}
	}
	text := p.text
	p.headed, p.text = 0, nil // the text is the frame's from here on
	return decodeFrame(text)
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errBroken is a write after a frame that was cut off.
var errBroken = errors.New("an earlier frame was cut off")

// write writes f whole. When the error is a fault, f is at fault and the connection
// is as before; any other error means that f has not been handed over and nothing
// can follow it.
func (p *pipe) write(f *frame) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.broken {
		return errBroken
	}
	b, err := appendFrame(p.buf[:0], f)
	if err != nil {
		return err
	}
	if cap(b) <= 64<<10 {
		p.buf = b
	}
	// The deadline is moved now and then, not for each frame: a frame has between
	// half of stuck and all of it.
	if now := time.Now(); p.until.Before(now.Add(stuck / 2)) {
		p.until = now.Add(stuck)
		if err := p.conn.SetWriteDeadline(p.until); err != nil {
			p.broken = true
			return err
		}
	}
	if _, err := p.conn.Write(b); err != nil {
		p.broken = true
		return err
	}
	return nil
}

// refuse writes an error without an id. That it cannot be written changes nothing:
// the connection ends either way.
func (p *pipe) refuse(err error, reason Reason) {
	r := refusalOf(err)
	if reason != "" {
		r.reason = reason
	}
	_ = p.write(&frame{kind: failure, fault: r})
}

// refusalOf is err as it travels. A message of unbounded length is cut.
func refusalOf(err error) *refusal {
	const most = 16 << 10
	r := &refusal{code: fault.CodeOf(err), message: err.Error()}
	if len(r.message) > most {
		r.message = r.message[:most] + " …"
	}
	var e *fault.Error
	if errors.As(err, &e) {
		r.next, r.retryable = e.Next, e.Retry
	}
	var why *Refused
	if errors.As(err, &why) {
		r.reason = why.Reason
	}
	return r
}

// err is the error that r describes. A code this build does not know counts as
// internal and stays in the text.
func (r *refusal) err() error {
	e := &fault.Error{Code: r.code, Message: r.message, Next: r.next, Retry: r.retryable}
	if !r.code.Known() {
		e.Code, e.Message = fault.Internal, string(r.code)+": "+r.message
	}
	if r.reason != "" {
		return refused(e, r.reason)
	}
	return e
}

// Refused adds a Reason to an error. It is found by errors.As.
type Refused struct {
	Reason Reason
	Err    error
}

func refused(err error, why Reason) *Refused { return &Refused{why, err} }

func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap returns the error that has the reason.
func (r *Refused) Unwrap() error { return r.Err }

// ReasonOf is the reason in err's chain, or none.
func ReasonOf(err error) Reason {
	var r *Refused
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}
