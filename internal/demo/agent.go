package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/control"
)

// agent is an MCP client with the official SDK, as any agent's is.
type agent struct {
	session *mcp.ClientSession
	stderr  *tail
	print   func(format string, args ...any)
}

// answer is what execute gives an agent.
type answer struct {
	Status     string          `json:"status"`
	Notice     *control.Notice `json:"notice"`
	Cell       string          `json:"cell"`
	Session    string          `json:"session"`
	Generation string          `json:"generation"`
	ElapsedMS  int64           `json:"elapsed_ms"`
	Error      *string         `json:"error"`
	Cause      *event.Cause    `json:"cause"`
	Output     []event.Output  `json:"output"`
}

// printed is what the cell wrote; value is what its last expression showed.
func (a answer) printed() string { return a.stream("stdout") }
func (a answer) value() string   { return a.stream("result") }

func (a answer) stream(name string) string {
	var b strings.Builder
	for _, o := range a.Output {
		if o.Stream == name {
			b.WriteString(o.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// hire starts reeve's MCP server as an agent does and connects to it. The core that it
// starts ends with this process, also when that is killed.
func hire(ctx context.Context, exe, data, workspace string, print func(string, ...any)) (*agent, error) {
	cmd := exec.Command(exe, "mcp", "--dir", data)
	cmd.Dir = workspace
	cmd.Env = append(os.Environ(), config.Variable("core.owner")+"="+strconv.Itoa(os.Getpid()))
	a := &agent{stderr: &tail{}, print: print}
	cmd.Stderr = a.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "reeve-demo-agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to reeve mcp: %w%s", err, a.stderr)
	}
	a.session = session
	return a, nil
}

// run has a cell executed and shows code and answer. Code that raised is an
// answer; what reeve itself could not do is an error.
func (a *agent) run(ctx context.Context, code string) (answer, error) {
	code = strings.TrimSpace(code)
	a.print("   >>> %s\n", strings.ReplaceAll(code, "\n", "\n   ... "))
	res, err := a.session.CallTool(ctx, &mcp.CallToolParams{
		Name: "execute", Arguments: map[string]any{"code": code, "timeout_ms": 30000},
	})
	if err != nil {
		return answer{}, fmt.Errorf("execute: %w%s", err, a.stderr)
	}
	var got answer
	b, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil {
		return answer{}, fmt.Errorf("execute: %w in %s", err, b)
	}
	if res.IsError {
		return got, fmt.Errorf("execute: %s", text(res))
	}
	if got.Notice != nil {
		a.print("   notice: %s\n", got.Notice.Text)
	}
	for _, o := range got.Output {
		a.print("   %s\n", indent(o.Text))
	}
	a.print("   [%s: %s in %d ms]\n", got.Cell, got.Status, got.ElapsedMS)
	return got, nil
}

// ok is run for a cell that must end well.
func (a *agent) ok(ctx context.Context, code string) (answer, error) {
	got, err := a.run(ctx, code)
	if err != nil {
		return got, err
	}
	if got.Status != string(event.CellOK) {
		why := ""
		if got.Error != nil {
			why = *got.Error
		}
		return got, fault.New(fault.CellFailed, "run cell", got.Cell, "it ended as %s: %s", got.Status, why)
	}
	return got, nil
}

func text(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// tail keeps the end of what a process says on standard error.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if cut := len(t.b) - 4096; cut > 0 {
		t.b = t.b[cut:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b) == 0 {
		return ""
	}
	return "; standard error ends with: " + string(bytes.TrimSpace(t.b))
}
