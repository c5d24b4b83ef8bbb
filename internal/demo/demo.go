// Package demo shows reeve at its work on real input: an agent connects over MCP,
// finds a bug in a small Python project and mends it in cells, loses its worker on
// the way, and in the end the journal tells what happened and proves it.
//
// Invariants: every part is the real one (this binary as MCP server and core, real
// Python, a real git repository) and only the agent is a script; each step checks
// what it claims and the first one that does not hold ends the demo as failed;
// nothing is left behind, unless the demo is killed, and then no process. It knows the core only by its surfaces.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

//go:embed all:project
var project embed.FS

// limit is the whole demo's; it takes a few seconds on an idle machine.
const limit = 60 * time.Second

// Options say how the demo runs.
type Options struct {
	Exe  string    // path of this binary; empty: /proc/self/exe
	Keep bool      // leave the directory with the project and the journal
	Out  io.Writer // the story, for people; nil: none
}

// Report is what the demo showed.
type Report struct {
	Dir      string               `json:"dir"` // empty unless kept
	Steps    []Step               `json:"steps"`
	Timeline []Moment             `json:"timeline"`
	Verify   control.VerifyReport `json:"verify"`
}

// Step is one claim and whether it held.
type Step struct {
	Name      string `json:"name"`
	OK        bool   `json:"ok"`
	Text      string `json:"text"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

// demo is one run.
type demo struct {
	opt    Options
	dir    string // holds repo and data
	repo   string
	data   string
	agent  *agent
	core   *control.Client
	found  bug
	report Report
}

type step struct {
	name string
	does func(ctx context.Context) (string, error)
}

// Run runs the demo. The error says which step did not hold; the report is given
// in any case.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Exe == "" {
		o.Exe = "/proc/self/exe"
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d := &demo{opt: o, report: Report{Steps: []Step{}, Timeline: []Moment{}}}
	dir, err := os.MkdirTemp("", "reeve-demo-")
	if err != nil {
		return d.report, fault.Wrap(err, fault.Unavailable, "demo", "temporary directory")
	}
	// The path of a cell's working directory is part of what is compared below.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return d.report, fault.Wrap(err, fault.Unavailable, "demo", "temporary directory")
	}
	d.dir, d.repo, d.data = dir, filepath.Join(dir, "byteranges"), filepath.Join(dir, "data")
	if err := d.needs(ctx); err != nil {
		return d.report, errors.Join(err, os.RemoveAll(dir))
	}
	err = d.play(ctx, []step{
		{"unpack a project with a failing test", d.unpack},
		{"connect over MCP", d.connect},
		{"run the tests in a cell", d.test},
		{"find the bug", d.find},
		{"lose the worker to SIGKILL", d.lose},
		{"go on in the same session", d.goOn},
		{"ask for verbs", d.look},
		{"be refused", d.denied},
		{"mend the bug with a verb from a cell", d.mend},
		{"prove it", d.prove},
		{"speak to the operator", d.speak},
		{"read what happened from the journal", d.tell},
		{"verify the journal", d.verify},
	})
	// Not ctx: what was started is ended also when the time is over.
	end := d.play(context.WithoutCancel(ctx), []step{{"stop everything", d.stop}})
	return d.report, errors.Join(err, end, d.clear())
}

// play runs steps until one does not hold.
func (d *demo) play(ctx context.Context, steps []step) error {
	for _, s := range steps {
		d.printf("\n%d. %s\n", len(d.report.Steps)+1, s.name)
		begun := time.Now()
		text, err := s.does(ctx)
		r := Step{Name: s.name, OK: err == nil, Text: text, ElapsedMS: time.Since(begun).Milliseconds()}
		if err != nil {
			r.Text = err.Error()
		}
		d.report.Steps = append(d.report.Steps, r)
		d.printf("   %s\n", indent(r.Text))
		if err != nil {
			d.printf("   this step does not hold\n")
			return fault.Wrap(err, codeOf(ctx), "demo", s.name).WithNext("run reeve demo --keep and look at its core.log")
		}
	}
	return nil
}

// codeOf tells a step that was not let go on from one that does not hold.
func codeOf(ctx context.Context) fault.Code {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fault.Cancelled
	case ctx.Err() != nil:
		return fault.Timeout
	default:
		return fault.Internal
	}
}

// clear removes the directory unless it is to be kept.
func (d *demo) clear() error {
	if d.opt.Keep {
		d.report.Dir = d.dir
		d.printf("\nkept: %s (reeve events --dir %s)\n", d.repo, d.data)
		return nil
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return fault.Wrap(err, fault.Internal, "demo", d.dir)
	}
	return nil
}

// printf tells people. A reader that has gone away is no reason to stop.
func (d *demo) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.opt.Out, format, args...)
}

func indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n   ")
}

// expect is the error of a claim that does not hold.
func expect(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}
