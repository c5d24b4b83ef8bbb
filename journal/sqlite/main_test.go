package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// Environment of the test binary run again: as a process that writes until it is
// killed, or in a namespace of its own.
const (
	childPath   = "JOURNAL_TEST_CHILD"
	childUnsafe = "JOURNAL_TEST_CHILD_UNSAFE"
	childPages  = "JOURNAL_TEST_CHILD_PAGES"
	namespaced  = "JOURNAL_TEST_NAMESPACED"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		go dieWithParent()
		if err := writeForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if status, done := inNamespace(); done {
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}

// inNamespace runs the tests again where an ordinary user may mount: in a user
// namespace of their own. Where there is none to be had they run here, and those
// that mount say that they cannot.
func inNamespace() (status int, done bool) {
	if os.Geteuid() == 0 || os.Getenv(namespaced) != "" {
		return 0, false
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, false
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Env = append(os.Environ(), namespaced+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	// The signal of the parent's death is that of its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, false
	}
	if err := cmd.Wait(); err != nil {
		return max(1, cmd.ProcessState.ExitCode()), true
	}
	return 0, true
}

// dieWithParent ends the process when its input ends: a test that timed out cleans
// nothing up.
func dieWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end, too
	os.Exit(3)
}

const childWriters = 4

// writeForever commits from some goroutines and prints a line for every answer:
// what it was, the stream and the sequence. A line goes out in one write after the
// answer, so every line that the parent reads was true.
func writeForever(path string) error {
	// A short log is folded into the file every few dozen commits, so that faults hit
	// checkpoints too.
	opt := sqlite.Options{Unsafe: os.Getenv(childUnsafe) != "", LogPages: 100}
	if pages := os.Getenv(childPages); pages != "" {
		n, err := strconv.ParseInt(pages, 10, 64)
		if err != nil {
			return err
		}
		opt.LogPages = n
	}
	s, err := sqlite.Open(context.Background(), path, opt)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, childWriters)
	for w := range childWriters {
		wg.Go(func() { errs[w] = writeStream(s, fmt.Sprintf("stream/%d", w)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func writeStream(s *sqlite.Store, stream string) error {
	head := int64(0)
	for e, err := range journal.Stream(context.Background(), s, stream, 0) {
		if err != nil {
			return err
		}
		head = e.Seq
	}
	for ; ; head += 2 {
		b := childBatch(stream, head)
		for {
			res, err := s.Commit(context.Background(), b)
			if err == nil && res.Replayed {
				fmt.Printf("replayed %s %d\n", stream, head)
			}
			if err == nil {
				break
			}
			fmt.Printf("%s %s %d\n", fault.CodeOf(err), stream, head)
			var e *fault.Error
			if !errors.As(err, &e) || !e.Retry {
				return err
			}
			time.Sleep(time.Millisecond) // the disk is not better for being asked at once
		}
		fmt.Printf("ack %s %d\n", stream, head+2)
	}
}

// childBatch is what a stream holds after head: two events and a record, all of
// which follow from the place.

func childBatch(stream string, head int64) journal.Batch {
	return journal.Batch{
		ID: fmt.Sprintf("%s.%d", stream, head),
		Append: []journal.Append{{Stream: stream, Head: head, Events: []journal.Event{
			{Kind: "test.started", Version: 1, Payload: fmt.Appendf(nil, "%s %d %0400d", stream, head, head)},
			{Kind: "test.ended", Version: 1, Payload: fmt.Appendf(nil, "%s %d", stream, head+1), Causes: []journal.Ref{{Stream: stream, Seq: head + 1}}},
		}}},
		Put: []journal.Record{{Kind: "done", Key: fmt.Sprintf("%s/%012d", stream, head), Session: stream, State: "ok"}},
	}
}
