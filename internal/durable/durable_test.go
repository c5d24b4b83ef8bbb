package durable_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
)

// lockPathEnv makes the test binary hold a lock until its input ends.
const lockPathEnv = "DURABLE_TEST_LOCK"

var owner = durable.Owner{PID: 4711, Version: "v0", StartedMS: 1_700_000_000_000}

func TestMain(m *testing.M) {
	path := os.Getenv(lockPathEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := durable.AcquireLock(path, owner); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("held\n")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		os.Exit(1)
	}
}

func TestWriteFileReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	for _, want := range []string{"first", "", "second, and longer"} {
		if err := durable.WriteFile(path, []byte(want), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("file holds %q, want %q", got, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, want 0640", info.Mode().Perm())
	}
}

type failing struct{ after string }

var errBroken = errors.New("broken")

func (f *failing) Read(p []byte) (int, error) {
	if f.after == "" {
		return 0, errBroken
	}
	n := copy(p, f.after)
	f.after = f.after[n:]
	return n, nil
}

func TestFailedWriteKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	if err := durable.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := durable.WriteFrom(path, &failing{after: "half of it"}, 0o600); !errors.Is(err, errBroken) {
		t.Fatalf("write = %v, want the reader's error", err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "old" || len(entries) != 1 {
		t.Errorf("after a failed write: content %q, %d entries; want the old file alone", got, len(entries))
	}
}

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	deep := filepath.Join(base, "a", "b", "c")
	for range 2 {
		if err := durable.MkdirAll(deep, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(base, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode of a made parent is %v, want 0700", info.Mode().Perm())
	}
	file := filepath.Join(base, "file")
	if err := durable.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.MkdirAll(file, 0o700); !fault.HasCode(err, fault.InvalidRequest) {
		t.Errorf("a file in the way: %v, want invalid_request", err)
	}
}

func TestLockRefusesASecondProcessAndNamesTheFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	release := holdElsewhere(t, path)

	_, err := durable.AcquireLock(path, durable.Owner{PID: os.Getpid()})
	if !fault.HasCode(err, fault.Conflict) {
		t.Fatalf("lock held elsewhere: %v, want conflict", err)
	}
	var locked *durable.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("no LockedError in %v", err)
	}
	if diff := cmp.Diff(owner, locked.Owner); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if _, held, err := durable.LockOwner(path); err != nil || !held {
		t.Errorf("LockOwner = held %v, %v; want held", held, err)
	}

	// The holder dies without releasing: the kernel gives the lock back.
	release()
	l, err := durable.AcquireLock(path, durable.Owner{PID: os.Getpid()})
	if err != nil {
		t.Fatalf("lock of a dead process: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if _, held, err := durable.LockOwner(path); err != nil || held {
		t.Errorf("LockOwner after release = held %v, %v; want free", held, err)
	}
}

// holdElsewhere locks path in a child process; the returned function kills it.
func holdElsewhere(t *testing.T, path string) func() {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), lockPathEnv+"="+path)
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		if err := child.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		_ = child.Wait() // it was killed: the status says nothing
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	return kill
}

func TestErrorsCarryCodes(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none", "file")
	if err := durable.WriteFile(missing, nil, 0o600); !fault.HasCode(err, fault.NotFound) {
		t.Errorf("write below a missing directory: %v, want not_found", err)
	}
	if _, _, err := durable.LockOwner(missing); !fault.HasCode(err, fault.NotFound) {
		t.Errorf("owner of a missing lock: %v, want not_found", err)
	}
	if free, err := durable.Free(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("free space = %d, %v", free, err)
	}
}
