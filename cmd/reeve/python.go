package main

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/cli"
	"github.com/reeve-run/reeve/internal/supervise"
)

// pythonTime is more than the other checks have: the launcher scripts of version
// managers alone may take a second or two.
const pythonTime = 5 * time.Second

// pythonProbes check the interpreter that workers would be started with. It is
// looked for once.
func pythonProbes() []cli.Probe {
	var once sync.Once
	var found event.Python
	var err error
	find := func(ctx context.Context, s cli.Subject) (event.Python, error) {
		once.Do(func() { found, err = supervise.Probe(ctx, s.Config.Worker.Python) })
		return found, err
	}
	return []cli.Probe{
		{ID: "python.found", Limit: pythonTime, Run: func(ctx context.Context, s cli.Subject) cli.Finding {
			p, err := find(ctx, s)
			if err != nil {
				return cli.Found(cli.Fail, nextOf(err), "%v", err)
			}
			begun := time.Now()
			if err := exec.CommandContext(ctx, p.Path, "-I", "-S", "-E", "-B", "-c", "").Run(); err != nil {
				return cli.Found(cli.Fail, "", "start %s: %v", p.Path, err)
			}
			return cli.Found(cli.Pass, "", "%s, Python %s, starts in %d ms", p.Path, p.Version, time.Since(begun).Milliseconds())
		}},
		{ID: "python.interrupt", Limit: pythonTime, Run: func(ctx context.Context, s cli.Subject) cli.Finding {
			p, err := find(ctx, s)
			if err != nil {
				return cli.Found(cli.Skip, "", "there is no interpreter to interrupt")
			}
			return checkInterrupt(ctx, p.Path)
		}},
	}
}

// nextOf is what an error says to do.
func nextOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Next
	}
	return ""
}

// checkInterrupt makes sure that SIGINT reaches Python code: a machine on which it is
// ignored can only kill a cell.
func checkInterrupt(ctx context.Context, path string) cli.Finding {
	const program = `import time
try:
    print("up", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("stopped", flush=True)`
	cmd := exec.CommandContext(ctx, path, "-I", "-S", "-E", "-B", "-c", program)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return cli.Found(cli.Fail, "", "%v", err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "up" {
		_ = cmd.Process.Kill()
		return cli.Found(cli.Fail, "", "%s does not run: %v", path, cmd.Wait())
	}
	begun := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		return cli.Found(cli.Fail, "", "%v", errors.Join(err, cmd.Process.Kill(), cmd.Wait()))
	}
	stopped := lines.Scan() && lines.Text() == "stopped"
	err = cmd.Wait()
	if !stopped || err != nil {
		return cli.Found(cli.Fail, "start reeve without SIGINT ignored (not with nohup or in a shell's background)", "SIGINT does not stop Python code: %v", err)
	}
	return cli.Found(cli.Pass, "", "SIGINT stops Python code in %s", time.Since(begun).Round(time.Millisecond))
}
