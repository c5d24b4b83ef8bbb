package canon

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

const opParse = "parse JSON"

// Parse reads one JSON text as JSON.parse does (DV-001…DV-003, DV-006, DV-008). Text
// that is no JSON or no UTF-8 is invalid_request, deeper nesting than MaxDepth is
// limit_exceeded; both name the byte. A number too large for a double becomes
// infinite and has no canonical form. The tree takes up to some forty times the
// text, so the caller bounds the text.
func Parse(text []byte) (Value, error) {
	v, _, err := ParseNoting(text)
	return v, err
}

// ParseNoting is Parse, and reports whether some object named a member twice: Parse
// keeps the last such member silently, and a stricter reader refuses the text.
func ParseNoting(text []byte) (v Value, repeated bool, err error) {
	if !utf8.Valid(text) {
		return Value{}, false, fault.New(fault.InvalidRequest, opParse, "", "text is not UTF-8")
	}
	var few struct {
		open  [8]container
		items [24]Item
	}
	p := parser{s: string(text), open: few.open[:0], items: few.items[:0]}
	if v, err = p.document(); err != nil {
		return Value{}, false, err
	}
	return v, p.repeated, nil
}

// Canonicalize appends the canonical form of a JSON text to dst. Text that is
// canonical already is only copied.
func Canonicalize(dst, text []byte) ([]byte, error) {
	if Verify(text) == nil {
		return append(dst, text...), nil
	}
	v, err := Parse(text)
	if err != nil {
		return dst, err
	}
	return v.Append(dst)
}

// parser holds a text and the containers open at pos. The items of all open
// containers lie on one stack; a container takes its own when it closes.
type parser struct {
	s     string
	pos   int
	open  []container
	items []Item

	repeated bool // an object named a member twice
}

type container struct {
	object bool
	first  int    // its first item on the stack
	name   string // of the member whose value is due
}

func (p *parser) bad(what string) error {
	return fault.New(fault.InvalidRequest, opParse, "", "%s at byte %d", what, p.pos)
}

// peek skips white space and returns the byte there, 0 at the end.
func (p *parser) peek() byte {
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return c
		}
	}
	return 0
}

func (p *parser) document() (Value, error) {
	for {
		v, opened, err := p.value()
		if err != nil {
			return Value{}, err
		}
		if opened {
			continue
		}
		done, err := p.place(&v)
		if err != nil {
			return Value{}, err
		}
		if !done {
			continue
		}
		if p.peek(); p.pos < len(p.s) {
			return Value{}, p.bad("trailing text")
		}
		return v, nil
	}
}

// value reads a scalar or an empty container, or opens a container (opened).
func (p *parser) value() (v Value, opened bool, err error) {
	switch c := p.peek(); c {
	case '{', '[':
		if len(p.open) == MaxDepth {
			return v, false, fault.New(fault.LimitExceeded, opParse, "", "depth at byte %d is over the limit of %d", p.pos, MaxDepth)
		}
		p.pos++
		v.kind = Array
		if c == '{' {
			v.kind = Object
		}
		if p.peek() == c+2 {
			p.pos++
			return v, false, nil
		}
		p.open = append(p.open, container{object: c == '{', first: len(p.items)})
		if c == '{' {
			err = p.name()
		}
		return v, true, err
	case '"':
		v.kind = String
		v.text, err = p.str()
	case 't':
		v, err = OfBool(true), p.literal("true")
	case 'f':
		v, err = OfBool(false), p.literal("false")
	case 'n':
		err = p.literal("null")
	default:
		v.kind = Number
		v.num, err = p.number()
	}
	return v, false, err
}

// place puts a finished value into the container it belongs to and closes what ends
// there. done means that v is the whole document.
func (p *parser) place(v *Value) (done bool, err error) {
	for len(p.open) > 0 {
		in := &p.open[len(p.open)-1]
		p.items = append(p.items, Item{Name: in.name, Value: *v})
		end := byte(']')
		if in.object {
			end = '}'
		}
		switch c := p.peek(); c {
		case ',':
			p.pos++
			if in.object {
				err = p.name()
			}
			return false, err
		case end:
			p.pos++
		default:
			return false, p.bad("',' or '" + string(end) + "' expected")
		}
		*v = p.closed(*in)
		p.open = p.open[:len(p.open)-1]
	}
	return true, nil
}

