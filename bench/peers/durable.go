package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// timedStore adds up how long commits took.
type timedStore struct {
	*sqlite.Store
	spent atomic.Int64
	count atomic.Int64
}

func (s *timedStore) Commit(ctx context.Context, b journal.Batch) (journal.Result, error) {
	began := time.Now()
	r, err := s.Store.Commit(ctx, b)
	s.spent.Add(int64(time.Since(began)))
	s.count.Add(1)
	return r, err
}

// durable measures a whole core: the intent and the outcome of every cell are
// committed with synchronous=FULL before the caller is answered. It gives three
// rows: asked in the process of the core, the journal's share of that, and asked
// through the control socket as the command line and the MCP front end do.
func durable(ctx context.Context, o options) (rows []row, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.dir, "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	inner, err := sqlite.Open(ctx, filepath.Join(dir, "reeve.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	store := &timedStore{Store: inner}
	settings := config.Defaults()
	settings.Worker.Python = o.python
	core, err := host.Open(ctx, host.Options{
		Dir: dir, Config: settings, Log: slog.New(slog.DiscardHandler), Store: store,
		Shim: []string{self, supervise.ShimCommand},
	})
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- core.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, core.Close())
	}()

	request := control.ExecuteRequest{
		Session: session, Code: code, Workspace: o.dir,
		By: event.Actor{Kind: "operator", Name: "peers", Surface: "control"},
	}
	execute := func(s control.Cells) func() error {
		return func() error {
			r, err := s.Execute(ctx, request, nil)
			if err != nil {
				return err
			}
			return check(r.Status == "ok" && len(r.Output) == 1 && r.Output[0].Text == "2", r)
		}
	}
	var commits []time.Duration
	direct := execute(core)
	took, err := timed(o.warmup, o.cells, func() error {
		spent, count := store.spent.Load(), store.count.Load()
		if err := direct(); err != nil {
			return err
		}
		if n := store.count.Load() - count; len(commits) > 0 && n != 2 {
			return fmt.Errorf("a cell took %d commits, want its intent and its outcome", n)
		}
		commits = append(commits, time.Duration(store.spent.Load()-spent))
		return nil
	})
	if err != nil {
		return nil, err
	}
	commits = commits[o.warmup:]
	client, err := reach(ctx, dir)
	if err != nil {
		return nil, err
	}
	remote, err := timed(o.warmup, o.cells, execute(client))
	if err != nil {
		return nil, err
	}
	return []row{
		{Name: "cell with durable intent and outcome", P50US: quantile(took, 0.5), P99US: quantile(took, 0.99)},
		{Name: "  of that, its two commits", P50US: quantile(commits, 0.5), P99US: quantile(commits, 0.99)},
		{Name: "  the same through the control socket", P50US: quantile(remote, 0.5), P99US: quantile(remote, 0.99)},
	}, nil
}

// reach waits until the core that was just started serves.
func reach(ctx context.Context, dir string) (*control.Client, error) {
	for {
		client, err := control.Connect(ctx, dir)
		if err == nil {
			return client, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
