package request

import (
	"math"
	"strconv"
	"strings"
)

// Path leads from the previous result to a part of it; the empty path is all of it.
type Path []Step

// Step selects a member by name or, when Element is set, an element by index.
type Step struct {
	Name    string
	Index   int
	Element bool
}

// String is the reference as it is written.
func (p Path) String() string {
	b := []byte("$prev")
	for _, s := range p {
		if s.Element {
			b = append(strconv.AppendInt(append(b, '['), int64(s.Index), 10), ']')
		} else {
			b = append(append(b, '.'), s.Name...)
		}
	}
	return string(b)
}

// reference reads an unquoted reference, which must be right in every detail (VD-033).
func (p *parser) reference() (Value, error) {
	at := p.pos
	p.pos++
	p.space()
	end := identEnd(p.text, p.pos)
	if word := p.text[p.pos:end]; word != "prev" {
		return Value{}, p.fail(InvalidValue, at, "$%s is no reference: the only one is $prev, the result of the call before", firstRunes(word, margin))
	}
	p.pos = end
	var path Path
	for {
		switch p.peek() {
		case '.':
			p.pos++
			p.space()
			name, err := p.ident("the name of a member")
			if err != nil {
				return Value{}, err
			}
			path = append(path, Step{Name: name})
		case '[':
			p.pos++
			n, err := p.index()
			if err != nil {
				return Value{}, err
			}
			path = append(path, Step{Index: n, Element: true})
		default:
			return OfPath(path), nil
		}
	}
}

// index reads digits and the bracket after them.
func (p *parser) index() (int, error) {
	start := p.pos
	for digit(p.peek()) {
		p.pos++
	}
	if p.pos == start && p.atEnd() {
		return 0, p.wrong("an index")
	}
	n, err := strconv.Atoi(p.text[start:p.pos])
	if err != nil {
		return 0, p.fail(InvalidValue, start, "found %s where the index of an element is expected: decimal digits only, and not more than fit 64 bits", p.found(start))
	}
	return n, p.expect(']', `"]"`)
}

// promotable reports whether s starts as a reference does (VD-031).
func promotable(s string) bool {
	rest, ok := strings.CutPrefix(s, "$prev")
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// promote turns a quoted reference into one, and an escaped one into its text (VD-032).
func promote(s string) Value {
	switch {
	case s != "" && s[0] == '\\' && promotable(s[1:]):
		return OfString(s[1:])
	case promotable(s):
		if path, ok := quotedPath(s[len("$prev"):]); ok {
			return OfPath(path)
		}
	}
	return OfString(s)
}

// quotedPath reads what follows $prev in a quoted reference. It is laxer than an
// unquoted one: a name may hold any text but dots and brackets, and an empty segment
// counts for nothing. What is not well formed is an ordinary string.
func quotedPath(s string) (path Path, ok bool) {
	whole := s == ""
	for s != "" {
		switch s[0] {
		case '.':
			s = s[1:]
		case '[':
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return nil, false
			}
			n, digits := quotedIndex(s[1:end])
			if !digits {
				return nil, false
			}
			path = append(path, Step{Index: n, Element: true})
			if s = s[end+1:]; s != "" && s[0] != '.' && s[0] != '[' {
				return nil, false
			}
		default:
			end := strings.IndexAny(s, ".[]")
			if end < 0 {
				end = len(s)
			} else if s[end] == ']' {
				return nil, false
			}
			path = append(path, Step{Name: s[:end]})
			s = s[end:]
		}
	}
	return path, whole || len(path) > 0
}

// quotedIndex reads digits. An index too large for any array stays a reference, which
// will fail to resolve, rather than a string, which would be stored.
func quotedIndex(s string) (n int, ok bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return math.MaxInt, true
	}
	return n, true
}
