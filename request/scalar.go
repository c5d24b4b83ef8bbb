package request

import (
	"math"
	"strconv"
	"strings"
)

// value reads one value. name is the argument or, when member is set, the object
// key it is for; it is empty in an array. It is only used to show a correction.
func (p *parser) value(name string, member bool) (Value, error) {
	at := int32(p.pos)
	var v Value
	var err error
	switch p.peek() {
	case '$':
		v, err = p.reference()
	case '[':
		v, err = p.array()
	case '{':
		v, err = p.object()
	default:
		v, err = p.scalar(name, member)
	}
	v.at = at
	return v, err
}

// open enters a container.
func (p *parser) open() error {
	if p.depth == MaxDepth {
		return p.fail(NestingTooDeep, p.pos, "containers are nested %d deep here, the limit is %d", p.depth+1, MaxDepth)
	}
	p.depth++
	p.pos++
	p.space()
	return nil
}

func (p *parser) close() {
	p.depth--
	p.pos++
}

func (p *parser) array() (Value, error) {
	v := Value{kind: Array}
	if err := p.open(); err != nil {
		return v, err
	}
	if p.atEnd() {
		return v, p.wrong(`a value or "]"`)
	}
	if p.peek() == ']' {
		p.close()
		return v, nil
	}
	base := len(p.stack)
	for {
		e, err := p.value("", false)
		if err != nil {
			return v, err
		}
		p.stack = append(p.stack, Item{Value: e})
		v.dynamic = v.dynamic || e.dynamic
		p.space()
		if p.peek() == ']' {
			p.close()
			v.items = p.take(base)
			return v, nil
		}
		if err := p.expect(',', `"," or "]"`); err != nil {
			return v, err
		}
		p.space()
	}
}

func (p *parser) object() (Value, error) {
	v := Value{kind: Object}
	if err := p.open(); err != nil {
		return v, err
	}
	if p.peek() == '}' {
		p.close()
		return v, nil
	}
	base := len(p.stack)
	for {
		name, err := p.key()
		if err != nil {
			return v, err
		}
		e, err := p.value(name, true)
		if err != nil {
			return v, err
		}
		p.stack = append(p.stack, Item{name, e})
		v.dynamic = v.dynamic || e.dynamic
		p.space()
		if p.peek() == '}' {
			p.close()
			v.items = p.take(base)
			if !v.dynamic {
				v.items = lastWins(v.items)
			}
			return v, nil
		}
		if err := p.expect(',', `"," or "}"`); err != nil {
			return v, err
		}
		p.space()
	}
}

// key reads the name of a member and the colon after it.
func (p *parser) key() (string, error) {
	if p.peek() != '"' {
		return "", p.wrong(`a double-quoted name or "}"`)
	}
	start := p.pos
	end := stringEnd(p.text, start)
	if end < 0 {
		return "", p.unclosedString(start)
	}
	name, why := unquote(p.text[start+1:end-1], false)
	if why != "" {
		return "", p.fail(InvalidValue, start, "the name of a member is no valid string: %s", why)
	}
	p.pos = end
	p.space()
	if err := p.expect(':', `":"`); err != nil {
		return "", err
	}
	p.space()
	return name, nil
}

func (p *parser) unclosedString(at int) error {
	return p.fail(UnclosedString, at, "the string that starts here is never closed by \"")
}

// scalar reads what stands before the next separator and must be one scalar (VD-021a).
func (p *parser) scalar(name string, member bool) (Value, error) {
	start := p.pos
	text, err := p.slice()
	if err != nil {
		return Value{}, err
	}
	if text != "" && text[0] == '"' {
		end := stringEnd(text, 0) // closed: slice has seen to it
		if end < len(text) {
			return Value{}, p.fail(InvalidValue, start, "after the string comes %q, which belongs to no value: separate arguments by \",\"", firstRunes(text[end:], margin))
		}
		s, why := unquote(text[1:end-1], true)
		if why != "" {
			return Value{}, p.fail(InvalidValue, start, "%s", why)
		}
		return promote(s), nil
	}
	if v, why := plain(text); why == "" {
		return v, nil
	} else if end := identEnd(text, 0); end == 0 || end < len(text) {
		return Value{}, p.fail(InvalidValue, start, "%s", why)
	}
	return Value{}, p.bareword(start, text, name, member)
}

func (p *parser) bareword(at int, word, name string, member bool) error {
	shown := firstRunes(word, margin)
	fix := ""
	switch {
	case member:
		fix = ": write " + string(appendString(nil, name)) + `: "` + shown + `"`
	case name != "":
		fix = ": write " + name + `="` + shown + `"`
	}
	return p.fail(InvalidValue, at, "%s is a bareword; a string must be double-quoted%s", shown, fix)
}

