package link

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
)

// serverConn is one client after its handshake.
type serverConn struct {
	s      *Server
	p      *pipe
	peer   Peer
	ctx    context.Context // of all its calls; ends when the client has gone
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup
	ended  chan struct{} // closed when nothing is read any more

	mu       sync.Mutex // guards what follows; never held while writing
	open     map[uint64]*call
	last     uint64 // highest id so far
	stopping bool   // new calls are refused
	over     bool   // the connection has been given its last frame, or has none
}

// call is an open operation.
type call struct {
	cancel     context.CancelFunc
	subscribed bool
	left       bool // unsubscribed by the client
	answered   bool // given up on: what it answers is dropped
}

// next reads frames until one needs work, hands reading to a new goroutine, and does
// the work itself: the shortest way from a frame to its handler.
func (c *serverConn) next() {
	for {
		f, err := c.p.read(MaxFrame)
		if err != nil {
			c.readFailed(err)
			return
		}
		switch f.kind {
		case request, subscribe:
			ctx, open, err := c.begin(&f)
			if err != nil {
				c.end(err)
				return
			}
			if open == nil {
				continue
			}
			c.calls.Go(c.next)
			if f.kind == request {
				c.answer(ctx, open, &f)
			} else {
				c.emit(ctx, open, &f)
			}
			return
		case cancel, unsubscribe:
			c.quit(&f)
		default:
			c.end(refused(fault.New(fault.InvalidRequest, "read frame", f.kind.String(), "a client does not send it after the handshake"), Violation))
			return
		}
	}
}

func (c *serverConn) readFailed(err error) {
	switch {
	case isFault(err):
		c.end(refused(err, Violation))
	default:
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
			c.s.o.Log.Debug("connection lost", "client", c.peer.Client, "cause", err)
		}
		c.end(nil)
	}
}

// end ends the connection: no call of it goes on for anybody. err, when there is
// one, is the client's fault and is told.
func (c *serverConn) end(err error) {
	c.mu.Lock()
	told := c.over
	c.over = true
	c.mu.Unlock()
	if err != nil && !told {
		c.s.o.Log.Warn("connection ended", "client", c.peer.Client, "cause", err)
		c.p.refuse(err, "")
	}
	c.cancel(errGone)
	close(c.ended)
}

// begin admits an operation. It returns nil without an error when the operation was
// refused, and an error when the connection cannot go on.
func (c *serverConn) begin(f *frame) (context.Context, *call, error) {
	c.mu.Lock()
	switch {
	case f.id <= c.last:
		c.mu.Unlock()
		return nil, nil, refused(fault.New(fault.InvalidRequest, "read frame", f.kind.String(), "id %d is not above the last one, %d", f.id, c.last), Violation)
	case c.stopping:
		c.last = f.id
		c.mu.Unlock()
		c.fail(f.id, refused(fault.New(fault.Unavailable, "answer", f.method, "the core is stopping; nothing was done").Retryable(), Closing))
		return nil, nil, nil
	case len(c.open) >= maxOpen:
		c.last = f.id
		c.mu.Unlock()
		c.fail(f.id, refused(fault.New(fault.RequestLimit, "answer", f.method, "%d operations are open; nothing was done", maxOpen).Retryable(), Crowded))
		return nil, nil, nil
	}
	c.last = f.id
	ctx, stop := c.bound(f)
	open := &call{cancel: stop, subscribed: f.kind == subscribe}
	c.open[f.id] = open
	c.mu.Unlock()
	return ctx, open, nil
}

// bound is the context of a call. It ends a little before the caller stops waiting,
// so that the answer of a handler that ran out of time still arrives.
func (c *serverConn) bound(f *frame) (context.Context, context.CancelFunc) {
	if f.timeout == 0 {
		return context.WithCancel(c.ctx)
	}
	limit := time.Duration(min(f.timeout, uint64(1000*time.Hour/time.Millisecond))) * time.Millisecond
	return context.WithTimeout(c.ctx, limit-min(limit/10, 100*time.Millisecond))
}

// quit carries out cancel and unsubscribe. An operation that has just ended is not
// there any more, which is no fault.
func (c *serverConn) quit(f *frame) {
	c.mu.Lock()
	open := c.open[f.id]
	if open != nil && open.subscribed != (f.kind == unsubscribe) {
		open = nil
	}
	if open != nil {
		open.left = true
	}
	c.mu.Unlock()
	if open != nil {
		open.cancel()
	}
}

func (c *serverConn) call(f *frame) Call {
	return Call{Method: f.method, Body: f.body, RequestID: f.requestID, Replay: f.replay, Peer: c.peer}
}

