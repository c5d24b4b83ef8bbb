package cli_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reeve-run/reeve/internal/cli"
	"github.com/reeve-run/reeve/internal/control"
)

// locked is a Buffer for two goroutines.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func TestProgressLine(t *testing.T) {
	t.Parallel()
	started := control.CellProgress{Cell: "cell_1", Kind: "started"}
	for name, c := range map[string]struct {
		tty, quiet bool
		term       string
		steps      func(step func(control.CellProgress))
		want       []string // on standard error, in order
		never      string
	}{
		"quick": {tty: true, steps: func(step func(control.CellProgress)) {
			step(started)
			time.Sleep(900 * time.Millisecond)
		}, never: "cell_1"},
		"slow": {tty: true, steps: func(step func(control.CellProgress)) {
			step(started)
			time.Sleep(2500 * time.Millisecond)
		}, want: []string{"\r\x1b[Kcell_1 runs for 1.0s · Ctrl-C interrupts, again to leave", "2.0s", "\r\x1b[K"}},
		"queued": {tty: true, steps: func(step func(control.CellProgress)) {
			step(control.CellProgress{Cell: "cell_1", Kind: "queued", Ahead: 2})
			time.Sleep(1500 * time.Millisecond)
		}, want: []string{"waits behind 2 cells 1.0s"}},
		"over a line that is open": {tty: true, steps: func(step func(control.CellProgress)) {
			step(control.CellProgress{Cell: "cell_1", Kind: "output", Stream: "stdout", Text: "50 %"})
			time.Sleep(1500 * time.Millisecond)
		}, never: "Ctrl-C"},
		"piped": {steps: func(step func(control.CellProgress)) {
			step(started)
			time.Sleep(61 * time.Second)
		}, want: []string{"reeve: cell_1 runs for 30s\n", "reeve: cell_1 runs for 1m00s\n"}, never: "\x1b"},
		"on a dumb terminal": {tty: true, term: "dumb", steps: func(step func(control.CellProgress)) {
			step(started)
			time.Sleep(31 * time.Second)
		}, want: []string{"reeve: cell_1 runs for 30s\n"}, never: "\x1b"},
		"quiet": {quiet: true, steps: func(step func(control.CellProgress)) {
			step(started)
			time.Sleep(time.Hour)
		}, never: "cell_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out, err locked
				cli.Watch(cli.Stdio{
					Out: &out, Err: &err, OutTTY: c.tty, ErrTTY: c.tty, Width: 80,
					Env: func(k string) string { return map[string]string{"TERM": c.term}[k] },
				}, c.quiet, c.steps)
				rest := err.text.String()
				if c.never != "" && strings.Contains(rest, c.never) {
					t.Errorf("stderr has %q: %q", c.never, rest)
				}
				for _, part := range c.want {
					_, after, found := strings.Cut(rest, part)
					if !found {
						t.Fatalf("stderr has no %q in %q", part, err.text.String())
					}
					rest = after
				}
			})
		})
	}
}
