package supervise_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/wire"
)

// brood starts descendants of every sort and answers with their pids: a child, one
// with a session of its own, and a daemon that was forked twice, has its own
// session and group, no environment, no controlling descriptors but the worker's
// output, and ignores every signal that can be ignored.
const brood = `exec
import os, signal, subprocess
pids = [
    subprocess.Popen(["/bin/sleep", "1000"]).pid,
    subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True).pid,
]
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.setpgid(0, 0)
    for s in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(s, signal.SIG_IGN)
    os.write(w, b"%d" % os.getpid())
    os.close(w)
    os.execve("/bin/sleep", ["sleep", "1000"], {})
os.close(w)
os.wait()
pids.append(int(os.read(r, 20)))
answer = " ".join(map(str, pids))`

// pidsOf parses what brood answered.
func pidsOf(t *testing.T, text string) []int {
	t.Helper()
	var pids []int
	for _, f := range strings.Fields(text) {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("answer %q", text)
		}
		pids = append(pids, n)
	}
	if len(pids) != 3 {
		t.Fatalf("answer %q", text)
	}
	return pids
}

// gone fails for each process that is there, also as a zombie.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there (%v)", pid, err)
		}
	}
}

// awaitEnd waits for the end of processes that are no children of the test.
func awaitEnd(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatalf("watch process %d: %v", pid, err)
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int((20 * time.Second).Milliseconds()))
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(poll, int((20 * time.Second).Milliseconds()))
		}
		if err != nil || n != 1 {
			t.Errorf("process %d did not end (%v)", pid, err)
		}
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
}

