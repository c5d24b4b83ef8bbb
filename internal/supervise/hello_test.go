package supervise_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise"
)

// never is a deadline that a test must not need: a start that waits for it hangs.
const never = time.Hour

// TestStartRefuses starts peers that do not greet as they should. Where the peer
// can be seen to be wrong the start deadline is out of reach, so that only noticing
// it at once ends the test.
func TestStartRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode     string
		cites    string
		deadline time.Duration
		cause    event.CauseKind
		text     []string // all in the error
	}{
		{"silent", "CP-010", 3 * time.Second, event.CauseStart, []string{"no valid hello within 3s", "on stdout", "on stderr"}},
		{"connects-only", "CP-010", 2 * time.Second, event.CauseStart, []string{"no valid hello within 2s"}},
		{"hello-in-part", "CP-010 CP-135", never, event.CauseProtocol, []string{"did not come in time"}},
		{"dies", "CP-010", never, event.CauseExit, []string{"status 3 before it said hello", "line before the end"}},
		{"old-version", "CP-006", never, event.CauseProtocol, []string{"version"}},
		{"wrong-token", "CP-002", never, event.CauseProtocol, []string{"token"}},
		{"wrong-role", "CP-006", never, event.CauseProtocol, []string{"role"}},
		{"wrong-session", "CP-006", never, event.CauseProtocol, []string{"session"}},
		{"not-hello", "CP-008", never, event.CauseProtocol, []string{"completed came before hello"}},
		{"garbage", "CP-005 CP-008", never, event.CauseProtocol, []string{"read frame"}},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			t.Attr("requirement", tt.cites)
			t.Parallel()
			sp, _ := hostile(t, tt.mode)
			sp.Timing.Start = tt.deadline
			sp.Timing.Body = 200 * time.Millisecond
			p, err := supervise.Start(t.Context(), sp)
			if err == nil {
				p.Kill()
				<-p.Done()
				t.Fatal("Start accepted it")
			}
			if code := fault.CodeOf(err); code != fault.Unavailable {
				t.Errorf("code %s", code)
			}
			var failed *supervise.StartError
			if !errors.As(err, &failed) {
				t.Fatalf("%v holds no StartError", err)
			}
			if failed.Exit.Cause.Kind != tt.cause {
				t.Errorf("cause %+v, want %s", failed.Exit.Cause, tt.cause)
			}
			for _, text := range tt.text {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error does not say %q:\n%v", text, err)
				}
			}
			noneMarked(t, sp.Runtime)
		})
	}
}

// noneMarked fails when a process of the runtime directory is still there.
func noneMarked(t *testing.T, runtime string) {
	t.Helper()
	left, err := supervise.Strays(runtime)
	if err != nil || len(left) > 0 {
		t.Errorf("processes left: %v %v", left, err)
	}
}

func TestStartWithoutInterpreter(t *testing.T) {
	t.Parallel()
	for name, python := range map[string]string{
		"not on PATH":    "python-that-is-not-there",
		"no such file":   "/nowhere/python3",
		"not executable": "testdata/hostile/reeve_boot.py",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp, _ := hostile(t, "")
			sp.Python = python
			_, err := supervise.Start(t.Context(), sp)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Unavailable || f.Next == "" {
				t.Errorf("Start: %v", err)
			}
		})
	}
}

// TestStartOfSomethingElse: a program that is no Python ends at once, and the
// error holds what it said.
func TestStartOfSomethingElse(t *testing.T) {
	t.Parallel()
	sp, _ := hostile(t, "")
	sp.Python = filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(sp.Python, []byte("#!/nowhere/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	sp.Timing.Start = never
	_, err := supervise.Start(t.Context(), sp)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "could not be started") {
		t.Errorf("Start: %v", err)
	}
}

// TestLongRuntimeDirectory: a socket whose path would be too long beside the other
// private files gets a place of its own, which is gone after the end.
func TestLongRuntimeDirectory(t *testing.T) { //nolint:paralleltest // sets TMPDIR
	t.Attr("requirement", "CP-001")
	sp, _ := hostile(t, "")
	outer := sp.Runtime
	sp.Runtime = filepath.Join(outer, strings.Repeat("d", 120))
	temp, err := os.MkdirTemp("", "rvt")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	p := start(t, sp)
	short, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(short) != 1 {
		t.Fatalf("in %q: %v %v", temp, short, err)
	}
	if info, err := os.Stat(short[0]); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("%q: %v %v", short[0], info, err)
	}
	if got := result(t, p, "e-1", "echo long"); got != "long" {
		t.Errorf("result %q", got)
	}
	p.Stop(t.Context())
	for _, dir := range []string{sp.Runtime, temp} {
		if err := os.Remove(dir); err != nil { // fails unless it is empty
			t.Error(err)
		}
	}
}

func TestStartPathTooLong(t *testing.T) { //nolint:paralleltest // sets TMPDIR
	t.Attr("requirement", "CP-001")
	sp, _ := hostile(t, "")
	sp.Runtime = filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	long := filepath.Join(t.TempDir(), strings.Repeat("e", 120))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	_, err := supervise.Start(t.Context(), sp)
	if fault.CodeOf(err) != fault.LimitExceeded || !strings.Contains(err.Error(), strconv.Itoa(supervise.MaxSocketPath)) {
		t.Errorf("Start: %v", err)
	}
	for _, dir := range []string{sp.Runtime, long} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}

func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	sp, _ := hostile(t, "silent")
	sp.Timing.Start = never
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := supervise.Start(ctx, sp)
	if fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("Start: %v", err)
	}
	noneMarked(t, sp.Runtime)
}

// TestStrangerIsTurnedAway: a process of the same user that knows the path and the
// token, but is not the child, is closed without a word and does not spoil the start.
func TestStrangerIsTurnedAway(t *testing.T) {
	t.Attr("requirement", "CP-003")
	t.Parallel()
	sp, _ := hostile(t, "stranger")
	p := start(t, sp)
	if got := p.Counters().WrongPeers; got != 1 {
		t.Errorf("%d wrong peers, want 1", got)
	}
	if got := result(t, p, "e-1", "echo mine"); got != "mine" {
		t.Errorf("result %q", got)
	}
}

// TestPrivateDirectory: only the user can enter it, the socket is gone from it once
// the worker has greeted, and the token is in no place that others can read.
func TestPrivateDirectory(t *testing.T) {
	t.Attr("requirement", "CP-001 CP-002 CP-003")
	t.Parallel()
	sp, _ := hostile(t, "")
	p := start(t, sp)
	entries, err := os.ReadDir(sp.Runtime)
	if err != nil || len(entries) != 1 {
		t.Fatalf("private directories: %v %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	dir := filepath.Join(sp.Runtime, entries[0].Name())
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() != "owner" {
		t.Errorf("after the hello it holds %v %v", files, err)
	}
	if c, err := net.Dial("unix", filepath.Join(dir, "s")); err == nil {
		c.Close()
		t.Error("the socket can still be dialled")
	}
	hex64 := regexp.MustCompile(`(^|[^0-9a-f])[0-9a-f]{64}($|[^0-9a-f])`)
	for _, pid := range []int{p.PID(), p.ShimPID()} {
		for _, file := range []string{"cmdline", "environ"} {
			raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
			if err != nil {
				t.Fatal(err)
			}
			for entry := range strings.SplitSeq(string(raw), "\x00") {
				if hex64.MatchString(entry) {
					t.Errorf("%s of %d may hold a token: %q", file, pid, entry)
				}
			}
		}
	}
	p.Stop(t.Context())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
}
