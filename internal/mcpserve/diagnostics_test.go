package mcpserve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/mcpserve"
)

// The front end tells of itself without any core, alone and with nothing beside it.
func TestFrontEndTellsOfItself(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-012")
	m := newMemory()
	m.refuse = fault.New(fault.Unavailable, "call core", "", "none may be asked")
	cs := connect(t, mcpserve.Options{Dial: dialled(m)}, nil)
	e, res := requested(t, cs, map[string]any{"ops": "bridge.diagnostics()"})
	if res.IsError || e.Status != "success" || len(e.Results) != 1 {
		t.Fatal(words(res))
	}
	if r := e.Results[0].Result; r["pid"] != float64(os.Getpid()) || r["fallbacks_total"] != 0.0 || r["strict_violations"] != 0.0 {
		t.Errorf("%v", r)
	}
	if e, res := requested(t, cs, map[string]any{"ops": "bridge.diagnostics(help=true)"}); e.Status != "success" || e.Results[0].Result["verb"] != "bridge.diagnostics" {
		t.Error(words(res))
	}
	for _, ops := range []string{"[bridge.diagnostics(), whoami()]", "bridge.diagnostics() | whoami()", "bridge.diagnostics(x=1)", "bridge.diagnostics(help=false)"} {
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "request", Arguments: map[string]any{"ops": ops}})
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", ops, err)
		}
	}
	// A text that only speaks of it is for the core.
	if _, res := requested(t, cs, map[string]any{"ops": `whoami(x="bridge.diagnostics")`}); !strings.Contains(words(res), "unavailable") {
		t.Error(words(res))
	}
}

// A client that asks faster than it is answered is told so, and what is open goes on.
func TestOpenRequestsAreBounded(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-011")
	synctest.Test(t, func(t *testing.T) {
		var in strings.Builder
		in.WriteString(hello)
		for i := range 1030 {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"execute","arguments":{"code":"wait"}}}`+"\n", i+1)
		}
		core := newMemory()
		core.ended = make(chan string, 2000)
		busy := 0
		for _, m := range messages(t, talk(t, core, in.String())) {
			if m.Error == nil || m.Error.Code != -32000 {
				continue
			}
			busy++
			var id int
			if m.ID == nil || json.Unmarshal(*m.ID, &id) != nil || id <= 1000 {
				t.Errorf("refused %+v", m)
			}
		}
		if busy < 6 || busy > 7 { // the greeting may still be open
			t.Errorf("%d requests were refused", busy)
		}
	})
}
