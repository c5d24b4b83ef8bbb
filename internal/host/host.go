// Package host is the core: it owns the data directory, puts the other packages
// together, and answers the control API.
//
// Invariants: one core per data directory, by the lock; a session's stream is
// written by one goroutine, its lane; a cell's intent is committed before its code
// is sent and its outcome before its caller is answered (CP-140), and when an
// outcome cannot be committed it is delivered, marked, and committed later; no lock
// is held during I/O, so that status, interrupt and reads answer while a cell runs
// or the store stalls; nothing of a core that was killed is left when the next one
// has opened. The package does not know how processes are supervised, how events
// are stored, or how requests arrive.
package host

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/artifact"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/verbs"
)

// Options say what a core is made of.
type Options struct {
	Dir    string // data directory, made when missing
	Config config.Config
	Log    *slog.Logger
	Shim   []string // argv that makes this binary a worker's parent

	Store   journal.Store // nil: SQLite in Dir
	Workers Workers       // nil: supervised Python processes
	Env     []string      // of workers; nil: the core's own
}

// Core is a running core. It implements control.Service.
type Core struct {
	dirs      dirs
	config    config.Config
	log       *slog.Logger
	store     journal.Store
	artifacts *artifact.Store
	workers   Workers
	env       []string
	shim      []string // argv that makes this binary the parent of a program
	lock      *durable.Lock
	host      journal.Host
	started   time.Time
	socket    string
	recovered string // what recovery did, one line

	handles    handles
	acts       sync.Map // actRow of each act that runs, by its id
	auditor    *auditor
	dispatcher *dispatch.Dispatcher
	registry   *verbs.Registry
	catalogue  string // file that tells workers of the verbs
	watch      watch
	unrecorded atomic.Int64 // outcomes that were delivered before they were committed
	batches    atomic.Int64 // for batch ids

	// stopping is closed when no new work is taken; stopBy says for whom. Work is
	// taken under gate for reading, so that none slips in after the close.
	gate     sync.RWMutex
	stopping chan struct{}
	stopOnce sync.Once
	stopBy   event.Actor

	// hard ends with the core's process: work that is still running is abandoned.
	hard    context.Context
	abandon context.CancelCauseFunc
	owners  sync.WaitGroup // goroutines of lanes

	closeOnce sync.Once
	closeErr  error

	mu    sync.Mutex // guards lanes
	lanes map[string]*lane
}

var _ control.Service = (*Core)(nil)

// errAbandoned is the cause of hard's end.
var errAbandoned = errors.New("the core has ended")

// Open takes the data directory, opens what is in it, and settles what an earlier
// core left open. The error is a fault: conflict when another core has the
// directory.
func Open(ctx context.Context, o Options) (*Core, error) {
	d, err := makeDirs(o.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := durable.AcquireLock(d.lock, lockOwner())
	if err != nil {
		return nil, err
	}
	c, err := open(ctx, o, d)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	c.lock = lock
	return c, nil
}

func lockOwner() durable.Owner {
	return durable.Owner{PID: os.Getpid(), Version: control.Version, StartedMS: time.Now().UnixMilli()}
}

func open(ctx context.Context, o Options, d dirs) (_ *Core, err error) {
	c := &Core{
		dirs: d, config: o.Config, log: o.Log, workers: o.Workers, env: o.Env, shim: o.Shim,
		started: time.Now(), stopping: make(chan struct{}), lanes: map[string]*lane{},
	}
	c.hard, c.abandon = context.WithCancelCause(context.WithoutCancel(ctx))
	c.watch.init()
	if c.env == nil {
		c.env = os.Environ()
	}
	if c.artifacts, err = artifact.Open(d.artifacts); err != nil {
		return nil, err
	}
	if c.host, err = incarnate(d.host); err != nil {
		return nil, err
	}
	if c.store = o.Store; c.store == nil {
		if c.store, err = c.openStore(ctx); err != nil {
			return nil, err
		}
	}
	var left []supervise.Remains
	if c.workers == nil {
		if c.workers, left, err = newPython(ctx, d, o.Config.Worker, o.Shim, c.log); err != nil {
			return nil, errors.Join(err, c.store.Close())
		}
	}
	if err := c.recover(ctx, left); err != nil {
		return nil, errors.Join(err, c.store.Close())
	}
	if err := c.serveVerbs(ctx); err != nil {
		return nil, errors.Join(err, c.store.Close())
	}
	return c, nil
}

// Close brings the sessions to rest, if Run has not, and gives up what Open took.
// Closing again answers the same.
func (c *Core) Close() error {
	c.closeOnce.Do(func() {
		c.beginStop(c.self())
		err := c.drain()
		c.auditor.close()
		c.abandon(errAbandoned)
		c.closeErr = errors.Join(err, c.store.Close(), c.lock.Release())
	})
	return c.closeErr
}

// stream is the name of a session's stream.
func stream(session string) string { return "session/" + session }

// newID is a batch id: unique in the store, and the same for each attempt at one
// batch.
func (c *Core) newID(session string) string {
	return c.host.ID + "." + itoa(c.host.Incarnation) + "." + itoa(c.batches.Add(1)) + "." + session[:min(len(session), 100)]
}

// dirs are the places within a data directory.
type dirs struct {
	root, db, lock, host, artifacts, python, run, anchors string
}

// findDirs names the places of a data directory that exists.
func findDirs(root string) (dirs, error) {
	d, err := dirsOf(root)
	if err != nil {
		return dirs{}, err
	}
	if _, err := os.Stat(d.root); err != nil {
		return dirs{}, fault.Wrap(err, fault.NotFound, "open data directory", d.root).WithNext("reeve init makes it")
	}
	return d, private(d.root)
}

func makeDirs(root string) (dirs, error) {
	d, err := dirsOf(root)
	if err != nil {
		return dirs{}, err
	}
	root = d.root
	for _, dir := range []string{root, d.run} {
		if err := durable.MkdirAll(dir, 0o700); err != nil {
			return dirs{}, err
		}
	}
	return d, private(root)
}

func dirsOf(root string) (dirs, error) {
	if root == "" {
		return dirs{}, fault.New(fault.Usage, "open data directory", "", "no directory is named").WithNext("set REEVE_HOME or give --dir")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return dirs{}, fault.Wrap(err, fault.Usage, "open data directory", root)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	return dirs{
		root: root, db: in("reeve.db"), lock: in("lock"), host: in("host.json"), artifacts: in("artifacts"),
		python: in("python"), run: in("run"), anchors: in("anchors"),
	}, nil
}

// private refuses a directory that others may enter: it holds code, output and
// keys.
func private(root string) error {
	info, err := os.Stat(root)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "open data directory", root)
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return fault.New(fault.Denied, "open data directory", root, "its mode %04o lets others in", info.Mode().Perm()).
			WithNext("chmod 700 %s", root)
	}
	return nil
}

// token is n characters of randomness for names.
func token(n int) string { return rand.Text()[:n] }
