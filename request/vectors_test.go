package request_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/request"
)

// vectorFile is the larger set when REEVE_VECTORS names a folder that has it.
func vectorFile(t testing.TB) string {
	t.Helper()
	if big := os.Getenv("REEVE_VECTORS"); big != "" {
		name := filepath.Join(big, "verb-dispatch", "request-dsl.jsonl")
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return filepath.Join(reevetest.VectorDir(t, "request"), "request-dsl.jsonl")
}

type vector struct {
	ID     string  `json:"id"`
	Ops    *string `json:"ops"`
	OpsGen *struct {
		Prefix  string `json:"prefix"`
		Repeat  string `json:"repeat"`
		Count   int    `json:"count"`
		Middle  string `json:"middle"`
		Repeat2 string `json:"repeat2"`
		Count2  int    `json:"count2"`
		Suffix  string `json:"suffix"`
	} `json:"ops_gen"`
	OK     bool `json:"ok"`
	Expect *struct {
		Mode  request.Mode `json:"mode"`
		Units [][2]int     `json:"units"`
		Ops   []struct {
			Tool string         `json:"tool"`
			Args map[string]any `json:"args"`
		} `json:"ops"`
	} `json:"expect"`
	Summary *struct {
		Mode  request.Mode `json:"mode"`
		Ops   int          `json:"op_count"`
		Units int          `json:"unit_count"`
		First string       `json:"first_tool"`
	} `json:"expect_summary"`
	Code     request.Code `json:"error_code"`
	Position *int         `json:"position"`
	Contains []string     `json:"error_contains"`
	Quirk    bool         `json:"quirk"`
}

func (v vector) text() string {
	if v.Ops != nil {
		return *v.Ops
	}
	g := v.OpsGen
	return g.Prefix + strings.Repeat(g.Repeat, g.Count) + g.Middle + strings.Repeat(g.Repeat2, g.Count2) + g.Suffix
}

func vectors(t testing.TB) []vector {
	t.Helper()
	file, err := os.ReadFile(vectorFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.UseNumber()
	for dec.More() {
		var v vector
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func TestRequestVectors(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-020 VD-021 VD-021a VD-022 VD-023 VD-024 VD-025 VD-026 VD-027 VD-028 VD-030 VD-031 VD-032 VD-033 VD-034 VD-035 VD-036 VD-037 VD-038 VD-040 VD-041 VD-042 VD-045 VD-050")
	all := vectors(t)
	if len(all) < 259 {
		t.Fatalf("%d cases, want at least 259", len(all))
	}
	for _, v := range all {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			r, err := request.Parse(v.text())
			if v.OK {
				v.accepted(t, r, err)
			} else {
				v.refused(t, err)
			}
		})
	}
}

func (v vector) refused(t *testing.T, err error) {
	t.Helper()
	var e *request.ParseError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want %s", err, v.Code)
	}
	if e.Code != v.Code || v.Position != nil && e.Offset != *v.Position {
		t.Fatalf("got %s at %d (%v), want %s at %v", e.Code, e.Offset, err, v.Code, v.Position)
	}
	for _, s := range v.Contains {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("message %q lacks %q", err, s)
		}
	}
	if e.Offset >= 0 && (!strings.HasPrefix(err.Error(), "at byte ") || e.Line < 1 || e.Column < 1 || !strings.HasSuffix(e.Excerpt, "^")) {
		t.Errorf("an error with a place must show it: %+v", e)
	}
}

func (v vector) accepted(t *testing.T, r *request.Request, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if s := v.Summary; s != nil {
		if r.Mode != s.Mode || len(r.Ops) != s.Ops || len(r.Units) != s.Units || r.Ops[0].Tool != s.First {
			t.Errorf("got %s, %d operations, %d units, first %s", r.Mode, len(r.Ops), len(r.Units), r.Ops[0].Tool)
		}
		return
	}
	if r.Mode != v.Expect.Mode || len(r.Units) != len(v.Expect.Units) || len(r.Ops) != len(v.Expect.Ops) {
		t.Fatalf("got %s, %d units, %d operations", r.Mode, len(r.Units), len(r.Ops))
	}
	for i, u := range v.Expect.Units {
		if (request.Unit{Start: u[0], End: u[1]}) != r.Units[i] {
			t.Errorf("unit %d is %v, want %v", i, r.Units[i], u)
		}
	}
	for i, want := range v.Expect.Ops {
		got := r.Ops[i]
		if got.Tool != want.Tool || len(got.Args) != len(want.Args) {
			t.Errorf("operation %d is %s with %d arguments, want %s with %d", i, got.Tool, len(got.Args), want.Tool, len(want.Args))
		}
		for name, w := range want.Args {
			a, ok := got.Arg(name)
			if !ok || !matches(a, w) {
				t.Errorf("argument %q is %s, want %v", name, a.AppendJSON(nil), w)
			}
		}
	}
}

// matches compares a value with the form the vectors write it in.
func matches(v request.Value, want any) bool {
	form := want.(map[string]any)
	if lit, ok := form["lit"]; ok {
		return !v.Dynamic() && equal(v, lit)
	}
	if path, ok := form["prev"]; ok {
		got, is := v.Path()
		steps := path.([]any)
		if !is || len(got) != len(steps) {
			return false
		}
		for i, s := range steps {
			switch s := s.(type) {
			case string:
				if got[i] != (request.Step{Name: s}) {
					return false
				}
			case json.Number:
				n, err := s.Int64()
				if err != nil || got[i] != (request.Step{Index: int(n), Element: true}) {
					return false
				}
			}
		}
		return true
	}
	if elements, ok := form["arr"]; ok {
		list := elements.([]any)
		if v.Kind() != request.Array || v.Len() != len(list) {
			return false
		}
		for i, e := range list {
			if !matches(v.Items()[i].Value, e) {
				return false
			}
		}
		return true
	}
	pairs := form["obj"].([]any)
	if v.Kind() != request.Object || v.Len() != len(pairs) {
		return false
	}
	for i, p := range pairs {
		pair := p.([]any)
		if v.Items()[i].Name != pair[0] || !matches(v.Items()[i].Value, pair[1]) {
			return false
		}
	}
	return true
}

// equal compares a value without references with decoded JSON, numbers exactly.
func equal(v request.Value, want any) bool {
	switch w := want.(type) {
	case nil:
		return v.IsNull()
	case bool:
		b, ok := v.Bool()
		return ok && b == w
	case string:
		s, ok := v.Text()
		return ok && s == w
	case json.Number:
		d, ok := v.Digits()
		a, okA := new(big.Rat).SetString(d)
		b, okB := new(big.Rat).SetString(w.String())
		return ok && okA && okB && a.Cmp(b) == 0
	case []any:
		if v.Kind() != request.Array || v.Len() != len(w) {
			return false
		}
		for i, e := range w {
			if !equal(v.Items()[i].Value, e) {
				return false
			}
		}
		return true
	case map[string]any:
		if v.Kind() != request.Object || v.Len() != len(w) {
			return false
		}
		for name, e := range w {
			if m, ok := v.Member(name); !ok || !equal(m, e) {
				return false
			}
		}
		return true
	}
	return false
}
