package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// Worker is one generation, as supervise.Process is.
type Worker interface {
	Execute(ctx context.Context, id, code string) (supervise.Completion, error)
	Stop(ctx context.Context) supervise.Exit
	Kill()
	Done() <-chan struct{}
	Exit() supervise.Exit
	PID() int
	ShimPID() int
	Hello() wire.Hello
	Raw(seen supervise.RawCount) (now supervise.RawCount, stdout, stderr event.Tail)
	Started() (at time.Time, took time.Duration)
}

// Workers starts workers.
type Workers interface {
	// Start fills in what spec leaves open about the interpreter and starts it.
	Start(ctx context.Context, spec supervise.Spec) (Worker, event.Python, error)
}

// python starts supervised Python processes. The interpreter is looked at and the
// worker unpacked once, in the background from the start of the core on, since
// both take longer than a start.
type python struct {
	dirs   dirs
	config config.Worker
	shim   []string
	log    *slog.Logger

	mu    sync.Mutex // held while preparing
	ready *prepared
}

type prepared struct {
	python event.Python
	source string
}

// newPython ends what an earlier core left running, and tells what else it left.
func newPython(ctx context.Context, d dirs, c config.Worker, shim []string, log *slog.Logger) (*python, []supervise.Remains, error) {
	killed, err := supervise.Sweep(ctx, d.run)
	if err != nil {
		return nil, nil, err
	}
	if len(killed) > 0 {
		log.Warn("processes of an earlier core were ended", "pids", killed)
	}
	left, err := supervise.Left(d.run)
	return &python{dirs: d, config: c, shim: shim, log: log}, left, err
}

// prepare finds the interpreter and unpacks the worker. A failure is not kept: the
// next start tries again.
func (p *python) prepare(ctx context.Context) (prepared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready != nil {
		return *p.ready, nil
	}
	found, err := supervise.Probe(ctx, p.config.Python)
	if err != nil {
		return prepared{}, err
	}
	source, err := supervise.Unpack(ctx, p.dirs.python, found.Path)
	if err != nil {
		return prepared{}, err
	}
	p.ready = &prepared{python: found, source: source}
	return *p.ready, nil
}

// Prepare does ahead what the first start would have to do. Whatever is wrong is
// the first start's to tell.
func (p *python) Prepare(ctx context.Context) {
	if _, err := p.prepare(ctx); err != nil {
		p.log.Debug("interpreter is not ready", "cause", err)
	}
}

// Start implements Workers.
func (p *python) Start(ctx context.Context, spec supervise.Spec) (Worker, event.Python, error) {
	ready, err := p.prepare(ctx)
	if err != nil {
		return nil, event.Python{}, err
	}
	spec.Role = worker.Workbench
	spec.Python, spec.Source, spec.Shim, spec.Runtime = ready.python.Path, ready.source, p.shim, p.dirs.run
	proc, err := supervise.Start(ctx, spec)
	if err != nil {
		return nil, event.Python{}, err
	}
	return proc, ready.python, nil
}
