package install

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/pelletier/go-toml/v2"
)

// toolTimeout is how long Codex may wait for a cell. Its default of one minute
// would give up on every longer test run; a cell has a bound of its own.
const toolTimeout = 3600

// errByHand is for a file that is right, but where reeve's entry cannot be placed
// without touching anything else.
var errByHand = errors.New("the entry is written in a form that cannot be changed in place")

// editCodex sets [mcp_servers.reeve] in doc. What the edited text means is compared
// with what it should mean, so that an unforeseen form is refused and never harmed.
func editCodex(doc []byte, e entry) ([]byte, error) {
	var root map[string]any
	if err := toml.Unmarshal(doc, &root); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return nil, fmt.Errorf("not TOML near line %d: %w", line, err)
		}
		return nil, fmt.Errorf("not TOML: %w", err)
	}
	if root == nil {
		root = map[string]any{}
	}
	servers, ok := root["mcp_servers"].(map[string]any)
	if _, has := root["mcp_servers"]; has && !ok {
		return nil, fmt.Errorf("mcp_servers is not a table")
	}
	if !ok {
		servers = map[string]any{}
		root["mcp_servers"] = servers
	}
	args := make([]any, len(e.args))
	for i, a := range e.args {
		args[i] = a
	}
	var after []byte
	if have, ok := servers[Name].(map[string]any); ok {
		if have["command"] == e.command && reflect.DeepEqual(have["args"], any(args)) {
			return doc, nil
		}
		have["command"], have["args"] = e.command, args
		after = replaceTable(doc, e)
	} else {
		servers[Name] = map[string]any{"command": e.command, "args": args, "tool_timeout_sec": int64(toolTimeout)}
		after = appendTable(doc, e)
	}
	var got map[string]any
	if err := toml.Unmarshal(after, &got); err != nil || !reflect.DeepEqual(got, root) {
		return nil, errByHand
	}
	return after, nil
}

func appendTable(doc []byte, e entry) []byte {
	var b bytes.Buffer
	b.Write(doc)
	if len(doc) > 0 {
		if doc[len(doc)-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[mcp_servers.%s]\ncommand = %s\nargs = %s\ntool_timeout_sec = %d\n", Name, tomlString(e.command), tomlStrings(e.args), toolTimeout)
	return b.Bytes()
}

// replaceTable rewrites command and args between the table's header and the next.
func replaceTable(doc []byte, e entry) []byte {
	lines := strings.SplitAfter(string(doc), "\n")
	var out strings.Builder
	inside := false
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if strings.HasPrefix(line, "[") {
			inside = strings.ReplaceAll(strings.TrimRight(strings.SplitN(line, "#", 2)[0], " \t"), " ", "") == "[mcp_servers."+Name+"]"
			if inside {
				end := ending(lines[i])
				out.WriteString(lines[i][:len(lines[i])-len(end)])
				fmt.Fprintf(&out, "\ncommand = %s\nargs = %s%s", tomlString(e.command), tomlStrings(e.args), end)
				continue
			}
		}
		if inside && (setsKey(line, "command") || setsKey(line, "args")) {
			// An array may go on over lines; the text after it is compared anyway.
			for depth := brackets(lines[i]); depth > 0 && i+1 < len(lines); {
				i++
				depth += brackets(lines[i])
			}
			continue
		}
		out.WriteString(lines[i])
	}
	return []byte(out.String())
}

func ending(line string) string { return line[len(strings.TrimRight(line, "\r\n")):] }

func setsKey(line, key string) bool {
	rest, ok := strings.CutPrefix(line, key)
	return ok && strings.HasPrefix(strings.TrimLeft(rest, " \t"), "=")
}

func brackets(line string) int { return strings.Count(line, "[") - strings.Count(line, "]") }

// tomlString is s as a basic string. Its escapes are those of JSON, which lets the
// control character DEL stand as it is.
func tomlString(s string) string {
	b, err := json.Marshal(strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return `""` // cannot be: the string is valid UTF-8
	}
	return strings.ReplaceAll(string(b), "\x7f", `\u007f`)
}

func tomlStrings(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = tomlString(s)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
