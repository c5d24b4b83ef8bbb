// Package reevetest finds the real parts that tests stand on: the Python
// interpreter, the repository, the committed vectors.
//
// Invariants: a part that is missing is said with its reason and never passed
// over in silence, and with CI=true it is a failure; what is found does not
// depend on the directory a test runs in. The package must not know any other
// package of reeve, so that every test may use it.
package reevetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Need skips t with the reason when ok is false. With CI=true it fails instead:
// a machine that is meant to run everything may leave nothing out.
func Need(t testing.TB, ok bool, reason string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing on this machine: %s (CI=true allows no skip)", reason)
	}
	t.Skipf("missing on this machine: %s", reason)
}

// Root is the directory that holds go.mod.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if ok {
		if dir, found := above(filepath.Dir(file)); found {
			return dir
		}
	}
	// A binary built with -trimpath has no source path; go test runs it in the
	// directory of its package.
	wd, err := os.Getwd()
	if err != nil {
		t.Fatalf("find repository: %v", err)
	}
	dir, found := above(wd)
	if !found {
		t.Fatalf("find repository: no go.mod above %q", wd)
	}
	return dir
}

func above(dir string) (string, bool) {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// VectorDir is the folder of the named vectors: $REEVE_VECTORS/<name> when that
// exists, else the committed vectors/<name>.
func VectorDir(t testing.TB, name string) string {
	t.Helper()
	if big := os.Getenv("REEVE_VECTORS"); big != "" {
		dir := filepath.Join(big, name)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	dir := filepath.Join(Root(t), "vectors", name)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("find vectors %q: %v", name, err)
	}
	return dir
}

// Interpreter is a Python that the worker can run on.
type Interpreter struct {
	Path  string // absolute
	Major int
	Minor int
}

// oldest is the first minor version of Python 3 that the worker supports.
const oldest = 11

// Python is the interpreter named by REEVE_PYTHON, else python3 on PATH. It
// skips the test (Need) when there is none, or only one older than 3.11.
func Python(t testing.TB) Interpreter {
	t.Helper()
	found, err := lookup()
	Need(t, err == nil, fmt.Sprintf("Python ≥3.%d: %v", oldest, err))
	return found
}

// lookup asks the interpreter itself where it lives: a version manager's wrapper
// on PATH takes tens of milliseconds at each start and is not what runs.
var lookup = sync.OnceValues(func() (Interpreter, error) {
	name := os.Getenv("REEVE_PYTHON")
	if name == "" {
		name = "python3"
	}
	out, err := exec.Command(name, "-I", "-S", "-c",
		"import sys; print(sys.executable); print(sys.version_info[0]); print(sys.version_info[1])").Output()
	if err != nil {
		return Interpreter{}, fmt.Errorf("run %q: %w", name, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 {
		return Interpreter{}, fmt.Errorf("run %q: unexpected answer %q", name, out)
	}
	major, errMajor := strconv.Atoi(lines[1])
	minor, errMinor := strconv.Atoi(lines[2])
	if errMajor != nil || errMinor != nil {
		return Interpreter{}, fmt.Errorf("run %q: unexpected version %q", name, out)
	}
	if major != 3 || minor < oldest {
		return Interpreter{}, fmt.Errorf("%q is Python %d.%d", lines[0], major, minor)
	}
	return Interpreter{Path: lines[0], Major: major, Minor: minor}, nil
})

// Binary is the path of the reeve binary, built once for the tests of a package,
// whose TestMain must be Main. REEVE_BINARY names one that is built already.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built is the directory of the binary, empty before the first use.
var built string

var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("REEVE_BINARY"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "reevetest-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "reeve")
	// From the module, whatever directory the test has.
	cmd := exec.Command("go", "build", "-o", path, "github.com/reeve-run/reeve/cmd/reeve")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build reeve: %w\n%s", err, out)
	}
	return path, nil
})

// Main runs a package's tests and removes the binary that Binary built for them.
// It returns the exit status.
func Main(m *testing.M) int {
	defer func() {
		if built != "" {
			_ = os.RemoveAll(built) // a leftover is no reason for red tests
		}
	}()
	return m.Run()
}
