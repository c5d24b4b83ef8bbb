package work_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// vectorPath is a file or folder of the larger set when REEVE_VECTORS names a folder
// that has it, else of the committed selection.
func vectorPath(t testing.TB, name string) string {
	t.Helper()
	if big := os.Getenv("REEVE_VECTORS"); big != "" {
		path := filepath.Join(big, "developer-v8", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(reevetest.Root(t), "vectors", "work", name)
}

// vectorLines parses a file of JSON lines with canon: they may hold lone surrogates,
// which other decoders replace.
func vectorLines(t testing.TB, name string) []canon.Value {
	t.Helper()
	file, err := os.ReadFile(vectorPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var all []canon.Value
	for line := range bytes.Lines(file) {
		all = append(all, parsed(t, line))
	}
	if len(all) == 0 {
		t.Fatalf("no vectors in %s", name)
	}
	return all
}

func vectorFile(t testing.TB, name string) canon.Value {
	t.Helper()
	file, err := os.ReadFile(vectorPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, file)
}

func parsed(t testing.TB, text []byte) canon.Value {
	t.Helper()
	v, err := canon.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func member(t testing.TB, v canon.Value, name string) canon.Value {
	t.Helper()
	m, ok := v.Member(name)
	if !ok {
		t.Fatalf("vector without %q", name)
	}
	return m
}

func text(t testing.TB, v canon.Value, name string) string {
	t.Helper()
	s, ok := member(t, v, name).Text()
	if !ok {
		t.Fatalf("vector whose %q is no string", name)
	}
	return s
}

func number(t testing.TB, v canon.Value, name string) int {
	t.Helper()
	n, ok := member(t, v, name).Integer()
	if !ok {
		t.Fatalf("vector whose %q is no integer", name)
	}
	return int(n)
}

// form is the canonical text of a vector's value.
func form(t testing.TB, v canon.Value) []byte {
	t.Helper()
	b, err := v.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
