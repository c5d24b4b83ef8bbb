package workspace

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

const (
	maxRunTime = time.Hour
	// runGrace is how long the end of a program and of what it started may take.
	runGrace = 10 * time.Second
	// drainTime is how long output is read after everything has ended: a process of
	// another user may hold the pipe.
	drainTime = 500 * time.Millisecond
	// marker names the act in the environment of what it starts, by which that is
	// found.
	marker = "REEVE_ACT"
)

// passed are the variables of the base environment that a program gets.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"}

// ran is how a program ended. ExitCode and Signal exclude each other.
type ran struct {
	ExitCode   *int    `json:"exit_code"`
	Signal     *string `json:"signal"`
	TimedOut   bool    `json:"timed_out"`
	DurationMS int64   `json:"duration_ms"`
	Stdout     stream  `json:"stdout"`
	Stderr     stream  `json:"stderr"`
	Ended      int     `json:"ended"` // processes it had left running
	Act        string  `json:"act_id"`
}

type stream struct {
	Text    string `json:"text"`
	Total   int64  `json:"bytes_total"`
	Dropped int64  `json:"bytes_dropped"` // between the beginning and the end that are shown
}

// run answers workspace.run (CP-060).
func (h *handler) run(ctx context.Context, w *tree, call *verbs.Call) (verbs.Reply, error) {
	const op = "run"
	argv := texts(call, "argv")
	if err := checkArgv(op, argv); err != nil {
		return verbs.Reply{}, err
	}
	dir, err := w.workingDirectory(op, call.Text("cwd"))
	if err != nil {
		return verbs.Reply{}, untouched(err)
	}
	env, err := h.environment(op, call)
	if err != nil {
		return verbs.Reply{}, err
	}
	limit, most := call.Int("timeout_ms", 120_000), call.Int("max_output_bytes", 750_000)
	switch {
	case limit < 1 || limit > maxRunTime.Milliseconds():
		return verbs.Reply{}, fault.New(fault.LimitExceeded, op, "timeout_ms", "%d is not within 1 to %d", limit, maxRunTime.Milliseconds())
	case most < 1 || most > MaxOutput:
		return verbs.Reply{}, fault.New(fault.LimitExceeded, op, "max_output_bytes", "%d is not within 1 to %d", most, MaxOutput)
	}
	r, err := launch(ctx, program{argv: argv, dir: dir, env: env, mark: call.Scene.Act, limit: time.Duration(limit) * time.Millisecond, most: most, shim: h.Shim})
	if err != nil {
		return verbs.Reply{}, err
	}
	r.Act = call.Scene.Act
	if ctx.Err() != nil {
		f := fault.Wrap(context.Cause(ctx), fault.Cancelled, op, argv[0])
		f.Message = "it was ended with everything it had started; what it had done until then stands"
		return verbs.Reply{}, &verbs.Settled{Err: f, Disposition: request.Committed}
	}
	return verbs.Answer(r)
}

func checkArgv(op string, argv []string) error {
	if len(argv) == 0 || len(argv) > MaxArgs || argv[0] == "" {
		return fault.New(fault.InvalidRequest, op, "argv", "it has %d arguments; 1 to %d are taken, the first of them the program", len(argv), MaxArgs)
	}
	for _, a := range argv {
		if len(a) > MaxArg || strings.ContainsRune(a, 0) {
			return fault.New(fault.InvalidRequest, op, "argv", "an argument has more than %d bytes or holds a zero byte", MaxArg)
		}
	}
	return nil
}

// workingDirectory is cwd with its links resolved; it must lie in the workspace.
func (w *tree) workingDirectory(op, name string) (string, error) {
	c, err := directory(op, name)
	if err != nil {
		return "", err
	}
	info, err := w.root.Stat(c) // through the root: a link that leads out is refused
	if err != nil {
		return "", faultOf(err, op, c)
	}
	if !info.IsDir() {
		return "", fault.New(fault.InvalidRequest, op, c, "it is no directory")
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(w.dir, filepath.FromSlash(c)))
	if err != nil {
		return "", faultOf(err, op, c)
	}
	return dir, nil
}

