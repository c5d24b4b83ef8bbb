package host_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
)

// After a stop in order the next core says honestly what the namespace held.
func TestStopAndStartTellWhatWasHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "x = 6*7\ny = 1")
	r.run(t, c, "s", "del y")
	r.run(t, c, "empty", "1")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = r.open(t)
	row, err := c.Session(t.Context(), "s")
	if err != nil || row.State != "stopped" || !strings.Contains(row.Reason, "reeve was stopped") || row.Generation != "" || row.Cells != 2 {
		t.Errorf("session %+v, %v", row, err)
	}
	held := control.Namespace{Session: "s", Generation: "g-1", Names: []string{"x"}}
	if n, err := c.Namespace(t.Context(), "s"); err != nil || cmp.Diff(held, n) != "" {
		t.Errorf("namespace %+v, %v; want %+v", n, err, held)
	}
	res := r.run(t, c, "s", "x")
	n := res.Notice
	if res.Status != "error" || n == nil || n.Kind != "namespace_stopped" || !slices.Equal(n.Names, []string{"x"}) || n.Generation != "g-2" || n.Previous != "g-1" || !strings.Contains(n.Text, "It held x.") {
		t.Errorf("got %+v, notice %+v", res, n)
	}
	if n != nil && strings.Contains(n.Text, "not known") {
		t.Errorf("no cell was running, but the notice says %q", n.Text)
	}
	if res.Execution != "e-3" {
		t.Errorf("execution %s was given again", res.Execution)
	}
	if res := r.run(t, c, "empty", "1"); res.Notice == nil || !strings.Contains(res.Notice.Text, "It held no names.") {
		t.Errorf("the empty one: %+v", res.Notice)
	}
	want := []string{
		"session.opened", "kernel.reset", "cell.started", "cell.completed", "cell.started", "cell.completed", "kernel.stopped",
		"kernel.reset", "cell.started", "cell.completed",
	}
	if diff := cmp.Diff(want, kinds(t, c, "s")); diff != "" {
		t.Error(diff)
	}
}

// W17: a stop while a cell runs interrupts it after its grace, refuses what waits,
// starts nothing, and leaves nothing.
func TestStopDuringACell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config.Limits.StopGrace = 50 * time.Millisecond
	c := r.open(t)
	p, got := start(t.Context(), c.Execute, r.request("s", forever))
	p.wait(t, "output")
	pids := workerPIDs(t, c)
	q, waiting := start(t.Context(), c.Execute, r.request("s", "1"))
	q.wait(t, "queued")
	if err := c.Shutdown(t.Context(), me); err != nil {
		t.Fatal(err)
	}
	if a := <-waiting; fault.CodeOf(a.err) != fault.Unavailable {
		t.Errorf("the waiting one: %+v", a)
	}
	if a := <-got; a.err != nil || a.result.Status != "interrupted" || !strings.Contains(a.result.Notice.Text, "stopped by operator ada") {
		t.Errorf("the running one: %+v", a)
	}
	if _, err := c.Execute(t.Context(), r.request("s", "1"), nil); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("new work: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if _, err := os.Stat(filepath.Join("/proc", itoa(pid))); err == nil {
			t.Errorf("process %d is left", pid)
		}
	}
	c = r.open(t)
	all := kinds(t, c, "s")
	if last := all[len(all)-1]; last != "kernel.stopped" || all[len(all)-2] != "cell.completed" {
		t.Errorf("events %v", all)
	}
}

func workerPIDs(t *testing.T, c *host.Core) []int {
	t.Helper()
	procs, err := c.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range procs {
		if p.Kind == "shim" || p.Kind == "worker" {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("processes %+v", procs)
	}
	return pids
}

// W5: a restart works while a cell blocks, and the names that go are told.
func TestResetEndsWhatRunsAndTellsSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "old = 1")
	p, got := start(t.Context(), c.Execute, r.request("s", forever))
	p.wait(t, "output")
	q, waiting := start(t.Context(), c.Execute, r.request("s", "old"))
	q.wait(t, "queued")
	row, err := c.ResetNamespace(t.Context(), "s", me)
	if err != nil || row.State != "idle" || row.Generation != "g-2" || row.Names != 0 {
		t.Errorf("after reset: %+v, %v", row, err)
	}
	if a := <-waiting; fault.CodeOf(a.err) != fault.Cancelled {
		t.Errorf("the waiting one: %+v", a)
	}
	if a := <-got; a.err != nil || a.result.Status != "interrupted" || a.result.Cause == nil || a.result.Cause.Kind != event.CauseShutdown {
		t.Errorf("the running one: %+v", a)
	}
	res := r.run(t, c, "s", "'old' in globals()")
	if n := res.Notice; text(res, "result") != "False" || n == nil || n.Kind != "namespace_reset" || !slices.Equal(n.Names, []string{"old"}) {
		t.Errorf("got %+v, notice %+v", res, n)
	}
	if row, err = c.ResetNamespace(t.Context(), "s", me); err != nil || row.Generation != "g-3" {
		t.Errorf("reset at rest: %+v, %v", row, err)
	}
}

