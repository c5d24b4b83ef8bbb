package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// coreEnv makes the test binary the core of a directory; pythonEnv names its
// interpreter.
const (
	coreEnv   = "HOST_TEST_CORE"
	pythonEnv = "HOST_TEST_PYTHON"
)

func coreMain(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	settings := map[string]string{"worker.python": os.Getenv(pythonEnv)}
	if err := host.Main(ctx, dir, settings, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// crasher is a data directory whose cores are killed.
type crasher struct {
	dir, workspace string
	python         string
	log            *os.File

	ack chan struct{} // unbuffered: who waits hears of the next acknowledged cell

	mu    sync.Mutex
	asked int               // cells asked for
	acked map[string]string // id that a cell wrote: its handle
}

func newCrasher(t *testing.T) *crasher {
	t.Helper()
	k := &crasher{
		dir: filepath.Join(t.TempDir(), "data"), workspace: t.TempDir(), python: reevetest.Python(t).Path, acked: map[string]string{},
		ack: make(chan struct{}),
	}
	var err error
	if k.log, err = os.Create(filepath.Join(k.workspace, "core.log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b, err := os.ReadFile(k.log.Name())
			t.Logf("%s %v", b[max(0, len(b)-8000):], err)
		}
		k.log.Close()
	})
	return k
}

// core starts a core and waits until it answers.
func (k *crasher) core(t *testing.T) (*exec.Cmd, *control.Client) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), coreEnv+"="+k.dir, pythonEnv+"="+k.python, "XDG_CONFIG_HOME="+k.workspace)
	cmd.Stderr = k.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // a test that fails early leaves none; else it has ended
	return cmd, connect(t, k.dir)
}

// load runs cells in a session until its core is gone. Each cell appends an id to
// a file: its effect.
func (k *crasher) load(ctx context.Context, c *control.Client, session string) {
	for ctx.Err() == nil {
		k.mu.Lock()
		k.asked++
		id := "id" + strconv.Itoa(k.asked)
		k.mu.Unlock()
		res, err := c.Execute(ctx, control.ExecuteRequest{
			Session: session, Workspace: k.workspace, By: me,
			Code: fmt.Sprintf("open('effects-%s', 'a').write('%s\\n')\n'%s'", session, id, id),
		}, nil)
		if err != nil {
			return
		}
		if res.Status == "ok" && !res.Unrecorded {
			k.mu.Lock()
			k.acked[id] = res.Cell
			k.mu.Unlock()
			select {
			case k.ack <- struct{}{}:
			default:
			}
		}
	}
}

var crashSessions = []string{"one", "two", "three"}

// CP-120: a core that is killed at any point, under load, loses nothing that it
// acknowledged, lets no cell run twice, leaves no process, and leaves every cell
// with an outcome. REEVE_CRASH_KILLS says how often.
func TestKilledCoresLoseNothing(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-120 CP-140 CP-027")
	kills := 5
	if s := os.Getenv("REEVE_CRASH_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	k := newCrasher(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d kills", seed, kills)
	for i := range kills {
		core, client := k.core(t)
		ctx, stop := context.WithCancel(t.Context())
		var users sync.WaitGroup
		for _, session := range crashSessions {
			users.Go(func() { k.load(ctx, client, session) })
		}
		k.untilDeath(t, random)
		if err := core.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = core.Wait() // it was killed: its status is no news
		users.Wait()
		stop()
		k.nothingLeft(t)
		if t.Failed() || (i+1)%10 == 0 || i == kills-1 {
			k.check(t)
		}
		if t.Failed() {
			t.Fatalf("after %d kills", i+1)
		}
	}
	t.Logf("%d cells asked for, %d acknowledged", k.asked, len(k.acked))
	if len(k.acked) == 0 {
		t.Error("no cell was acknowledged: the kills came too early to show anything")
	}
}

