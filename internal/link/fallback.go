package link

import (
	"context"
	"log/slog"

	"github.com/reeve-run/reeve/fault"
)

// fallbacks are the reasons that are counted (VD-146).
var fallbacks = []Reason{ConfigMismatch, NamespaceMismatch, NoSocket, ParseFailure, ProtocolMismatch}

// otherWay reports whether a request may be answered without the link. A core that
// means another configuration or namespace is no reason: nobody else would be right
// either.
func otherWay(why Reason) bool {
	return why == NoSocket || why == ParseFailure || why == ProtocolMismatch
}

// instead settles a request for which there is no connection, because of err.
func (c *Client) instead(ctx, limit context.Context, r Request, err error) ([]byte, error) {
	if limit.Err() != nil {
		return nil, notBegun(limit, r)
	}
	why := ReasonOf(err)
	n, counted := c.counts[why]
	if !counted {
		return nil, err
	}
	n.Add(1)
	level := slog.LevelWarn
	switch why {
	case NoSocket:
		level = slog.LevelDebug
	case ConfigMismatch, NamespaceMismatch:
		level = slog.LevelError
	default:
	}
	c.o.Log.Log(ctx, level, "the link is not used", "reason", string(why), "cause", err)
	switch {
	case !otherWay(why) || c.o.Fallback == nil:
		return nil, err
	case c.o.Strict:
		c.violations.Add(1)
		e := fault.Wrap(err, fault.Unavailable, "call core", r.Method)
		e.Message = "the link is required and there is none; nothing was done"
		return nil, e.Retryable()
	}
	return c.o.Fallback(limit, r)
}