// TestDescendantsEndWithWorker ends a worker in every way there is and finds no
// descendant, whatever it did to get away (W16, M19).
func TestDescendantsEndWithWorker(t *testing.T) {
	t.Parallel()
	kill := func(t *testing.T, pid int) {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name  string
		end   func(t *testing.T, p *supervise.Process)
		cause event.CauseKind
	}{
		{"stop", func(t *testing.T, p *supervise.Process) { p.Stop(t.Context()) }, event.CauseShutdown},
		{"kill", func(_ *testing.T, p *supervise.Process) { p.Kill() }, event.CauseShutdown},
		{"python killed", func(t *testing.T, p *supervise.Process) { kill(t, p.PID()) }, event.CauseSignal},
		{"shim killed", func(t *testing.T, p *supervise.Process) { kill(t, p.ShimPID()) }, event.CauseSignal},
		{"shim terminated", func(t *testing.T, p *supervise.Process) {
			if err := syscall.Kill(p.ShimPID(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}, event.CauseSignal},
		{"python stopped, then killed", func(t *testing.T, p *supervise.Process) {
			if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			p.Kill()
		}, event.CauseShutdown},
		{"shim stopped, then stop", func(t *testing.T, p *supervise.Process) {
			if err := syscall.Kill(p.ShimPID(), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			p.Kill()
		}, event.CauseShutdown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Attr("requirement", "CP-027")
			t.Parallel()
			sp, _ := hostile(t, "")
			p := start(t, sp)
			pids := pidsOf(t, result(t, p, "e-1", brood))
			tt.end(t, p)
			exit := p.Exit()
			if exit.Cause.Kind != tt.cause || exit.Left != 0 {
				t.Errorf("exit %+v", exit)
			}
			gone(t, append(pids, p.PID(), p.ShimPID())...)
		})
	}
}

// TestDescendantsEndWithCore kills a core, a process of its own, and waits for
// everything below it to end by itself, although Python does not.
func TestDescendantsEndWithCore(t *testing.T) {
	t.Attr("requirement", "CP-027 CP-120")
	t.Parallel()
	sp, _ := hostile(t, "")
	core := exec.Command(os.Args[0], "-test.run=^TestActAsCore$", "-test.v")
	core.Env = append(os.Environ(), "ACT_AS_CORE="+sp.Runtime)
	out, err := core.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	core.Stderr = os.Stderr
	if err := core.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "below: "); ok {
			for _, f := range strings.Fields(rest) {
				pid, err := strconv.Atoi(f)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
			break
		}
	}
	if err := core.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := core.Wait(); err == nil {
		t.Error("the core ended well before it was killed")
	}
	if len(pids) != 5 {
		t.Fatalf("the core named %v", pids)
	}
	awaitEnd(t, pids...)
	// What a dead core leaves of its directory the next one removes.
	if killed, err := supervise.Sweep(t.Context(), sp.Runtime); err != nil || len(killed) > 0 {
		t.Errorf("Sweep: %v %v", killed, err)
	}
	left, err := supervise.Left(sp.Runtime)
	if err != nil || len(left) != 1 || left[0].Session != sp.Session || left[0].Generation != sp.Generation || time.Since(left[0].Until) > time.Hour {
		t.Errorf("Left: %+v %v", left, err)
	}
	sweepUp(t, sp.Runtime)
}

// sweepUp removes what workers left.
func sweepUp(t *testing.T, runtime string) {
	t.Helper()
	left, err := supervise.Left(runtime)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range left {
		if err := r.Remove(); err != nil {
			t.Error(err)
		}
	}
}

// TestActAsCore is the core that TestDescendantsEndWithCore kills.
func TestActAsCore(t *testing.T) {
	runtime := os.Getenv("ACT_AS_CORE")
	if runtime == "" {
		return // runs only as the child of another test
	}
	sp, s := hostile(t, "")
	sp.Runtime = runtime
	s.live = make(chan wire.Output, 1)
	p := start(t, sp)
	go func() {
		// It neither reads its connection again nor sees that it ends.
		_, err := p.Execute(t.Context(), "e-1", strings.Replace(brood, "exec", "exec-then-ignore", 1))
		t.Errorf("Execute returned: %v", err)
	}()
	fmt.Println("below:", (<-s.live).Text, p.PID(), p.ShimPID())
	select {}
}

// TestSweepEndsStrays: processes that carry the marker of a core that is gone end
// with all below them, others stay, and private directories are removed.
func TestSweepEndsStrays(t *testing.T) {
	t.Attr("requirement", "CP-027 CP-120")
	t.Parallel()
	runtime := t.TempDir()
	if err := os.MkdirAll(runtime+"/w-1/below", 0o700); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "reeve-w-")
	if err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"w-1/socket": short, "w-2": runtime + "/w-1"} {
		if err := os.Symlink(target, runtime+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	sleeper := func(env ...string) *exec.Cmd {
		// The one below tells its pid only when it has dropped the environment.
		cmd := exec.Command("/bin/sh", "-c", "env -i /bin/sh -c 'echo $$; exec /bin/sleep 1000' & wait")
		cmd.Env = append(os.Environ(), env...)
		return cmd
	}
	stray, other := sleeper(supervise.Marker+"="+runtime), sleeper(supervise.Marker+"="+runtime+"-other")
	var below []int
	for _, cmd := range []*exec.Cmd{stray, other} {
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		below = append(below, pid)
	}
	defer func() {
		for _, pid := range []int{below[1], other.Process.Pid} {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Errorf("end %d: %v", pid, err)
			}
		}
		_ = other.Wait() // it was killed
	}()
	if found, err := supervise.Strays(runtime); err != nil || len(found) != 1 || found[0] != stray.Process.Pid {
		t.Errorf("Strays: %v %v, want %d", found, err, stray.Process.Pid)
	}
	killed, err := supervise.Sweep(t.Context(), runtime)
	if err != nil || len(killed) != 2 {
		t.Errorf("Sweep: %v %v", killed, err)
	}
	awaitEnd(t, stray.Process.Pid, below[0])
	if err := stray.Wait(); err == nil {
		t.Error("the stray ended well")
	}
	if err := syscall.Kill(below[1], 0); err != nil {
		t.Errorf("a process of another core was ended: %v", err)
	}
	sweepUp(t, runtime)
	if left, err := os.ReadDir(runtime); err != nil || len(left) > 0 {
		t.Errorf("directories left: %v %v", left, err)
	}
	if _, err := os.Stat(short); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's directory is left: %v", err)
	}
}

// TestManyShortProcessesLeaveNoZombie: a thousand that the cell waits for, and
// orphans that end after their parent, which are the shim's to collect (A6).
func TestManyShortProcessesLeaveNoZombie(t *testing.T) {
	t.Attr("requirement", "CP-027")
	t.Parallel()
	sp, _ := hostile(t, "")
	p := start(t, sp)
	result(t, p, "e-1", `exec
import os, subprocess
for _ in range(1000):
    subprocess.run(["/bin/true"], check=True, close_fds=False)
for _ in range(50):
    r, w = os.pipe()
    if os.fork() == 0:
        if os.fork():
            os._exit(0)
        os.close(r)
        os._exit(0)
    os.close(w)
    os.wait()
    os.read(r, 1)
    os.close(r)
answer = "done"`)
	// Each orphan has ended; the shim collects the last of them in its own time.
	zombies := func() []string { return statesBelow(t, p.ShimPID(), 'Z') }
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for len(zombies()) > 0 {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("zombies: %v", zombies())
		}
	}
}

