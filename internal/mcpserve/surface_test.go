package mcpserve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/internal/mcpserve"
)

func TestToolListIsAcceptableToEveryClient(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M8 M13")
	cs := connect(t, mcpserve.Options{Dial: dialled(newMemory())}, nil)
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if problems := refused(list.Tools); len(problems) > 0 {
		t.Errorf("schema roots: %v", problems)
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if tokens := (len(b) + 3) / 4; tokens > budget {
		t.Errorf("the tool list takes %d tokens, allowed are %d", tokens, budget)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Name == "execute" && !strings.Contains(tool.Description, "capture_output=True") {
			t.Errorf("execute does not say how a child's output becomes the cell's: %s", tool.Description)
		}
		if tool.Description == "" || tool.OutputSchema == nil && tool.Name != "request" {
			t.Errorf("%s has no description or no output schema", tool.Name)
		}
		// Every property of an input says what it is: there is nothing else to learn it from.
		for name, p := range tool.InputSchema.(map[string]any)["properties"].(map[string]any) {
			if p.(map[string]any)["description"] == nil {
				t.Errorf("%s: argument %s has no description", tool.Name, name)
			}
		}
	}
	if diff := cmp.Diff([]string{"execute", "interrupt", "request", "status"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedRootsAreFound(t *testing.T) {
	t.Parallel()
	for _, root := range []any{
		map[string]any{"type": "array"},
		map[string]any{"type": "object", "anyOf": []any{}},
		map[string]any{"type": "object", "$ref": "#/x"},
		map[string]any{"properties": map[string]any{}},
		true, nil,
	} {
		if len(refused([]*mcp.Tool{{Name: "t", InputSchema: root}})) == 0 {
			t.Errorf("no problem found in %v", root)
		}
	}
}

// budget is the most tokens, of four bytes each, that the tool list may take of a
// model's context before any work starts.
const budget = 1500

// refused lists what clients are known to refuse in the schemas of tools.
func refused(tools []*mcp.Tool) []string {
	var out []string
	for _, t := range tools {
		for _, side := range []struct {
			name   string
			schema any
		}{{"inputSchema", t.InputSchema}, {"outputSchema", t.OutputSchema}} {
			if side.schema == nil && side.name == "outputSchema" {
				continue
			}
			for _, p := range rootProblems(side.schema) {
				out = append(out, fmt.Sprintf("%s %s: %s", t.Name, side.name, p))
			}
		}
	}
	return out
}

func rootProblems(s any) []string {
	b, err := json.Marshal(s)
	if err != nil {
		return []string{err.Error()}
	}
	var root map[string]any
	if err := json.Unmarshal(b, &root); err != nil || root == nil {
		return []string{"the root is not an object"}
	}
	var out []string
	if root["type"] != "object" {
		out = append(out, fmt.Sprintf("root type is %v", root["type"]))
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "$ref", "not"} {
		if _, has := root[k]; has {
			out = append(out, "root has "+k)
		}
	}
	return out
}
