package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
)

// sink is a file that was made for the entries of a request before it ran.
type sink struct{ path string }

// manifest says what was written.
type manifest struct {
	Path      string   `json:"path"`
	Rows      int      `json:"rows"`
	Bytes     int      `json:"bytes"`
	Succeeded int      `json:"succeeded"`
	Columns   []column `json:"columns"` // by name
	Schema    string   `json:"schema"`  // SHA-256 of the columns and their kinds
	SHA256    string   `json:"sha256"`
}

// column is a member that lines have.
type column struct {
	Name  string   `json:"name"`
	Kinds []string `json:"kinds"`
	Nulls int      `json:"nulls"` // lines in which it is null or missing
}

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
func (s *sink) save(entries []entry) (manifest, error) {
	var b bytes.Buffer
	m := manifest{Path: s.path, Rows: len(entries)}
	for i := range entries {
		line, err := json.Marshal(&entries[i])
		if err != nil {
			return m, fault.Wrap(err, fault.Internal, "save results", s.path)
		}
		if entries[i].OK {
			m.Succeeded++
		}
		m.note(line)
		b.Write(append(line, '\n'))
	}
	slices.SortFunc(m.Columns, func(x, y column) int { return strings.Compare(x.Name, y.Name) })
	m.Bytes, m.Schema, m.SHA256 = b.Len(), m.fingerprint(), digest(b.Bytes())
	if err := durable.WriteFile(s.path, b.Bytes(), 0o600); err != nil {
		return m, fault.Wrap(err, fault.Unavailable, "save results", s.path).WithNext("the operations were carried out: their outcomes are in this answer")
	}
	return m, nil
}

// note counts the members of a line.
func (m *manifest) note(line jsontext.Value) {
	for _, x := range membersOf(line) {
		i := slices.IndexFunc(m.Columns, func(c column) bool { return c.Name == x.name })
		if i < 0 {
			i = len(m.Columns)
			m.Columns = append(m.Columns, column{Name: x.name, Nulls: m.Rows})
		}
		c := &m.Columns[i]
		kind := kindName(x.value)
		if kind == "null" {
			continue
		}
		c.Nulls--
		if at, known := slices.BinarySearch(c.Kinds, kind); !known {
			c.Kinds = slices.Insert(c.Kinds, at, kind)
		}
	}
}

func kindName(v jsontext.Value) string {
	switch v.Kind() {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 'n':
		return "null"
	}
	return "boolean"
}

// fingerprint is the same for files whose lines have the same members of the same
// kinds.
func (m *manifest) fingerprint() string {
	var b strings.Builder
	for _, c := range m.Columns {
		b.WriteString(c.Name + " " + strings.Join(c.Kinds, "|") + "\n")
	}
	return digest([]byte(b.String()))
}

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func (m *manifest) show(p printer) {
	p.pairs("path", m.Path, "rows", count(int64(m.Rows), "entry", "entries"), "succeeded", count(int64(m.Succeeded), "entry", "entries"),
		"size", bytesText(int64(m.Bytes)), "sha256", m.SHA256)
}
