package mcpserve_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/internal/mcpserve"
)

// entries is an envelope as a client reads it.
type entries struct {
	Results []struct {
		OK          bool           `json:"ok"`
		Tool        string         `json:"tool"`
		Disposition string         `json:"domain_disposition"`
		Result      map[string]any `json:"result"`
		Error       map[string]any `json:"error"`
	} `json:"results"`
	Summary map[string]int `json:"summary"`
	Status  string         `json:"status"`
	Parsed  *bool          `json:"parsed"`
}

func requested(t *testing.T, cs *mcp.ClientSession, args map[string]any) (entries, *mcp.CallToolResult) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "request", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	var e entries
	if err := json.Unmarshal([]byte(words(res)), &e); err != nil {
		t.Fatalf("%v: %s", err, words(res))
	}
	return e, res
}

// The tool answers the envelope of a real core as its text, and is an error only when
// nothing succeeded.
func TestRequestAnswersTheEnvelope(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-007 VD-051")
	h := newHouse(t)
	cs := h.connect(t)
	e, res := requested(t, cs, map[string]any{"ops": `[whoami(), nope()]`})
	if res.IsError || e.Status != "partial" || len(e.Results) != 2 || !e.Results[0].OK || e.Results[1].Error["code"] != "unknown_verb" {
		t.Errorf("%+v", e)
	}
	if who, ok := e.Results[0].Result["actor"].(map[string]any); !ok || who["kind"] != "client" {
		t.Errorf("the client is %v", e.Results[0].Result)
	}
	if e, res := requested(t, cs, map[string]any{"ops": `nope()`}); !res.IsError || e.Results[0].Disposition != "not_committed" {
		t.Errorf("%+v", e)
	}
	e, res = requested(t, cs, map[string]any{"ops": `workspace.write(path="a.txt", content="x") | workspace.read(path=$prev.files[0].path)`})
	if res.IsError || e.Status != "success" || e.Results[1].Result["text"] != "x" {
		t.Errorf("%s", words(res))
	}
	if e, _ := requested(t, cs, map[string]any{"ops": `act.settle(id="x", as="committed")`}); e.Results[0].Error["code"] != "permission_denied" {
		t.Errorf("%+v", e)
	}
}

func rpc(t *testing.T, cs *mcp.ClientSession, args map[string]any) (*jsonrpc.Error, map[string]any) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "request", Arguments: args})
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v: %v, %v; want an error of the protocol", args, res, err)
	}
	var data map[string]any
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatal(err)
	}
	return e, data
}

// What cannot be read is refused before a core is looked for.
func TestRequestRefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-003 VD-004 VD-008")
	gone := newMemory()
	gone.leave()
	cs := connect(t, mcpserve.Options{Dial: dialled(gone)}, nil)
	e, data := rpc(t, cs, map[string]any{"ops": `a(x=1`})
	if e.Code != jsonrpc.CodeInvalidParams || data["reason"] != "parse-error" || data["kind"] != "parse_error" ||
		data["domain_disposition"] != "not_committed" || data["code"] != "unclosed_call" || data["byte"] != 1.0 || data["message"] == "" {
		t.Errorf("%v %v", e, data)
	}
	for name, args := range map[string]map[string]any{
		"presentation":        {"ops": "a()", "presentation": "short"},
		"format":              {"ops": "a()", "format": "xml"},
		"presentation_per_op": {"ops": "a()", "presentation_per_op": []any{nil, "agent"}},
		"save_to":             {"ops": "a()", "plan": true, "save_to": nil},
		"request_id":          {"ops": "a()", "plan": true, "request_id": nil},
		"opz":                 {"ops": "a()", "opz": 1},
		"ops":                 {},
	} {
		if e, data := rpc(t, cs, args); e.Code != jsonrpc.CodeInvalidParams || data["domain_disposition"] != "not_committed" ||
			!strings.Contains(e.Message, name) && !strings.Contains(e.Message, "xml") && !strings.Contains(e.Message, "short") {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestRequestPlansWithoutRunning(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-065")
	h := newHouse(t)
	cs := h.connect(t)
	e, res := requested(t, cs, map[string]any{"ops": `workspace.write(path="planned", content="x")`, "plan": true})
	if res.IsError || e.Parsed == nil || !*e.Parsed {
		t.Errorf("%s", words(res))
	}
	if e, res := requested(t, cs, map[string]any{"ops": `a(`, "plan": true}); res.IsError || e.Parsed == nil || *e.Parsed {
		t.Errorf("a text that cannot be read: %s", words(res))
	}
	if e, _ := requested(t, cs, map[string]any{"ops": `workspace.list()`}); e.Results[0].Result["count"] != 0.0 {
		t.Errorf("a plan wrote: %+v", e)
	}
}

// The profile decides which tools there are; verbs never become tools.
func TestSurfaces(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-001 VD-201")
	for surface, want := range map[string][]string{
		"request": {"request"}, "agent": {"execute", "interrupt", "request", "status"}, "": {"execute", "interrupt", "request", "status"},
	} {
		cs := connect(t, mcpserve.Options{Dial: dialled(newMemory()), Surface: surface}, nil)
		list, err := cs.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%q: %s", surface, diff)
		}
	}
}
