package reevetest_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/reeve-run/reeve/internal/reevetest"
)

// recorder notes how Need ended a test, without ending this one.
type recorder struct {
	testing.TB
	failed, skipped bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.failed = true; runtime.Goexit() }
func (r *recorder) Skipf(string, ...any)  { r.skipped = true; runtime.Goexit() }

// need runs Need on a goroutine of its own, which a skip or a failure ends.
func need(t *testing.T, ok bool) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		reevetest.Need(r, ok, "a unicorn")
	}()
	<-done
	return r
}

// Not parallel: it sets CI.
func TestNeedSkipsWithReasonAndFailsInCI(t *testing.T) {
	for _, c := range []struct {
		ci              string
		ok              bool
		failed, skipped bool
	}{
		{ci: "", ok: true},
		{ci: "true", ok: true},
		{ci: "", ok: false, skipped: true},
		{ci: "false", ok: false, skipped: true},
		{ci: "true", ok: false, failed: true},
	} {
		t.Setenv("CI", c.ci)
		r := need(t, c.ok)
		if r.failed != c.failed || r.skipped != c.skipped {
			t.Errorf("CI=%q, have it: %t: failed %t, skipped %t; want failed %t, skipped %t",
				c.ci, c.ok, r.failed, r.skipped, c.failed, c.skipped)
		}
	}
}

// Not parallel: it sets REEVE_VECTORS.
func TestVectorDirPrefersTheNamedFolder(t *testing.T) {
	big := t.TempDir()
	if err := os.Mkdir(filepath.Join(big, "only-there"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REEVE_VECTORS", big)
	if got, want := reevetest.VectorDir(t, "only-there"), filepath.Join(big, "only-there"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	root := reevetest.Root(t)
	if _, err := os.Stat(filepath.Join(root, "internal", "reevetest")); err != nil {
		t.Errorf("Root is %q, which is not this repository: %v", root, err)
	}
}

func TestPythonIsAbsoluteAndNewEnough(t *testing.T) {
	t.Parallel()
	py := reevetest.Python(t)
	if !filepath.IsAbs(py.Path) || py.Major != 3 || py.Minor < 11 {
		t.Errorf("got %+v, want an absolute path to Python ≥3.11", py)
	}
}
