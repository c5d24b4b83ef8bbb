package canon_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// vectorFile is the larger set when REEVE_VECTORS names a folder that has it.
func vectorFile(t testing.TB) string {
	t.Helper()
	if big := os.Getenv("REEVE_VECTORS"); big != "" {
		name := filepath.Join(big, "developer-v8", "canonical-json.jsonl")
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return filepath.Join(reevetest.VectorDir(t, "canon"), "canonical-json.jsonl")
}

type vector struct {
	name, input       string
	ok                bool
	code              string
	canonical, sha256 string
	bytes             int64
	payload           string
}

// The lines are read with the package itself: they may hold lone surrogates, which
// other decoders replace.
func vectors(t testing.TB) []vector {
	t.Helper()
	file, err := os.ReadFile(vectorFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for line := range bytes.Lines(file) {
		v, err := canon.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		expect := member(t, v, "expect")
		c := vector{name: text(t, v, "name"), input: text(t, v, "input")}
		if c.ok, _ = member(t, expect, "ok").Bool(); c.ok {
			c.canonical, c.sha256, c.payload = text(t, expect, "canonical"), text(t, expect, "sha256"), text(t, expect, "asEnvelopePayload")
			c.bytes, _ = member(t, expect, "utf8Bytes").Integer()
		} else {
			c.code = text(t, expect, "code")
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		t.Fatal("no vectors")
	}
	return all
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

// shows is what the cases of each family, the first word of a name, are about.
var shows = map[string]string{
	"number":    "DV-003 DV-004 DV-011",
	"syntax":    "DV-001",
	"ws":        "DV-001 DV-007",
	"string":    "DV-005 DV-006 DV-008 DV-011",
	"structure": "DV-002 DV-007 DV-011",
	"depth":     "DV-009",
	"size":      "DV-010",
	"random":    "DV-004 DV-005 DV-006 DV-007 DV-011",
}

func TestCanonicalJSONVectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t) {
		t.Run(v.name, func(t *testing.T) {
			family, _, _ := strings.Cut(v.name, "-")
			t.Attr("requirement", shows[family])
			t.Parallel()
			got, err := canon.Canonicalize([]byte("kept"), []byte(v.input))
			if !v.ok {
				if string(got) != "kept" {
					t.Errorf("dst became %d bytes", len(got))
				}
				refused(t, err, v.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got = got[len("kept"):]
			v.same(t, got)
		})
	}
}

func (v vector) same(t *testing.T, got []byte) {
	t.Helper()
	if string(got) != v.canonical {
		t.Errorf("canonical form\n%s\nwant\n%s", got, v.canonical)
	}
	if canon.Hash(got) != v.sha256 || canon.Hash(got[:len(got)/2], got[len(got)/2:]) != v.sha256 {
		t.Errorf("hash %s, want %s", canon.Hash(got), v.sha256)
	}
	if int64(len(got)) != v.bytes {
		t.Errorf("%d bytes, want %d", len(got), v.bytes)
	}
	if fits := len(got) <= canon.MaxPayload; fits != (v.payload == "accepted") {
		t.Errorf("fits a payload: %t, want %s", fits, v.payload)
	}
	if err := canon.Verify(got); err != nil {
		t.Errorf("not verified as canonical: %v", err)
	}
	if err := canon.Verify([]byte(v.input)); (err == nil) != (v.input == v.canonical) {
		t.Errorf("the input verifies as canonical: %v", err)
	}
}

func refused(t *testing.T, err error, code string) {
	t.Helper()
	want := map[string]fault.Code{"invalid-json": fault.InvalidRequest, "unsupported-value": fault.InvalidRequest, "depth-overflow": fault.LimitExceeded}[code]
	if fault.CodeOf(err) != want {
		t.Errorf("%v (%s), want %s", err, fault.CodeOf(err), want)
	}
	if errors.Is(err, canon.ErrUnsupported) != (code == "unsupported-value") {
		t.Errorf("%v: no canonical form: %t, want %s", err, errors.Is(err, canon.ErrUnsupported), code)
	}
}
