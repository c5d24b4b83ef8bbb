package link

import (
	"context"

	"github.com/reeve-run/reeve/fault"
)

// eventsKept is how far a subscriber may lag behind.
const eventsKept = 256

// Subscribe calls f with each event of a subscription, in order, until the core has
// no more (nil), f fails (its error) or ctx ends. Nothing is repeated by it: after
// fault.Unavailable the caller subscribes again, from where it was. A caller that
// takes events too slowly gets limit_exceeded.
func (c *Client) Subscribe(ctx context.Context, r Request, f func(body []byte) error) error {
	if r.RequestID == "" {
		r.RequestID = newRequestID()
	}
	conn, err := c.connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return notBegun(ctx, r)
		}
		return err
	}
	w := &waiter{answer: make(chan outcome, 1), events: make(chan []byte, eventsKept)}
	open := &frame{kind: subscribe, method: r.Method, requestID: r.RequestID, body: r.Body}
	if err := conn.send(open, w); err != nil {
		return outcome{err: err}.unsent(r)
	}
	// Reading goes on while f is at work, so that others are not kept waiting.
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go conn.await(reading, &waiter{answer: make(chan outcome, 1)})
	for {
		select {
		case body := <-w.events:
			if err := f(body); err != nil {
				conn.abandon(open.id)
				return err
			}
		case o := <-w.answer:
			return w.last(o, r, f)
		case <-ctx.Done():
			conn.abandon(open.id)
			return fault.Wrap(context.Cause(ctx), fault.Cancelled, "subscribe", r.Method)
		}
	}
}

// last delivers what came before the end of a subscription, then the end.
func (w *waiter) last(o outcome, r Request, f func([]byte) error) error {
	for {
		select {
		case body := <-w.events:
			if err := f(body); err != nil {
				return err
			}
			continue
		default:
		}
		if o.state == lost {
			return fault.Wrap(o.err, fault.Unavailable, "subscribe", r.Method).Retryable()
		}
		return o.err
	}
}
