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

// replaceTable sets command and args in the table of reeve, value for value: what
// stands around the values stays. One that is missing comes after the header.
func replaceTable(doc []byte, e entry) []byte {
	values := map[string]string{"command": tomlString(e.command), "args": tomlStrings(e.args)}
	var out strings.Builder
	text, inside, after, eol := string(doc), false, 0, "\n"
	for len(text) > 0 {
		line := text[:strings.IndexByte(text+"\n", '\n')]
		if key, at := keyOf(line); at > 0 {
			end := at + valueEnd(text[at:])
			if value, ours := values[key]; inside && ours {
				out.WriteString(text[:at] + value)
				delete(values, key)
			} else {
				out.WriteString(text[:end])
			}
			text = text[end:]
			line = text[:strings.IndexByte(text+"\n", '\n')]
		} else if header := strings.TrimSpace(line); strings.HasPrefix(header, "[") {
			header, _, _ = strings.Cut(header, "#")
			inside = strings.ReplaceAll(strings.TrimSpace(header), " ", "") == "[mcp_servers."+Name+"]"
			if inside {
				bare := strings.TrimSuffix(line, "\r")
				after, eol = out.Len()+len(bare), line[len(bare):]+"\n"
			}
		}
		n := min(len(line)+1, len(text))
		out.WriteString(text[:n])
		text = text[n:]
	}
	edited, missing := out.String(), ""
	for _, key := range []string{"command", "args"} {
		if value, ok := values[key]; ok {
			missing += eol + key + " = " + value
		}
	}
	return []byte(edited[:after] + missing + edited[after:])
}

// keyOf is the key that a line sets and where its value begins, or 0 when it sets
// none.
func keyOf(line string) (key string, at int) {
	before, after, found := strings.Cut(line, "=")
	key = strings.TrimSpace(before)
	if !found || strings.ContainsAny(key, "#[") {
		return "", 0
	}
	return key, len(line) - len(strings.TrimLeft(after, " \t"))
}

// valueEnd is the length of the value that s begins with: a string of any kind, an
// array or table with all in it, or a word. Of a text that is no TOML it is anything
// up to its length.
func valueEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\'':
			i += stringEnd(s[i:])
		case c == '[' || c == '{':
			depth++
			i++
		case c == ']' || c == '}':
			depth--
			i++
		case c == '#' && depth > 0:
			i += strings.IndexByte(s[i:]+"\n", '\n')
			continue
		case depth > 0:
			i++
			continue
		case c == '#' || c == '\n' || c == '\r' || c == ' ' || c == '\t':
			return i
		default:
			i++
			continue
		}
		if depth <= 0 {
			return i
		}
	}
	return len(s)
}

// stringEnd is the length of the string that s begins with.
func stringEnd(s string) int {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	for i := len(quote); i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote[0] == '"':
			i++
		case strings.HasPrefix(s[i:], quote):
			i += len(quote)
			for len(quote) == 3 && i < len(s) && s[i] == quote[0] { // a quote may stand before the end
				i++
			}
			return i
		}
	}
	return len(s)
}

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
