package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
)

// asCore is the main of the cores that the tests below start: this binary, as
// "core --dir D --json". The file mode in D says how it behaves.
func asCore() bool {
	if len(os.Args) < 4 || os.Args[1] != "core" {
		return false
	}
	dir := os.Args[3]
	mode, _ := os.ReadFile(filepath.Join(dir, "mode"))
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		panic(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		fmt.Println(`{"ok":false,"kind":"error","data":null,"error":{"code":"conflict","message":"locked","next":"","retryable":false}}`)
		os.Exit(5)
	}
	record(dir, "starts", "start\n")
	switch string(mode) {
	case "says why":
		fmt.Println(`{"ok":false,"kind":"error","data":null,"error":{"code":"store_full","message":"open store: no space","next":"free some","retryable":false}}`)
		os.Exit(11)
	case "crashes":
		fmt.Fprintln(os.Stderr, "noise\nno such interpreter")
		os.Exit(7)
	case "stops":
		// Holds the lock without listening until the pipe gate is opened: a core on its
		// way out. The pipe arrived says that it has come so far.
		if err := os.WriteFile(filepath.Join(dir, "arrived"), nil, 0o600); err != nil {
			panic(err)
		}
		if _, err := os.ReadFile(filepath.Join(dir, "gate")); err != nil {
			panic(err)
		}
		os.Exit(0)
	case "slow":
		time.Sleep(time.Second) // the time this test is about: a start that outlasts the wait
	}
	ctx, stop := context.WithCancel(context.Background())
	s := newService()
	if string(mode) == "hangs" {
		s.request = func(ctx context.Context, _ control.RequestCall) (control.RequestAnswer, error) {
			record(dir, "asked", "asked\n")
			<-ctx.Done()
			return control.RequestAnswer{}, ctx.Err()
		}
	}
	l, err := control.Listen(dir)
	if err != nil {
		panic(err)
	}
	if err := control.NewServer(&stopping{s, stop}, quiet()).Serve(ctx, l); err != nil {
		panic(err)
	}
	if err := l.Retire(); err != nil {
		panic(err)
	}
	return true
}

type stopping struct {
	*service
	stop func()
}

func (s *stopping) Shutdown(context.Context, event.Actor) error { s.stop(); return nil }

func record(dir, name, line string) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		panic(err)
	}
}

// launching makes a data directory whose cores behave by mode and are stopped, and
// reaped, when the test ends.
func launching(t *testing.T, mode string) control.Launcher {
	t.Helper()
	dir := t.TempDir()
	record(dir, "mode", mode)
	t.Cleanup(func() {
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = f.Close() }()
		// Whoever gets the lock knows that the core has ended. A core may still be on
		// its way to listening when it is asked first, so it is asked until then.
		for syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			if c, err := control.Reach(context.Background(), dir); err == nil {
				_ = c.Shutdown(context.Background(), by)
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return control.Launcher{Dir: dir}
}

func starts(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "starts"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "start")
}

func TestRacingLaunchersEndWithOneCore(t *testing.T) {
	t.Parallel()
	l := launching(t, "")
	var all sync.WaitGroup
	pids := make([]int, 4)
	for i := range pids {
		all.Go(func() {
			c, err := l.Launch(t.Context())
			if err != nil {
				t.Errorf("Launch: %v", err)
				return
			}
			pids[i] = c.Core().PID
		})
	}
	all.Wait()
	for _, pid := range pids {
		if pid != pids[0] || pid == os.Getpid() {
			t.Errorf("cores %v, want one and another process", pids)
		}
	}
	if n := starts(t, l.Dir); n != 1 {
		t.Errorf("%d cores got the lock, want 1", n)
	}
}

// While one client starts a core no other does; it waits, and when its time is over
// it starts none either.
func TestOnlyOneClientStartsACore(t *testing.T) {
	t.Attr("requirement", "VD-149")
	t.Parallel()
	l := launching(t, "")
	lock, err := durable.AcquireLock(filepath.Join(l.Dir, "recover.lock"), durable.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	hasty := l
	hasty.Wait = 50 * time.Millisecond
	_, err = hasty.Launch(t.Context())
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Unavailable || !e.Retry {
		t.Errorf("Launch = %v, want unavailable for now", err)
	}
	if _, err := os.Stat(filepath.Join(l.Dir, "starts")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a core was started beside the one that somebody else starts: %v", err)
	}
	// The other client's core answers: there is nothing left to start.
	sockets, err := control.Listen(l.Dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- control.NewServer(newService(), quiet()).Serve(ctx, sockets) }()
	c, err := l.Launch(t.Context())
	if err != nil || c.Core().PID != os.Getpid() {
		t.Errorf("Launch = %v, %v", c, err)
	}
	stop()
	if err := errors.Join(<-done, sockets.Retire(), lock.Release()); err != nil {
		t.Fatal(err)
	}
}

func TestKilledCoreIsStartedAgainForTheNextCall(t *testing.T) {
	t.Parallel()
	l := launching(t, "")
	c, err := l.Launch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(c.Core().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Execute(t.Context(), control.ExecuteRequest{Session: "s"}, nil); err != nil && !fault.HasCode(err, fault.Unknown) {
		t.Errorf("Execute right after the kill = %v, want a result or unknown", err)
	}
	if _, err := c.Execute(t.Context(), control.ExecuteRequest{Session: "s"}, nil); err != nil {
		t.Errorf("Execute = %v, want a new core to answer", err)
	}
	if n := starts(t, l.Dir); n != 2 {
		t.Errorf("%d cores were started, want 2", n)
	}
}

func TestCoreThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		code fault.Code
		text string
	}{
		"says why": {fault.StoreFull, "no space"},
		"crashes":  {fault.Unavailable, "no such interpreter"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			_, err := launching(t, mode).Launch(t.Context())
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != want.code || !strings.Contains(err.Error(), want.text) || e.Next == "" {
				t.Errorf("Launch = %+v, want %s with %q and what to do", err, want.code, want.text)
			}
		})
	}
}