func TestCloseIsForEver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "1")
	row, err := c.CloseSession(t.Context(), "s", me)
	if err != nil || row.State != "closed" || !strings.Contains(row.Reason, "ada") {
		t.Errorf("got %+v, %v", row, err)
	}
	if procs, err := c.Processes(t.Context()); err != nil || slices.ContainsFunc(procs, func(p control.Process) bool { return p.Kind == "worker" }) {
		t.Errorf("a worker is left: %+v, %v", procs, err)
	}
	for range 2 {
		if _, err := c.Execute(t.Context(), r.request("s", "1"), nil); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("a cell after the close: %v", err)
		}
		if _, err := c.Resume(t.Context(), "s", me); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("resume after the close: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		c = r.open(t)
	}
	list, err := c.ListSessions(t.Context())
	if err != nil || len(list) != 1 || list[0].State != "closed" {
		t.Errorf("list %+v, %v", list, err)
	}
}

func TestResumeStartsAWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	for name, call := range map[string]func() error{
		"resume":    func() error { _, err := c.Resume(t.Context(), "none", me); return err },
		"reset":     func() error { _, err := c.ResetNamespace(t.Context(), "none", me); return err },
		"close":     func() error { _, err := c.CloseSession(t.Context(), "none", me); return err },
		"show":      func() error { _, err := c.Session(t.Context(), "none"); return err },
		"namespace": func() error { _, err := c.Namespace(t.Context(), "none"); return err },
		"cells":     func() error { _, err := c.ListCells(t.Context(), "none", 1); return err },
	} {
		if err := call(); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s of no session: %v", name, err)
		}
	}
	r.run(t, c, "s", "1")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = r.open(t)
	row, err := c.Resume(t.Context(), "s", me)
	if err != nil || row.State != "idle" || row.Generation != "g-2" || row.Python == "" {
		t.Errorf("got %+v, %v", row, err)
	}
	if again, err := c.Resume(t.Context(), "s", me); err != nil || again.Generation != "g-2" {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestAnIdleWorkerIsStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config.Limits.IdleStop = 100 * time.Millisecond
	c := r.open(t)
	r.run(t, c, "s", "x = 1")
	waitForEvent(t, c, "s", event.KernelStopped)
	res := r.run(t, c, "s", "1")
	if n := res.Notice; n == nil || n.Kind != "namespace_stopped" || !strings.Contains(n.Text, "idle for 100ms") || !slices.Equal(n.Names, []string{"x"}) {
		t.Errorf("notice %+v", n)
	}
}

// W9: after so many quick deaths the session stops, says so, and how to go on.
func TestQuickDeathsStopASession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config.Limits.Restarts = 2
	c := r.open(t)
	for range 2 {
		r.run(t, c, "s", "import os\nos._exit(1)")
	}
	_, err := c.Execute(t.Context(), r.request("s", "1"), nil)
	if fault.CodeOf(err) != fault.WorkerLost || !strings.Contains(err.Error(), "2 workers in a row") {
		t.Fatalf("got %v", err)
	}
	if next := err.(*fault.Error).Next; !strings.Contains(next, "reeve ns reset s") {
		t.Errorf("next %q", next)
	}
	row, err := c.Session(t.Context(), "s")
	if err != nil || row.State != "stopped" || row.RestartsLeft != 0 || !strings.Contains(row.Reason, "no worker is started any more") {
		t.Errorf("session %+v, %v", row, err)
	}
	if row, err = c.ResetNamespace(t.Context(), "s", me); err != nil || row.State != "idle" || row.RestartsLeft != 2 {
		t.Errorf("after reset: %+v, %v", row, err)
	}
	if res := r.run(t, c, "s", "1"); res.Status != "ok" {
		t.Errorf("got %+v", res)
	}
}

