package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// place is a user's working directory with a data directory of its own.
type place struct {
	home, work string
	env        []string
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	p := place{home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	if err := os.Mkdir(p.work, 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = append(os.Environ(), "HOME="+dir, "REEVE_HOME="+p.home, "REEVE_WORKER_PYTHON="+reevetest.Python(t).Path)
	t.Cleanup(func() { stopCore(t, p.home) })
	return p
}

// reeve is a command line in p that has not started yet.
func (p place) reeve(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: self, Args: append([]string{"reeve"}, args...), Dir: p.work, Env: p.env}
}

// begun starts a command and returns when its standard output has the line.
func begun(t *testing.T, cmd *exec.Cmd, line string) (out io.Reader, stderr *bytes.Buffer) {
	t.Helper()
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(pipe)
	if got, err := r.ReadString('\n'); got != line+"\n" {
		t.Fatalf("first line %q, %v, want %q\n%s", got, errors.Join(err, cmd.Wait()), line, stderr)
	}
	return r, stderr
}

// ended returns the exit status of a command that begun started.
func ended(t *testing.T, cmd *exec.Cmd, out io.Reader) int {
	t.Helper()
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

func TestSignalsInterruptTheCell(t *testing.T) {
	t.Parallel()
	for s, want := range map[syscall.Signal]int{syscall.SIGINT: fault.ExitInterrupted, syscall.SIGTERM: fault.ExitTerminated} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			cmd := p.reeve(t, "cell", "run", `kept = 1; print("up", flush=True); import time; time.sleep(600)`)
			out, stderr := begun(t, cmd, "up")
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if got := ended(t, cmd, out); got != want || !strings.Contains(stderr.String(), "next: reeve cell show cell_") {
				t.Errorf("status %d, want %d and the handle\n%s", got, want, stderr)
			}
			after, err := p.reeve(t, "cell", "run", "kept").Output()
			if err != nil || string(after) != "1\n" {
				t.Errorf("the namespace after the interrupt: %q, %v", after, err)
			}
		})
	}
}

func TestSecondSignalLeavesAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cmd := p.reeve(t, "cell", "run", "--jsonl", "--jq", ".kind + .text", `
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("up", flush=True)
while True: pass`)
	out, stderr := begun(t, cmd, "started")
	lines := bufio.NewScanner(out)
	await := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("no line %q\n%s", want, stderr)
	}
	await("outputup")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	await("interrupting")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, cmd, out); got != fault.ExitInterrupted || strings.Contains(stderr.String(), "reeve") {
		t.Errorf("status %d, want %d without a word about the cell\n%s", got, fault.ExitInterrupted, stderr)
	}
}

// The core is killed under a running cell: the outcome is unknown to the caller, who
// is told where to look, and the next command finds the record.
func TestKilledCoreIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cmd := p.reeve(t, "cell", "run", `print("up", flush=True); import time; time.sleep(600)`)
	out, stderr := begun(t, cmd, "up")
	core, err := control.ReadCore(p.home)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(core.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, cmd, out); got != fault.ExitUnknown {
		t.Errorf("status %d, want %d\n%s", got, fault.ExitUnknown, stderr)
	}
	_, show, found := strings.Cut(stderr.String(), "reeve cell show ")
	if !found {
		t.Fatalf("the handle is not named:\n%s", stderr)
	}
	status, err := p.reeve(t, "cell", "show", strings.TrimSpace(show), "--jq", ".data.result.status").Output()
	if err != nil || string(status) != "interrupted\n" && string(status) != "failed\n" {
		t.Errorf("the record says %q, %v", status, err)
	}
}

