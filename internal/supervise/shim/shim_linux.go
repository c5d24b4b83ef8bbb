// Package shim is the small parent of every worker: it starts Python, tells the core
// how that goes and ends, obeys the core's orders, and when Python has ended or the
// core has gone it ends every descendant before it ends itself.
//
// Invariants: Main returns only when no descendant is left or those left cannot be
// killed; a reaped pid is never signalled. The package must not know sessions, the
// protocol or the journal, and it imports next to nothing: package early runs it
// before the rest of the binary is initialised, so every import costs each start of
// a worker (docs/decisions/0030-worker-shim.md).
package shim

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is the hidden command that makes the binary a shim.
const Command = "worker-shim"

// Descriptors the core hands to the shim, and the one the shim hands to Python.
const (
	Control     = 3 // orders from the core; its end of file is the core's end
	Report      = 4 // reports to the core
	Token       = 5 // the token, handed on
	PythonToken = 3 // where Python finds it
)

// Orders, one byte each.
const (
	Interrupt = 'I' // SIGINT to Python
	Terminate = 'T' // SIGTERM to Python's group
	Kill      = 'K' // SIGKILL to Python and every descendant
)

// Patience is how long the shim goes on killing descendants that do not die,
// such as those of another user or in an uninterruptible wait, before it reports
// them as left.
const Patience = 5 * time.Second

// Mark is the file that a shim leaves in the worker's private directory when its core
// is gone: its time is that of the worker's end.
const Mark = "orphaned"

// Main is the life of Python's persistent parent: it starts the command that follows
// the private directory in args, reports its pid and its end, obeys orders, and
// returns when the command and every descendant are gone. When the core goes away it
// kills them all.
func Main(args []string) int {
	// Python's parent-death signal is tied to the thread that starts it, so that
	// thread must live as long as the shim does.
	runtime.LockOSThread()
	report := os.NewFile(Report, "report")
	control := os.NewFile(Control, "control")
	if report == nil || control == nil || len(args) < 2 {
		complain("this command is started by the reeve core, not by hand")
		return 2
	}
	if err := closeOnExec(); err != nil {
		complain("list descriptors: " + err.Error())
		return 1
	}
	s := &shim{report: report}
	if err := s.start(args[1:]); err != nil {
		s.say("fail " + err.Error())
		return 1
	}
	go s.obey(control)
	s.wait()
	if s.orphaned.Load() {
		// Beside the truth that the next core finds anyway, so its failure is nobody's.
		_ = os.WriteFile(args[0]+"/"+Mark, nil, 0o600)
	}
	return 0
}

// Numbers of the kernel that package syscall does not name.
const (
	waitAll      = 0  // P_ALL
	setSubreaper = 36 // PR_SET_CHILD_SUBREAPER
)

// BecomeSubreaper makes this process the parent of every descendant whose own parent
// ends.
func BecomeSubreaper() error {
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, setSubreaper, 1, 0, 0, 0, 0); err != 0 {
		return os.NewSyscallError("become subreaper", err)
	}
	return nil
}

// closeOnExec marks every descriptor but the standard ones, also those that the
// core itself inherited from whoever started it: none of them is Python's.
func closeOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

type shim struct {
	report   *os.File
	pid      int
	orphaned atomic.Bool // the core is gone

	mu     sync.Mutex // guards reaped and every signal to pid: a reaped pid is no longer ours
	reaped bool
}

// say reports one line, none of whose texts holds a newline.
func (s *shim) say(line string) {
	// A core that cannot be told is gone, which obey notices by itself.
	_, _ = s.report.WriteString(line + "\n")
}

// complain goes to raw standard error, whose tail the core keeps. Nobody is left to
// tell when that fails.
func complain(text string) {
	_, _ = os.Stderr.WriteString(Command + ": " + text + "\n")
}

func (s *shim) start(args []string) error {
	if err := BecomeSubreaper(); err != nil {
		return err
	}
	// Catching these also gives Python their default dispositions, whatever the
	// core inherited: a shell's background job starts with SIGINT ignored.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, Token},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	s.pid = pid
	_ = syscall.Close(Token)
	// When memory runs out the worker should go before the core does. Not every
	// kernel lets us say so, and then nothing is lost but that preference.
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("500"), 0)
	s.say("pid " + strconv.Itoa(pid))
	go func() {
		<-asked
		s.killAll()
	}()
	return nil
}

// obey carries out orders until the core closes its end or dies.
func (s *shim) obey(control *os.File) {
	var order [1]byte
	for {
		if _, err := control.Read(order[:]); err != nil {
			s.orphaned.Store(true)
			s.killAll()
			return
		}
		switch order[0] {
		case Interrupt:
			s.signal(func() { _ = syscall.Kill(s.pid, syscall.SIGINT) })
		case Terminate:
			s.signal(func() { _ = syscall.Kill(-s.pid, syscall.SIGTERM) })
		case Kill:
			s.killAll()
		}
	}
}

func (s *shim) signal(send func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reaped {
		send()
	}
}

// killAll kills Python's group. Its end, which wait sees, brings the rest down.
func (s *shim) killAll() {
	s.signal(func() {
		_ = syscall.Kill(-s.pid, syscall.SIGKILL)
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
	})
}

// wait reaps what ends until Python has, then ends all that is left.
func (s *shim) wait() {
	for !s.reap() {
		for {
			// Sleeps until there is something to reap, without reaping it.
			_, _, err := syscall.Syscall6(syscall.SYS_WAITID, waitAll, 0, 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
			if err != syscall.EINTR {
				break
			}
		}
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == syscall.ECHILD {
		s.say("gone 0 0")
		return
	}
	self := os.Getpid()
	killed, left, err := ReapAll(Patience, func(all []Proc) []Proc { return Below(all, self) })
	if err != nil {
		complain("list descendants: " + err.Error())
	}
	s.say("gone " + strconv.Itoa(len(killed)) + " " + strconv.Itoa(len(left)))
}

// reap collects every child that has ended and reports Python's end, which makes
// it return true.
func (s *shim) reap() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil || pid == 0:
			return s.reaped
		case pid == s.pid:
			s.reaped = true
			s.say("exit " + strconv.FormatUint(uint64(status), 10) + " " + strconv.FormatInt(usage.Maxrss, 10))
		}
	}
}
