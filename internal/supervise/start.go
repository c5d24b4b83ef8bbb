package supervise

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise/shim"
	"github.com/reeve-run/reeve/python"
	"github.com/reeve-run/reeve/worker"
)

const (
	// MaxSocketPath is the longest path a Unix socket may be bound to, from the
	// size of sun_path on the smallest platform less its end mark (CP-001).
	MaxSocketPath = 103

	socketName    = "s"
	privatePrefix = "w-"       // of private directories in Spec.Runtime
	shortPrefix   = "reeve-w-" // of directories that hold only a socket
	shortLink     = "socket"   // in a private directory, to the latter

	// Marker is the environment variable by which Sweep knows the processes of a
	// dead core's workers. It names Spec.Runtime and is no secret.
	Marker = "REEVE_WORKER_RUNTIME"
)

// StartError is in the chain of Start's error when a child was spawned: what it
// left behind (CP-010).
type StartError struct{ Exit Exit }

func (e *StartError) Error() string {
	return fmt.Sprintf("stdout %q, stderr %q",
		lastLines(e.Exit.Stdout, 20), lastLines(e.Exit.Stderr, 20))
}

// ShimCommand and ShimMain are those of package shim, for a main that does not import
// package early.
const ShimCommand = shim.Command

// ShimMain is shim.Main.
func ShimMain(args []string) int { return shim.Main(args) }

// Start spawns a worker and waits for its valid hello. The error is a fault:
// unavailable when the interpreter cannot be run or said no hello in time (with
// both diagnostic tails in its text), limit_exceeded when there is no place short
// enough for the socket's path. When ctx ends first the child is killed and Start returns. After Start has
// returned, ctx no longer matters. Nothing is left running on error.
//
// The first Start makes this process a subreaper: what a killed shim leaves behind
// becomes its child and is ended. A child of this process that has a session of its
// own and is no shim is taken for such a remnant, so a process that starts workers
// must not also start detached children of other kinds.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	p := &Process{
		spec: spec, phase: worker.Starting,
		greeted: make(chan struct{}), killing: make(chan struct{}), done: make(chan struct{}),
	}
	fail := func(err error) (*Process, error) {
		return nil, fault.Wrap(err, codeOr(err, fault.Unavailable), "start worker", spec.Session)
	}
	var err error
	if p.python, err = exec.LookPath(spec.Python); err != nil {
		return fail(interpreterFault(err, spec.Python, ""))
	}
	if p.python, err = filepath.Abs(p.python); err != nil {
		return fail(err)
	}
	listener, err := p.listen()
	if err != nil {
		return fail(err)
	}
	token, err := p.spawn()
	if err != nil {
		return fail(errors.Join(err, listener.Close(), p.removeDirs()))
	}
	verdict := make(chan error, 1)
	reader := make(chan struct{})
	go func() {
		defer close(reader)
		p.serve(listener, token, verdict)
	}()
	go p.own(reader)

	deadline := time.NewTimer(spec.Timing.Start)
	defer deadline.Stop()
	select {
	case <-p.greeted:
		return p, nil
	case err := <-verdict:
		p.breakOff(protocolCause("the worker's hello was refused: %v", err), true)
	case <-p.reports.exited:
		p.breakOffEarly()
	case <-p.reports.ended:
		p.breakOffEarly()
	case <-deadline.C:
		p.breakOff(event.Cause{Kind: event.CauseStart,
			Text: fmt.Sprintf("no valid hello within %s", spec.Timing.Start)}, true)
	case <-ctx.Done():
		p.breakOff(event.Cause{Kind: event.CauseShutdown, Text: "the start was given up"}, true)
	}
	_ = listener.Close() // unblocks serve; closing twice is its only error
	<-p.done
	return nil, p.startFault()
}

