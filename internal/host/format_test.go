package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
)

// TestRequestFormats: the core writes each result in the format of its position, and
// leaves help as it is.
func TestRequestFormats(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-002")
	c := newRig(t).open(t)
	a, err := c.Request(t.Context(), control.RequestCall{
		Ops: `[whoami(), verbs(pack="held"), whoami(), whoami(help=true)]`, Session: "s", Workspace: t.TempDir(), By: event.Actor{Kind: "client", Name: "x", Surface: "mcp"}, Agent: true,
		Format: "table", FormatPerOp: []string{"auto", "", "json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results []struct{ Result json.RawMessage }
	}
	if err := json.Unmarshal(a.Body, &got); err != nil || len(got.Results) != 4 || a.Failed {
		t.Fatalf("%s: %v", a.Body, err)
	}
	text := func(i int) string {
		var s string
		if err := json.Unmarshal(got.Results[i].Result, &s); err != nil {
			t.Errorf("operation %d is no text: %s", i, got.Results[i].Result)
		}
		return s
	}
	if block := text(0); !strings.Contains(block, ": ") || strings.Contains(block, " | ") {
		t.Errorf("no block: %s", block)
	}
	if table := text(1); !strings.Contains(table, " | ") {
		t.Errorf("no table: %s", table)
	}
	for _, i := range []int{2, 3} {
		if r := got.Results[i].Result; len(r) == 0 || r[0] != '{' {
			t.Errorf("operation %d is not JSON: %s", i, got.Results[i].Result)
		}
	}
}