// statesBelow lists processes in a state that are below pid, as /proc says.
func statesBelow(t *testing.T, pid int, state byte) []string {
	t.Helper()
	parent := map[int]int{}
	states := map[int]string{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if parent[n], err = strconv.Atoi(f[1]); err != nil {
			t.Fatal(err)
		}
		states[n] = f[0]
	}
	var found []string
	for n, s := range states {
		for up := parent[n]; up != 0; up = parent[up] {
			if up == pid && s[0] == state {
				found = append(found, strconv.Itoa(n)+" "+s)
			}
		}
	}
	return found
}

// TestForeignHolderOfOutputDoesNotHoldTheEnd: a process that is none of ours and
// holds the worker's raw output open delays nothing (W14).
func TestForeignHolderOfOutputDoesNotHoldTheEnd(t *testing.T) {
	t.Attr("requirement", "CP-004")
	t.Parallel()
	sp, _ := hostile(t, "")
	p := start(t, sp)
	for _, fd := range []string{"1", "2"} {
		held, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%s", p.PID(), fd), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p.Stop(ctx)
	if ctx.Err() != nil {
		t.Error("Stop waited for the holder")
	}
}

// TestTails: raw output is drained all the time, the last 8 KiB of each stream are
// kept whole and apart, and what went before is counted.
func TestTails(t *testing.T) {
	t.Attr("requirement", "CP-004")
	t.Parallel()
	sp, _ := hostile(t, "")
	p := start(t, sp)
	result(t, p, "e-1", `exec
import os
for _ in range(1024):
    os.write(2, b"e" * 1024)
for _ in range(1024):
    os.write(1, b"o" * 1024)
os.write(1, "last é".encode() + b"\xff")`)
	p.Stop(t.Context())
	stdout, stderr := p.Tails()
	if want := strings.Repeat("o", 8192-8) + "last é\uFFFD"; stdout.Text != want || stdout.Dropped != 1<<20+8-8192 {
		t.Errorf("stdout: dropped %d, ends %q", stdout.Dropped, stdout.Text[len(stdout.Text)-20:])
	}
	if stderr.Text != strings.Repeat("e", 8192) || stderr.Dropped != 1<<20-8192 {
		t.Errorf("stderr: %d bytes, dropped %d", len(stderr.Text), stderr.Dropped)
	}
}

// TestRaw: what is told of the raw streams after a cell holds every byte that was
// written while it ran, also by a child, and nothing twice.
func TestRaw(t *testing.T) {
	t.Attr("requirement", "CP-004 CP-032")
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	var seen supervise.RawCount
	tell := func(code string) (out, err string) {
		t.Helper()
		result(t, p, fmt.Sprintf("e-%d", seen.Stdout+seen.Stderr+1), code)
		now, stdout, stderr := p.Raw(seen)
		if sum := int64(len(stdout.Text)) + stdout.Dropped; now.Stdout-seen.Stdout != sum {
			t.Errorf("stdout counts %d of %d bytes", sum, now.Stdout-seen.Stdout)
		}
		seen = now
		return stdout.Text, stderr.Text
	}
	for i := range 50 {
		out, err := tell(fmt.Sprintf("import os\nos.write(1, b'out %d\\n'), os.write(2, b'err %d')", i, i))
		if out != fmt.Sprintf("out %d\n", i) || err != fmt.Sprintf("err %d", i) {
			t.Fatalf("after cell %d: stdout %q, stderr %q", i, out, err)
		}
	}
	if out, err := tell("import subprocess\nsubprocess.run(['/bin/echo', 'from a child'])"); out != "from a child\n" || err != "" {
		t.Errorf("of a child: stdout %q, stderr %q", out, err)
	}
	out, _ := tell("os.write(1, 'é'.encode() * 5000), os.write(1, b'\\n')")
	if len(out) >= 10_001 || !strings.HasPrefix(out, "é") || !strings.HasSuffix(out, "é\n") {
		t.Errorf("of much: %d bytes, %.10q", len(out), out)
	}
	if out, err := tell("print('to the record')"); out+err != "" {
		t.Errorf("of a cell that prints: %q", out+err)
	}
	p.Stop(t.Context())
	if now, out, err := p.Raw(seen); now != seen || out.Text+err.Text != "" {
		t.Errorf("after the end: %+v", now)
	}
}
