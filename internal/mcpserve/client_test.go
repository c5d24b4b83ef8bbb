package mcpserve_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/mcpserve"
)

// dialled gives the core that m holds at the time of the call.
func dialled(m *memory) mcpserve.Dial {
	return func(context.Context) (control.Service, error) {
		if err := m.here(); err != nil {
			return nil, err
		}
		return m, nil
	}
}

// connect starts a front end and a client of the official SDK on it.
func connect(t *testing.T, o mcpserve.Options, co *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	if o.Workspace == "" {
		o.Workspace = "/srv/project x"
	}
	ours, theirs := mcp.NewInMemoryTransports()
	ss, err := mcpserve.New(o).Protocol().Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, co).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		ss.Wait()
	})
	return cs
}

// got is the structured result of any of the tools.
type got struct {
	Status string          `json:"status"`
	Notice *control.Notice `json:"notice"`
	Fault  *struct {
		Code          fault.Code
		Message, Next string
	}
	Cell           any             `json:"cell"`
	Session        any             `json:"session"`
	Output         json.RawMessage `json:"output"`
	TruncatedBytes int64           `json:"truncated_bytes"`
	BytesTotal     int64           `json:"bytes_total"`
	Error          *string         `json:"error"`
	Found          bool            `json:"found"`
	Text           string          `json:"text"`
	Core           struct {
		Reachable *bool
		Fault     *struct {
			Code          fault.Code
			Message, Next string
		}
	}
	Cells []control.Cell
}

func call(t *testing.T, cs *mcp.ClientSession, tool string, args map[string]any) (got, *mcp.CallToolResult) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return decode(t, res), res
}

func decode(t *testing.T, res *mcp.CallToolResult) got {
	t.Helper()
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var g got
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return g
}

func output(t *testing.T, g got) []event.Output {
	t.Helper()
	var out []event.Output
	if err := json.Unmarshal(g.Output, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func words(res *mcp.CallToolResult) string {
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}