func (h *handler) environment(op string, call *verbs.Call) ([]string, error) {
	var env []string
	for _, e := range h.Env {
		if name, _, ok := strings.Cut(e, "="); ok && slices.Contains(passed, name) {
			env = append(env, e)
		}
	}
	v, _ := call.Arg("env")
	for _, it := range v.Items() {
		value, ok := it.Value.Text()
		if !ok || it.Name == "" || strings.ContainsAny(it.Name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, fault.New(fault.InvalidRequest, op, "env", "variable %q: names hold no = and values are text", it.Name)
		}
		env = append(env, it.Name+"="+value)
	}
	return append(env, marker+"="+call.Scene.Act), nil
}

// program is what launch starts.
type program struct {
	argv  []string
	dir   string
	env   []string
	mark  string
	limit time.Duration
	most  int64
	shim  []string
}

// launch runs a program to its end, or ends it. Nothing that it started is left.
func launch(ctx context.Context, p program) (ran, error) {
	const op = "run"
	path, err := lookPath(p)
	if err != nil {
		return ran{}, fault.Wrap(err, fault.NotFound, op, p.argv[0]).WithNext("name a program on PATH, or a path in the workspace that begins with ./")
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	out, errs := newTap(p.most/2+p.most%2), newTap(p.most/2)
	var readers sync.WaitGroup
	cmd := &exec.Cmd{Dir: p.dir, Env: p.env}
	pipes, err := connect(cmd, out, errs, &readers)
	if err != nil {
		return ran{}, untouched(fault.Wrap(err, fault.Unavailable, op, p.argv[0]))
	}
	began := time.Now()
	ended, end, err := start(cmd, &p, path)
	if err != nil {
		pipes.close()
		readers.Wait()
		return ran{}, untouched(fault.Wrap(err, fault.Unavailable, op, p.argv[0]))
	}
	pipes.closeWriters()
	r := ran{}
	var e ending
	select {
	case e = <-ended:
	case <-ctx.Done():
		r.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		end()
		e = <-ended
	}
	r.DurationMS = time.Since(began).Milliseconds()
	pipes.drain(&readers)
	switch {
	case e.unbegun:
		return ran{}, untouched(fault.Wrap(e.err, fault.Unavailable, op, p.argv[0]))
	case e.err != nil:
		return ran{}, fault.Wrap(e.err, fault.Unknown, op, p.argv[0])
	}
	r.Ended = e.swept
	r.state(e.status)
	r.Stdout, r.Stderr = out.text(), errs.text()
	return r, nil
}

// ending is how a program and what it had started have ended.
type ending struct {
	status  syscall.WaitStatus
	swept   int   // processes it had left running
	err     error // its end is not known
	unbegun bool  // it did not start: err says why
}

// direct starts a program as a child of this process. What has left its group and
// cleared its environment is not found when it ends.
func direct(cmd *exec.Cmd, p *program, path string) (<-chan ending, func(), error) {
	cmd.Path, cmd.Args = path, p.argv
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan ending, 1)
	go func() {
		err := nonExit(cmd.Wait())
		e := ending{swept: sweep(cmd.Process.Pid, p.mark), err: err}
		if err == nil {
			e.status, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
		}
		ended <- e
	}()
	return ended, func() { endTree(cmd.Process.Pid) }, nil
}

// nonExit is an error that is not how the program itself ended.
func nonExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func (r *ran) state(s syscall.WaitStatus) {
	if s.Signaled() {
		name := signalName(s.Signal())
		r.Signal = &name
		return
	}
	code := s.ExitStatus()
	r.ExitCode = &code
}

// lookPath finds the program by the PATH it will have, from the directory it will
// be in.
func lookPath(p program) (string, error) {
	name := p.argv[0]
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.dir, name)
		}
		return name, executable(name)
	}
	for _, e := range slices.Backward(p.env) {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if filepath.IsAbs(dir) && executable(filepath.Join(dir, name)) == nil {
				return filepath.Join(dir, name), nil
			}
		}
		break
	}
	return "", exec.ErrNotFound
}

func executable(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return os.ErrPermission
	}
	return nil
}
