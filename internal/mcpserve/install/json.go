package install

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// member is a name and a JSON value to be encoded.
type member struct {
	name  string
	value any
}

// editJSON sets mcpServers.reeve in doc. Members that the entry has beside the
// ones named here, such as env, stay.
func editJSON(doc []byte, e entry, more ...member) ([]byte, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		doc = []byte("{}\n")
	}
	members := append(more, member{"command", e.command}, member{"args", e.args})
	for _, m := range members {
		var err error
		if doc, err = setJSON(doc, []string{"mcpServers", Name, m.name}, m.value); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// setJSON sets one value, making the objects on the way to it. Only the bytes that
// differ are touched.
func setJSON(doc []byte, path []string, value any) ([]byte, error) {
	if !jsontext.Value(doc).IsValid() {
		return nil, position(doc)
	}
	start, end := span(doc, 0)
	for depth, name := range path {
		o, err := objectAt(doc, start)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(append([]string{"the top"}, path[:depth]...), "."), err)
		}
		at, found := o.members[name]
		if !found {
			for i := len(path) - 1; i > depth; i-- {
				value = map[string]any{path[i]: value}
			}
			return o.insert(doc, name, value)
		}
		start, end = at.start, at.end
	}
	want, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	have := jsontext.Value(bytes.Clone(doc[start:end]))
	if err := have.Compact(); err != nil {
		return nil, err
	}
	if bytes.Equal(have, want) {
		return doc, nil
	}
	return splice(doc, start, end, string(want)), nil
}

// position says where doc is no JSON; duplicate names count as that.
func position(doc []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	if _, err := d.ReadValue(); err != nil {
		line := 1 + bytes.Count(doc[:min(d.InputOffset(), int64(len(doc)))], []byte("\n"))
		return fmt.Errorf("not JSON near line %d: %w", line, err)
	}
	return fmt.Errorf("not JSON: something follows the value")
}

type place struct{ start, end int }

// object is one object in a document, by offsets.
type object struct {
	members map[string]place // of the values
	open    int              // of the brace
	first   int              // of the first member's name, or -1
	last    int              // behind the last member's value
	close   int              // of the closing brace
}

// span is the value that begins at or after from.
func span(doc []byte, from int) (start, end int) {
	for start = from; strings.IndexByte(" \t\r\n,:", doc[start]) >= 0; start++ {
	}
	d := jsontext.NewDecoder(bytes.NewReader(doc[start:]))
	v, _ := d.ReadValue() // the document is known to be valid
	return start, start + len(v)
}

func objectAt(doc []byte, start int) (object, error) {
	if doc[start] != '{' {
		return object{}, fmt.Errorf("it is not an object")
	}
	o := object{members: map[string]place{}, open: start, first: -1}
	at := start + 1
	for {
		for strings.IndexByte(" \t\r\n,", doc[at]) >= 0 {
			at++
		}
		if doc[at] == '}' {
			o.close = at
			return o, nil
		}
		nameAt, nameEnd := span(doc, at)
		var name string
		if err := json.Unmarshal(doc[nameAt:nameEnd], &name); err != nil {
			return object{}, err
		}
		if o.first < 0 {
			o.first = nameAt
		}
		valueAt, valueEnd := span(doc, nameEnd)
		o.members[name] = place{valueAt, valueEnd}
		o.last, at = valueEnd, valueEnd
	}
}

// insert puts a member at the end of o in the style of the file.
func (o object) insert(doc []byte, name string, value any) ([]byte, error) {
	key, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(bytes.TrimSpace(doc), []byte("\n")) && o.first >= 0 {
		v, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		return splice(doc, o.last, o.last, fmt.Sprintf(",%s:%s", key, v)), nil
	}
	unit := indentUnit(doc)
	outer := indentOf(doc, o.open)
	inner := outer + unit
	if o.first >= 0 && bytes.Contains(doc[o.open:o.first], []byte("\n")) {
		inner = indentOf(doc, o.first)
	}
	v, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent(unit), jsontext.WithIndentPrefix(inner))
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("\n%s%s: %s", inner, key, v)
	if o.first < 0 {
		return splice(doc, o.open+1, o.close, text+"\n"+outer), nil
	}
	return splice(doc, o.last, o.last, ","+text), nil
}

// indentUnit is what the first indented line begins with, else two spaces.
func indentUnit(doc []byte) string {
	for _, line := range bytes.Split(doc, []byte("\n")) {
		rest := bytes.TrimLeft(line, " \t")
		if n := len(line) - len(rest); n > 0 && len(rest) > 0 {
			return string(line[:n])
		}
	}
	return "  "
}

// indentOf is the white space at the beginning of the line of at.
func indentOf(doc []byte, at int) string {
	line := doc[bytes.LastIndexByte(doc[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func splice(doc []byte, start, end int, text string) []byte {
	out := make([]byte, 0, len(doc)+len(text))
	out = append(out, doc[:start]...)
	out = append(out, text...)
	return append(out, doc[end:]...)
}
