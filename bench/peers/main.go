// Command peers measures reeve beside its peers in one run and prints a table with
// the ratios: ipykernel as its own client sees it, a bare framed worker without
// supervisor or journal, a cell through supervisor and worker, and a cell whose
// intent and outcome are durable before the answer.
//
// Invariants: every row does the same work, `1+1` and its result; rows of one table
// come from one run on one machine; the journal's share is shown apart. It asserts
// no speed: figures are for people.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"

	"github.com/reeve-run/reeve/internal/supervise"
	_ "github.com/reeve-run/reeve/internal/supervise/shim/early" // as in the real binary
	"github.com/reeve-run/reeve/python"
)

// options are what a run is made of.
type options struct {
	python string
	script string // of the ipykernel peer
	dir    string // for data and sockets; on the disk whose durability is measured
	starts int
	warmup int
	cells  int
}

func main() {
	var o options
	flag.StringVar(&o.python, "python", "/usr/bin/python3", "interpreter of reeve's worker and of ipykernel")
	flag.StringVar(&o.script, "ipykernel", "bench/peers/ipykernel_peer.py", "script that measures ipykernel; empty leaves it out")
	flag.StringVar(&o.dir, "dir", "", "directory for the data; default is a new one under the home directory's cache")
	flag.IntVar(&o.starts, "starts", 15, "starts of each kind")
	flag.IntVar(&o.warmup, "warmup", 200, "cells before measuring")
	flag.IntVar(&o.cells, "cells", 5000, "cells that are measured; ipykernel runs a fifth of them")
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, asJSON bool) (err error) {
	if o.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(cache, 0o700); err != nil {
			return err
		}
		if o.dir, err = os.MkdirTemp(cache, "reeve-peers-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	if o.python, err = exec.LookPath(o.python); err != nil {
		return err
	}
	source, err := supervise.UnpackFiles(ctx, python.Files(), filepath.Join(o.dir, "python"), o.python)
	if err != nil {
		return err
	}
	var rows []row
	for _, measure := range []func() (row, error){
		func() (row, error) { return ipykernel(ctx, o) },
		func() (row, error) { return bare(ctx, o, source) },
		func() (row, error) { return supervised(ctx, o, source) },
	} {
		r, err := measure()
		if err != nil {
			return err
		}
		if r.Name != "" {
			rows = append(rows, r)
		}
	}
	more, err := durable(ctx, o)
	if err != nil {
		return err
	}
	rows = append(rows, more...)
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(rows)
	}
	fmt.Printf("%s/%s, %d CPUs, %s, %d cells\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.cells)
	print(os.Stdout, rows)
	return nil
}

// ipykernel runs the peer's own script, which prints one JSON object.
func ipykernel(ctx context.Context, o options) (row, error) {
	if o.script == "" {
		return row{}, nil
	}
	cmd := exec.CommandContext(ctx, o.python, o.script,
		fmt.Sprint(max(1, o.starts/5)), fmt.Sprint(o.warmup/5), fmt.Sprint(o.cells/5))
	cmd.Stderr = nil // its debugger's warnings
	out, err := cmd.Output()
	if err != nil {
		return row{}, fmt.Errorf("measure ipykernel with %s: %w", o.python, err)
	}
	var m struct {
		Version string  `json:"version"`
		Python  string  `json:"python"`
		ReadyMS float64 `json:"ready_ms"`
		P50US   float64 `json:"p50_us"`
		P99US   float64 `json:"p99_us"`
		RSSKiB  int64   `json:"rss_kib"`
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return row{}, fmt.Errorf("read the figures of ipykernel: %w", err)
	}
	return row{
		Name:  "ipykernel " + m.Version + " (Python " + m.Python + ")",
		P50US: m.P50US, P99US: m.P99US, ReadyMS: m.ReadyMS, RSSKiB: m.RSSKiB,
	}, nil
}
