package host_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/internal/host"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// D17: what lies on a medium that cannot be written is verified there: as it was
// left by a stop in order, and by a kill, whose log is part of it.
func TestVerifyWhereNothingMayBeWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "1")
	killed := r.dir + " killed?#%"
	if err := os.Mkdir(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reeve.db", "reeve.db-wal", "reeve.db-shm"} {
		copyFile(t, r.dir+"/"+name, killed+"/"+name)
	}
	closeCore(t, c)
	for dir, events := range map[string]int64{r.dir: 6, killed: 5} {
		before := listing(t, dir)
		freeze(t, dir)
		if got, err := host.VerifyDir(t.Context(), dir); err != nil || got.Code != "" || got.Events != events {
			t.Errorf("%s: %+v, %v", dir, got, err)
		}
		if u, err := host.UsageDir(t.Context(), dir); err != nil || u.Events != events {
			t.Errorf("%s: usage %+v, %v", dir, u, err)
		}
		if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
			t.Error(diff)
		}
	}
}

// freeze keeps everybody from writing in dir, as a medium that is read-only does.
func freeze(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		files, err := filepath.Glob(filepath.Join(dir, "reeve.db*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Chmod(f, 0o400); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Error(err)
			}
		})
		return
	}
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	reevetest.Need(t, err == nil, "permission to mount")
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}

// listing is the files of a directory with their times.
func listing(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = info.ModTime()
	}
	return all
}
