package eventdoc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/eventdoc"
	"github.com/reeve-run/reeve/internal/reevetest"
)

func TestThePageIsFresh(t *testing.T) {
	t.Parallel()
	root := reevetest.Root(t)
	want, err := eventdoc.Page(filepath.Join(root, "event"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), string(want)); diff != "" {
		t.Errorf("docs/events.md is stale; run %s\n%s", eventdoc.Command, diff)
	}
	for _, s := range event.Shapes() {
		if !strings.Contains(string(want), "## "+string(s.Kind)+", version ") {
			t.Errorf("%s is not on the page", s.Kind)
		}
	}
}

func TestASourceThatCannotBeDescribedIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := eventdoc.Page(dir); err == nil || !strings.Contains(err.Error(), "no struct returns this kind") {
		t.Errorf("an empty source: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package event\nfunc {"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := eventdoc.Page(dir); err == nil {
		t.Error("a source that does not parse is accepted")
	}
}
