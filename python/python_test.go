package python_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/python"
)

// outcome is one line of tests/runner.py: how one Python test ended.
type outcome struct {
	ID           string
	Requirements string
	Status       string // ok | failed | skipped
	Text         string
}

// TestPython runs the Python suite; each of its tests is a subtest under its own id.
func TestPython(t *testing.T) {
	t.Parallel()
	interpreter := reevetest.Python(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter.Path, "-B", "-X", "utf8", "-m", "tests.runner")
	cmd.Dir = filepath.Join(reevetest.Root(t), "python")
	cmd.Env = append(os.Environ(), "REEVE_WIRE_VECTORS="+reevetest.VectorDir(t, "wire"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ran := 0
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var o outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Errorf("unexpected line %q: %v", lines.Text(), err)
			continue
		}
		ran++
		t.Run(o.ID, func(t *testing.T) { o.report(t) })
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("run suite: %v\n%s", err, stderr.Bytes())
	}
	if ran == 0 {
		t.Errorf("the suite ran no test\n%s", stderr.Bytes())
	}
}

func (o outcome) report(t *testing.T) {
	if o.Requirements != "" {
		t.Attr("requirement", o.Requirements)
	}
	switch o.Status {
	case "ok":
	case "skipped":
		reevetest.Need(t, false, o.Text)
	default:
		t.Error(o.Text)
	}
}

// TestFiles compares what is embedded with what the directory holds: a file that a
// pattern misses would be missing from every worker.
func TestFiles(t *testing.T) {
	t.Parallel()
	var want, got []string
	root := filepath.Join(reevetest.Root(t), "python")
	for _, at := range []struct {
		tree fs.FS
		list *[]string
	}{{os.DirFS(root), &want}, {python.Files(), &got}} {
		err := fs.WalkDir(at.tree, ".", func(name string, entry fs.DirEntry, err error) error {
			top, _, _ := strings.Cut(name, "/")
			if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".py") && top != "tests" {
				*at.list = append(*at.list, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("embedded files differ from the directory (-directory +embedded):\n%s", diff)
	}
	if !slices.Contains(got, python.Boot) {
		t.Errorf("%s is not embedded", python.Boot)
	}
	if len(python.Hash()) != 64 {
		t.Errorf("Hash() = %q, want 64 hex digits", python.Hash())
	}
}
