package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise/shim"
	_ "github.com/reeve-run/reeve/internal/supervise/shim/early" // the test binary is the shim
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

func init() { parent = []string{os.Args[0], shim.Command} }

// A daemon that has left its group, its session, its parent and its environment ends
// with the program all the same.
func TestADaemonCannotLeave(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-060")
	r := newRig(t)
	const daemon = `(env -i /bin/sh -c 'setsid /bin/sh -c "echo \$\$ > pid.new; mv pid.new pid; exec sleep 300" &' &) ; while [ ! -e pid ]; do sleep 0.01; done; `
	out, _ := r.must(t, "run", `{"argv":["/bin/sh","-c",`+quoted(daemon)+`]}`)
	if out["exit_code"] != 0.0 || out["ended"] != 1.0 {
		t.Errorf("%v", out)
	}
	gone(t, filepath.Join(r.dir, "pid"))
	if err := os.Remove(filepath.Join(r.dir, "pid")); err != nil {
		t.Fatal(err)
	}
	out, _ = r.must(t, "run", `{"argv":["/bin/sh","-c",`+quoted(daemon+"sleep 300")+`],"timeout_ms":5000}`)
	if out["timed_out"] != true || out["signal"] != "SIGKILL" {
		t.Errorf("%v", out)
	}
	gone(t, filepath.Join(r.dir, "pid"))
}

// A program that kills its own parent does not get away, and its end is unknown.
func TestAProgramThatKillsItsParent(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-060")
	r := newRig(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err := r.do(ctx, "run", `{"argv":["/bin/sh","-c","echo $$ > pid; kill -9 $PPID; sleep 300"]}`)
	if fault.CodeOf(err) != fault.Unknown || verbs.DispositionOf(err, verbs.Workspace) != request.Undetermined {
		t.Errorf("%v", err)
	}
	gone(t, filepath.Join(r.dir, "pid"))
}

// What cannot be executed has not been.
func TestAProgramThatCannotStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.WriteFile(filepath.Join(r.dir, "junk"), []byte("\x7fELFjunk"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err := r.do(t.Context(), "run", `{"argv":["./junk"]}`)
	if fault.CodeOf(err) != fault.Unavailable || verbs.DispositionOf(err, verbs.Workspace) != request.NotCommitted {
		t.Errorf("%v is %s", err, verbs.DispositionOf(err, verbs.Workspace))
	}
}