// breakOffEarly is for a child that ended before its hello. The cause is its own
// exit, so no reason is set.
func (p *Process) breakOffEarly() {
	p.mu.Lock()
	p.phase, _ = worker.Next(p.phase, worker.Broken)
	p.mu.Unlock()
}

func (p *Process) startFault() error {
	code := fault.Unavailable
	if p.exit.Cause.Kind == event.CauseShutdown {
		code = fault.Cancelled
	}
	f := fault.New(code, "start worker", p.spec.Session, "%s", p.exit.Cause.Text)
	f.Err = &StartError{Exit: p.exit}
	if code == fault.Unavailable {
		f.Next = "run reeve doctor, which tries the interpreter and says what is wrong with it"
	}
	return f
}

// listen makes the private directory and the socket. The socket is in the private
// directory unless its path would be too long there; then it gets a private
// directory of its own among the temporary files, for as long as it exists.
func (p *Process) listen() (*net.UnixListener, error) {
	if err := os.MkdirAll(p.spec.Runtime, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(p.spec.Runtime, privatePrefix)
	if err != nil {
		return nil, err
	}
	p.dir = dir
	owner := []byte(p.spec.Session + "\n" + p.spec.Generation + "\n")
	if err := os.WriteFile(filepath.Join(dir, ownerFile), owner, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.socket = filepath.Join(dir, socketName)
	if len(p.socket) > MaxSocketPath {
		if err := p.shorten(); err != nil {
			return nil, errors.Join(err, p.removeDirs())
		}
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket, Net: "unix"})
	if err != nil {
		return nil, errors.Join(err, p.removeDirs())
	}
	listener.SetUnlinkOnClose(true)
	return listener, nil
}

// shorten moves the socket to where its path is short, and leaves a link by which
// Sweep finds that place.
func (p *Process) shorten() error {
	long := p.socket
	short, err := os.MkdirTemp("", shortPrefix)
	if err != nil {
		return err
	}
	p.socket = filepath.Join(short, socketName)
	if len(p.socket) > MaxSocketPath {
		f := fault.New(fault.LimitExceeded, "bind socket", long,
			"%d bytes are over the limit of %d, and so are the %d of %q", len(long), MaxSocketPath, len(p.socket), p.socket)
		return errors.Join(f.WithNext("use a shorter data directory (--dir or REEVE_HOME) or a shorter TMPDIR"), os.Remove(short))
	}
	if err := os.Symlink(short, filepath.Join(p.dir, shortLink)); err != nil {
		return errors.Join(err, os.Remove(short))
	}
	return nil
}

// removeDirs removes what listen made.
func (p *Process) removeDirs() error {
	var err error
	if short := filepath.Dir(p.socket); short != p.dir {
		err = os.RemoveAll(short)
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// argv is Python's command line.
func (p *Process) argv() []string {
	argv := []string{
		p.python, "-I", "-S", "-E", "-B", "-X", "utf8", filepath.Join(p.spec.Source, python.Boot),
		"--socket", p.socket,
		"--token-fd", fmt.Sprint(shim.PythonToken),
		"--session", p.spec.Session,
		"--generation", p.spec.Generation,
		"--role", string(p.spec.Role),
		"--dir", p.dir,
	}
	if p.spec.Skills != "" {
		argv = append(argv, "--skills", p.spec.Skills)
	}
	if p.spec.Verbs != "" {
		argv = append(argv, "--verbs", p.spec.Verbs)
	}
	return argv
}

// spawn starts the shim, and through it Python, and returns the token in hex.
func (p *Process) spawn() (token string, err error) {
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", err
	}
	token = hex.EncodeToString(raw[:])

	var pipes pipeSet
	defer pipes.closeTheirs()
	controlR, controlW := pipes.to()
	reportR, reportW := pipes.from()
	tokenR, tokenW := pipes.to()
	outR, outW := pipes.from()
	errR, errW := pipes.from()
	if pipes.err != nil {
		pipes.closeOurs()
		return "", pipes.err
	}

	argv := append(p.spec.Shim[1:len(p.spec.Shim):len(p.spec.Shim)], p.dir)
	argv = append(argv, p.argv()...)
	p.cmd = exec.Command(p.spec.Shim[0], argv...)
	p.cmd.Dir = p.spec.Dir
	p.cmd.Env = append(p.spec.Env[:len(p.spec.Env):len(p.spec.Env)], Marker+"="+p.spec.Runtime)
	p.cmd.Stdout, p.cmd.Stderr = outW, errW
	p.cmd.ExtraFiles = []*os.File{shim.Control - 3: controlR, shim.Report - 3: reportW, shim.Token - 3: tokenR}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.began = time.Now()
	if err := shims.start(p.cmd); err != nil {
		pipes.closeOurs()
		return "", fault.Wrap(err, fault.Unavailable, "start shim", p.spec.Shim[0])
	}
	p.control = controlW
	// 64 bytes fit into any pipe. A child that ended without reading is seen by its end.
	_, _ = tokenW.WriteString(token)
	_ = tokenW.Close()
	p.reports.init()
	p.drains.Add(2)
	p.stdout.pipe, p.stderr.pipe = outR, errR
	go func() { defer p.drains.Done(); p.stdout.drain() }()
	go func() { defer p.drains.Done(); p.stderr.drain() }()
	go p.reports.read(reportR)
	return token, nil
}

// pipeSet makes pipes whose one end goes to the child, and closes what is left.
type pipeSet struct {
	ours, theirs []*os.File
	err          error
}

// to makes a pipe from us to the child.
func (s *pipeSet) to() (theirs, ours *os.File) {
	r, w := s.make()
	s.theirs, s.ours = append(s.theirs, r), append(s.ours, w)
	return r, w
}

// from makes a pipe from the child to us.
func (s *pipeSet) from() (ours, theirs *os.File) {
	r, w := s.make()
	s.theirs, s.ours = append(s.theirs, w), append(s.ours, r)
	return r, w
}

func (s *pipeSet) make() (r, w *os.File) {
	r, w, err := os.Pipe()
	s.err = errors.Join(s.err, err)
	return r, w
}

func (s *pipeSet) closeOurs()   { closeFiles(s.ours) }
func (s *pipeSet) closeTheirs() { closeFiles(s.theirs) }

// closeFiles closes pipe ends, for which an error has no meaning.
func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// shims knows the live shims of this process, so that a sweep does not take one
// for an orphan. Its lock is held for writing only by a sweep.
var shims = &shimTable{pids: make(map[int]bool)}

type shimTable struct {
	once sync.Once
	mu   sync.Mutex
	pids map[int]bool
	err  error
}

// start starts a shim and notes it before any sweep can see it.
func (t *shimTable) start(cmd *exec.Cmd) error {
	t.once.Do(func() { t.err = shim.BecomeSubreaper() })
	if t.err != nil {
		return t.err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	t.pids[cmd.Process.Pid] = true
	return nil
}

// drop forgets a shim that was reaped.
func (t *shimTable) drop(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pids, pid)
}

// sweep ends and reaps what a killed shim left: our children that have a session
// of their own and are no shims, and all below them.
func (t *shimTable) sweep() (left []int, err error) {
	self := os.Getpid()
	own, ok := shim.Stat(self)
	if !ok {
		return nil, errors.New("read own process state")
	}
	_, left, err = shim.ReapAll(shim.Patience, func(all []shim.Proc) []shim.Proc {
		t.mu.Lock()
		defer t.mu.Unlock()
		var orphans []shim.Proc
		var roots []int
		for _, s := range all {
			if s.PPID == self && s.Session != own.Session && !t.pids[s.PID] {
				orphans, roots = append(orphans, s), append(roots, s.PID)
			}
		}
		return append(orphans, shim.Below(all, roots...)...)
	})
	return left, err
}
