package conformance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/internal/conformance"
	"github.com/reeve-run/reeve/internal/reevetest"
)

const list = `
# a comment
CP-001 first
CP-002 second
CP-003 third
CP-003a third and a half
CP-004 fourth
CP-005 fifth
CP-006 sixth
open CP-003..CP-003a there is no third yet
partial CP-006 half of it is missing
`

func readList(t *testing.T) *conformance.List {
	t.Helper()
	l, err := conformance.ReadList(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// source is a package whose tests end in every way a test can end.
const source = `package x

import "testing"

func TestPasses(t *testing.T)  { t.Attr("requirement", "CP-001 CP-002"); t.Attr("owner", "CP-999") }
func TestFails(t *testing.T)   { t.Attr("requirement", "CP-002"); t.Error("no") }
func TestPartSkipped(t *testing.T) {
	t.Attr("requirement", "CP-004")
	t.Run("done", func(t *testing.T) {})
	t.Run("skipped", func(t *testing.T) { t.Skip("no") })
}
func TestSubtestCites(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Attr("requirement", "CP-005") })
	t.Run("other", func(t *testing.T) { t.Attr("requirement", "CP-006") })
}
func TestUnlisted(t *testing.T) { t.Attr("requirement", "CP-777") }
`

// realRun runs the tests above for real, so that the form of the stream is the go
// command's own.
func realRun(t *testing.T) *conformance.Run {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "x/x_test.go": source} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-json", "./...")
	cmd.Dir = dir
	out, _ := cmd.Output() // exits 1: a test fails on purpose
	run, err := conformance.ReadRun(bytes.NewReader(out), "example.com/m")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestRealRunIsJudged(t *testing.T) {
	t.Parallel()
	run := realRun(t)
	findings := conformance.Judge(readList(t), run)

	got := map[string]string{}
	for _, f := range findings {
		got[f.Number] = f.Why
	}
	want := map[string]string{
		"CP-001":  "",
		"CP-002":  "`x.TestFails` failed",
		"CP-003":  "there is no third yet",
		"CP-003a": "there is no third yet",
		"CP-004":  "`x.TestPartSkipped` was skipped, whole or in part",
		"CP-005":  "",
		"CP-006":  "half of it is missing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("why each is open (-want +got):\n%s", diff)
	}
	if met, open := conformance.Count(findings); met != 2 || open != 5 {
		t.Errorf("%d met, %d open; want 2 met, 5 open", met, open)
	}
	if diff := cmp.Diff([]string{"CP-777, cited by x.TestUnlisted"}, run.Unlisted(readList(t))); diff != "" {
		t.Errorf("unlisted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"x", "x.TestFails"}, run.Failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"x.TestPartSkipped/skipped"}, run.Skips()); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
}

// A run that was cut short shows nothing for the test that was running.
func TestUnfinishedIsNotMet(t *testing.T) {
	t.Parallel()
	const stream = `some words of the go command
{"Action":"run","Package":"m/x","Test":"TestA"}
{"Action":"attr","Package":"m/x","Test":"TestA","Key":"requirement","Value":"CP-001"}
`
	run, err := conformance.ReadRun(strings.NewReader(stream), "m")
	if err != nil {
		t.Fatal(err)
	}
	f := conformance.Judge(readList(t), run)[0]
	if f.Met || f.Why != "`x.TestA` did not end" {
		t.Errorf("met %t, why %q", f.Met, f.Why)
	}
}

func TestBrokenStreamIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := conformance.ReadRun(strings.NewReader("{\"Action\":\n"), "m"); err == nil {
		t.Error("half an event was read without an error")
	}
}

func TestPageShowsMetOpenAndDeviations(t *testing.T) {
	t.Parallel()
	const stream = `{"Action":"run","Package":"m/x","Test":"TestA"}
{"Action":"attr","Package":"m/x","Test":"TestA","Key":"requirement","Value":"CP-001"}
{"Action":"pass","Package":"m/x","Test":"TestA","Elapsed":0.5}
`
	run, err := conformance.ReadRun(strings.NewReader(stream), "m")
	if err != nil {
		t.Fatal(err)
	}
	page := conformance.Page(conformance.Judge(readList(t), run), "We differ here.\n")
	for _, want := range []string{
		"\nrequirements: 1 met, 6 open\n",
		"\n| CP-001 | first | `x.TestA` |\n",
		"\n| CP-002 second | no test cites it yet |\n",
		"\n| CP-003 to CP-003a (2) | there is no third yet |\n",
		"\n## Deviations\n\nWe differ here.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "0.5") {
		t.Error("page holds a duration, so that no two runs would agree")
	}
}

func TestSubtestsStandAsTheirTest(t *testing.T) {
	t.Parallel()
	var stream strings.Builder
	for _, name := range []string{"TestA", "TestB/one", "TestB/two", "TestC/only"} {
		for _, action := range []string{`"run"`, `"attr","Key":"requirement","Value":"CP-001"`, `"pass"`} {
			stream.WriteString(`{"Package":"m/x","Test":"` + name + `","Action":` + action + "}\n")
		}
	}
	run, err := conformance.ReadRun(strings.NewReader(stream.String()), "m")
	if err != nil {
		t.Fatal(err)
	}
	const want = "\n| CP-001 | first | `x.TestA`, `x.TestB`, `x.TestC` |\n"
	if page := conformance.Page(conformance.Judge(readList(t), run), ""); !strings.Contains(page, want) {
		t.Errorf("page lacks %q:\n%s", want, page)
	}
}

func TestMalformedListsAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no title":          "CP-001\n",
		"no number":         "CP-1 title\n",
		"twice":             "CP-001 a\nCP-001 b\n",
		"open without end":  "CP-001 a\nopen CP-001..CP-009 why\n",
		"open backwards":    "CP-001 a\nCP-002 b\nopen CP-002..CP-001 why\n",
		"two reasons":       "CP-001 a\nopen CP-001 why\nopen CP-001 because\n",
		"open without why":  "CP-001 a\nopen CP-001\n",
		"partial not known": "CP-001 a\npartial CP-002 why\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := conformance.ReadList(strings.NewReader(text)); err == nil {
				t.Error("read without an error")
			}
		})
	}
}

func TestCommittedListIsWellFormed(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(reevetest.Root(t), "docs", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := conformance.ReadList(f)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(l.All); n != 544 {
		t.Errorf("%d requirements, want the 544 of the three specifications", n)
	}
	for _, req := range l.All {
		if len(req.Title) > 100 {
			t.Errorf("%s: title of %d characters", req.Number, len(req.Title))
		}
	}
}
