package supervise

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ShimCommand is the hidden command under which main must call ShimMain before
// anything else; Spec.Shim is the binary's path followed by it.
const ShimCommand = "worker-shim"

// Descriptors the core hands to the shim, and the one the shim hands to Python.
const (
	shimControl = 3 // orders from the core; its end of file is the core's end
	shimReport  = 4 // reports to the core
	shimToken   = 5 // the token, handed on
	pythonToken = 3
)

// Orders, one byte each.
const (
	orderInterrupt = 'I' // SIGINT to Python
	orderTerminate = 'T' // SIGTERM to Python's group
	orderKill      = 'K' // SIGKILL to Python and every descendant
)

// shimPatience is how long the shim goes on killing descendants that do not die,
// such as those of another user or in an uninterruptible wait, before it reports
// them as left.
const shimPatience = 5 * time.Second

// ShimMain is the life of Python's persistent parent: it starts the command in
// args, reports its pid and its end, obeys orders, and returns when the command
// and every descendant are gone. When the core goes away it kills them all.
func ShimMain(args []string) int {
	// Python's parent-death signal is tied to the thread that starts it, so that
	// thread must live as long as the shim does.
	runtime.LockOSThread()
	debug.SetGCPercent(400)
	report := os.NewFile(shimReport, "report")
	control := os.NewFile(shimControl, "control")
	if report == nil || control == nil || len(args) == 0 {
		fmt.Fprintln(os.Stderr, "worker-shim is started by the reeve core, not by hand")
		return 2
	}
	if err := closeOnExec(); err != nil {
		fmt.Fprintln(os.Stderr, "worker-shim: list descriptors:", err)
		return 1
	}
	s := &shim{report: report}
	if err := s.start(args); err != nil {
		s.say("fail %s", strings.ReplaceAll(err.Error(), "\n", " "))
		return 1
	}
	go s.obey(control)
	s.wait()
	return 0
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
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

type shim struct {
	report *os.File
	pid    int

	mu     sync.Mutex // guards reaped and every signal to pid: a reaped pid is no longer ours
	reaped bool
}

func (s *shim) say(format string, args ...any) {
	// A core that cannot be told is gone, which obey notices by itself.
	_, _ = fmt.Fprintf(s.report, format+"\n", args...)
}

func (s *shim) start(args []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	// Catching these also gives Python their default dispositions, whatever the
	// core inherited: a shell's background job starts with SIGINT ignored.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, shimToken},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	s.pid = pid
	_ = unix.Close(shimToken)
	// When memory runs out the worker should go before the core does. Not every
	// kernel lets us say so, and then nothing is lost but that preference.
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("500"), 0)
	s.say("pid %d", pid)
	go func() {
		<-asked
		s.killAll()
	}()
	return nil
}

// obey carries out orders until the core closes its end or dies.
func (s *shim) obey(control io.Reader) {
	orders := bufio.NewReader(control)
	for {
		order, err := orders.ReadByte()
		if err != nil {
			s.killAll()
			return
		}
		switch order {
		case orderInterrupt:
			s.signal(func() { _ = syscall.Kill(s.pid, syscall.SIGINT) })
		case orderTerminate:
			s.signal(func() { _ = syscall.Kill(-s.pid, syscall.SIGTERM) })
		case orderKill:
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
			err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if err != unix.EINTR {
				break
			}
		}
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == syscall.ECHILD {
		s.say("gone 0 0")
		return
	}
	self := os.Getpid()
	killed, left, err := reapAll(shimPatience, func(all []procStat) []procStat { return below(all, self) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker-shim: list descendants:", err)
	}
	s.say("gone %d %d", len(killed), len(left))
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
			s.say("exit %d %d", uint32(status), usage.Maxrss)
		}
	}
}
