package link

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
)

// clientConn is one connection of a Client.
type clientConn struct {
	p    *pipe
	core Core

	sending sync.Mutex // held from taking an id until its frame is written: ids rise on the wire
	mu      sync.Mutex // guards what follows; never held while writing
	last    uint64
	open    map[uint64]*waiter
	ended   bool // nothing can be sent any more
}

// waiter is an operation without an answer.
type waiter struct {
	answer chan outcome // receives once
	events chan []byte  // of a subscription
	seq    uint64       // of its last event
}

// outcome is what became of a request.
type outcome struct {
	state state
	body  []byte
	err   error // the core's, or why there is no answer
}

type state uint8

const (
	answered state = iota + 1 // by the core, with body or err
	notSent                   // the frame was not handed over
	lost                      // handed over, and the connection ended
	late                      // handed over, and the time is over
)

// unsent is the fault for a request that no core has seen.
func (o outcome) unsent(r Request) error {
	if isFault(o.err) {
		return o.err
	}
	return fault.Wrap(o.err, fault.Unavailable, "call core", r.Method).Retryable()
}

// unknown is the fault for a request of which it is not known what came.
func (o outcome) unknown(r Request) error {
	e := fault.New(fault.Unknown, "call core", r.Method, "request %s was handed over and has no answer", r.RequestID)
	e.Err = o.err
	return e.WithNext("see what was recorded for request %s before you ask again", r.RequestID)
}

func newClientConn(p *pipe, core Core) *clientConn {
	return &clientConn{p: p, core: core, open: map[uint64]*waiter{}}
}

func (c *clientConn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended
}

// close ends the connection from this side; read sees it.
func (c *clientConn) close() { _ = c.p.conn.Close() }

// send hands one operation over. The error is of the frame, a fault, or means that
// the connection cannot be used.
func (c *clientConn) send(f *frame, w *waiter) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return errGone
	}
	c.last++
	f.id = c.last
	c.open[f.id] = w
	c.mu.Unlock()
	err := c.p.write(f)
	if err == nil {
		return nil
	}
	c.forget(f.id)
	if !isFault(err) {
		c.close()
	}
	return err
}

func (c *clientConn) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, id)
}

// exchange sends r and waits for what becomes of it. limit is ctx with the request's
// deadline.
func (c *clientConn) exchange(ctx, limit context.Context, r Request) outcome {
	f := &frame{kind: request, method: r.Method, requestID: r.RequestID, replay: r.Replay, body: r.Body}
	if at, ok := limit.Deadline(); ok {
		f.timeout = uint64(max(1, time.Until(at).Milliseconds()))
	}
	w := &waiter{answer: make(chan outcome, 1)}
	if err := c.send(f, w); err != nil {
		if isFault(err) {
			return outcome{state: answered, err: err}
		}
		return outcome{state: notSent, err: err}
	}
	select {
	case o := <-w.answer:
		return o
	case <-limit.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		if o, ok := c.cancelled(limit, f.id, w); ok {
			return o
		}
	}
	select {
	case o := <-w.answer:
		return o
	default:
	}
	c.forget(f.id)
	return outcome{state: late, err: context.Cause(limit)}
}

// cancelled tells the core that the caller has cancelled, and waits for the outcome
// until the request's deadline, which the cancel has not moved.
func (c *clientConn) cancelled(limit context.Context, id uint64, w *waiter) (outcome, bool) {
	go func() { _ = c.p.write(&frame{kind: cancel, id: id}) }() // when it cannot be written, read ends the wait
	wait := outcomeWait
	if at, ok := limit.Deadline(); ok {
		wait = time.Until(at)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case o := <-w.answer:
		return o, true
	case <-t.C:
		return outcome{}, false
	}
}

// read owns the reading side until the connection ends.
func (c *clientConn) read() {
	for {
		f, err := c.p.read(MaxFrame)
		if err == nil {
			err = c.take(&f)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// errEnd is the core's announcement that what it has not answered has not begun.
type errEnd struct{ err error }

func (e errEnd) Error() string { return e.err.Error() }
func (e errEnd) Unwrap() error { return e.err }

// take gives a frame to whom it concerns. An error ends the connection.
func (c *clientConn) take(f *frame) error {
	switch f.kind {
	case response:
		c.settle(f.id, outcome{state: answered, body: f.body})
	case failure:
		switch {
		case f.id != 0:
			c.settle(f.id, outcome{state: answered, err: f.fault.err()})
		case f.fault.reason == Closing:
			return errEnd{f.fault.err()}
		default:
			return f.fault.err()
		}
	case event:
		return c.event(f)
	case unsubscribeAck:
		c.settle(f.id, outcome{state: answered})
	case subscribeAck:
	default:
		return fault.New(fault.InvalidRequest, "read frame", f.kind.String(), "a core does not send it after the handshake")
	}
	return nil
}

// settle answers an operation. One that is not waited for any more is let go.
func (c *clientConn) settle(id uint64, o outcome) {
	c.mu.Lock()
	w := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	if w != nil {
		w.answer <- o
	}
}

func (c *clientConn) event(f *frame) error {
	c.mu.Lock()
	w := c.open[f.id]
	if w == nil || w.events == nil {
		c.mu.Unlock()
		return nil // it has been left
	}
	w.seq++
	if f.seq != w.seq {
		c.mu.Unlock()
		return fault.New(fault.InvalidRequest, "read event", "", "number %d where %d is due", f.seq, w.seq)
	}
	select {
	case w.events <- f.body:
		c.mu.Unlock()
		return nil
	default:
	}
	delete(c.open, f.id)
	c.mu.Unlock()
	w.answer <- outcome{state: answered, err: refused(
		fault.New(fault.LimitExceeded, "subscribe", "", "events come faster than they are taken").Retryable(), SlowReader)}
	go c.leave(f.id)
	return nil
}

func (c *clientConn) leave(id uint64) { _ = c.p.write(&frame{kind: unsubscribe, id: id}) }

// end settles everything that is open when the connection is over.
func (c *clientConn) end(err error) {
	c.mu.Lock()
	c.ended = true
	all := c.open
	c.open = map[uint64]*waiter{}
	c.mu.Unlock()
	c.close()
	o := outcome{state: lost, err: err}
	var announced errEnd
	if errors.As(err, &announced) {
		o = outcome{state: answered, err: announced.err}
	} else if errors.Is(err, io.EOF) {
		o.err = errGone
	}
	for _, w := range all {
		w.answer <- o
	}
}
