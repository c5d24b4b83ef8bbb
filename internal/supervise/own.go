package supervise

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/supervise/shim"
	"github.com/reeve-run/reeve/worker"
)

const (
	// killPatience is how long the shim has to bring everything down before it is
	// killed itself: its own patience and some.
	killPatience = shim.Patience + 2*time.Second

	// flushTime is how long the readers have for what is still in the pipes when
	// every writer that can be found is gone. A descriptor passed to a stranger
	// must not hold up the end.
	flushTime = 200 * time.Millisecond

	// exitDetached is the status of a worker that a cell has cut off (python/README.md).
	exitDetached = 71
)

// own waits for the worker's end, sees that nothing is left, and tells everyone
// who waits. reader is closed when serve has returned.
func (p *Process) own(reader <-chan struct{}) {
	defer close(p.done)
	select {
	case <-p.reports.exited:
	case <-p.reports.ended:
	case <-p.killing:
	}
	patience := time.NewTimer(killPatience)
	select {
	case <-p.reports.ended:
	case <-patience.C:
		_ = p.cmd.Process.Kill()
		<-p.reports.ended
	}
	patience.Stop()
	waitErr := p.cmd.Wait()
	shims.drop(p.cmd.Process.Pid)
	left := p.reports.left
	if !p.reports.cleared {
		orphans, err := shims.sweep()
		left = len(orphans)
		if err != nil {
			p.stderr.add([]byte("reeve: looking for descendants failed: " + err.Error() + "\n"))
		}
	}
	p.readRest(reader)
	p.conclusion(p.judge(waitErr), left)
}

// readRest lets the readers take what the dead worker had still written.
func (p *Process) readRest(reader <-chan struct{}) {
	limit := time.Now().Add(flushTime)
	for _, s := range []*rawStream{&p.stdout, &p.stderr} {
		_ = s.pipe.SetReadDeadline(limit) // a drain that is through has closed it
	}
	p.drains.Wait()
	timer := time.NewTimer(flushTime)
	defer timer.Stop()
	select {
	case <-reader:
	case <-timer.C:
		p.closeConn()
		<-reader
	}
	p.closeConn()
}

func (p *Process) closeConn() {
	select {
	case <-p.greeted:
		_ = p.conn.net.Close() // closing twice is its only error
	default:
	}
}

// conclusion fixes the Exit, removes the private directory and ends the operation
// that was running.
func (p *Process) conclusion(cause event.Cause, left int) {
	p.mu.Lock()
	p.phase, _ = worker.Next(p.phase, worker.Disappeared)
	op := p.op
	p.op = nil
	p.mu.Unlock()

	p.exit = Exit{Cause: cause, Left: left}
	p.exit.Stdout, p.exit.Stderr = p.Tails()
	if op != nil {
		p.exit.Spool, p.exit.SpoolErr = openSpool(p.dir, op.id)
	}
	if err := p.removeDirs(); err != nil {
		p.exit.Cause.Text += "; its private directory is still there: " + err.Error()
	}
	_ = p.control.Close()
	if op != nil {
		op.err = &Lost{Exit: p.exit}
		p.conclude(op)
	}
}

// judge states the cause: reeve's own reason when it had one, else what the kernel
// says.
func (p *Process) judge(waitErr error) event.Cause {
	p.mu.Lock()
	reason := p.reason
	p.mu.Unlock()
	seen := p.observe(waitErr)
	if reason == nil {
		return seen
	}
	cause := *reason
	cause.Code, cause.Signal = seen.Code, seen.Signal
	return cause
}

// observe is the cause as the exit status tells it.
func (p *Process) observe(waitErr error) event.Cause {
	r := &p.reports
	switch {
	case r.pid == 0:
		text := r.failure
		if text == "" {
			text = fmt.Sprintf("its parent process ended first: %v", waitErr)
		}
		return event.Cause{Kind: event.CauseStart, Text: fmt.Sprintf("python %q could not be started: %s", p.python, text)}
	case !r.known:
		name := "SIGKILL"
		return event.Cause{Kind: event.CauseSignal, Signal: &name,
			Text: fmt.Sprintf("python was killed because its parent process (the shim, pid %d) ended: %v", p.ShimPID(), waitErr)}
	case r.status.Exited():
		code := r.status.ExitStatus()
		text := fmt.Sprintf("python exited with status %d", code)
		switch {
		case !p.isGreeted():
			text += " before it said hello"
		case code == exitDetached:
			text += ", which a worker does when a cell has closed its connection to reeve"
		}
		return event.Cause{Kind: event.CauseExit, Code: &code, Text: text}
	default:
		name := unix.SignalName(r.status.Signal())
		if name == "" {
			name = fmt.Sprintf("signal %d", r.status.Signal())
		}
		cause := event.Cause{Kind: event.CauseSignal, Signal: &name,
			Text: fmt.Sprintf("python was killed by %s, not by reeve", name)}
		if r.status.Signal() == unix.SIGKILL {
			if evidence, ok := p.memory.evidence(); ok {
				cause.Kind = event.CauseMemory
				cause.Text = fmt.Sprintf("python was killed by the kernel for want of memory: %s; its resident size had reached %d MiB",
					evidence, r.peakKB>>10)
			}
		}
		return cause
	}
}

func (p *Process) isGreeted() bool {
	select {
	case <-p.greeted:
		return true
	default:
		return false
	}
}

func protocolCause(format string, args ...any) event.Cause {
	return event.Cause{Kind: event.CauseProtocol, Text: "protocol violation: " + fmt.Sprintf(format, args...)}
}
