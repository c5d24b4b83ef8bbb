package wire

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

// scanner walks a payload once. It recurses nowhere: nested values are followed
// with a fixed stack of MaxDepth entries, so depth costs the sender, not us.
// The payload is valid UTF-8 before a scanner sees it.
type scanner struct {
	b     []byte
	pos   int
	depth int    // containers open around pos
	field string // the typed member being read, for faults
	keys  []uint32
}

// container is one open array or object of a free-form value: inArray, or where
// the names of the object begin in scanner.keys.
type container int32

const inArray container = -1

// plain marks the bytes a string holds as they are.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

func refuse(code fault.Code, field, format string, args ...any) *fault.Error {
	return fault.New(code, "", field, format, args...)
}

func (s *scanner) bad(format string, args ...any) *fault.Error {
	return refuse(fault.InvalidRequest, s.field, format+" at byte "+strconv.Itoa(s.pos), args...)
}

// peek skips white space and returns the byte there, or 0 at the end. A NUL in the
// payload reads the same and is refused by every caller alike.
func (s *scanner) peek() byte {
	for s.pos < len(s.b) {
		switch c := s.b[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) unexpected(want string) *fault.Error {
	if s.pos >= len(s.b) {
		return s.bad("text ends where %s is due", want)
	}
	return s.bad("%s expected, found %s", want, describe(s.b[s.pos:]))
}

func describe(b []byte) string {
	r, _ := utf8.DecodeRune(b)
	return strconv.QuoteRune(r)
}

// enter opens an object or array whose members the caller reads itself, and
// reports whether there is a first one.
func (s *scanner) enter(open byte) (bool, *fault.Error) {
	if s.peek() != open {
		if open == '{' {
			return false, s.unexpected("an object")
		}
		return false, s.unexpected("an array")
	}
	if f := s.deeper(s.depth); f != nil {
		return false, f
	}
	s.depth++
	s.pos++
	if s.peek() == open+2 {
		s.pos++
		s.depth--
		return false, nil
	}
	return true, nil
}

// more is called after a member: true for a comma, false for the end of the container.
func (s *scanner) more(end byte) (bool, *fault.Error) {
	switch s.peek() {
	case ',':
		s.pos++
		return true, nil
	case end:
		s.pos++
		s.depth--
		return false, nil
	}
	return false, s.unexpected("',' or '" + string(end) + "'")
}

func (s *scanner) deeper(depth int) *fault.Error {
	if depth < MaxDepth {
		return nil
	}
	return refuse(fault.LimitExceeded, s.field, "depth %d at byte %d is over the limit of %d", depth+1, s.pos, MaxDepth)
}

// name reads a member name and its colon.
func (s *scanner) name() ([]byte, *fault.Error) {
	if s.peek() != '"' {
		return nil, s.unexpected("a member name")
	}
	start := s.pos + 1
	escaped, f := s.str()
	if f != nil {
		return nil, f
	}
	name := s.b[start : s.pos-1]
	if escaped {
		name = unescape(make([]byte, 0, len(name)), name)
	}
	return name, s.colon()
}

func (s *scanner) colon() *fault.Error {
	if s.peek() != ':' {
		return s.unexpected("':'")
	}
	s.pos++
	return nil
}

// value checks one free-form value and moves behind it.
func (s *scanner) value() *fault.Error {
	var open [MaxDepth]container
	top := s.depth
	for {
		again, f := s.begin(&open)
		if f != nil {
			return f
		}
		if again {
			continue
		}
		again, f = s.end(&open, top)
		if f != nil || !again {
			return f
		}
	}
}

// begin reads a scalar, an empty container, or the opening of one; true means that
// another value is due next.
func (s *scanner) begin(open *[MaxDepth]container) (bool, *fault.Error) {
	switch c := s.peek(); c {
	case '{', '[':
		if f := s.deeper(s.depth); f != nil {
			return false, f
		}
		open[s.depth] = container(len(s.keys))
		if c == '[' {
			open[s.depth] = inArray
		}
		s.depth++
		s.pos++
		if s.peek() == c+2 {
			s.pos++
			s.depth--
			return false, nil
		}
		if c == '[' {
			return true, nil
		}
		return true, s.key()
	case '"':
		_, f := s.str()
		return false, f
	case 't':
		return false, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return false, s.literal("null")
	default:
		if c != '-' && (c < '0' || c > '9') {
			return false, s.unexpected("a value")
		}
		return false, s.number()
	}
}

// end closes what the value just read completes; true means that another value is
// due, false that the outermost value is whole.
func (s *scanner) end(open *[MaxDepth]container, top int) (bool, *fault.Error) {
	for s.depth > top {
		in := open[s.depth-1]
		c := s.peek()
		switch {
		case c == ',':
			s.pos++
			if in == inArray {
				return true, nil
			}
			return true, s.key()
		case c == ']' && in == inArray:
		case c == '}' && in != inArray:
			if f := s.unique(int(in)); f != nil {
				return false, f
			}
			s.keys = s.keys[:in]
		case in == inArray:
			return false, s.unexpected("',' or ']'")
		default:
			return false, s.unexpected("',' or '}'")
		}
		s.pos++
		s.depth--
	}
	return false, nil
}

func (s *scanner) literal(word string) *fault.Error {
	if !bytes.HasPrefix(s.b[s.pos:], []byte(word)) {
		return s.unexpected("a value")
	}
	s.pos += len(word)
	return nil
}

// str checks the string at pos, moves behind it, and reports whether it has escapes.
func (s *scanner) str() (escaped bool, f *fault.Error) {
	i := s.pos + 1
	for {
		for i < len(s.b) && plain[s.b[i]] {
			i++
		}
		if i >= len(s.b) {
			s.pos = i
			return escaped, s.bad("text ends inside a string")
		}
		switch s.b[i] {
		case '"':
			s.pos = i + 1
			return escaped, nil
		case '\\':
			n, why := escape(s.b[i:])
			if why != "" {
				s.pos = i
				return escaped, s.bad("%s", why)
			}
			escaped = true
			i += n
		default:
			s.pos = i
			return escaped, s.bad("unescaped control character %#02x in a string", s.b[i])
		}
	}
}

// escape is the length of the escape sequence b begins with, surrogate pairs taken
// whole, or why it is none.
func escape(b []byte) (n int, why string) {
	if len(b) < 2 {
		return 0, "text ends inside an escape"
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, "unknown escape \\" + describe(b[1:])
	}
	unit, ok := hex4(b[2:])
	if !ok {
		return 0, "\\u without four hex digits"
	}
	if unit < 0xd800 || unit > 0xdfff {
		return 6, ""
	}
	if unit < 0xdc00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low, ok := hex4(b[8:]); ok && low >= 0xdc00 && low <= 0xdfff {
			return 12, ""
		}
	}
	return 0, "lone surrogate escape"
}

func hex4(b []byte) (v rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
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

// unescape appends the meaning of a checked string body.
func unescape(dst, body []byte) []byte {
	for len(body) > 0 {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			return append(dst, body...)
		}
		dst = append(dst, body[:i]...)
		r, n := char(body[i:])
		dst = utf8.AppendRune(dst, r)
		body = body[i+n:]
	}
	return dst
}

// char is the first character of a checked, non-empty string body and how many bytes spell it.
func char(body []byte) (rune, int) {
	if body[0] != '\\' {
		return utf8.DecodeRune(body)
	}
	switch c := body[1]; c {
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
		r, _ := hex4(body[2:])
		if r < 0xd800 || r > 0xdfff {
			return r, 6
		}
		low, _ := hex4(body[8:])
		return 0x10000 + (r-0xd800)<<10 + (low - 0xdc00), 12
	default:
		return rune(c), 2
	}
}
