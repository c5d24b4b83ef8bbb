package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// nowhere is a sink for a worker that sends nothing besides results.
type nowhere struct{}

func (nowhere) Output(wire.Output)                                              {}
func (nowhere) Names(wire.Names)                                                {}
func (nowhere) Artifact(wire.Artifact)                                          {}
func (nowhere) Request(context.Context, wire.HostRequest, func(wire.HostReply)) {}

func supervised(ctx context.Context, o options, source string) (row, error) {
	self, err := os.Executable()
	if err != nil {
		return row{}, err
	}
	runtime, err := os.MkdirTemp(os.TempDir(), "rv-")
	if err != nil {
		return row{}, err
	}
	defer os.RemoveAll(runtime)
	spec := supervise.Spec{
		Session: session, Generation: generation, Role: worker.Workbench, Python: o.python, Source: source,
		Shim: []string{self, supervise.ShimCommand}, Dir: o.dir, Env: os.Environ(),
		Runtime: filepath.Clean(runtime), Timing: worker.DefaultTiming(), Sink: nowhere{},
	}
	var ready []time.Duration
	var p *supervise.Process
	for range o.starts {
		if p != nil {
			p.Kill()
			<-p.Done()
		}
		began := time.Now()
		if p, err = supervise.Start(ctx, spec); err != nil {
			return row{}, err
		}
		ready = append(ready, time.Since(began))
	}
	defer func() { p.Kill(); <-p.Done() }()
	n := 0
	took, err := timed(o.warmup, o.cells, func() error {
		n++
		c, err := p.Execute(ctx, fmt.Sprintf("e-%d", n), code)
		if err != nil {
			return err
		}
		return check(c.Cell != nil && len(c.Cell.Output) == 1 && c.Cell.Output[0].Text == "2", c.Cell)
	})
	if err != nil {
		return row{}, err
	}
	rss, err := resident(p.PID())
	return row{
		Name: "cell through supervisor and worker", P50US: quantile(took, 0.5), P99US: quantile(took, 0.99),
		ReadyMS: quantile(ready, 0.5) / 1e3, RSSKiB: rss,
	}, err
}
