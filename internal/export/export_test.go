package export_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/export"
	"github.com/reeve-run/reeve/request"
)

func entries() []request.Entry {
	v := request.OfObject(request.Item{Name: "n", Value: request.OfInt(1)})
	big := request.OfString(strings.Repeat("x", 9000))
	return []request.Entry{
		{OK: true, Tool: "a", Result: &v}, {OK: true, Tool: "b", Index: 1, Result: &big},
		{Tool: "c", Index: 2, Disposition: request.NotCommitted, Error: &request.Failure{Kind: "x", Message: "m", Disposition: request.NotCommitted}},
	}
}

func TestSaveWritesLinesAndAManifest(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-005")
	root := filepath.Join(t.TempDir(), "exports")
	s, err := export.Reserve(root, "d/out.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "d/out.jsonl")); err != nil || info.Size() != 0 {
		t.Fatalf("it is not reserved: %v %v", info, err)
	}
	m, err := s.Save(entries())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(m.Path)
	if err != nil || strings.Count(string(b), "\n") != 3 || len(b) != m.Bytes || m.Rows != 3 || m.Succeeded != 2 || len(m.SHA256) != 64 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, c := range m.Columns {
		if c.Name == "error" && (c.Nulls != 2 || c.Kinds[0] != "object") {
			t.Errorf("%+v", c)
		}
	}
	left, err := os.ReadDir(filepath.Join(root, "d"))
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

// What leads out, what exists and what goes through a link is refused before anything
// runs, and nothing is made for it.
func TestReserveRefuses(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-005")
	root, other := t.TempDir(), t.TempDir()
	for name, to := range map[string]string{"out": other, "in": "real", "file": filepath.Join(other, "f")} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "there"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "a/../../x", "real/../x", "/etc/x", filepath.Join(other, "x"), ".", "", "out/x", "in/x", "file", "there"} {
		if s, err := export.Reserve(root, name); fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%q: %v, %v", name, s, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "there")); string(b) != "kept" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(other); err != nil || len(left) != 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
	if s, err := export.Reserve(root, filepath.Join(root, "abs")); err != nil || s.Drop() != nil {
		t.Errorf("an absolute name inside: %v", err)
	}
}

func TestOutcomesOfAFailedSink(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-005")
	got := export.Outcomes(entries())
	if got[0]["result"] == nil || got[1]["result_omitted"] != true || got[2]["error"] == nil || got[2]["domain_disposition"] != request.NotCommitted {
		t.Errorf("%v", got)
	}
}
