package mcpserve_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/internal/mcpserve"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// The suite of the protocol's authors finds nothing wrong with the server over HTTP,
// in the last version with sessions and in the first without. What it asks for that
// reeve does not offer is listed in testdata; a listed scenario that passes is an
// error too.
func TestConformanceSuite(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("REEVE_NODE_DIR")
	node := filepath.Join(dir, "node_modules/.bin/node")
	suite := filepath.Join(dir, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
	_, err := os.Stat(suite)
	reevetest.Need(t, dir != "" && err == nil, "REEVE_NODE_DIR names no directory with @modelcontextprotocol/conformance and node 22")
	_, err = os.Stat(node)
	reevetest.Need(t, err == nil, "REEVE_NODE_DIR has no node 22")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), node, suite, "server", "--url", fixture(t),
				"--requirements", version, "--expected-failures", "testdata/conformance-"+version+".yml",
				"--output-dir", t.TempDir())
			out, err := cmd.CombinedOutput()
			_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
			if err != nil {
				t.Errorf("%v\n%s", err, summary)
			}
			// The suite must have come to its end, and have seen more than refusals.
			for _, name := range []string{"tools-list", "tools-call-with-progress", "resources-read-binary", "dns-rebinding-protection"} {
				if !strings.Contains(summary, "\u2713 "+name+":") {
					t.Errorf("%s has not passed:\n%s", name, out)
				}
			}
		})
	}
}

// fixture serves reeve's own tools and those that the suite calls by name. The suite
// has no token: it is added to what arrives, so that every check is in the way.
func fixture(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	o := mcpserve.Options{Dial: dialled(newMemory()), Version: "1", Workspace: "/srv/project"}
	w, err := mcpserve.NewWeb(mcpserve.Extended(o, registerFixtures), mcpserve.HTTPOptions{Token: secret}, s.Listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+secret)
		w.ServeHTTP(rw, r)
	})
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		<-w.CloseAll()
	})
	return s.URL + mcpserve.Path
}

var (
	plainText = &mcp.TextContent{Text: "This is a simple text response for testing."}
	png       = &mcp.ImageContent{MIMEType: "image/png", Data: bytesOf("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")}
	wav       = &mcp.AudioContent{MIMEType: "audio/wav", Data: bytesOf("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")}
	embedded  = &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://embedded", MIMEType: "text/plain", Text: "inside"}}
)

func bytesOf(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err) // a constant of this file
	}
	return b
}

// registerFixtures adds what the scenarios name.
func registerFixtures(s *mcp.Server) {
	tool := func(name string, h mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Asked for by the suite.", InputSchema: map[string]any{"type": "object"}}, h)
	}
	gives := func(name string, content ...mcp.Content) {
		tool(name, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content}, nil
		})
	}
	gives("test_simple_text", plainText)
	gives("test_image_content", png)
	gives("test_audio_content", wav)
	gives("test_embedded_resource", embedded)
	gives("test_multiple_content_types", plainText, png, embedded)
	gives("test_streaming_elicitation", plainText)
	tool("test_error_handling", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "fails on purpose"}}}, nil
	})
	tool("test_tool_with_progress", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, at := range []float64{0, 50, 100} {
			p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: at, Total: 100}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{plainText}}, nil
	})
	tool("test_missing_capability", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if c := r.ClientCapabilities(); c != nil && c.Sampling != nil { //nolint:staticcheck // what the scenario asks for
			return &mcp.CallToolResult{Content: []mcp.Content{plainText}}, nil
		}
		return nil, &jsonrpc.Error{
			Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the tool needs sampling",
			Data: []byte(`{"requiredCapabilities":{"sampling":{}}}`),
		}
	})
	tool("test_logging_tool", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "at work"}) //nolint:staticcheck // what the scenario asks for
		return &mcp.CallToolResult{Content: []mcp.Content{plainText}}, err
	})
	changes := func(name string, change func()) {
		tool(name, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			change()
			return &mcp.CallToolResult{Content: []mcp.Content{plainText}}, nil
		})
	}
	changes("test_trigger_tool_change", func() { gives("test_simple_text", plainText) })
	prompt := func() {
		s.AddPrompt(&mcp.Prompt{Name: "there", Description: "Asked for by the suite."}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	}
	prompt()
	changes("test_trigger_prompt_change", prompt)
	resource := func(uri, mime string, c mcp.ResourceContents) {
		c.URI, c.MIMEType = uri, mime
		s.AddResource(&mcp.Resource{Name: uri, URI: uri, MIMEType: mime}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
		})
	}
	resource("test://static-text", "text/plain", mcp.ResourceContents{Text: "static text"})
	resource("test://static-binary", "image/png", mcp.ResourceContents{Blob: png.Data})
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.Split(r.Params.URI, "/")[3]
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: `{"id":"` + id + `"}`}}}, nil
		})
}
