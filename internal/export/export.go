// Package export writes the results of a request to a file below a root (VD-005).
//
// Invariants: no name and no link leads out of the root; the file is reserved before
// anything runs, and never one that exists; what a file holds is whole or the file is
// empty.
package export

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/request"
)

const op = "save results"

// Sink is a file that was made for the entries of a request before it ran.
type Sink struct {
	root *os.Root
	dir  string
	name string
}

// Reserve makes the file, and the root and directories that it lies in. A relative
// name is below root, an absolute one must be.
func Reserve(root, name string) (*Sink, error) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, outside(name, root)
		}
		name = rel
	}
	name = filepath.ToSlash(name)
	if slices.Contains(strings.Split(name, "/"), "..") || !filepath.IsLocal(name) || path.Clean(name) == "." {
		return nil, outside(name, root)
	}
	name = path.Clean(name)
	if err := durable.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, op, root)
	}
	s := &Sink{root: r, dir: root, name: name}
	if err := s.reserve(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return s, nil
}

func outside(name, root string) error {
	return fault.New(fault.InvalidRequest, op, name, "it does not lie below the export root, and nothing was run").
		WithNext("give a name without .., which is taken below %s", root)
}

// reserve refuses links on the way, also those that stay inside.
func (s *Sink) reserve() error {
	for dir := path.Dir(s.name); dir != "."; dir = path.Dir(dir) {
		if info, err := s.root.Lstat(dir); err == nil && !info.IsDir() {
			return fault.New(fault.InvalidRequest, op, dir, "it is a link or a file, and nothing was run").WithNext("name another directory")
		}
	}
	if err := s.root.MkdirAll(path.Dir(s.name), 0o700); err != nil {
		return fault.Wrap(err, fault.Unavailable, op, s.name)
	}
	f, err := s.root.OpenFile(s.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fault.New(fault.InvalidRequest, op, s.name, "the file exists, and nothing was run").WithNext("name a new file")
	case err != nil:
		return fault.Wrap(err, fault.Unavailable, op, s.name)
	}
	return f.Close()
}

// Drop takes the file away: nothing was run.
func (s *Sink) Drop() error { return errors.Join(s.root.Remove(s.name), s.root.Close()) }

// Save writes the entries, one a line, and closes the sink.
func (s *Sink) Save(entries []request.Entry) (request.Manifest, error) {
	lines := make([][]byte, len(entries))
	for i := range entries {
		line, err := json.Marshal(entries[i])
		if err != nil {
			return request.Manifest{}, errors.Join(fault.Wrap(err, fault.Internal, op, s.name), s.root.Close())
		}
		lines[i] = line
	}
	m, file, err := request.MakeManifest(filepath.Join(s.dir, filepath.FromSlash(s.name)), lines)
	if err != nil {
		return m, errors.Join(fault.Wrap(err, fault.Internal, op, s.name), s.root.Close())
	}
	if err := errors.Join(s.write(file), s.root.Close()); err != nil {
		return m, fault.Wrap(err, fault.Unavailable, op, s.name).WithNext("the operations were carried out: their outcomes are in this answer")
	}
	return m, nil
}

// write puts the bytes beside the reserved file and then in its place.
func (s *Sink) write(b []byte) error {
	temp := path.Join(path.Dir(s.name), ".reeve-"+rand.Text()[:12])
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.root.Rename(temp, s.name)
	}
	if err != nil {
		return errors.Join(err, s.root.Remove(temp))
	}
	return nil
}

// maxKept is how long a result may be to stand in the answer of a sink that failed.
const maxKept = 8 << 10

// Outcomes are what an answer says of each operation when its file could not be
// written: enough to know what was done.
func Outcomes(entries []request.Entry) []map[string]any {
	all := make([]map[string]any, len(entries))
	for i, e := range entries {
		d := e.Disposition
		if e.OK {
			d = request.Committed
		}
		o := map[string]any{"op_index": e.Index, "tool": e.Tool, "ok": e.OK, "domain_disposition": d}
		keep(o, "result", e.Result != nil, e.Result)
		keep(o, "error", e.Error != nil, e.Error)
		all[i] = o
	}
	return all
}

func keep(o map[string]any, name string, present bool, v any) {
	if !present {
		return
	}
	if b, err := json.Marshal(v); err != nil || len(b) > maxKept {
		o[name+"_omitted"] = true
		return
	}
	o[name] = v
}
