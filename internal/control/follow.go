package control

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
)

// defaultRows is what an EventQuery without Max means.
const defaultRows = 200

// Execute implements Service. When ctx ends the cell is interrupted by its handle
// and its outcome awaited for as long as an interrupt may take; a second end cannot
// be told, so after that time the connection is dropped.
func (c *Client) Execute(ctx context.Context, r ExecuteRequest, progress func(CellProgress)) (CellResult, error) {
	const op = "run cell"
	call, hang := context.WithCancel(context.WithoutCancel(ctx))
	defer hang()
	var handle atomic.Value
	handle.Store("")
	given := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(given)
		c.giveUp(call, hang, handle.Load().(string), r)
	})
	defer func() {
		hang()
		if !unhook() {
			<-given
		}
	}()

	var out CellResult
	resp, err := c.send(call, op, http.MethodPost, "/v1/cells", r, "text/event-stream")
	if err == nil {
		err = messages(resp, op, func(m message) (bool, error) {
			if m.name == sseAnswer {
				return true, unwrap(m.data, op, &out)
			}
			var p CellProgress
			if err := json.Unmarshal(m.data, &p); err != nil {
				return true, fault.Wrap(err, fault.Internal, op, "progress of the core")
			}
			if p.Cell != "" {
				handle.Store(p.Cell)
			}
			if progress != nil {
				progress(p)
			}
			return false, nil
		})
	}
	cell := handle.Load().(string)
	switch {
	case err == nil:
		return out, nil
	case call.Err() != nil && ctx.Err() != nil:
		return out, pointTo(ended(ctx, op), cell)
	case broken(err):
		e := &fault.Error{Code: fault.Unknown, Op: op, Message: "the core went away before it answered", Err: err}
		return out, pointTo(e, cell)
	}
	return out, err
}

// pointTo names the cell that an error is about and how to learn what became of it.
func pointTo(e *fault.Error, cell string) *fault.Error {
	e.Subject = cell
	if cell == "" {
		return e.WithNext("see with reeve cell list whether it ran")
	}
	return e.WithNext("see what became of it with reeve cell show %s", cell)
}

// giveUp interrupts cell and, when the answer stays away, hangs up, which interrupts
// it as well.
func (c *Client) giveUp(call context.Context, hang context.CancelFunc, cell string, r ExecuteRequest) {
	if cell == "" {
		hang()
		return
	}
	limit, cancel := context.WithTimeout(call, drain)
	defer cancel()
	if _, err := c.Interrupt(limit, cell, r.By); err != nil {
		hang()
		return
	}
	<-limit.Done()
	hang()
}

// Events implements Service. A stream that breaks is resumed after the last row
// that was delivered, so no row is lost or repeated.
func (c *Client) Events(ctx context.Context, q EventQuery, row func(EventRow) error) error {
	const op = "read events"
	if q.Max == 0 && !q.Follow {
		q.Max = defaultRows
	}
	for n := 0; ; n++ {
		if n > 0 {
			if err := pause(ctx, op, time.Duration(n)*100*time.Millisecond); err != nil {
				return err
			}
		}
		seen, own := 0, false
		err := c.events(ctx, op, q, func(e EventRow) error {
			seen++
			err := row(e)
			own = err != nil
			return err
		}, &q)
		again := broken(err) || q.Follow && fault.HasCode(err, fault.Unavailable)
		if broken(err) && q.Max == 0 && !q.Follow {
			return nil // all that was asked for had arrived
		}
		if err == nil || own || !again || n >= attempts && seen == 0 {
			return settled(err, fault.Unavailable)
		}
		if seen > 0 {
			n = 0
		}
	}
}

// events reads one stream and moves next to where another one has to begin.
func (c *Client) events(ctx context.Context, op string, q EventQuery, row func(EventRow) error, next *EventQuery) error {
	resp, err := c.send(ctx, op, http.MethodGet, "/v1/events?"+q.encode(), nil, "text/event-stream")
	if err != nil {
		return err
	}
	return messages(resp, op, func(m message) (bool, error) {
		if m.name == sseAnswer {
			return true, unwrap(m.data, op, nil)
		}
		var e EventRow
		if err := json.Unmarshal(m.data, &e); err != nil {
			return true, fault.Wrap(err, fault.Internal, op, "row of the core")
		}
		next.AfterID, next.Tail = e.ID, false
		next.Max = max(0, next.Max-1)
		return false, row(e)
	})
}
