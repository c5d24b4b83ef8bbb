package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// handoverEnv names the descriptor of the handed state to the successor.
const handoverEnv = "REEVE_MCP_HANDOVER"

// replaced is the successor of this process: the file that stands where its binary
// was started from.
type replaced struct {
	path  string
	image os.FileInfo // of the running binary
	in    *polled
	out   *os.File

	mu     sync.Mutex // guards failed
	failed os.FileInfo
}

// newSuccessor returns nothing when the running binary has no path any more.
func newSuccessor(in *polled, out *os.File) successor {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	image, err := os.Stat("/proc/self/exe")
	if err != nil {
		return nil
	}
	return &replaced{path: path, image: image, in: in, out: out}
}

func (s *replaced) due() {
	now, err := os.Stat(s.path)
	if err != nil || os.SameFile(now, s.image) {
		return
	}
	s.mu.Lock()
	known := s.failed != nil && os.SameFile(now, s.failed)
	s.mu.Unlock()
	if !known {
		s.in.interrupt()
	}
}

// exec tries the new binary before it puts the client into its hands.
func (s *replaced) exec(h handed) (err error) {
	now, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = now
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := exec.CommandContext(ctx, s.path, "version").Run(); err != nil {
		return err
	}
	h.Out = int(s.out.Fd())
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("reeve-mcp-handover", 0) // the successor inherits it
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	state := os.NewFile(uintptr(fd), "handover")
	defer func() { _ = state.Close() }()
	if _, err := state.WriteAt(b, 0); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(h.Out), unix.F_SETFD, 0); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	err = unix.Exec(s.path, os.Args, append(os.Environ(), handoverEnv+"="+strconv.Itoa(fd)))
	_, back := unix.FcntlInt(uintptr(h.Out), unix.F_SETFD, unix.FD_CLOEXEC)
	return errors.Join(os.NewSyscallError("execve", err), back)
}

// stdio is the client's end of this process, and what a predecessor in the same
// process has handed over, if there was one.
func stdio() (*lines, *handed, error) {
	before, err := takeOver()
	if err != nil {
		return nil, nil, fmt.Errorf("take the client over: %w", err)
	}
	var out *os.File
	if before != nil {
		out = os.NewFile(uintptr(before.Out), "mcp-stdout")
	} else if out, err = ClaimStdout(); err != nil {
		return nil, nil, err
	}
	in, err := newPolled(os.Stdin)
	if err != nil {
		return nil, nil, err
	}
	t := &lines{in: in, out: out, next: newSuccessor(in, out)}
	if before != nil {
		t.in = resumed{io.MultiReader(bytes.NewReader(before.Rest), in), in}
	}
	return t, before, nil
}

// takeOver reads what a predecessor has handed over, if there was one.
func takeOver() (*handed, error) {
	name, ok := os.LookupEnv(handoverEnv)
	if !ok {
		return nil, nil
	}
	fd, err := strconv.Atoi(name)
	if err = errors.Join(err, os.Unsetenv(handoverEnv)); err != nil {
		return nil, err
	}
	state := os.NewFile(uintptr(fd), "handover")
	defer func() { _ = state.Close() }()
	b, err := io.ReadAll(io.NewSectionReader(state, 0, 64<<20))
	if err != nil {
		return nil, err
	}
	var h handed
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(h.Out), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &h, nil
}

// polled is an input of which no byte is taken while it is being interrupted: what a
// read in progress has taken would be lost with the process image.
type polled struct {
	fd   int
	wake [2]int

	mu     sync.Mutex // guards closed
	closed bool       // wake[1] is
}

func newPolled(f *os.File) (*polled, error) {
	p := &polled{fd: int(f.Fd())}
	if err := unix.Pipe2(p.wake[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	return p, nil
}

// interrupt makes the read in progress, or the next one, return errHandover.
func (p *polled) interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		_, _ = unix.Write(p.wake[1], []byte{0}) // a full pipe wakes as well
	}
}

// Read implements io.Reader.
func (p *polled) Read(b []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(p.wake[0]), Events: unix.POLLIN}, {Fd: int32(p.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return 0, os.NewSyscallError("poll", err)
		}
		if fds[0].Revents != 0 {
			n, err := unix.Read(p.wake[0], make([]byte, 64))
			if n > 0 {
				return 0, errHandover
			}
			if err == nil { // closed
				return 0, io.EOF
			}
			continue
		}
		switch n, err := unix.Read(p.fd, b); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Close ends a read in progress. The descriptors of the process stay as they are.
func (p *polled) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return unix.Close(p.wake[1])
}
