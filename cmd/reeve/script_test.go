package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/internal/supervise"
)

// TestMain is also the binary under test: scripts find it as reeve, and it starts
// itself as core, front end and worker's parent by its own image.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "exe" || len(os.Args) > 1 && os.Args[1] == supervise.ShimCommand {
		os.Exit(run())
	}
	testscript.Main(m, map[string]func(){"reeve": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	python := reevetest.Python(t).Path
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("REEVE_HOME", home)
			e.Setenv("REEVE_WORKER_PYTHON", python)
			e.Defer(func() { stopCore(t, home) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"envelope": checkEnvelope,
			"running":  running,
			"intended": intended,
			"session":  nameSession,
			"complete": complete,
			"id":       keepID,
		},
	})
}

// stopCore stops the core of dir, if there is one, and waits until it has gone.
func stopCore(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c, err := control.Reach(ctx, dir); err == nil {
		if err := c.Shutdown(ctx, event.Actor{Kind: "operator", Name: "test", Surface: "control"}); err != nil {
			t.Errorf("stop the core of %s: %v", dir, err)
		}
	}
	for {
		_, held, err := durable.LockOwner(filepath.Join(dir, "lock"))
		if errors.Is(err, os.ErrNotExist) || err == nil && !held {
			return
		}
		if err != nil || ctx.Err() != nil {
			t.Errorf("the core of %s is still there: %v", dir, err)
			return
		}
		time.Sleep(10 * time.Millisecond) // another process's lock cannot be waited for with a deadline
	}
}

// exits runs a command and demands its exit status: exits 3 reeve session show x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits status command args")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("run: %v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// complete runs the shell's completion until it has candidates: asking a core gives
// up after a moment, so that a busy machine never holds up a prompt.
func complete(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: complete args")
	}
	for range 200 {
		ts.Check(ts.Exec("reeve", append([]string{"__complete"}, args...)...))
		if !strings.HasPrefix(ts.ReadFile("stdout"), ":") {
			return
		}
	}
	ts.Fatalf("no candidates in 200 attempts")
}

// checkEnvelope demands that standard output is one envelope, a success of a kind or
// a failure with a code, and that standard error is empty:
// envelope ok sessions, envelope error not_found.
func checkEnvelope(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: envelope ok kind | envelope error code")
	}
	out := ts.ReadFile("stdout")
	if strings.Count(out, "\n") != 1 {
		ts.Fatalf("standard output is not one line:\n%s", out)
	}
	var whole map[string]jsontext.Value
	ts.Check(json.Unmarshal([]byte(out), &whole))
	for _, member := range []string{"ok", "kind", "data", "error", "meta"} {
		if whole[member] == nil {
			ts.Fatalf("no member %q in %s", member, out)
		}
	}
	var e control.Envelope
	ts.Check(json.Unmarshal([]byte(out), &e, json.RejectUnknownMembers(true)))
	got := "error " + e.Kind
	switch {
	case e.OK && e.Error == nil:
		got = "ok " + e.Kind
	case !e.OK && e.Error != nil:
		got = "error " + string(e.Error.Code)
		if !e.Error.Code.Known() || e.Error.Message == "" {
			ts.Fatalf("not an error that a program can use: %s", out)
		}
	}
	if want := strings.Join(args, " "); got != want {
		ts.Fatalf("the envelope is %q, want %q:\n%s", got, want, out)
	}
	if e.Meta.Version != control.Version || e.Meta.IDs == nil {
		ts.Fatalf("meta is %+v", e.Meta)
	}
	if text := ts.ReadFile("stderr"); text != "" {
		ts.Fatalf("standard error is not silent:\n%s", text)
	}
}

// running waits until the session named runs a cell.
func running(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: running session")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		c, err := control.Connect(ctx, ts.Getenv("REEVE_HOME"))
		if err == nil {
			s, err := c.Session(ctx, args[0])
			if err == nil && s.State == "running" {
				return
			}
			if err != nil && !fault.HasCode(err, fault.NotFound) {
				ts.Fatalf("look at session: %v", err)
			}
		}
		time.Sleep(10 * time.Millisecond) // the API has no way to wait for a state
	}
	ts.Fatalf("session %s runs nothing", args[0])
}

// nameSession sets SESSION to the id of the only session.
func nameSession(ts *testscript.TestScript, _ bool, _ []string) {
	c, err := control.Connect(context.Background(), ts.Getenv("REEVE_HOME"))
	ts.Check(err)
	all, err := c.ListSessions(context.Background())
	ts.Check(err)
	if len(all) != 1 {
		ts.Fatalf("there are %d sessions", len(all))
	}
	ts.Setenv("SESSION", all[0].Session)
	ts.Logf("SESSION=%s", fmt.Sprint(all[0].Session))
}

// keepID sets a variable to the id that stands alone on standard output.
func keepID(ts *testscript.TestScript, neg bool, args []string) {
	id := strings.TrimSpace(ts.ReadFile("stdout"))
	if neg || len(args) != 1 || id == "" || strings.ContainsAny(id, " \n") {
		ts.Fatalf("usage: id NAME, after a command that prints one: %q", id)
	}
	ts.Setenv(args[0], id)
}

// intended waits until an act of a verb has been begun: intended workspace.run.
func intended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: intended verb")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := control.Connect(ctx, ts.Getenv("REEVE_HOME"))
	ts.Check(err)
	found := errors.New("found")
	err = c.Events(ctx, control.EventQuery{Kinds: []string{string(event.ActIntended)}, Follow: true}, func(e control.EventRow) error {
		if strings.Contains(string(e.Payload), `"verb":"`+args[0]+`"`) {
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		ts.Fatalf("no act of %s has begun: %v", args[0], err)
	}
}
