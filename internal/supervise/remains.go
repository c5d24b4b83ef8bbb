package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise/shim"
)

// ownerFile, in a private directory, says whose it is: session and generation, a
// line each.
const ownerFile = "owner"

// Remains are the private directory of a worker whose core is gone.
type Remains struct {
	Session, Generation string // empty when the directory does not say

	// Until is the last sign of the worker: when its shim saw that the core was gone,
	// or when it last spooled. Zero when it left none.
	Until time.Time

	dir string
}

// Left lists what the workers of a dead core left in runtime. Only the holder of
// the data directory's lock may call it, after Sweep and before it starts workers;
// it removes each when it has taken what it wants.
func Left(runtime string) ([]Remains, error) {
	dirs, err := filepath.Glob(filepath.Join(runtime, privatePrefix+"*"))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "list remains", runtime)
	}
	all := make([]Remains, len(dirs))
	for i, dir := range dirs {
		all[i] = remains(dir)
	}
	return all, nil
}

// remains reads a directory in which a worker could write anything: what is not as
// expected says nothing.
func remains(dir string) Remains {
	r := Remains{dir: dir}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return r
	}
	if plain(filepath.Join(dir, ownerFile)) {
		b, err := os.ReadFile(filepath.Join(dir, ownerFile))
		if owner := strings.Split(string(b), "\n"); err == nil && len(owner) == 3 {
			r.Session, r.Generation = owner[0], owner[1]
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return r
	}
	for _, e := range entries {
		if e.Name() != shim.Mark && !strings.HasPrefix(e.Name(), spoolPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(r.Until) {
			r.Until = info.ModTime()
		}
	}
	return r
}

func plain(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// Spool is what is kept of the output of an execution; nil without an error when
// that did not print enough to be spooled. The caller closes it.
func (r Remains) Spool(execution string) (*Spool, error) { return openSpool(r.dir, execution) }

// Remove removes the directory, and the one that held its socket if that was
// elsewhere.
func (r Remains) Remove() error {
	var err error
	if info, e := os.Lstat(r.dir); e == nil && info.IsDir() {
		if short, e := os.Readlink(filepath.Join(r.dir, shortLink)); e == nil && strings.HasPrefix(filepath.Base(short), shortPrefix) {
			err = os.RemoveAll(short)
		}
	}
	if err = errors.Join(err, os.RemoveAll(r.dir)); err != nil {
		return fault.Wrap(err, fault.Unavailable, "remove remains", r.dir)
	}
	return nil
}