func (c *serverConn) answer(ctx context.Context, open *call, f *frame) {
	defer open.cancel()
	body, err := c.handle(ctx, f)
	if !c.claim(open) {
		return
	}
	defer c.finish(f.id)
	if err == nil {
		err = c.p.write(&frame{kind: response, id: f.id, body: body})
		switch {
		case err == nil:
			return
		case fault.HasCode(err, fault.LimitExceeded):
			err = refused(fault.New(fault.LimitExceeded, "answer", f.method, "the request was carried out, but its answer of %d bytes is over the limit of a frame", len(body)), TooLarge)
		case isFault(err):
			err = fault.Wrap(err, fault.Internal, "answer", f.method)
		default:
			c.unwritten(err)
			return
		}
	}
	c.fail(f.id, err)
}

func (c *serverConn) handle(ctx context.Context, f *frame) (body []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			c.s.o.Log.Error("panic in a call", "method", f.method, "panic", v, "stack", string(debug.Stack()))
			err = panicked(f.method, v)
		}
	}()
	return c.s.o.Handler(ctx, c.call(f))
}

func (c *serverConn) emit(ctx context.Context, open *call, f *frame) {
	defer open.cancel()
	if err := c.p.write(&frame{kind: subscribeAck, id: f.id}); err != nil {
		c.unwritten(err)
	}
	err := c.events(ctx, f)
	if !c.claim(open) {
		return
	}
	defer c.finish(f.id)
	c.mu.Lock()
	left := open.left
	c.mu.Unlock()
	if err == nil || left {
		if err := c.p.write(&frame{kind: unsubscribeAck, id: f.id}); err != nil {
			c.unwritten(err)
		}
		return
	}
	c.fail(f.id, err)
}

func (c *serverConn) events(ctx context.Context, f *frame) (err error) {
	if c.s.o.Subscriber == nil {
		return fault.New(fault.UnknownMethod, "subscribe", f.method, "there is nothing to subscribe to")
	}
	defer func() {
		if v := recover(); v != nil {
			c.s.o.Log.Error("panic in a subscription", "method", f.method, "panic", v, "stack", string(debug.Stack()))
			err = panicked(f.method, v)
		}
	}()
	seq := uint64(0)
	return c.s.o.Subscriber(ctx, c.call(f), func(body []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		seq++
		return c.p.write(&frame{kind: event, id: f.id, seq: seq, body: body})
	})
}

// fail answers an operation with an error.
func (c *serverConn) fail(id uint64, err error) {
	if err := c.p.write(&frame{kind: failure, id: id, fault: refusalOf(err)}); err != nil {
		c.unwritten(err)
	}
}

// unwritten ends a connection that cannot be written to. The reader sees it.
func (c *serverConn) unwritten(err error) {
	c.s.o.Log.Debug("answer not delivered", "client", c.peer.Client, "cause", err)
	_ = c.p.conn.Close()
}

// claim reports whether the answer of a call is still its own to give.
func (c *serverConn) claim(open *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := open.answered
	open.answered = true
	return !was
}

// finish closes an operation after its answer was written.
func (c *serverConn) finish(id uint64) {
	c.mu.Lock()
	delete(c.open, id)
	bye := c.leaving()
	c.mu.Unlock()
	if bye {
		c.farewell()
	}
}

// leaving is called under mu: it reports whether the last frame is due, once.
func (c *serverConn) leaving() bool {
	if !c.stopping || c.over || len(c.open) > 0 {
		return false
	}
	c.over = true
	return true
}

// stop lets the connection end as soon as no call is open. Subscriptions end now.
func (c *serverConn) stop() {
	c.mu.Lock()
	c.stopping = true
	bye := c.leaving()
	for _, o := range c.open {
		if o.subscribed {
			o.cancel()
		}
	}
	c.mu.Unlock()
	if bye {
		go c.farewell()
	}
}

// farewell tells the client that what it has no answer to has not begun: every
// operation that was admitted is answered by now, and none is admitted since. The
// client closes; one that is not reading just now learns it with its next request.
func (c *serverConn) farewell() {
	c.p.refuse(fault.New(fault.Unavailable, "serve link", "", "the core is stopping").Retryable(), Closing)
	if err := c.p.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		_ = c.p.conn.Close()
	}
}

// giveUp answers what hangs: whether it was done is not known.
func (c *serverConn) giveUp() {
	c.mu.Lock()
	var ids []uint64
	for id, o := range c.open {
		if !o.answered {
			o.answered = true
			ids = append(ids, id)
		}
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.fail(id, fault.New(fault.Unknown, "answer", "", "the core stopped before the request had ended"))
		c.finish(id)
	}
}
