package request

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a Value. The zero kind is null.
type Kind uint8

// Kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
	Reference // "$prev" and a path; never part of a result
)

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object", "reference"}

// String names the kind as messages do.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Value is an argument or a result. It is not changed once made.
type Value struct {
	kind    Kind
	truth   bool
	dynamic bool // a reference stands somewhere inside
	at      int32
	text    string // of a string, decoded; of a number, as written
	items   []Item
	path    *Path
}

// Item is a member of an object, an element of an array (Name is empty) or an argument.
type Item struct {
	Name  string
	Value Value
}

// OfBool makes a boolean.
func OfBool(b bool) Value { return Value{kind: Bool, truth: b} }

// OfString makes a string. Bytes that are not UTF-8 are replaced when it is written.
func OfString(s string) Value { return Value{kind: String, text: s} }

// OfInt makes a number.
func OfInt(n int64) Value { return Value{kind: Number, text: strconv.FormatInt(n, 10)} }

// OfArray makes an array of values.
func OfArray(values ...Value) Value {
	v := Value{kind: Array, items: make([]Item, len(values))}
	for i, e := range values {
		v.items[i].Value = e
		v.dynamic = v.dynamic || e.dynamic
	}
	return v
}

// OfObject makes an object; of two members with one name the later one counts,
// unless the object holds a reference: then both stay until it is resolved (VD-028).
func OfObject(members ...Item) Value {
	v := Value{kind: Object, items: members}
	for _, m := range members {
		v.dynamic = v.dynamic || m.Value.dynamic
	}
	if !v.dynamic {
		v.items = lastWins(members)
	}
	return v
}

// OfPath makes a reference to the previous result.
func OfPath(p Path) Value { return Value{kind: Reference, dynamic: true, path: &p} }

// Kind returns the kind.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.kind == Null }

// IsTrue reports whether v is the boolean true.
func (v Value) IsTrue() bool { return v.kind == Bool && v.truth }

// Bool returns a boolean.
func (v Value) Bool() (b, ok bool) { return v.truth, v.kind == Bool }

// Text returns a string.
func (v Value) Text() (s string, ok bool) { return v.text, v.kind == String }

// Digits returns a number as it was written.
func (v Value) Digits() (s string, ok bool) { return v.text, v.kind == Number }

// Path returns a reference.
func (v Value) Path() (Path, bool) {
	if v.path == nil {
		return nil, false
	}
	return *v.path, true
}

// Items are the elements of an array or the members of an object, in written order.
// The caller must not change them.
func (v Value) Items() []Item { return v.items }

// Len is the number of elements or members.
func (v Value) Len() int { return len(v.items) }

// Dynamic reports whether a reference stands anywhere inside, v itself included.
func (v Value) Dynamic() bool { return v.dynamic }

// At is the byte offset in the trimmed text at which v was written.
func (v Value) At() int { return int(v.at) }

// Member returns the named member of an object, the last one of that name.
func (v Value) Member(name string) (Value, bool) {
	if v.kind == Object {
		for i := len(v.items) - 1; i >= 0; i-- {
			if v.items[i].Name == name {
				return v.items[i].Value, true
			}
		}
	}
	return Value{}, false
}

// names are the member names of an object, sorted.
func (v Value) names() []string {
	names := make([]string, len(v.items))
	for i, m := range v.items {
		names[i] = m.Name
	}
	slices.Sort(names)
	return names
}

// few is where comparing members in pairs stops being cheaper than a map.
const few = 16

// lastWins drops every member that a later one of the same name replaces.
func lastWins(members []Item) []Item {
	if len(members) <= few {
		for i := range members {
			for j := range i {
				if members[i].Name == members[j].Name {
					return keepLast(members)
				}
			}
		}
		return members
	}
	return keepLast(members)
}

func keepLast(members []Item) []Item {
	last := make(map[string]int, len(members))
	for i, m := range members {
		last[m.Name] = i
	}
	if len(last) == len(members) {
		return members
	}
	kept := make([]Item, 0, len(last))
	for i, m := range members {
		if last[m.Name] == i {
			kept = append(kept, m)
		}
	}
	return kept
}

// AppendJSON appends v as compact JSON, numbers as they were written, references as
// the text that stands for them (VD-065).
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case Null:
		return append(dst, "null"...)
	case Bool:
		return strconv.AppendBool(dst, v.truth)
	case Number:
		return append(dst, v.text...)
	case String:
		return appendString(dst, v.text)
	case Reference:
		return appendString(dst, v.path.String())
	case Array:
		dst = append(dst, '[')
		for i := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.items[i].Value.AppendJSON(dst)
		}
		return append(dst, ']')
	default:
		return appendMembers(dst, v.items)
	}
}

func appendMembers(dst []byte, members []Item) []byte {
	dst = append(dst, '{')
	for i := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, members[i].Name)
		dst = append(dst, ':')
		dst = members[i].Value.AppendJSON(dst)
	}
	return append(dst, '}')
}

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

const hexDigits = "0123456789abcdef"

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}
