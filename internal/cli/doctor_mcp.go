package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// mcpProbes talk to this binary's own MCP server as a client would.
var mcpProbes = []Probe{{ID: "mcp.tools", Run: checkMCP}}

type tool struct {
	Name         string         `json:"name"`
	InputSchema  jsontext.Value `json:"inputSchema"`
	OutputSchema jsontext.Value `json:"outputSchema"`
}

// checkMCP starts reeve mcp, greets it and lists its tools. Every line of standard
// output must be a message, every schema's root a plain object.
func checkMCP(ctx context.Context, s Subject) Finding {
	exe, err := ownBinary()
	if err != nil {
		return Found(Fail, "", "%v", err)
	}
	var said bytes.Buffer
	cmd := &exec.Cmd{Path: exe, Args: []string{"reeve", "mcp", "--dir", s.Dir}, Dir: s.WorkDir, Stderr: &said}
	in, err := cmd.StdinPipe()
	if err != nil {
		return Found(Fail, "", "%v", err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return Found(Fail, "", "start reeve mcp: %v", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	r := bufio.NewReader(out)
	list, err := askTools(in, r)
	if err = errors.Join(err, in.Close()); err == nil {
		if more, e := r.ReadString('\n'); e == nil || more != "" {
			err = fmt.Errorf("it said more than it was asked: %.80q", more)
		}
	}
	if err != nil {
		_ = cmd.Process.Kill()
	}
	if e := cmd.Wait(); err == nil {
		err = e
	}
	if err != nil {
		return Found(Fail, "reeve mcp -v", "%v %s", err, strings.TrimSpace(said.String()))
	}
	return judgeTools(list)
}

// askTools has the first conversation of every client and returns the raw list.
func askTools(in interface{ Write([]byte) (int, error) }, out *bufio.Reader) (jsontext.Value, error) {
	send := func(line string) error {
		_, err := in.Write([]byte(line + "\n"))
		return err
	}
	receive := func(id string) (jsontext.Value, error) {
		line, err := out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("no answer: %w", err)
		}
		var m struct {
			Version string         `json:"jsonrpc"`
			ID      jsontext.Value `json:"id"`
			Result  jsontext.Value `json:"result"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
			return nil, fmt.Errorf("a line of standard output is no message: %.80q", line)
		}
		if string(m.ID) != id || m.Result == nil {
			return nil, fmt.Errorf("not the answer to request %s: %.80q", id, line)
		}
		return m.Result, nil
	}
	if err := send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"reeve doctor","version":"1"}}}`); err != nil {
		return nil, err
	}
	if _, err := receive("1"); err != nil {
		return nil, err
	}
	if err := send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return nil, err
	}
	if err := send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); err != nil {
		return nil, err
	}
	return receive("2")
}

// judgeTools finds what makes clients drop tools silently, and the list's price.
func judgeTools(list jsontext.Value) Finding {
	var r struct {
		Tools []tool `json:"tools"`
	}
	if err := json.Unmarshal(list, &r); err != nil || len(r.Tools) == 0 {
		return Found(Fail, "", "no tools in the list: %v", err)
	}
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
		for what, schema := range map[string]jsontext.Value{"input": t.InputSchema, "output": t.OutputSchema} {
			if schema == nil && what == "output" {
				continue // allowed to be absent
			}
			var root map[string]jsontext.Value
			if err := json.Unmarshal(schema, &root); err != nil || string(root["type"]) != `"object"` {
				return Found(Fail, "", "the %s schema of %s is no plain object", what, t.Name)
			}
			for _, k := range []string{"anyOf", "oneOf", "allOf", "$ref"} {
				if root[k] != nil {
					return Found(Fail, "", "the %s schema of %s has %s at its root", what, t.Name, k)
				}
			}
		}
	}
	// Four bytes a token is the usual rule of thumb for English and JSON.
	return Found(Pass, "", "%s: about %d tokens in a client's context", strings.Join(names, ", "), len(list)/4)
}

func ownBinary() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
