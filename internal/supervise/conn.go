package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/wire"
)

const (
	headerBytes = 4

	// readBuffer holds a usual frame with its header; bigger ones get a buffer of
	// their own that is not kept.
	readBuffer = 16 << 10
)

// conn frames one stream socket. Reading belongs to one goroutine; writing to
// whoever holds the token in writing.
type conn struct {
	net        *net.UnixConn
	session    string
	generation string
	body       time.Duration // rest of a frame whose header was read (CP-135)

	buf        []byte // read but not consumed: buf[start:end]
	start, end int

	writing chan struct{} // holds one token; a channel so that waiting for it can end early
	out     []byte        // of the holder of the token
}

func newConn(c *net.UnixConn, session, generation string, body time.Duration) *conn {
	k := &conn{
		net: c, session: session, generation: generation, body: body,
		buf: make([]byte, readBuffer), writing: make(chan struct{}, 1),
	}
	k.writing <- struct{}{}
	return k
}

// read returns the next message of this connection's session and generation. Any
// error ends the connection (CP-008): io.EOF between frames, else a fault.
func (k *conn) read() (wire.Message, error) {
	payload, err := k.frame()
	if err != nil {
		return nil, err
	}
	e, err := wire.Decode(payload)
	if err != nil {
		return nil, err
	}
	if err := wire.Check(e, k.session, k.generation); err != nil {
		return nil, err
	}
	return e.Message, nil
}

// frame returns the payload of the next frame, valid until the next call.
func (k *conn) frame() ([]byte, error) {
	if err := k.fill(headerBytes, false); err != nil {
		return nil, err
	}
	n, err := wire.Length([headerBytes]byte(k.buf[k.start:]))
	if err != nil {
		return nil, err
	}
	k.start += headerBytes
	if k.end-k.start >= n {
		payload := k.buf[k.start : k.start+n]
		k.start += n
		return payload, nil
	}
	if err := k.net.SetReadDeadline(time.Now().Add(k.body)); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read frame", "")
	}
	payload, err := k.rest(n)
	if err != nil {
		return nil, err
	}
	if err := k.net.SetReadDeadline(time.Time{}); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read frame", "")
	}
	return payload, nil
}

// rest reads a body that has not wholly arrived.
func (k *conn) rest(n int) ([]byte, error) {
	if n <= len(k.buf) {
		if err := k.fill(n, true); err != nil {
			return nil, err
		}
		payload := k.buf[k.start : k.start+n]
		k.start += n
		return payload, nil
	}
	big := make([]byte, n)
	have := copy(big, k.buf[k.start:k.end])
	k.start, k.end = 0, 0
	if _, err := io.ReadFull(k.net, big[have:]); err != nil {
		return nil, bodyFault(err, n)
	}
	return big, nil
}

// fill reads until n bytes are there, n at most the buffer's size.
func (k *conn) fill(n int, body bool) error {
	if k.start == k.end {
		k.start, k.end = 0, 0
	}
	if len(k.buf)-k.start < n {
		k.end = copy(k.buf, k.buf[k.start:k.end])
		k.start = 0
	}
	for k.end-k.start < n {
		m, err := k.net.Read(k.buf[k.end:])
		k.end += m
		if err == nil || k.end-k.start >= n {
			continue
		}
		if body || k.end > k.start {
			return bodyFault(err, n)
		}
		return err
	}
	return nil
}

// bodyFault says why a frame that had begun did not come whole.
func bodyFault(err error, n int) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return fault.New(fault.Timeout, "read frame", "", "the rest of a frame of %d bytes did not come in time", n)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New(fault.InvalidRequest, "read frame", "", "the stream ended within a frame")
	default:
		return fault.Wrap(err, fault.Unavailable, "read frame", "")
	}
}

// errBusyWriter is lock's when the worker has not read what was written before.
var errBusyWriter = errors.New("an earlier frame is still being written")

// lock takes the writing token; unlock gives it back.
func (k *conn) lock(ctx context.Context) error {
	select {
	case <-k.writing:
		return nil
	default:
	}
	select {
	case <-k.writing:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errBusyWriter, context.Cause(ctx))
	}
}

func (k *conn) unlock() {
	if cap(k.out) > 4*readBuffer {
		k.out = nil
	}
	k.writing <- struct{}{}
}

// encode puts one frame into the buffer of the token's holder. Nothing is sent.
func (k *conn) encode(m wire.Message) error {
	out, err := wire.Append(k.out[:0], wire.Envelope{SessionID: k.session, Generation: k.generation, Message: m})
	if err != nil {
		return err
	}
	k.out = out
	return nil
}

// flush writes the encoded frame. After an error the stream may hold a part of it
// and the connection is of no more use.
func (k *conn) flush() error {
	_, err := k.net.Write(k.out)
	return err
}

// send is lock, encode, flush, unlock, the write bounded by limit when it is over
// zero. broken says that the connection is of no more use.
func (k *conn) send(ctx context.Context, m wire.Message, limit time.Duration) (broken bool, err error) {
	if err := k.lock(ctx); err != nil {
		return false, err
	}
	defer k.unlock()
	if err := k.encode(m); err != nil {
		return false, err
	}
	if limit > 0 {
		if err := k.net.SetWriteDeadline(time.Now().Add(limit)); err != nil {
			return true, err
		}
		defer func() { _ = k.net.SetWriteDeadline(time.Time{}) }()
	}
	if err := k.flush(); err != nil {
		return true, err
	}
	return false, nil
}
