package request

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Manifest says what was written to a file of JSON lines (VD-005).
type Manifest struct {
	Path      string   `json:"path"`
	Rows      int      `json:"rows"`
	Bytes     int      `json:"bytes"`
	Succeeded int      `json:"succeeded"`
	Columns   []Column `json:"columns"` // by name
	Schema    string   `json:"schema"`  // SHA-256 of the columns and their kinds
	SHA256    string   `json:"sha256"`  // of the file
}

// Column is a member that lines have.
type Column struct {
	Name  string   `json:"name"`
	Kinds []string `json:"kinds"` // sorted, without null
	Nulls int      `json:"nulls"` // lines in which it is null or missing
}

// MakeManifest is the manifest of lines, each a JSON object without its newline, and
// the bytes of the file that holds them.
func MakeManifest(path string, lines [][]byte) (Manifest, []byte, error) {
	m := Manifest{Path: path, Rows: len(lines), Columns: []Column{}}
	var b bytes.Buffer
	for i, line := range lines {
		v, err := ParseResult(line)
		if err != nil {
			return m, nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if ok, given := v.Member("ok"); given && ok.IsTrue() {
			m.Succeeded++
		}
		for _, it := range v.Items() {
			m.note(it)
		}
		b.Write(append(slices.Clip(line), '\n'))
	}
	slices.SortFunc(m.Columns, func(x, y Column) int { return strings.Compare(x.Name, y.Name) })
	var schema strings.Builder
	for _, c := range m.Columns {
		schema.WriteString(c.Name + " " + strings.Join(c.Kinds, "|") + "\n")
	}
	m.Bytes, m.Schema, m.SHA256 = b.Len(), sumOf([]byte(schema.String())), sumOf(b.Bytes())
	return m, b.Bytes(), nil
}

func (m *Manifest) note(it Item) {
	i := slices.IndexFunc(m.Columns, func(c Column) bool { return c.Name == it.Name })
	if i < 0 {
		i = len(m.Columns)
		m.Columns = append(m.Columns, Column{Name: it.Name, Kinds: []string{}, Nulls: m.Rows})
	}
	c := &m.Columns[i]
	if it.Value.IsNull() {
		return
	}
	c.Nulls--
	kind := it.Value.Kind().String()
	if at, known := slices.BinarySearch(c.Kinds, kind); !known {
		c.Kinds = slices.Insert(c.Kinds, at, kind)
	}
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