func (p *parser) closed(c container) Value {
	own := p.items[c.first:]
	v := Value{kind: Array, items: append(make([]Item, 0, len(own)), own...)}
	if c.object {
		v.kind = Object
		v.items = distinct(v.items)
		p.repeated = p.repeated || len(v.items) < len(own)
	}
	clear(own)
	p.items = p.items[:c.first]
	return v
}

// name reads a member name and its colon into the innermost object.
func (p *parser) name() (err error) {
	if p.peek() != '"' {
		return p.bad("a member name expected")
	}
	in := &p.open[len(p.open)-1]
	if in.name, err = p.str(); err != nil {
		return err
	}
	if p.peek() != ':' {
		return p.bad("':' expected")
	}
	p.pos++
	return nil
}

func (p *parser) literal(word string) error {
	if !strings.HasPrefix(p.s[p.pos:], word) {
		return p.bad("a value expected")
	}
	p.pos += len(word)
	return nil
}

// number checks the JSON grammar, which is narrower than ParseFloat's.
func (p *parser) number() (float64, error) {
	start := p.pos
	if p.pos < len(p.s) && p.s[p.pos] == '-' {
		p.pos++
	}
	whole := p.pos
	if !p.digits() {
		return 0, p.bad("a value expected")
	}
	if p.s[whole] == '0' && p.pos > whole+1 {
		p.pos = whole
		return 0, p.bad("number with a leading zero")
	}
	if p.pos < len(p.s) && p.s[p.pos] == '.' {
		p.pos++
		if !p.digits() {
			return 0, p.bad("a digit expected")
		}
	}
	if p.pos < len(p.s) && p.s[p.pos]|0x20 == 'e' {
		p.pos++
		if p.pos < len(p.s) && (p.s[p.pos] == '+' || p.s[p.pos] == '-') {
			p.pos++
		}
		if !p.digits() {
			return 0, p.bad("a digit expected")
		}
	}
	// The only error left is a value out of range, for which n is infinite.
	n, _ := strconv.ParseFloat(p.s[start:p.pos], 64)
	return n, nil
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.s) && p.s[p.pos] >= '0' && p.s[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

// str reads the string at pos. Without escapes it is a part of the text itself.
func (p *parser) str() (string, error) {
	start := p.pos + 1
	var b []byte
	for i := start; i < len(p.s); {
		c := p.s[i]
		if plain[c] {
			i++
			continue
		}
		switch c {
		case '"':
			p.pos = i + 1
			if b == nil {
				return p.s[start:i], nil
			}
			return string(append(b, p.s[start:i]...)), nil
		case '\\':
			r, n := unescape(p.s[i:])
			if n == 0 {
				p.pos = i
				return "", p.bad("broken escape")
			}
			if b == nil {
				b = make([]byte, 0, 2*(i-start)+16)
			}
			b = appendUnit(append(b, p.s[start:i]...), r)
			i += n
			start = i
		default:
			p.pos = i
			return "", p.bad("unescaped control character in a string")
		}
	}
	p.pos = len(p.s)
	return "", p.bad("text ends inside a string")
}

// plain marks the bytes that stand for themselves in any JSON string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// unescape reads the escape s begins with: a character, or a surrogate that has no
// partner beside it. n is 0 when it is none.
func unescape[T string | []byte](s T) (r rune, n int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hex4(s[2:])
		if !ok {
			return 0, 0
		}
		if r < highFirst || r > highLast || len(s) < 12 || s[6] != '\\' || s[7] != 'u' {
			return r, 6
		}
		if low, ok := hex4(s[8:]); ok && low >= lowFirst && low <= lowLast {
			return join(r, low), 12
		}
		return r, 6
	}
	return 0, 0
}

func hex4[T string | []byte](s T) (v rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for i := range 4 {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
