package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
)

// ownProbes are the checks of what surrounds the core.
func (a *app) ownProbes() []Probe {
	return []Probe{
		{ID: "binary.version", Run: func(context.Context, Subject) Finding {
			return Found(Pass, "", "%s, commit %s", control.Version, orUnstamped(commit()))
		}},
		{ID: "config.load", Run: checkConfig},
		{ID: "dir.owner", Run: checkDir},
		{ID: "dir.space", Run: checkSpace},
		{ID: "dir.locking", Run: checkLocking},
		{ID: "core.running", Run: checkCore},
		{ID: "core.strays", Run: checkStrays},
		{ID: "limits.files", Run: checkFiles},
		{ID: "terminal", Run: a.checkTerminal},
	}
}

func checkConfig(_ context.Context, s Subject) Finding {
	c, err := config.Load(config.SystemSources(s.Dir))
	if err == nil {
		_, err = c.ForProject(config.ProjectFile(s.WorkDir))
	}
	if err != nil {
		return Found(Fail, nextOf(err, "mend the setting that the text names"), "%v", err)
	}
	var set []string
	for _, k := range config.Keys() {
		if o, ok := c.Origin(k); ok && o.Layer != config.Default {
			set = append(set, k+" from "+o.String())
		}
	}
	if len(set) == 0 {
		return Found(Pass, "", "all settings are the defaults")
	}
	return Found(Pass, "", "%s", strings.Join(set, "; "))
}

// nextOf is what an error says to do, else otherwise.
func nextOf(err error, otherwise string) string {
	var e *fault.Error
	if errors.As(err, &e) && e.Next != "" {
		return e.Next
	}
	return otherwise
}

func checkDir(_ context.Context, s Subject) Finding {
	i, err := os.Stat(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Found(Skip, "reeve init", "%s does not exist yet", s.Dir)
	}
	if err != nil {
		return Found(Fail, "make "+s.Dir+" readable for this user", "%v", err)
	}
	if !i.IsDir() {
		return Found(Fail, "name a directory with --dir", "%s is no directory", s.Dir)
	}
	if st, ok := i.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return Found(Fail, "run reeve as the owner, or name another directory with --dir", "%s belongs to user %d, this is user %d", s.Dir, st.Uid, os.Geteuid())
	}
	if m := i.Mode().Perm(); m&0o077 != 0 {
		return Found(Fail, "chmod 700 "+s.Dir, "others may enter %s (mode %o)", s.Dir, m)
	}
	return Found(Pass, "", "%s is this user's alone", s.Dir)
}

func checkSpace(_ context.Context, s Subject) Finding {
	dir := s.Dir
	for dir != "/" {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := durable.Free(dir)
	if err != nil {
		return Found(Fail, "", "%v", err)
	}
	const low, least = 1 << 30, 64 << 20
	switch {
	case free < least:
		return Found(Fail, "free some space below "+dir, "only %s are left", bytesText(free))
	case free < low:
		return Found(Warn, "free some space below "+dir, "%s are left", bytesText(free))
	}
	return Found(Pass, "", "%s are left", bytesText(free))
}

// checkLocking takes a lock twice: a file system on which both succeed would let two
// cores write one store.
func checkLocking(_ context.Context, s Subject) Finding {
	if _, err := os.Stat(s.Dir); err != nil {
		return Found(Skip, "reeve init", "%s does not exist yet", s.Dir)
	}
	f, err := os.CreateTemp(s.Dir, ".doctor-*")
	if err != nil {
		return Found(Fail, "make "+s.Dir+" writable for this user", "%v", err)
	}
	path := f.Name()
	defer func() { _ = os.Remove(path) }()
	if err := f.Close(); err != nil {
		return Found(Fail, "", "%v", err)
	}
	one, err := durable.AcquireLock(path, durable.Owner{PID: os.Getpid()})
	if err != nil {
		return Found(Fail, "put the data directory on a local file system with --dir", "files cannot be locked: %v", err)
	}
	defer func() { _ = one.Release() }()
	two, err := durable.AcquireLock(path, durable.Owner{PID: os.Getpid()})
	if err == nil {
		_ = two.Release()
		return Found(Fail, "put the data directory on a local file system with --dir", "a lock was given twice")
	}
	return Found(Pass, "", "locks exclude each other")
}

func checkCore(_ context.Context, s Subject) Finding {
	switch {
	case s.LockErr != nil:
		return Found(Fail, "", "%v", s.LockErr)
	case s.Core == nil && s.Held:
		return Found(Fail, "wait, and read "+filepath.Join(s.Dir, "core.log"), "process %d holds the data directory and does not answer", s.Holder)
	case s.Core == nil:
		return Found(Skip, "reeve up", "no core runs")
	case s.Hello.Protocol != control.Protocol, s.Hello.Version != control.Version:
		return Found(Warn, "reeve down && reeve up", "core %d is version %s, this reeve is %s", s.Hello.PID, s.Hello.Version, control.Version)
	}
	return Found(Pass, "", "core %d, version %s", s.Hello.PID, s.Hello.Version)
}

// checkStrays looks for workers of this data directory whose core has gone. A worker
// is told by the unpacked source that it runs.
func checkStrays(ctx context.Context, s Subject) Finding {
	switch {
	case s.LockErr != nil:
		return Found(Fail, "", "%v", s.LockErr)
	case s.Core == nil && s.Held:
		return Found(Skip, "", "process %d holds the data directory; which workers are its own is not known while it does not answer", s.Holder)
	}
	known := map[int]bool{}
	if s.Core != nil {
		all, err := s.Core.Processes(ctx)
		if err != nil {
			return Found(Fail, "reeve status", "%v", err)
		}
		for _, p := range all {
			known[p.PID] = true
		}
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(procs) == 0 {
		return Found(Skip, "", "this system has no list of processes in /proc")
	}
	source := filepath.Join(s.Dir, "python") + string(filepath.Separator)
	var strays []string
	for _, path := range procs {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended in between, or is another user's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && strings.Contains(string(b), source) && !known[pid] {
			strays = append(strays, strconv.Itoa(pid))
		}
	}
	if len(strays) > 0 {
		return Found(Fail, "kill "+strings.Join(strays, " "), "workers without a core: %s", strings.Join(strays, ", "))
	}
	return Found(Pass, "", "none")
}

func checkFiles(context.Context, Subject) Finding {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return Found(Fail, "", "%v", err)
	}
	const enough = 256 // a dozen per worker, some for the store
	if l.Max < enough {
		return Found(Warn, fmt.Sprintf("ulimit -n %d", enough), "at most %d open files", l.Max)
	}
	return Found(Pass, "", "up to %d open files", l.Max)
}

func (a *app) checkTerminal(context.Context, Subject) Finding {
	if !a.io.OutTTY {
		return Found(Pass, "", "output is no terminal: tabs, no colour")
	}
	return Found(Pass, "", "TERM=%s, %d columns, colour %t", a.io.Env("TERM"), a.io.Width, a.colored(true))
}
