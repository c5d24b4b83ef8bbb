package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	if err := c.Shutdown(ctx, me); err != nil {
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
