package request

import (
	"strconv"
	"strings"
)

// maxColumns is how many columns a table has. What members there are beyond them stand
// in one more column, as an object.
const maxColumns = 64

// overflow heads the column of what is beyond maxColumns.
const overflow = "…"

// FormatOf is the format of operation i: JSON unless said otherwise.
func (o Options) FormatOf(i int) Format {
	name := o.Format
	if i < len(o.FormatPerOp) && o.FormatPerOp[i] != "" {
		name = o.FormatPerOp[i]
	}
	if name == "" {
		return FormatJSON
	}
	return Format(name)
}

// Render writes a result in a format (VD-002). JSON is the result itself. Auto is a
// table for an array of records or a list of them under "items", a block of
// "name: value" lines for one record, and anything else as it is. Table is a table of
// whatever there is. A table or block is a string; it says all that the result says:
// a text that could be taken for something else is quoted as in JSON, containers are
// compact JSON, and a cell is empty only where the record lacks the member.
func Render(v Value, f Format) Value {
	switch f {
	case FormatAuto:
		switch rest, rows, ok := recordsOf(v); {
		case ok:
			return OfString(block(rest) + table(rows))
		case v.kind == Object && len(v.items) > 0:
			return OfString(block(v.items))
		}
	case FormatTable:
		switch rest, rows, ok := recordsOf(v); {
		case ok:
			return OfString(block(rest) + table(rows))
		case v.kind == Object:
			return OfString(table([]Item{{Value: v}}))
		case v.kind == Array:
			return OfString(table(wrapped(v.items)))
		default:
			return OfString(table(wrapped([]Item{{Value: v}})))
		}
	case FormatJSON:
	}
	return v
}

// recordsOf gives the records of an array of nothing else, or of the member "items" of
// an object, and the other members of that object.
func recordsOf(v Value) (rest, rows []Item, ok bool) {
	switch v.kind {
	case Array:
		rows = v.items
	case Object:
		for _, m := range v.items {
			if m.Name == "items" && m.Value.kind == Array {
				rows = m.Value.items
			} else {
				rest = append(rest, m)
			}
		}
	}
	for _, r := range rows {
		if r.Value.kind != Object {
			return nil, nil, false
		}
	}
	return rest, rows, len(rows) > 0
}

// wrapped makes a record of each value, for a table of what are no records.
func wrapped(items []Item) []Item {
	rows := make([]Item, len(items))
	for i, it := range items {
		rows[i].Value = OfObject(Item{"value", it.Value})
	}
	return rows
}

func block(members []Item) string {
	var b strings.Builder
	for _, m := range members {
		b.WriteString(cell(OfString(m.Name)))
		b.WriteString(": ")
		b.WriteString(cell(m.Value))
		b.WriteByte('\n')
	}
	return b.String()
}

// table has a column for each member name, in the order in which they first come.
func table(rows []Item) string {
	column := map[string]int{}
	var head []string
	beyond := false
	for _, r := range rows {
		for _, m := range r.Value.items {
			if _, known := column[m.Name]; known {
				continue
			}
			if len(head) == maxColumns {
				beyond = true
				break
			}
			column[m.Name] = len(head)
			head = append(head, cell(OfString(m.Name)))
		}
	}
	n := len(head)
	if beyond {
		head = append(head, overflow)
	}
	var b strings.Builder
	line(&b, head)
	cells := make([]string, len(head))
	for _, r := range rows {
		clear(cells)
		var rest []Item
		for _, m := range r.Value.items {
			if i, ok := column[m.Name]; ok {
				cells[i] = cell(m.Value)
			} else {
				rest = append(rest, m)
			}
		}
		if rest != nil {
			cells[n] = cell(OfObject(rest...))
		}
		line(&b, cells)
	}
	return b.String()
}

func line(b *strings.Builder, cells []string) {
	for i, c := range cells {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(c)
	}
	b.WriteByte('\n')
}

// cell writes a value on one line and without the separator of cells.
func cell(v Value) string {
	if v.kind == String && bare(v.text) {
		return v.text
	}
	return strings.ReplaceAll(string(v.AppendJSON(nil)), "|", `\u007c`)
}

// bare reports whether a text can be read as nothing but itself.
func bare(s string) bool {
	switch s {
	case "", "null", "true", "false", overflow:
		return false
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return false
	}
	if strings.ContainsAny(s[:1], `"[{ `) || s[len(s)-1] == ' ' || strings.Contains(s, ": ") || s[len(s)-1] == ':' {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == '|' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufffd' {
			return false
		}
	}
	return true
}
