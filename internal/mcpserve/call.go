package mcpserve

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/reeve-run/reeve/internal/control"
)

// call is what is known of a cell while it runs. The core's progress comes from
// one goroutine, the reader is another.
type call struct {
	queued chan struct{} // nudged when the place in the queue is known or changes

	mu    sync.Mutex // guards the rest
	cell  string
	kind  string
	ahead int
	rung  string
	line  string // last line of output
	begun time.Time
}

func newCall() *call {
	return &call{queued: make(chan struct{}, 1), begun: time.Now()}
}

// see takes one step of progress from the core.
func (c *call) see(p control.CellProgress) {
	c.mu.Lock()
	if p.Cell != "" {
		c.cell = p.Cell
	}
	switch p.Kind {
	case "output":
		if l := lastLine(p.Text); l != "" {
			c.line = l
		}
	case "heartbeat":
	default:
		c.kind, c.ahead, c.rung = p.Kind, p.Ahead, p.Rung
	}
	c.mu.Unlock()
	if p.Kind == "queued" {
		select {
		case c.queued <- struct{}{}:
		default:
		}
	}
}

func (c *call) handle() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cell
}

// started reports whether the cell has left the queue.
func (c *call) started() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kind == "started" || c.kind == "interrupting"
}

// progress says how long the call has lasted, in seconds, and how it stands.
func (c *call) progress() (float64, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := time.Since(c.begun)
	var b strings.Builder
	switch c.kind {
	case "queued":
		fmt.Fprintf(&b, "queued behind %d", c.ahead)
	case "interrupting":
		fmt.Fprintf(&b, "stopping (%s)", c.rung)
	case "started":
		b.WriteString("running")
	default:
		b.WriteString("starting")
	}
	fmt.Fprintf(&b, " for %s", elapsed.Truncate(time.Second))
	if c.cell != "" {
		fmt.Fprintf(&b, ", %s", c.cell)
	}
	if c.line != "" {
		fmt.Fprintf(&b, ": %s", c.line)
	}
	return elapsed.Seconds(), b.String()
}

// lastLine is the last line of s with something on it, short and without control
// characters.
func lastLine(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	if i := strings.LastIndexAny(s, "\r\n"); i >= 0 {
		s = s[i+1:]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	return clip(strings.TrimSpace(s), 160)
}

// clip cuts s to at most max bytes at a code point.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}
