package host

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// Processes implements control.Lifecycle: the core and everything that descends
// from it, each with the session it belongs to. Without /proc it knows only what
// it has started itself.
func (c *Core) Processes(context.Context) ([]control.Process, error) {
	shims, workers := c.processOwners()
	all, err := readProcesses("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]process{}
	rows := []control.Process{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if p.pid == os.Getpid() {
			rows = append(rows, p.row("core"))
		}
	}
	var walk func(pid int, owner *lane)
	walk = func(pid int, owner *lane) {
		for _, p := range children[pid] {
			row, mine := p.row("descendant"), owner
			if l := shims[p.pid]; l != nil {
				row.Kind, mine = "shim", l
			}
			if l := workers[p.pid]; l != nil {
				row.Kind, mine = "worker", l
			}
			if mine != nil {
				row.Session, row.Generation = mine.id, mine.row().Generation
			}
			rows = append(rows, row)
			walk(p.pid, mine)
		}
	}
	walk(os.Getpid(), nil)
	return rows, nil
}

func (c *Core) processOwners() (shims, workers map[int]*lane) {
	shims, workers = map[int]*lane{}, map[int]*lane{}
	for _, l := range c.allLanes() {
		l.mu.Lock()
		if w := l.worker; w != nil {
			shims[w.ShimPID()], workers[w.PID()] = l, l
		}
		l.mu.Unlock()
	}
	return shims, workers
}

// process is what /proc tells of one.
type process struct {
	pid, parent int
	command     string
	rss, cpuMS  int64
	startedMS   int64
}

func (p process) row(kind string) control.Process {
	return control.Process{PID: p.pid, Kind: kind, Command: p.command, RSSBytes: p.rss, CPUMS: p.cpuMS, StartedMS: p.startedMS}
}

// hertz is the unit of times in /proc on every Linux that Go runs on.
const hertz = 100

// readProcesses reads all processes below root, by pid. Those that end meanwhile
// are left out.
func readProcesses(root string) ([]process, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "list processes", root)
	}
	boot := bootTime(root)
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(filepath.Join(root, e.Name()), boot); ok {
			p.pid = pid
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b process) int { return cmp.Compare(a.pid, b.pid) })
	return all, nil
}

// readProcess reads one. In its stat line the name stands in brackets and may hold
// anything; the members after it are counted from the last bracket.
func readProcess(dir string, boot time.Time) (process, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || open < 0 || end < open {
		return process{}, false
	}
	f := strings.Fields(string(stat[end+1:]))
	if len(f) < 22 {
		return process{}, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n } // the kernel writes numbers
	p := process{
		parent: int(number(1)), cpuMS: (number(11) + number(12)) * 1000 / hertz,
		rss: number(21) * int64(os.Getpagesize()), startedMS: boot.Add(time.Duration(number(19)) * time.Second / hertz).UnixMilli(),
		command: string(stat[open+1 : end]),
	}
	if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && len(line) > 0 {
		p.command = valid(strings.TrimSpace(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))))
	}
	return p, true
}

// bootTime is when the machine started, the zero Unix time when it is not told.
func bootTime(root string) time.Time {
	stat, err := os.ReadFile(filepath.Join(root, "stat"))
	if err != nil {
		return time.Unix(0, 0)
	}
	for line := range strings.Lines(string(stat)) {
		if rest, ok := strings.CutPrefix(line, "btime "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Unix(0, 0)
}
