package control

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
)

const (
	// startWait is longer than a core with a long journal to recover needs.
	startWait = 30 * time.Second
	// turnWait is how long a client waits for another one that is starting the core.
	turnWait = 16 * time.Second
	// keptLog is when core.log is set aside: enough to look back, small beside a store.
	keptLog = 4 << 20
)

// Launcher starts cores. The zero value of every member but Dir is the default.
type Launcher struct {
	Dir  string
	Exe  string        // binary that has the command core
	Wait time.Duration // for a core to answer
}

// Launch connects to the core of dir and starts one when there is none; the client
// does so again whenever its core has gone.
func Launch(ctx context.Context, dir string) (*Client, error) {
	return Launcher{Dir: dir}.Launch(ctx)
}

// Launch is the function Launch with settings.
func (l Launcher) Launch(ctx context.Context) (*Client, error) {
	if l.Wait == 0 {
		l.Wait = startWait
	}
	dir, err := filepath.Abs(l.Dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.Usage, "find data directory", l.Dir)
	}
	l.Dir = dir
	c, err := open(ctx, l.Dir, l.start, min(l.Wait, helloWait))
	if err != nil {
		return nil, err
	}
	return c, c.compatible()
}

// start starts a core and returns when one answers: its own or one that was
// quicker. The lock of the data directory decides who wins; a core that is slow is
// waited for and never killed.
func (l Launcher) start(ctx context.Context) error {
	const op = "start core"
	limit, cancel := context.WithTimeout(ctx, l.Wait)
	defer cancel()
	done, err := l.turn(ctx, limit)
	if done == nil {
		return err
	}
	defer done()
	child, err := l.spawn()
	if err != nil {
		return err
	}
	defer func() { child.detach() }()
	delay, again := 2*time.Millisecond, time.Time{}
	for {
		if conn, err := dial(limit, l.Dir); err == nil {
			return conn.Close()
		}
		t := time.NewTimer(delay)
		select {
		case err := <-child.ended:
			if !fault.HasCode(err, fault.Conflict) {
				t.Stop()
				return err
			}
			// Another core holds the lock. It is either about to answer or about to
			// go; in case it goes one is started again after a while.
			again = time.Now().Add(500 * time.Millisecond)
			<-t.C
		case <-limit.Done():
			t.Stop()
			if ctx.Err() != nil {
				return ended(ctx, op)
			}
			return fault.New(fault.Unavailable, op, l.Dir, "it has not answered within %s and is left to go on", l.Wait).
				Retryable().WithNext("read %s, or wait and try again", l.log())
		case <-t.C:
		}
		delay = min(2*delay, 50*time.Millisecond)
		if !again.IsZero() && time.Now().After(again) {
			again = time.Time{}
			child.detach()
			if child, err = l.spawn(); err != nil {
				return err
			}
		}
	}
}

// turn waits until nobody else is starting a core of the directory, so that many
// clients that find none start one. It returns nothing when a core answers by then,
// or with the reason why there is no turn to be had.
func (l Launcher) turn(caller, ctx context.Context) (done func(), err error) {
	const op = "start core"
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, l.Dir).WithNext("name a directory you may write to with --dir")
	}
	limit, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	path := filepath.Join(l.Dir, "recover.lock")
	owner := durable.Owner{PID: os.Getpid(), Version: Version, StartedMS: time.Now().UnixMilli()}
	for delay := 2 * time.Millisecond; ; delay = min(2*delay, 50*time.Millisecond) {
		lock, err := durable.AcquireLock(path, owner)
		if conn, err := dial(limit, l.Dir); err == nil {
			// Somebody was quicker: before the lock was free, or before it was asked for.
			if lock != nil {
				_ = lock.Release() // it ends with the process at the latest
			}
			return nil, conn.Close()
		}
		switch {
		case err == nil:
			return func() { _ = lock.Release() }, nil
		case !fault.HasCode(err, fault.Conflict):
			return nil, err
		case pause(limit, op, delay) == nil:
		case caller.Err() != nil:
			return nil, ended(caller, op)
		default:
			return nil, fault.Wrap(err, fault.Unavailable, op, l.Dir).Retryable().WithNext("wait and try again")
		}
	}
}

func (l Launcher) log() string { return filepath.Join(l.Dir, "core.log") }

// child is a core that was started from here. Its standard output says why it
// failed, as an envelope; ended receives that once.
type child struct {
	said  *os.File
	ended chan error
}

func (c *child) detach() { _ = c.said.Close() }

func (l Launcher) spawn() (*child, error) {
	const op = "start core"
	if i, err := os.Stat(l.log()); err == nil && i.Size() > keptLog {
		if err := os.Rename(l.log(), l.log()+".1"); err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, op, l.log())
		}
	}
	log, err := os.OpenFile(l.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, l.log())
	}
	defer func() { _ = log.Close() }() // the child has its own
	said, say, err := os.Pipe()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, l.Dir)
	}
	defer func() { _ = say.Close() }()
	exe := l.Exe
	if exe == "" {
		if exe, err = self(); err != nil {
			return nil, err
		}
	}
	cmd := &exec.Cmd{
		Path: exe,
		// Not the path: the binary may be one of several commands by its name.
		Args:        []string{"reeve", "core", "--dir", l.Dir, "--json"},
		Dir:         l.Dir,
		Stdout:      say,
		Stderr:      log,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		_ = said.Close()
		return nil, fault.Wrap(err, fault.Unavailable, op, exe)
	}
	c := &child{said: said, ended: make(chan error, 1)}
	// Lives as long as the core does, so that a core that ends before its starter
	// leaves no zombie.
	go func() {
		b, _ := io.ReadAll(io.LimitReader(said, 64<<10)) // an unreadable pipe says nothing
		c.ended <- l.failure(b, cmd.Wait())
	}()
	return c, nil
}

// failure is why a core ended before it answered.
func (l Launcher) failure(said []byte, status error) error {
	var e Envelope
	if err := json.Unmarshal(bytes.TrimSpace(said), &e); err == nil && e.Error != nil {
		return e.Error.Err()
	}
	why := "it ended at once"
	if status != nil {
		why += ": " + status.Error()
	}
	if t := l.tail(); t != "" {
		why += "; its last line: " + t
	}
	return fault.New(fault.Unavailable, "start core", l.Dir, "%s", why).WithNext("read %s", l.log())
}

// tail is the last line of the log, or nothing when it cannot be read.
func (l Launcher) tail() string {
	f, err := os.Open(l.log())
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	const most = 1024
	if i, err := f.Stat(); err == nil && i.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	b = bytes.TrimSpace(b)
	return string(bytes.ToValidUTF8(b[bytes.LastIndexByte(b, '\n')+1:], []byte("?")))
}

// self names the running binary so that it can be started again even when its file
// is gone, as after go run.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "find own binary", "")
	}
	return exe, nil
}
