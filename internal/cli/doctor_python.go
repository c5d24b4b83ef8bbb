package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// pythonProbes check the interpreter that workers would be started with.
var pythonProbes = []Probe{
	{"python.found", checkPython},
	{"python.interrupt", checkInterrupt},
}

const pythonFix = "install Python 3.11 or later, or name one with worker.python in config.toml"

func checkPython(ctx context.Context, s Subject) Finding {
	name := s.Config.Worker.Python
	path, err := exec.LookPath(name)
	if err != nil {
		return Found(Fail, pythonFix, "%v", err)
	}
	begun := time.Now()
	out, err := exec.CommandContext(ctx, path, "-I", "-S", "-E", "-B", "-c", //nolint:gosec // the operator's own interpreter
		`import sys; print("%d.%d.%d" % sys.version_info[:3], sys.version_info >= (3, 11))`).Output()
	if err != nil {
		return Found(Fail, pythonFix, "%s: %v", path, withStderr(err))
	}
	took := time.Since(begun)
	version, enough, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if enough != "True" {
		return Found(Fail, pythonFix, "%s is Python %s", path, version)
	}
	return Found(Pass, "", "%s, Python %s, starts in %s", path, version, span(took))
}

// withStderr adds what a program that failed had to say.
func withStderr(err error) error {
	var e *exec.ExitError
	if errors.As(err, &e) && len(e.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(e.Stderr)))
	}
	return err
}

// checkInterrupt makes sure that SIGINT reaches Python code: a machine on which it is
// ignored can only kill a cell.
func checkInterrupt(ctx context.Context, s Subject) Finding {
	path, err := exec.LookPath(s.Config.Worker.Python)
	if err != nil {
		return Found(Skip, "", "no interpreter")
	}
	const program = `import time
try:
    print("up", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("stopped", flush=True)`
	cmd := exec.CommandContext(ctx, path, "-I", "-S", "-E", "-B", "-c", program) //nolint:gosec // the operator's own interpreter
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return Found(Fail, pythonFix, "%v", err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "up" {
		_ = cmd.Process.Kill()
		return Found(Fail, pythonFix, "%s does not run: %v", path, cmd.Wait())
	}
	begun := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		return Found(Fail, "", "%v", errors.Join(err, cmd.Process.Kill(), cmd.Wait()))
	}
	stopped := lines.Scan() && lines.Text() == "stopped"
	err = cmd.Wait()
	if !stopped || err != nil {
		return Found(Fail, "start reeve without SIGINT ignored (not with nohup or in a shell's background)", "SIGINT does not stop Python code: %v", err)
	}
	return Found(Pass, "", "SIGINT stops Python code in %s", span(time.Since(begun)))
}
