package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/request"
)

// sink is a file that was made for the entries of a request before it ran.
type sink struct{ path string }

// reserve makes the file, which must not exist; nil when none is asked for.
func (a *app) reserve(path string) (*sink, error) {
	if path == "" {
		return nil, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.io.WorkDir, path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fault.New(fault.Conflict, "save results", path, "the file exists, and nothing was run").WithNext("name a new file with --save-to")
	case err != nil:
		return nil, fault.Wrap(err, fault.Usage, "save results", path).WithNext("name a file in a directory that can be written")
	}
	if err := f.Close(); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "save results", path)
	}
	return &sink{path}, nil
}

// drop takes the file away: nothing was run.
func (s *sink) drop() {
	if s != nil {
		_ = os.Remove(s.path) // it is empty, and the request's own error is what matters
	}
}

// save writes the entries, one a line.
func (s *sink) save(entries []entry) (request.Manifest, error) {
	lines := make([][]byte, len(entries))
	for i := range entries {
		line, err := json.Marshal(&entries[i])
		if err != nil {
			return request.Manifest{}, fault.Wrap(err, fault.Internal, "save results", s.path)
		}
		lines[i] = line
	}
	m, file, err := request.MakeManifest(s.path, lines)
	if err != nil {
		return m, fault.Wrap(err, fault.Internal, "save results", s.path)
	}
	if err := durable.WriteFile(s.path, file, 0o600); err != nil {
		return m, fault.Wrap(err, fault.Unavailable, "save results", s.path).WithNext("the operations were carried out: their outcomes are in this answer")
	}
	return m, nil
}

func showManifest(m request.Manifest, p printer) {
	p.pairs("path", m.Path, "rows", count(int64(m.Rows), "entry", "entries"), "succeeded", count(int64(m.Succeeded), "entry", "entries"),
		"size", bytesText(int64(m.Bytes)), "sha256", m.SHA256)
}
