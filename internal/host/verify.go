package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/anchor"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// Verify implements control.Records.
func (c *Core) Verify(ctx context.Context) (control.VerifyReport, error) {
	return verify(ctx, c.dirs, c.store)
}

// verify checks the journal against itself and the signed heads, and the artifacts
// against the digests that events name them by. What it finds is
// in the report; the error is for what kept it from looking.
func verify(ctx context.Context, d dirs, store journal.Store) (control.VerifyReport, error) {
	began := time.Now()
	found := anchor.In(d.anchors).Verify(ctx, store, "")
	artifacts := verifyArtifacts(ctx, d, store, &found)
	if err := context.Cause(ctx); err != nil {
		return control.VerifyReport{}, fault.Wrap(err, fault.Cancelled, "verify", d.root)
	}
	out := control.VerifyReport{
		Streams: found.Streams, Events: found.Events, Anchors: found.Anchored, Artifacts: artifacts, Code: string(found.Code()),
		Elapsed: time.Since(began).Milliseconds(), Warnings: []string{},
	}
	for i, f := range found.Findings {
		if i == 0 {
			out.Stream, out.Seq, out.Text = f.Stream, f.Seq, f.Text
			continue
		}
		out.Warnings = append(out.Warnings, findingText(f))
	}
	if more := found.Total - int64(len(found.Findings)); more > 0 {
		out.Warnings = append(out.Warnings, "and "+itoa(more)+" more findings")
	}
	if out.Code == "" {
		out.Text = "every event, and every artifact that events name, is as it was committed"
		if out.Anchors == 0 {
			out.Warnings = append(out.Warnings, "no signed head was compared, so events missing at the end would not be noticed; reeve anchor signs them")
		}
	}
	return out, nil
}

func findingText(f journal.Finding) string {
	where := string(f.Code)
	if f.Stream != "" {
		where += " " + f.Stream
	}
	if f.Seq > 0 {
		where += " event " + itoa(f.Seq)
	}
	return where + ": " + f.Text
}

// Anchor implements control.Records.
func (c *Core) Anchor(ctx context.Context) (control.AnchorReport, error) {
	t, err := anchor.In(c.dirs.anchors).Take(ctx, c.store, time.Now())
	if err != nil {
		return control.AnchorReport{}, err
	}
	return control.AnchorReport{Path: t.Path, Key: t.Key, Streams: t.Streams, Events: t.Events, AtMS: t.AtMS}, nil
}

// VerifyDir verifies a data directory whose core is down. It changes nothing but
// the lock, which it holds meanwhile, and works where nothing may be changed.
func VerifyDir(ctx context.Context, dir string) (control.VerifyReport, error) {
	d, err := findDirs(dir)
	if err != nil {
		return control.VerifyReport{}, err
	}
	if r, ok := d.emptied(); ok {
		return r, nil
	}
	return offline(ctx, dir, verify)
}

// emptied is the report on a directory whose journal is not there at all, although a
// note has signed one. It is no file that could be opened.
func (d dirs) emptied() (control.VerifyReport, bool) {
	info, err := os.Stat(d.db)
	if err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return control.VerifyReport{}, false
	}
	signed, note, problems := anchor.In(d.anchors).Newest()
	if signed.Events == 0 {
		return control.VerifyReport{}, false
	}
	r := control.VerifyReport{
		Code: string(fault.Truncated), Warnings: []string{},
		Text: "the journal is gone or empty; " + note + " signed " + itoa(signed.Events) + " events",
	}
	for _, p := range problems {
		r.Warnings = append(r.Warnings, p.Error())
	}
	return r, true
}

// UsageDir measures a data directory whose core is down.
func UsageDir(ctx context.Context, dir string) (control.Usage, error) {
	return offline(ctx, dir, usage)
}

// offline lends the store of a directory to f. The lock keeps a core from starting
// while the store is read.
func offline[T any](ctx context.Context, dir string, f func(context.Context, dirs, journal.Store) (T, error)) (out T, err error) {
	d, err := findDirs(dir)
	if err != nil {
		return out, err
	}
	var lock *durable.Lock
	if durable.Writable(d.root) {
		lock, err = durable.AcquireLock(d.lock, lockOwner())
	} else {
		lock, err = durable.HoldLock(d.lock)
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	store, err := sqlite.Open(ctx, d.db, sqlite.Options{ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return f(ctx, d, store)
}
