package request

import (
	"strings"
)

// ParseResult reads what a handler answered: strict JSON, of containers at most
// MaxDepth deep, numbers kept as written, of repeated members the last. Nothing is
// built before the depth has been checked, and the check does not recurse (VD-056).
// An error is a *ParseError; NestingTooDeep is what becomes result_too_deep.
func ParseResult(text []byte) (Value, error) {
	p := parser{text: strings.Trim(string(text), " \t\r\n")}
	if at := invalidUTF8(p.text); at >= 0 {
		return Value{}, p.fail(InvalidJSON, at, "byte 0x%02X is not UTF-8", p.text[at])
	}
	if err := p.scan(); err != nil {
		return Value{}, err
	}
	return p.document()
}

// Decoded makes a request of operations that a trusted transport has decoded
// itself. Only the limit on the text is left out (VD-043): the number of
// operations, depth, names and the absence of references are checked as in the
// JSON form, which the operations are written in for that.
func Decoded(ops []Op) (*Request, error) {
	var p parser
	if len(ops) == 0 {
		return nil, p.fail(Empty, nowhere, "the request has no operations")
	}
	b := []byte{'['}
	for i, op := range ops {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"tool":`...)
		b = appendString(b, op.Tool)
		b = append(b, `,"args":`...)
		b = append(appendMembers(b, op.Args), '}')
	}
	p.text = string(append(b, ']'))
	r, err := p.json()
	if err == nil && len(ops) == 1 {
		r.Mode = Single
	}
	return r, err
}
