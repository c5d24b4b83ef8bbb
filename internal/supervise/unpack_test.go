package supervise_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/internal/supervise"
)

// unpacked is the embedded worker, unpacked once for all tests of this package.
var unpacked struct {
	once sync.Once
	root string
	dir  string
	err  error
}

// workbench is a spec of the real worker.
func workbench(t testing.TB) (supervise.Spec, *sink) {
	t.Helper()
	python := reevetest.Python(t).Path
	unpacked.once.Do(func() {
		if unpacked.root, unpacked.err = os.MkdirTemp("", "rvpy"); unpacked.err == nil {
			unpacked.dir, unpacked.err = supervise.Unpack(t.Context(), unpacked.root, python)
		}
	})
	if unpacked.err != nil {
		t.Fatal(unpacked.err)
	}
	return spec(t, unpacked.dir)
}

// tree is every file below dir with its bytes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		files[path] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestUnpackRacing(t *testing.T) {
	t.Parallel()
	python := reevetest.Python(t).Path
	root := t.TempDir()
	var all sync.WaitGroup
	dirs := make([]string, 3)
	errs := make([]error, 3)
	for i := range dirs {
		all.Go(func() { dirs[i], errs[i] = supervise.Unpack(t.Context(), root, python) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if dirs[0] != dirs[1] || dirs[0] != dirs[2] {
		t.Errorf("directories %q", dirs)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("root holds %v %v", entries, err)
	}
}

// TestUnpackMendsDamage changes, removes and cuts sources and compiled files; the
// next Unpack restores each to what it was.
func TestUnpackMendsDamage(t *testing.T) {
	t.Parallel()
	python := reevetest.Python(t).Path
	root := t.TempDir()
	dir, err := supervise.Unpack(t.Context(), root, python)
	if err != nil {
		t.Fatal(err)
	}
	whole := tree(t, dir)
	var sources, compiled []string
	for path := range whole {
		switch filepath.Ext(path) {
		case ".py":
			sources = append(sources, path)
		case ".pyc":
			compiled = append(compiled, path)
		}
	}
	if len(sources) == 0 || len(compiled) != len(sources) {
		t.Fatalf("%d sources, %d compiled files", len(sources), len(compiled))
	}
	for _, path := range []string{sources[0], compiled[0]} {
		for name, damage := range map[string]func() error{
			"changed": func() error { return os.WriteFile(path, []byte("import os; os._exit(9)\n"), 0o600) },
			"removed": func() error { return os.Remove(path) },
			"cut":     func() error { return os.Truncate(path, 10) },
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			again, err := supervise.Unpack(t.Context(), root, python)
			if err != nil || again != dir {
				t.Fatalf("%s %s: %q, %v", name, path, again, err)
			}
			if diff := cmp.Diff(whole, tree(t, dir)); diff != "" {
				t.Errorf("%s %s was not restored (-want +got):\n%s", name, path, diff)
			}
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	python := reevetest.Python(t).Path
	// A launcher script, as version managers install them.
	launcher := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(launcher, []byte("#!/bin/sh\nexec '"+python+"' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	direct, err := supervise.Probe(t.Context(), python)
	if err != nil {
		t.Fatal(err)
	}
	found, err := supervise.Probe(t.Context(), launcher)
	if err != nil || found != direct {
		t.Errorf("Probe(launcher) = %+v, %v, want %+v", found, err, direct)
	}
	for name, script := range map[string]string{
		"old":    "#!/bin/sh\nprintf '/usr/bin/python3\\n3.9.2\\ncpython-39\\n'\n",
		"silent": "#!/bin/sh\n",
		"broken": "#!/bin/sh\necho no libpython >&2\nexit 127\n",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := supervise.Probe(t.Context(), path)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Unavailable || f.Next == "" {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, err)
	}
}

func TestRealWorker(t *testing.T) {
	t.Parallel()
	sp, _ := workbench(t)
	p := start(t, sp)
	if got := result(t, p, "e-1", "x = 6*7\nx"); got != "42" {
		t.Errorf("result %q", got)
	}
	if exit := p.Stop(t.Context()); exit.Cause.Kind != "shutdown" || *exit.Cause.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
	_, took := p.Started()
	t.Logf("ready after %s", took)
}