// A core that has stopped holds no command past its --timeout: with the handle when
// the cell is known, and without a cell when it is not.
func TestTimeoutHoldsWithAStoppedCore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cmd := p.reeve(t, "cell", "run", "--timeout", "1s", `print("up", flush=True); import time; time.sleep(600)`)
	out, stderr := begun(t, cmd, "up")
	core, err := control.ReadCore(p.home)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(core.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(core.PID, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
	if got := ended(t, cmd, out); got != fault.ExitBudget || !strings.Contains(stderr.String(), "reeve cell show cell_") {
		t.Errorf("status %d, want %d and the handle\n%s", got, fault.ExitBudget, stderr)
	}
	for _, args := range [][]string{{"cell", "run", "1"}, {"status"}} {
		cmd := p.reeve(t, append(args, "--timeout", "100ms")...)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != fault.ExitBudget {
			t.Errorf("%v: status %d, %v\n%s", args, got, err, out)
		}
	}
}

// The workers of a core that has stopped are its own, and doctor does not have them
// killed; those of a core that is gone are strays.
func TestDoctorTellsStraysFromASilentCoresWorkers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if out, err := p.reeve(t, "cell", "run", "1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	core, err := control.ReadCore(p.home)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(core.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	verdicts := func() (status int, verdict map[string]string, fix string) {
		t.Helper()
		cmd := p.reeve(t, "doctor", "--only", "core,store.chain", "--json")
		out, err := cmd.Output()
		var e struct {
			Data struct {
				Checks []struct{ ID, Verdict, Fix string }
			}
		}
		if jsonErr := json.Unmarshal(out, &e, json.MatchCaseInsensitiveNames(true)); jsonErr != nil {
			t.Fatalf("%v, %v\n%s", err, jsonErr, out)
		}
		verdict = map[string]string{}
		for _, c := range e.Data.Checks {
			verdict[c.ID] = c.Verdict
			if c.ID == "core.strays" {
				fix = c.Fix
			}
		}
		return cmd.ProcessState.ExitCode(), verdict, fix
	}
	status, got, fix := verdicts()
	want := map[string]string{"core.running": "FAIL", "core.strays": "SKIP", "store.chain": "SKIP"}
	if diff := cmp.Diff(want, got); diff != "" || status != fault.ExitFindings || fix != "" {
		t.Errorf("of a stopped core: status %d, fix %q\n%s", status, fix, diff)
	}
	if err := syscall.Kill(core.PID, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	stopCore(t, p.home)

	stray := &exec.Cmd{Path: "/bin/sleep", Args: []string{filepath.Join(p.home, "python", "x", "reeve_boot.py"), "600"}}
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	status, got, fix = verdicts()
	if got["core.strays"] != "FAIL" || fix != fmt.Sprint("kill ", stray.Process.Pid) || status != fault.ExitFindings {
		t.Errorf("of a stray: status %d, fix %q, %v", status, fix, got)
	}
	if err := stray.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = stray.Wait() // it was killed: its status is no news
	if status, got, _ = verdicts(); got["core.strays"] != "PASS" || status != 0 {
		t.Errorf("without: status %d, %v", status, got)
	}
}

// A demo that is made to leave at once, before it could stop anything, leaves no
// process behind all the same.
func TestDemoLeavesNoProcess(t *testing.T) {
	t.Parallel()
	tmp, err := os.MkdirTemp("", "rv") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(tmp); err != nil {
			t.Error(err)
		}
	})
	p := newPlace(t)
	p.env = append(p.env, "TMPDIR="+tmp)
	cmd := p.reeve(t, "demo")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "find the bug") { // its core runs and has a worker
	}
	cores, err := filepath.Glob(filepath.Join(tmp, "reeve-demo-*", "data"))
	if err != nil || len(cores) != 1 {
		t.Fatal(cores, err)
	}
	core, err := control.ReadCore(cores[0])
	if err != nil {
		t.Fatal(err)
	}
	// Two of a kind may be seen as one.
	if err := errors.Join(cmd.Process.Signal(syscall.SIGINT), cmd.Process.Signal(syscall.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	_ = cmd.Wait() // its status depends on which signal came first
	again, limit := time.NewTicker(20*time.Millisecond), time.After(30*time.Second)
	for left := naming(t, tmp); len(left) > 0; left = naming(t, tmp) {
		select {
		case <-again.C:
		case <-limit:
			if err := syscall.Kill(core.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
			t.Fatalf("left: %q", left)
		}
	}
}

// naming is the processes that have text in their arguments.
func naming(t *testing.T, text string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(text)) { // else it has ended in between
			found = append(found, path+" "+string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// A core that was to live as long as a process does not start without it.
func TestCoreOfAProcessThatHasEnded(t *testing.T) {
	t.Parallel()
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	cmd := p.reeve(t, "core", "-c", fmt.Sprint("core.owner=", gone.Process.Pid))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != fault.ExitUnavailable || !strings.Contains(string(out), "it has ended") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A core that cannot start says why through the command that needed it.
func TestCoreThatCannotStartIsExplained(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := os.Mkdir(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.home, "config.toml"), []byte("[worker]\npyhton = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := p.reeve(t, "cell", "run", "1", "--json")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != fault.ExitUsage || !strings.Contains(out.String(), "worker.pyhton") || !strings.Contains(out.String(), "worker.python") || stderr.Len() > 0 {
		t.Errorf("%v\nstdout %s\nstderr %s", err, &out, &stderr)
	}
}
