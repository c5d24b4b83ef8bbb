package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
)

// Verdict is what a check of doctor came to.
type Verdict string

// Verdicts. Only Fail makes doctor's status 9.
const (
	Pass Verdict = "PASS"
	Warn Verdict = "WARN"
	Fail Verdict = "FAIL"
	Skip Verdict = "SKIP"
)

// Finding is the result of one check.
type Finding struct {
	ID        string  `json:"id"` // stable: "section.subject"
	Verdict   Verdict `json:"verdict"`
	Text      string  `json:"text"` // what was found and, unless it passed, why
	Fix       string  `json:"fix"`  // one command or instruction; empty when there is nothing to do
	ElapsedMS int64   `json:"elapsed_ms"`
}

// Probe is a check of doctor.
type Probe struct {
	ID    string
	Limit time.Duration // 0: checkTime
	Run   func(ctx context.Context, s Subject) Finding
}

// Subject is what is examined.
type Subject struct {
	Dir     string
	Config  config.Config
	Core    control.Service // nil when none runs
	Hello   control.Hello   // of Core
	Held    bool            // the directory is held by a process, before any check takes it
	Holder  int             // that process, 0 when it has not said so yet
	LockErr error           // why Held is not known
	WorkDir string
	Getenv  func(string) string
}

// Found makes a Finding; main's probes use it as well.
func Found(v Verdict, fix, format string, args ...any) Finding {
	return Finding{Verdict: v, Fix: fix, Text: fmt.Sprintf(format, args...)}
}

const (
	// checkTime bounds one check and doctorTime all of them: a doctor that hangs on
	// what is ill is no use.
	checkTime  = 2 * time.Second
	doctorTime = 10 * time.Second
	// checkers is how many checks run at once: most of them wait.
	checkers = 4
)

type diagnosis struct {
	Dir    string    `json:"dir"`
	Checks []Finding `json:"checks"`
}

func (d diagnosis) err() error {
	var ill []string
	for _, f := range d.Checks {
		if f.Verdict == Fail {
			ill = append(ill, f.ID)
		}
	}
	if len(ill) == 0 {
		return nil
	}
	e := fault.New(fault.Findings, "check", d.Dir, "%s failed: %s", count(int64(len(ill)), "check", "checks"), strings.Join(ill, ", "))
	for _, f := range d.Checks {
		if f.ID == ill[0] {
			e.Next = f.Fix
		}
	}
	return e
}

func (d diagnosis) show(p printer, all bool) {
	styles := map[Verdict]string{Pass: good, Warn: warn, Fail: bad, Skip: dim}
	for _, f := range d.Checks {
		if !all && f.Verdict == Skip {
			continue
		}
		p.line("%s  %-18s %s", p.paint(styles[f.Verdict], string(f.Verdict)), f.ID, visible(f.Text))
		if f.Fix != "" && f.Verdict != Pass {
			p.line("      %-18s %s", "", visible(f.Fix))
		}
	}
}

func (a *app) probes() []Probe {
	return slices.Concat(a.ownProbes(), mcpProbes, a.programs.Probes)
}

func (a *app) cmdDoctor() *cobra.Command {
	var only []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation: what works, what does not, and how to mend it",
		Long: `Check this binary, its configuration, the data directory, the store, Python, the MCP
server and the clients set up for it. Each check takes 2 s at most (those of Python
5 s) and all of them 10 s. Works without a core and starts none. Status 9 when a check failed; a warning
alone is status 0.`,
		Example: `  reeve doctor
  reeve doctor --only python.found,mcp.tools
  reeve doctor --json --jq '.data.checks[] | select(.verdict!="PASS")'`,
	}
	c.Flags().StringSliceVar(&only, "only", nil, "only these checks, or all of a section (comma separated)")
	a.completeFlag(c, "only", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		for _, p := range a.probes() {
			ids = append(ids, p.ID)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	})
	return a.does(c, func(ctx context.Context, _ []string) answer {
		dir, err := a.dataDir()
		if err != nil {
			return failed(err)
		}
		for _, o := range only {
			if !slices.ContainsFunc(a.probes(), func(p Probe) bool { return within(p.ID, o) }) {
				return failed(fault.New(fault.Usage, "check", o, "no such check").WithNext("see the ids with reeve doctor"))
			}
		}
		d := a.examine(ctx, dir, func(id string) bool {
			return len(only) == 0 || slices.ContainsFunc(only, func(o string) bool { return within(id, o) })
		})
		return answer{kind: "diagnosis", data: d, err: d.err(), text: func(p printer) { d.show(p, true) }}
	})
}

// within reports whether a check is one of, or in, what was named.
func within(id, name string) bool { return id == name || strings.HasPrefix(id, name+".") }

// examine runs the checks that want selects, in the order they are listed.
func (a *app) examine(ctx context.Context, dir string, want func(id string) bool) diagnosis {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	s := Subject{Dir: dir, WorkDir: a.io.WorkDir, Getenv: a.io.Env}
	// What is wrong with the configuration is a check of its own; the others go on
	// with what could be read.
	s.Config, _ = config.Load(config.SystemSources(dir))
	quick, stop := context.WithTimeout(ctx, checkTime)
	if c, err := control.Reach(quick, dir); err == nil {
		s.Core, s.Hello = c, c.Core()
	}
	stop()
	owner, held, err := durable.LockOwner(filepath.Join(dir, "lock"))
	if s.Held, s.Holder = held, owner.PID; !errors.Is(err, fs.ErrNotExist) {
		s.LockErr = err
	}
	var chosen []Probe
	for _, p := range a.probes() {
		if want(p.ID) {
			chosen = append(chosen, p)
		}
	}
	d := diagnosis{Dir: dir, Checks: make([]Finding, len(chosen))}
	slots := make(chan struct{}, checkers)
	var all sync.WaitGroup
	for i, p := range chosen {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			d.Checks[i] = inTime(ctx, p, s)
		})
	}
	all.Wait()
	return d
}

// inTime runs one check and gives up on it when its time is over.
func inTime(ctx context.Context, p Probe, s Subject) Finding {
	begun := time.Now()
	limit := p.Limit
	if limit == 0 {
		limit = checkTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan Finding, 1)
	go func() { done <- p.Run(ctx, s) }()
	var f Finding
	select {
	case f = <-done:
	case <-ctx.Done():
		f = Found(Fail, "repeat it when the machine is less busy: reeve doctor --only "+p.ID, "it did not end within %s", span(limit))
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			f = Found(Skip, "", "doctor was interrupted")
		}
	}
	f.ID, f.ElapsedMS = p.ID, time.Since(begun).Milliseconds()
	return f
}