func TestSlowCoreIsLeftToGoOn(t *testing.T) {
	t.Parallel()
	l := launching(t, "slow")
	l.Wait = 50 * time.Millisecond
	if _, err := l.Launch(t.Context()); !fault.HasCode(err, fault.Unavailable) {
		t.Fatalf("Launch = %v, want unavailable", err)
	}
	l.Wait = 0
	if _, err := l.Launch(t.Context()); err != nil {
		t.Fatalf("Launch with patience = %v", err)
	}
	if n := starts(t, l.Dir); n != 1 {
		t.Errorf("%d cores got the lock, want the slow one only", n)
	}
}

// gated makes the pipes of the mode "stops". arrived returns when the core holds the
// lock, pass lets it go.
func gated(t *testing.T, dir string) (arrived, pass func()) {
	t.Helper()
	for _, name := range []string{"arrived", "gate"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	arrived = func() {
		if _, err := os.ReadFile(filepath.Join(dir, "arrived")); err != nil {
			t.Error(err)
		}
	}
	pass = func() {
		if err := os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	return arrived, pass
}

func TestLaunchWhileACoreIsStopping(t *testing.T) {
	t.Parallel()
	l := launching(t, "stops")
	arrived, pass := gated(t, l.Dir)
	hasty := l
	hasty.Wait = 100 * time.Millisecond
	if _, err := hasty.Launch(t.Context()); !fault.HasCode(err, fault.Unavailable) {
		t.Fatalf("Launch = %v, want unavailable: the lock is held and nobody listens", err)
	}
	arrived()
	if err := os.WriteFile(filepath.Join(l.Dir, "mode"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	go pass()
	if _, err := l.Launch(t.Context()); err != nil {
		t.Errorf("Launch = %v, want a new core once the old one has gone", err)
	}
}

func TestLaunchGivesUpWithItsCaller(t *testing.T) {
	t.Parallel()
	l := launching(t, "stops")
	arrived, pass := gated(t, l.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { arrived(); cancel() }()
	if _, err := l.Launch(ctx); !fault.HasCode(err, fault.Cancelled) {
		t.Errorf("Launch = %v, want cancelled", err)
	}
	pass()
}

// A core that is stopped takes connections and answers none: it is named, and no
// other is started beside it.
func TestSilentCoreIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), l.Retire()); err != nil {
			t.Error(err)
		}
	})
	_, err = control.Launcher{Dir: dir, Exe: "/nonexistent", Wait: 50 * time.Millisecond}.Launch(t.Context())
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Unavailable || !strings.Contains(e.Message, fmt.Sprintf("process %d,", os.Getpid())) || e.Next == "" {
		t.Errorf("Launch = %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := control.Reach(ctx, dir); !fault.HasCode(err, fault.Timeout) {
		t.Errorf("Reach = %v, want the caller's own time to be over", err)
	}
}
