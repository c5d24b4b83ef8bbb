package demo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
)

// bug is what the agent has found, from what its cells printed.
type bug struct {
	test   string // that fails
	got    string // what the code gives, want what the test asks for
	want   string
	file   string
	line   string // the faulty one, without its indentation
	number string
}

// toolbox is what the agent defines for itself in the workbench.
const toolbox = `
import pathlib, subprocess, sys
root = pathlib.Path.cwd()
def tests():
    done = subprocess.run([sys.executable, "-B", "-m", "unittest"], cwd=root, capture_output=True, text=True)
    return done.returncode, done.stderr`

func (d *demo) connect(ctx context.Context) (string, error) {
	a, err := hire(ctx, d.opt.Exe, d.data, d.repo, d.printf)
	if err != nil {
		return "", err
	}
	d.agent = a
	list, err := a.session.ListTools(ctx, nil)
	if err != nil {
		return "", err
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	server := a.session.InitializeResult().ServerInfo
	return fmt.Sprintf("connected to %s %s; it offers %s", server.Name, server.Version, strings.Join(names, ", ")),
		expect(slices.Contains(names, "execute"), "there is no tool execute in %v", names)
}

var failure = regexp.MustCompile(`(?m)^FAIL: (\w+)`)

func (d *demo) test(ctx context.Context) (string, error) {
	if _, err := d.agent.ok(ctx, toolbox); err != nil {
		return "", err
	}
	// The core runs since the first cell; the operator's side of it is watched too.
	core, err := control.Connect(ctx, d.data)
	if err != nil {
		return "", err
	}
	d.core = core
	got, err := d.agent.ok(ctx, `
code, log = tests()
print("\n".join(line for line in log.splitlines() if line.startswith(("FAIL:", "AssertionError:", "Ran", "FAILED", "OK"))))
code`)
	if err != nil {
		return "", err
	}
	tests := failure.FindAllStringSubmatch(got.printed(), -1)
	if got.value() != "1" || len(tests) != 2 {
		return "", fmt.Errorf("the tests ended with %s and %d failures, expected are 1 and 2", got.value(), len(tests))
	}
	d.found.test = tests[0][1]
	return fmt.Sprintf("%d tests fail, the first is %s", len(tests), d.found.test), nil
}

var lists = regexp.MustCompile(`Lists differ: (.+) != (.+)`)

func (d *demo) find(ctx context.Context) (string, error) {
	got, err := d.agent.ok(ctx, fmt.Sprintf(`
part = log.split("FAIL: %s", 1)[1]
print(next(line for line in part.splitlines() if line.startswith("AssertionError")))`, d.found.test))
	if err != nil {
		return "", err
	}
	m := lists.FindStringSubmatch(got.printed())
	if m == nil {
		return "", fmt.Errorf("the failure does not say what differs: %s", got.printed())
	}
	d.found.got, d.found.want = m[1], m[2]
	if !strings.Contains(d.found.got, "(-") {
		return "", fmt.Errorf("%s holds no negative position", d.found.got)
	}
	// A start before the body: the agent looks for where a start is computed by
	// taking something away.
	got, err = d.agent.ok(ctx, `
suspects = [(path, number, line.strip())
            for path in sorted((root / "byteranges").glob("*.py"))
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if line.strip().startswith("start =") and " - " in line]
for path, number, line in suspects:
    print(f"{path.relative_to(root)}:{number}: {line}")`)
	if err != nil {
		return "", err
	}
	place := strings.SplitN(got.printed(), ":", 3)
	if len(place) != 3 || strings.Contains(got.printed(), "\n") {
		return "", fmt.Errorf("expected one place, found %q", got.printed())
	}
	d.found.file, d.found.number, d.found.line = place[0], place[1], strings.TrimSpace(place[2])
	return fmt.Sprintf("%s line %s gives %s where %s is right: it goes before the body's first byte",
		d.found.file, d.found.number, d.found.got, d.found.want), nil
}

// lose kills the worker with a cell under way, as the kernel does for want of
// memory.
func (d *demo) lose(ctx context.Context) (string, error) {
	type end struct {
		got answer
		err error
	}
	ended := make(chan end, 1)
	go func() {
		got, err := d.agent.run(ctx, `import time; print("thinking"); time.sleep(60)`)
		ended <- end{got, err}
	}()
	worker, err := d.busyWorker(ctx)
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(worker.PID, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("kill worker %d: %w", worker.PID, err)
	}
	e := <-ended
	if e.err != nil {
		return "", e.err
	}
	c := e.got.Cause
	if e.got.Status != string(event.CellFailed) || c == nil || c.Kind != event.CauseSignal {
		return "", fmt.Errorf("the cell ended as %s, cause %+v", e.got.Status, c)
	}
	return fmt.Sprintf("worker %d of %s was killed; the cell's answer says: %s, %s", worker.PID, worker.Generation, e.got.Status, c.Text),
		expect(e.got.printed() == "thinking", "what the cell had printed is lost: %q", e.got.printed())
}

// busyWorker waits until the newest cell runs and something it has printed has
// reached the core, and gives its worker. What a worker has not sent yet, at most
// 50 ms of printing, dies with it.
func (d *demo) busyWorker(ctx context.Context) (control.Process, error) {
	for {
		cells, err := d.core.ListCells(ctx, "", 1)
		if err != nil {
			return control.Process{}, err
		}
		if len(cells) == 1 && cells[0].Status == "running" {
			o, err := d.core.Output(ctx, cells[0].Cell, 0)
			if err != nil {
				return control.Process{}, err
			}
			if err := o.Body.Close(); err != nil {
				return control.Process{}, err
			}
			if o.Total > 0 {
				return d.worker(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return control.Process{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (d *demo) worker(ctx context.Context) (control.Process, error) {
	all, err := d.core.Processes(ctx)
	if err != nil {
		return control.Process{}, err
	}
	i := slices.IndexFunc(all, func(p control.Process) bool { return p.Kind == "worker" })
	if i < 0 {
		return control.Process{}, fmt.Errorf("the core names no worker in %+v", all)
	}
	return all[i], nil
}

func (d *demo) goOn(ctx context.Context) (string, error) {
	got, err := d.agent.ok(ctx, toolbox)
	if err != nil {
		return "", err
	}
	n := got.Notice
	if n == nil || n.Kind != "namespace_lost" {
		return "", fmt.Errorf("the first answer after the loss has no notice of it: %+v", n)
	}
	for _, name := range []string{"log", "root", "suspects", "tests"} {
		if !slices.Contains(n.Names, name) {
			return "", fmt.Errorf("the notice does not name %s: %v", name, n.Names)
		}
	}
	return fmt.Sprintf("the notice named what was lost (%s); %s is defined again in %s, nothing was run twice by itself",
		strings.Join(n.Names, ", "), "tests", got.Generation), nil
}

func (d *demo) mend(ctx context.Context) (string, error) {
	mended := strings.Replace(d.found.line, "size - int(last)", "max(size - int(last), 0)", 1)
	if mended == d.found.line {
		return "", fmt.Errorf("the line %q is not what the agent knows how to mend", d.found.line)
	}
	got, err := d.agent.ok(ctx, fmt.Sprintf(`
from reeve import verbs
done = await verbs.workspace.edit(path=%q, old=%q, new=%q)
print(done["diff"])`, d.found.file, d.found.line, mended))
	if err != nil {
		return "", err
	}
	return "the start is bounded by the first byte; the act keeps the file before and after and can be undone",
		expect(strings.Contains(got.printed(), "+"), "no difference was shown: %q", got.printed())
}

func (d *demo) prove(ctx context.Context) (string, error) {
	got, err := d.agent.ok(ctx, `
code, log = tests()
print(log.splitlines()[-3], log.splitlines()[-1])
print(subprocess.run(["git", "diff", "--unified=0"], cwd=root, capture_output=True, text=True, check=True).stdout)
code`)
	if err != nil {
		return "", err
	}
	// Not the agent's word: git is asked from outside.
	changed, err := d.git(ctx, "diff", "--numstat")
	if err != nil {
		return "", err
	}
	return "all tests pass, one line in one file has changed", errors.Join(
		expect(got.value() == "0", "the tests end with %s", got.value()),
		expect(changed == "1\t1\t"+d.found.file, "git sees another change: %q", changed))
}
