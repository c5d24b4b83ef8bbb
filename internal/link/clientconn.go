package link

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
)

// clientConn is one connection of a Client.
// Whoever waits on it reads for all: there is no goroutine between a frame and the
// caller that it is for. While nobody waits nobody reads, and that the core has gone
// is seen by the next write.
type clientConn struct {
	p    *pipe
	core Core

	turn chan struct{} // holds a token while nobody reads

	sending sync.Mutex // held from taking an id until its frame is written: ids rise on the wire
	mu      sync.Mutex // guards what follows; never held while writing
	last    uint64
	open    map[uint64]*waiter
	shut    bool // nothing can be sent any more; answers that are on their way still count
	ended   bool // nothing can be read either
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
	c := &clientConn{p: p, core: core, turn: make(chan struct{}, 1), open: map[uint64]*waiter{}}
	c.turn <- struct{}{}
	return c
}

func (c *clientConn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.shut && !c.ended
}

func (c *clientConn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// close ends the connection from this side; whoever reads sees it.
func (c *clientConn) close() { _ = c.p.conn.Close() }

// send hands one operation over. The error is of the frame, a fault, or means that
// the connection cannot be used.
func (c *clientConn) send(f *frame, w *waiter) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	if c.shut || c.ended {
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
	c.mu.Lock()
	c.shut = c.shut || !isFault(err)
	c.mu.Unlock()
	c.remove(f.id)
	return err
}

// remove takes an operation out. The last one closes a connection that is shut.
func (c *clientConn) remove(id uint64) *waiter {
	c.mu.Lock()
	w := c.open[id]
	delete(c.open, id)
	done := c.shut && len(c.open) == 0
	c.mu.Unlock()
	if done {
		c.close()
	}
	return w
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
	if o, ok := c.await(limit, w); ok {
		return o
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		if o, ok := c.cancelled(limit, f.id, w); ok {
			return o
		}
	}
	select {
	case o := <-w.answer: // at the last moment
		return o
	default:
	}
	// The exchange goes on: an answer that nobody read would stop the core's writing.
	go c.await(context.WithoutCancel(limit), w)
	return outcome{state: late, err: context.Cause(limit)}
}

// cancelled tells the core that the caller has cancelled, and waits for the outcome
// until the request's deadline, which the cancel has not moved.
func (c *clientConn) cancelled(limit context.Context, id uint64, w *waiter) (outcome, bool) {
	go func() { _ = c.p.write(&frame{kind: cancel, id: id}) }() // when it cannot be written, the wait sees why
	wait := outcomeWait
	if at, ok := limit.Deadline(); ok {
		wait = time.Until(at)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(limit), wait)
	defer stop()
	return c.await(ctx, w)
}

// await waits for the answer to w until ctx ends, and reads while nobody else does.
func (c *clientConn) await(ctx context.Context, w *waiter) (outcome, bool) {
	for {
		select {
		case o := <-w.answer:
			return o, true
		default:
		}
		select {
		case o := <-w.answer:
			return o, true
		case <-ctx.Done():
			return outcome{}, false
		case <-c.turn:
			c.read(ctx, w)
			c.turn <- struct{}{}
			if c.over() && len(w.answer) == 0 {
				return outcome{state: lost, err: errGone}, true // w waits for nothing of the core's
			}
		}
	}
}

// read reads until there is an answer for w, ctx ends or the connection does. It is
// called with the turn.
func (c *clientConn) read(ctx context.Context, w *waiter) {
	woken := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		_ = c.p.conn.SetReadDeadline(time.Unix(1, 0)) // long past; a connection that takes none has ended
		close(woken)
	})
	for len(w.answer) == 0 {
		f, err := c.p.read(MaxFrame)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err == nil {
			err = c.take(&f)
		}
		if err != nil {
			c.end(err)
			break
		}
	}
	if !unhook() {
		<-woken
		_ = c.p.conn.SetReadDeadline(time.Time{})
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
	if w := c.remove(id); w != nil {
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
	c.mu.Unlock()
	c.abandon(f.id)
	w.answer <- outcome{state: answered, err: refused(
		fault.New(fault.LimitExceeded, "subscribe", "", "events come faster than they are taken").Retryable(), SlowReader)}
	return nil
}

// abandon ends a subscription from this side. Until the core has heard of it, what it
// still sends is read and dropped.
func (c *clientConn) abandon(id uint64) {
	rest := &waiter{answer: make(chan outcome, 1)}
	c.mu.Lock()
	_, open := c.open[id]
	if open {
		c.open[id] = rest
	}
	c.mu.Unlock()
	if !open {
		return
	}
	go func() {
		_ = c.p.write(&frame{kind: unsubscribe, id: id}) // when it cannot be written, the wait ends too
		c.await(context.Background(), rest)
	}()
}

// end settles everything that is open when the connection is over.
func (c *clientConn) end(err error) {
	c.close()
	o := outcome{state: lost, err: err}
	var announced errEnd
	if errors.As(err, &announced) {
		o = outcome{state: answered, err: announced.err}
	} else if errors.Is(err, io.EOF) {
		o.err = errGone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for id, w := range c.open {
		delete(c.open, id)
		w.answer <- o // there is room: it is its only one
	}
}
