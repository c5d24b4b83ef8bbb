package cli

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// member is one member of an object.
type member struct {
	name  string
	value jsontext.Value
}

// membersOf are the members of an object in the order in which they came.
func membersOf(v jsontext.Value) []member {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	var all []member
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return all
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return all
		}
		m.value = value.Clone()
		all = append(all, m)
	}
	return all
}

// showJSON prints a value that a verb answered: records in a table, one record as
// names and values, anything else as it is.
func (p printer) showJSON(v jsontext.Value) {
	if rows := recordsOf(v); rows != nil {
		p.records(rows)
		return
	}
	if v.Kind() == '{' {
		p.record(v)
		return
	}
	p.line("%s", inert(plain(v)))
}

// result prints what a verb answered in a format.
func (p printer) result(v jsontext.Value, format string) {
	rows := recordsOf(v)
	switch {
	case format == "json":
		p.line("%s", v)
	case format == "table" && rows == nil && v.Kind() == '{':
		p.records([]jsontext.Value{v})
	default:
		p.showJSON(v)
	}
}

// recordsOf are the records of an array, or of a list with its count; nil when v is
// neither.
func recordsOf(v jsontext.Value) []jsontext.Value {
	rows := []jsontext.Value{}
	switch v.Kind() {
	case '[':
		if json.Unmarshal(v, &rows) != nil {
			return nil
		}
	case '{':
		var l list[jsontext.Value]
		if json.Unmarshal(v, &l, json.RejectUnknownMembers(true)) != nil || l.Items == nil {
			return nil
		}
		rows = l.Items
	default:
		return nil
	}
	if slices.ContainsFunc(rows, func(r jsontext.Value) bool { return r.Kind() != '{' }) || len(rows) == 0 && v.Kind() == '[' {
		return nil
	}
	return rows
}

// record prints an object; texts of several lines come after the others.
func (p printer) record(v jsontext.Value) {
	var kv []string
	var long []member
	for _, m := range membersOf(v) {
		text := cellOf(m.value)
		if strings.Contains(text, "\n") {
			long = append(long, m)
			continue
		}
		kv = append(kv, m.name, text)
	}
	p.pairs(kv...)
	for _, m := range long {
		p.part(m.name, plain(m.value))
	}
}

// cellOf is a value as a cell of a table has it.
func cellOf(v jsontext.Value) string {
	if v == nil || v.Kind() == 'n' {
		return ""
	}
	return plain(v)
}

// records prints a table with a column for each member, in the order in which they
// first come.
func (p printer) records(all []jsontext.Value) {
	var names, head []string
	rows := make([][]string, len(all))
	for _, r := range all {
		for _, m := range membersOf(r) {
			if !slices.Contains(names, m.name) {
				names, head = append(names, m.name), append(head, strings.ToUpper(m.name))
			}
		}
	}
	for i, r := range all {
		rows[i] = make([]string, len(names))
		for _, m := range membersOf(r) {
			rows[i][slices.Index(names, m.name)] = cellOf(m.value)
		}
	}
	p.table("nothing", head, rows)
}

// part prints a text of several lines under its name.
func (p printer) part(name, text string) {
	if text == "" {
		return
	}
	p.line("\n%s", p.paint(dim, "--- "+name))
	p.line("%s", strings.TrimRight(inert(text), "\n"))
}

// indented is JSON text for people; what is no JSON is left as it is.
func indented(text string) string {
	v := jsontext.Value(text)
	if text == "" || v.Indent(jsontext.WithIndent("  ")) != nil {
		return text
	}
	return string(v)
}