// W10: a restarted worker stands where the first one stood.
func TestARestartedWorkerHasTheSameSurroundings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	const look = "import os, sys, resource\nprint(sorted(os.environ.items()), os.getcwd(), sys.executable, sys.path, resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o22), os.nice(0))"
	first := r.run(t, c, "s", look)
	r.run(t, c, "s", "os._exit(3)")
	second := r.run(t, c, "s", look)
	if second.Generation != "g-2" || text(first, "stdout") == "" || !strings.Contains(text(first, "stdout"), r.workspace) {
		t.Fatalf("got %+v", second)
	}
	a, b := stable(text(first, "stdout")), stable(text(second, "stdout"))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

// stable leaves out what a generation may call its own.
func stable(s string) string {
	return strings.ReplaceAll(s, "g-2", "g-1")
}

func TestProcessesHaveOwners(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)")
	procs, err := c.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mine []control.Process
	for _, p := range procs {
		if p.Session == "s" {
			mine = append(mine, p)
		}
	}
	if len(mine) != 3 || mine[0].Kind != "shim" || mine[1].Kind != "worker" || mine[2].Kind != "descendant" || mine[2].Command != "sleep 600" {
		t.Fatalf("processes %+v", mine)
	}
	if mine[1].Generation != "g-1" || mine[1].RSSBytes < 1<<20 || mine[1].StartedMS < time.Now().Add(-time.Hour).UnixMilli() {
		t.Errorf("the worker: %+v", mine[1])
	}
	if procs[0].Kind != "core" || procs[0].PID != os.Getpid() {
		t.Errorf("the core: %+v", procs[0])
	}
	if _, err := c.CloseSession(t.Context(), "s", me); err != nil {
		t.Fatal(err)
	}
	for _, p := range mine {
		if _, err := os.Stat(filepath.Join("/proc", itoa(p.PID))); err == nil {
			t.Errorf("%s %d outlived its session", p.Kind, p.PID)
		}
	}
}

func TestStatusAndUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", strings.Repeat("#", 20_000))
	status, err := c.Status(t.Context())
	if err != nil || status.Store.State != "ok" || status.Store.Synchronous != "full" || status.Events != 5 || status.Sessions != 1 || status.Epoch != 1 || status.LastRecovery != "nothing was open" {
		t.Errorf("status %+v, %v", status, err)
	}
	u, err := c.Usage(t.Context())
	if err != nil || u.Events != 5 || u.Artifacts != 1 || u.ArtifactBytes != 20_000 || u.PayloadBytes == 0 || u.DatabaseBytes+u.WALBytes == 0 || u.RuntimeBytes == 0 || u.AvailableBytes == 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
}

// A project's settings hold for its sessions, and one that loosens stops its own
// session only.
func TestAProjectTightensItsSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	if err := os.MkdirAll(filepath.Join(r.workspace, ".reeve"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.workspace, ".reeve", "config.toml")
	if err := os.WriteFile(file, []byte("[worker]\npython = '/tmp/evil'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Execute(t.Context(), r.request("s", "1"), nil); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a loosening project: %v", err)
	}
	if err := os.WriteFile(file, []byte("[limits]\nidle_stop = '50ms'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(t, c, "s", "1")
	waitForEvent(t, c, "s", event.KernelStopped)
}

func TestASecondCoreIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.open(t)
	_, err := host.Open(t.Context(), host.Options{Dir: r.dir, Config: r.config})
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), itoa(os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

func TestADirectoryThatOthersMayEnterIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := host.Open(t.Context(), host.Options{Dir: r.dir, Config: r.config})
	if fault.CodeOf(err) != fault.Denied || !strings.Contains(err.(*fault.Error).Next, "chmod 700") {
		t.Errorf("got %v", err)
	}
}

// The core as clients see it: the same calls over its socket, and an end that
// takes the socket away.
func TestACoreServesItsSocketUntilItIsStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context()) }()
	client := connect(t, r.dir)
	res, err := client.Execute(t.Context(), r.request("s", "print('hi')\n7"), nil)
	if err != nil || text(res, "stdout") != "hi\n" || text(res, "result") != "7" {
		t.Errorf("got %+v, %v", res, err)
	}
	direct, err := c.Cell(context.Background(), res.Cell)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := client.Cell(t.Context(), res.Cell)
	if diff := cmp.Diff(direct, remote); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if err := client.Shutdown(t.Context(), me); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "core.json")); !os.IsNotExist(err) {
		t.Errorf("core.json is left: %v", err)
	}
}

// connect asks for the core until it answers.
func connect(t *testing.T, dir string) *control.Client {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(time.Minute); ; {
		client, err := control.Connect(t.Context(), dir)
		if err == nil {
			return client
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("no core answers within a minute: %v", err)
		}
	}
}
