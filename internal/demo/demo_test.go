package demo_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/demo"
	"github.com/reeve-run/reeve/internal/reevetest"
)

func TestMain(m *testing.M) { os.Exit(reevetest.Main(m)) }

// Not parallel: the directories that demos make are looked for in the one that
// TMPDIR names.
func TestDemoHolds(t *testing.T) {
	reevetest.Python(t)
	bin := reevetest.Binary(t)
	tmp, err := os.MkdirTemp("", "rv") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	t.Setenv("TMPDIR", tmp)
	var story bytes.Buffer
	r, err := demo.Run(t.Context(), demo.Options{Exe: bin, Out: &story})
	if err != nil {
		t.Fatalf("%v\n%s", err, story.String())
	}
	for _, s := range r.Steps {
		if !s.OK || s.Text == "" {
			t.Errorf("step %+v", s)
		}
	}
	if len(r.Steps) != 14 || len(r.Timeline) != 27 || r.Verify.Code != "" || r.Verify.Events < 40 {
		t.Errorf("%d steps, %d moments, verified %+v", len(r.Steps), len(r.Timeline), r.Verify)
	}
	for _, want := range []string{"FAIL: test_more_last_bytes_than_there_are", "SIGKILL", "+            start = max(size - int(last), 0)", "kernel.lost", "git-stays-git", "act.finished", "send.approved"} {
		if !strings.Contains(story.String(), want) {
			t.Errorf("the story lacks %q", want)
		}
	}
	left, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemoFailsWhenItsServerIsNone(t *testing.T) {
	t.Parallel()
	reevetest.Python(t)
	r, err := demo.Run(t.Context(), demo.Options{Exe: "/bin/false"})
	if fault.CodeOf(err) != fault.Internal {
		t.Errorf("error %v", err)
	}
	last := r.Steps[len(r.Steps)-1]
	if len(r.Steps) != 3 || r.Steps[1].OK || !last.OK {
		t.Errorf("steps %+v", r.Steps)
	}
}

func TestDemoThatIsInterruptedSaysSo(t *testing.T) {
	t.Parallel()
	reevetest.Python(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := demo.Run(ctx, demo.Options{Exe: reevetest.Binary(t), Out: interrupter{cancel}})
	if fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("error %v", err)
	}
	if last := r.Steps[len(r.Steps)-1]; last.Name != "stop everything" || !last.OK {
		t.Errorf("last step %+v", last)
	}
}

// interrupter ends the demo when its first cell is shown.
type interrupter struct{ cancel func() }

func (i interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(">>> ")) {
		i.cancel()
	}
	return len(p), nil
}

// Not parallel: it takes PATH away.
func TestDemoSaysWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := demo.Run(t.Context(), demo.Options{})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "git") {
		t.Errorf("error %v", err)
	}
}