// CP-141: what a cell had printed beyond its record is there after its core was
// killed, and how long it had run; of a short output it is said that it is not.
func TestOutputSurvivesAKilledCore(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-120 CP-141")
	k := newCrasher(t)
	core, client := k.core(t)
	const line, lines = 100, 2000
	var users sync.WaitGroup
	printed := []chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	handles := make([]string, 2)
	for i, code := range []string{
		"import time\nfor n in range(2000): print('%04d' % n + 'x' * 95)\ntime.sleep(600)",
		"import time\nprint('short', flush=True)\ntime.sleep(600)",
	} {
		users.Go(func() {
			_, err := client.Execute(t.Context(), control.ExecuteRequest{
				Session: "s" + itoa(i), Workspace: k.workspace, By: me, Code: code,
			}, func(p control.CellProgress) {
				handles[i] = p.Cell
				if p.Kind == "output" {
					select {
					case printed[i] <- struct{}{}:
					default:
					}
				}
			})
			if err == nil {
				t.Error("the cell has ended")
			}
		})
	}
	// The spool is whole when its core says so.
	for again := time.NewTicker(10 * time.Millisecond); ; <-again.C {
		if all, err := client.ListCells(t.Context(), "s0", 1); err == nil && len(all) == 1 {
			out, err := client.Output(t.Context(), all[0].Cell, 0)
			if err == nil && out.Body.Close() == nil && out.Total == line*lines {
				break
			}
		}
		if t.Context().Err() != nil {
			t.Fatal("the cell does not print")
		}
	}
	<-printed[1]
	if err := core.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = core.Wait() // it was killed: its status is no news
	users.Wait()
	k.nothingLeft(t)
	core, client = k.core(t)
	for i, handle := range handles {
		d, err := client.Cell(t.Context(), handle)
		if err != nil || d.Result.Status != "interrupted" || d.Result.Cause == nil || d.Result.ElapsedMS <= 0 {
			t.Fatalf("cell %d: %+v, %v", i, d.Result, err)
		}
		r := d.Result
		if i == 1 {
			if r.BytesTotal != 0 || !strings.Contains(r.Cause.Text, "what the cell had printed is not known") {
				t.Errorf("the short one: %+v, cause %q", r, r.Cause.Text)
			}
			continue
		}
		out, err := client.Output(t.Context(), handle, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(out.Body)
		if err = errors.Join(err, out.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if len(b) != line*lines || !strings.HasPrefix(string(b), "0000xxx") || !strings.HasSuffix(string(b), "x\n") || !strings.Contains(r.Cause.Text, "200000 bytes") {
			t.Errorf("%d bytes of output, %.10q to %q, cause %q", len(b), b, b[max(0, len(b)-5):], r.Cause.Text)
		}
		if r.BytesTotal != line*lines || r.TruncatedBytes != line*lines {
			t.Errorf("total %d, truncated %d", r.BytesTotal, r.TruncatedBytes)
		}
	}
	k.stop(t, core, client)
	if left, err := filepath.Glob(filepath.Join(k.dir, "run", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// untilDeath waits for the moment to kill, which is what is random here: at any time
// from the start of the core on, or into the work that is under way.
func (k *crasher) untilDeath(t *testing.T, random *rand.Rand) {
	t.Helper()
	if random.IntN(3) > 0 {
		select {
		case <-k.ack:
		case <-time.After(time.Minute):
			t.Fatal("no cell was acknowledged within a minute")
		}
	}
	point := time.NewTimer(time.Duration(random.IntN(300)) * time.Millisecond)
	<-point.C
}

// nothingLeft waits until no process has the data directory in its environment or
// its arguments, except this one.
func (k *crasher) nothingLeft(t *testing.T) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(30 * time.Second)
	for {
		left := k.processes(t)
		if len(left) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Errorf("processes are left: %v", left)
			return
		}
	}
}

func (k *crasher) processes(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, file := range []string{"environ", "cmdline"} {
			b, err := os.ReadFile(filepath.Join("/proc", e.Name(), file))
			if err == nil && bytes.Contains(b, []byte(k.dir)) {
				left = append(left, e.Name()+" "+string(bytes.ReplaceAll(b[:min(len(b), 200)], []byte{0}, []byte{' '})))
				break
			}
		}
	}
	return left
}

// check starts one more core, compares what it tells with what was seen, and stops
// it in order.
func (k *crasher) check(t *testing.T) {
	t.Helper()
	core, c := k.core(t)
	ctx := t.Context()
	report, err := c.Verify(ctx)
	if err != nil || report.Code != "" {
		t.Errorf("verify: %+v, %v", report, err)
	}
	started, open := map[string]bool{}, map[string]string{}
	err = c.Events(ctx, control.EventQuery{Kinds: []string{"cell.started", "cell.completed"}, Max: 1 << 30}, func(e control.EventRow) error {
		p, err := event.Decode(event.Kind(e.Kind), e.Version, e.Payload)
		switch p := p.(type) {
		case event.CellStartedV1:
			started[strings.Trim(strings.SplitAfter(*p.Code, "\n")[1], "'")] = true
			open[p.Cell] = e.Stream
		case event.CellCompletedV2:
			if open[p.Cell] == "" {
				t.Errorf("cell %s has a second outcome", p.Cell)
			}
			delete(open, p.Cell)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for cell, stream := range open {
		t.Errorf("cell %s of %s has no outcome", cell, stream)
	}
	k.checkEffects(t, started)
	for id, cell := range k.acked {
		d, err := c.Cell(ctx, cell)
		if err != nil || d.Result.Status != "ok" || text(d.Result, "result") != "'"+id+"'" {
			t.Errorf("acknowledged cell %s of %s: %+v, %v", cell, id, d.Result, err)
		}
	}
	k.stop(t, core, c)
}

// stop stops a core in order.
func (k *crasher) stop(t *testing.T, core *exec.Cmd, c *control.Client) {
	t.Helper()
	if err := c.Shutdown(t.Context(), me); err != nil {
		t.Error(err)
	}
	if err := core.Wait(); err != nil {
		t.Errorf("the core that was asked to stop: %v", err)
	}
	k.nothingLeft(t)
}

// checkEffects holds what the cells did to what was recorded: nothing ran twice,
// nothing ran without an intent, and what was acknowledged has run.
func (k *crasher) checkEffects(t *testing.T, started map[string]bool) {
	t.Helper()
	ran := map[string]int{}
	for _, session := range crashSessions {
		b, err := os.ReadFile(filepath.Join(k.workspace, "effects-"+session))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, id := range strings.Fields(string(b)) {
			ran[id]++
		}
	}
	for id, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
		if !started[id] {
			t.Errorf("%s ran without an intent", id)
		}
	}
	for id := range k.acked {
		if ran[id] != 1 {
			t.Errorf("%s was acknowledged and ran %d times", id, ran[id])
		}
	}
}