// slice runs from pos to the next "," ")" "]" "}" outside strings and brackets, or to
// the end, and is trimmed at its end.
func (p *parser) slice() (string, error) {
	depth, opened, i := 0, 0, p.pos
scan:
	for ; i < len(p.text); i++ {
		switch c := p.text[i]; c {
		case '"':
			end := stringEnd(p.text, i)
			if end < 0 {
				return "", p.unclosedString(i)
			}
			i = end - 1
		case '[', '{':
			if depth == 0 {
				opened = i
			}
			depth++
		case ']', '}':
			if depth == 0 {
				break scan
			}
			depth--
		case ',', ')':
			if depth == 0 {
				break scan
			}
		}
	}
	if depth > 0 {
		return "", p.fail(UnclosedBracket, opened, "the %q that opens here inside a value never closes", p.text[opened])
	}
	text := p.text[p.pos:i]
	p.pos = i
	for text != "" && blank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text, nil
}

// stringEnd is the offset after the quote that closes the string opened at i, or -1.
func stringEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// plain reads true, false, null or a number; why says what is wrong with it.
func plain(s string) (v Value, why string) {
	switch s {
	case "":
		return v, "a value is missing here"
	case "null":
		return v, ""
	case "true", "false":
		return OfBool(s == "true"), ""
	}
	fraction, ok := number(s)
	if !ok {
		return v, strconv.Quote(firstRunes(s, margin)) + " is no value: write a number, true, false, null or a double-quoted string"
	}
	if fraction {
		if f, err := strconv.ParseFloat(s, 64); err != nil || math.IsInf(f, 0) {
			return v, "the number " + firstRunes(s, margin) + " is out of range"
		}
	}
	return Value{kind: Number, text: s}, ""
}

// number reports whether s is a JSON number, and whether it has a fraction or an
// exponent, so that its size does not show in its length.
func number(s string) (fraction, ok bool) {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	digits := func() bool {
		start := i
		for i < len(s) && digit(s[i]) {
			i++
		}
		return i > start
	}
	if whole := i; !digits() || s[whole] == '0' && i > whole+1 {
		return false, false
	}
	if i < len(s) && s[i] == '.' {
		i++
		fraction = true
		if !digits() {
			return true, false
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		fraction = true
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return true, false
		}
	}
	return fraction, i == len(s)
}

const usable = `usable escapes are \" \\ \/ \b \f \n \r \t and \uXXXX`

// unquote decodes what stands between quotes. raw allows a bare line feed, carriage
// return and tab (VD-026). why says what is wrong.
func unquote(s string, raw bool) (decoded, why string) {
	i := 0
	for i < len(s) && s[i] != '\\' && s[i] >= ' ' {
		i++
	}
	if i == len(s) {
		return s, ""
	}
	b := append(make([]byte, 0, len(s)), s[:i]...)
	for i < len(s) {
		switch c := s[i]; {
		case c == '\\':
			var n int
			var problem string
			if b, n, problem = unescape(b, s, i); problem != "" {
				return "", problem
			}
			i += n
		case c < ' ' && !(raw && (c == '\n' || c == '\r' || c == '\t')):
			return "", control(i, c)
		default:
			b = append(b, c)
			i++
		}
	}
	return string(b), ""
}

func control(at int, c byte) string {
	const upper = "0123456789ABCDEF"
	return "byte " + strconv.Itoa(at) + " of the string is the control character U+00" + string(upper[c>>4]) + string(upper[c&15]) + "; " + usable
}

const (
	escapes = `"\/bfnrt`
	decodes = "\"\\/\b\f\n\r\t"
)

// unescape appends what the escape at i stands for and gives its length.
func unescape(b []byte, s string, i int) (out []byte, n int, why string) {
	c := s[i+1] // a string never ends in a lone backslash: it would escape the quote
	if c == 'u' {
		r, ok := hex4(s, i+2)
		switch {
		case !ok:
			return b, 0, `\u at byte ` + strconv.Itoa(i) + " of the string needs four hexadecimal digits"
		case r&0xFC00 == 0xD800 && strings.HasPrefix(s[i+6:], `\u`):
			if low, ok := hex4(s, i+8); ok && low&0xFC00 == 0xDC00 {
				return append(b, string(0x10000+(r-0xD800)<<10+(low-0xDC00))...), 12, ""
			}
		}
		if r&0xF800 == 0xD800 {
			return b, 0, "the escape at byte " + strconv.Itoa(i) + " of the string is half of a surrogate pair without the other half"
		}
		return append(b, string(r)...), 6, ""
	}
	if j := strings.IndexByte(escapes, c); j >= 0 {
		return append(b, decodes[j]), 2, ""
	}
	if c < ' ' {
		return b, 0, control(i+1, c) + " (it stands after a backslash)"
	}
	return b, 0, strconv.Quote(firstRunes(s[i:], 2)) + " at byte " + strconv.Itoa(i) + " of the string is no escape; " + usable
}

func hex4(s string, i int) (r rune, ok bool) {
	if i+4 > len(s) {
		return 0, false
	}
	for _, c := range []byte(s[i : i+4]) {
		d := strings.IndexByte(hexDigits, c|0x20)
		if digit(c) {
			d = int(c - '0')
		}
		if d < 0 || d < 10 && !digit(c) {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}
