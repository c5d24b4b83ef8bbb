package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/internal/control"
)

// live shows a running cell: its output as it comes and, after a second of silence
// on a terminal, a line that says what it waits for. mu guards all of it: progress
// comes from the call and the line from a timer.
type live struct {
	a  *app
	mu sync.Mutex

	cell    string
	shown   map[string]int  // bytes printed, by stream
	open    map[string]bool // the stream's last byte was no line end
	started time.Time
	ahead   int // cells before this one in the queue
	phase   string
	onLine  bool // the progress line stands on the terminal
	stop    chan struct{}
	done    sync.WaitGroup
}

func newLive(a *app) *live {
	l := &live{a: a, shown: map[string]int{}, open: map[string]bool{}, started: time.Now(), phase: "starting", stop: make(chan struct{})}
	if a.set.quiet || a.machine() {
		return l
	}
	every := 30 * time.Second // for a log that somebody reads later
	if l.moving() {
		every = time.Second
	}
	l.done.Go(func() { l.tell(every) })
	return l
}

// moving reports whether a line may be overwritten.
func (l *live) moving() bool { return l.a.io.ErrTTY && l.a.io.Env("TERM") != "dumb" }

func (l *live) tell(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
			l.mu.Lock()
			l.progress()
			l.mu.Unlock()
		}
	}
}

// progress says what is going on. The caller holds mu.
func (l *live) progress() {
	what := l.phase
	if l.ahead > 0 {
		what = "waits behind " + count(int64(l.ahead), "cell", "cells")
	}
	text := fmt.Sprintf("%s %s %s", l.cell, what, span(time.Since(l.started)))
	if n := l.shown["stdout"] + l.shown["stderr"]; n > 0 {
		text += ", " + bytesText(int64(n))
	}
	if l.a.set.timeout > 0 {
		text += " of " + span(l.a.set.timeout)
	}
	if !l.moving() {
		fmt.Fprintln(l.a.io.Err, "reeve:", strings.TrimSpace(text))
		return
	}
	// Over a line that the cell has begun there is no room for another.
	if l.open["stdout"] || l.open["stderr"] {
		return
	}
	text += " · Ctrl-C interrupts, again to leave"
	fmt.Fprintf(l.a.io.Err, "\r\x1b[K%s", clip(strings.TrimSpace(text), l.a.io.Width-1))
	l.onLine = true
}

func (l *live) clear() {
	if l.onLine {
		fmt.Fprint(l.a.io.Err, "\r\x1b[K")
		l.onLine = false
	}
}

// step takes one piece of progress.
func (l *live) step(p control.CellProgress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Cell != "" {
		l.cell = p.Cell
	}
	l.ahead = p.Ahead
	if p.Kind != "output" {
		l.a.trace("cell %s: %s %s", p.Cell, p.Kind, p.Rung)
	}
	switch p.Kind {
	case "started":
		l.phase = "runs for"
	case "interrupting":
		l.phase = "is being interrupted, after"
	}
	switch {
	case l.a.set.jsonl:
		if b, err := json.Marshal(p); err == nil {
			_ = l.a.printValue(b) // a reader that has gone shows at the envelope
		}
	case p.Kind == "output" && !l.a.machine() && len(l.a.set.fields) == 0:
		l.print(p.Stream, p.Text)
	}
}

// print writes text of the cell to the stream it belongs to.
func (l *live) print(stream, text string) {
	if text == "" {
		return
	}
	l.clear()
	w := l.a.io.Out
	if stream == "stderr" {
		w = l.a.io.Err
	}
	_, _ = io.WriteString(w, text) // a closed pipe ends the process by signal
	l.shown[stream] += len(text)
	l.open[stream] = !strings.HasSuffix(text, "\n")
}

func (l *live) end() {
	close(l.stop)
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

// rest prints what of the result has not been seen live, and what a reader must know
// beside it.
func (l *live) rest(r control.CellResult) {
	seen := map[string]int{"stdout": l.shown["stdout"], "stderr": l.shown["stderr"]}
	for _, o := range r.Output {
		if o.Stream == "result" {
			// A value begins its own line and ends it.
			if l.open["stdout"] {
				l.print("stdout", "\n")
			}
			l.print("stdout", strings.TrimSuffix(o.Text, "\n")+"\n")
			continue
		}
		skip := min(seen[o.Stream], len(o.Text))
		seen[o.Stream] -= skip
		l.print(o.Stream, o.Text[skip:])
	}
	if r.Error != nil && r.Status == "error" {
		if l.open["stderr"] {
			l.print("stderr", "\n")
		}
		l.print("stderr", strings.TrimRight(*r.Error, "\n")+"\n")
	}
	if r.TruncatedBytes > 0 {
		l.a.note("output was cut by reeve: %s", cutText(r))
	}
	if r.Notice != nil {
		l.a.note("%s", r.Notice.Text)
	}
	for _, f := range r.Artifacts {
		l.a.note("artifact %s (%s, %s)", f.SHA256, f.MIME, bytesText(f.Size))
	}
	if r.Unrecorded {
		l.a.note("the outcome could not be committed yet; reeve status says more")
	}
}
