package mcpserve

import (
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
)

// ownSession is what an omitted session means to a client with a connection.
const ownSession = "Default: this connection's own."

const instructions = "reeve runs Python in workbenches that keep their names between calls and records every cell. " +
	"Each result names its cell; status reads that cell's output again, whole or in ranges, also after a timeout."

// schema is a JSON Schema, written by hand: clients drop a tool, or all of them,
// when its root is anything but a plain object.
type schema = map[string]any

func object(required []string, properties schema) schema {
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func text(description string) schema { return described("string", description) }
func whole(description string) schema {
	s := described("integer", description)
	s["minimum"] = 0
	return s
}
func described(kind, description string) schema {
	s := schema{"type": kind}
	if description != "" {
		s["description"] = description
	}
	return s
}
func nullable(kind string) schema { return schema{"type": []string{kind, "null"}} }
func listOf(item schema) schema   { return schema{"type": "array", "items": item} }

// result is an object that later versions may add members to.
func result(required []string, properties schema) schema {
	s := object(required, properties)
	delete(s, "additionalProperties")
	return s
}

var (
	executeIn = object([]string{"code"}, schema{
		"code":       text("Python source."),
		"session":    text("Namespace to run in, made on first use. " + ownSession),
		"timeout_ms": whole("Interrupt the cell after this long. Default: no limit."),
	})
	executeOut = result([]string{"status", "cell", "session", "output", "truncated_bytes", "error"}, schema{
		"status":          text("ok, error, interrupted, yielded, failed; not_run or unknown with a fault"),
		"notice":          nullable("object"),
		"fault":           nullable("object"),
		"cell":            text("handle for status and interrupt"),
		"session":         text(""),
		"generation":      text(""),
		"elapsed_ms":      whole(""),
		"bytes_total":     whole("printed in all"),
		"truncated_bytes": whole("printed but not in output"),
		"error":           nullable("string"),
		"output": listOf(result([]string{"stream", "text"}, schema{
			"stream": text(""), "text": text(""),
		})),
	})

	interruptIn = object(nil, schema{
		"cell":    text("Handle of the cell."),
		"session": text("Stop what runs in this session. " + ownSession),
	})
	interruptOut = result([]string{"found", "text"}, schema{
		"found":          schema{"type": "boolean"},
		"text":           text(""),
		"cell":           text(""),
		"rung":           text("what it took: cancel, sigint, close, sigterm, sigkill"),
		"namespace_kept": schema{"type": "boolean"},
		"elapsed_ms":     whole(""),
		"fault":          nullable("object"),
	})

	statusIn = object(nil, schema{
		"cell":    text("Handle: tell how this cell stands and read its output."),
		"offset":  whole("With cell: first byte of output to read. Default 0."),
		"limit":   whole("With cell: bytes to read, at most 65536. Default 32768."),
		"session": text("Session to describe. " + ownSession),
	})
	statusOut = result([]string{"core"}, schema{
		"core":    result([]string{"reachable"}, schema{"reachable": nullable("boolean")}),
		"session": nullable("object"),
		"cells":   listOf(schema{"type": "object"}),
		"cell":    nullable("object"),
		"output":  nullable("object"),
		"fault":   nullable("object"),
	})
)

func yes(b bool) *bool { return &b }

// SurfaceRequest is the profile of exactly one tool (VD-001). The others have the
// tools that run cells beside it (VD-201).
const SurfaceRequest = "request"

// in is the input schema of a tool as far as it tells what a call without a session
// means.
func (s *Server) in(tool schema) schema {
	if !s.opt.Sessionless {
		return tool
	}
	out, properties := maps.Clone(tool), maps.Clone(tool["properties"].(schema))
	said := properties["session"].(schema)["description"].(string)
	properties["session"] = text(strings.ReplaceAll(said, ownSession, "There is no default here: name one of your own, the same each time."))
	out["properties"] = properties
	return out
}

// noSession refuses a call that names no session where there is none to fall back to.
func noSession(op string) error {
	return fault.New(fault.InvalidRequest, op, "session", "the argument is missing, and this connection has no session of its own").
		WithNext("pass a name of your own as session, the same each time")
}

func (s *Server) register() {
	s.registerRequest()
	if s.opt.Surface == SurfaceRequest {
		return
	}
	s.protocol.AddTool(&mcp.Tool{
		Name: "execute",
		Description: "Run Python in a workbench that keeps names, imports and open objects from call to call. " +
			"The last expression's value is shown; await works at top level. " +
			"What a child process prints is not part of the output unless captured: " +
			"subprocess.run([...], capture_output=True, text=True). " +
			"A raised error is a normal result. Calls to one session queue, different sessions run at once. " +
			"Read notice first: it says when the namespace was lost.",
		InputSchema: s.in(executeIn), OutputSchema: executeOut,
		Annotations: &mcp.ToolAnnotations{Title: "Run Python", DestructiveHint: yes(true), OpenWorldHint: yes(true)},
	}, s.execute)
	s.protocol.AddTool(&mcp.Tool{
		Name: "interrupt",
		Description: "Stop a running or queued cell. Goes from a request to a kill until the cell has ended, " +
			"in at most 6 s, and says whether the namespace was kept.",
		InputSchema: s.in(interruptIn), OutputSchema: interruptOut,
		Annotations: &mcp.ToolAnnotations{Title: "Stop a cell", DestructiveHint: yes(true), OpenWorldHint: yes(false)},
	}, s.interrupt)
	s.protocol.AddTool(&mcp.Tool{
		Name: "status",
		Description: "Without cell: is reeve up, what runs, the latest cells. With cell: its state and any range of its " +
			"output in exact bytes, also what a result left out; answers while cells run.",
		InputSchema: s.in(statusIn), OutputSchema: statusOut,
		Annotations: &mcp.ToolAnnotations{Title: "Look", ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: yes(false)},
	}, s.status)
	s.registerResources()
}
