package canon

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

const opVerify = "verify canonical JSON"

// Verify reports whether text is exactly the canonical form of what it says, without
// building the value. A nil error means that Canonicalize would return text itself;
// otherwise invalid_request names the byte where text departs from the form, or
// limit_exceeded the depth.
func Verify(text []byte) error { return Visit(text, nil) }

// Visit is Verify, and calls member (when not nil) for each member of an object at
// the top: its name as spelled between the quotes, and the text of its value. Both
// are parts of text. Members seen before an error are as far as it goes: the
// caller uses none of them unless Visit returns nil.
func Visit(text []byte, member func(name, value []byte)) error {
	if !utf8.Valid(text) {
		return fault.New(fault.InvalidRequest, opVerify, "", "text is not UTF-8")
	}
	var few [16]level
	v := verifier{b: text, member: member, open: few[:0]}
	if err := v.document(); err != nil {
		return err
	}
	if v.pos < len(text) {
		return v.bad("trailing text")
	}
	return nil
}

// verifier walks canonical text. Each open container remembers its last name, which
// the next one must follow.
type verifier struct {
	b      []byte
	pos    int
	member func(name, value []byte)
	open   []level
}

type level struct {
	object        bool
	plain         bool // the name is spelled as it is, in ASCII
	name, nameEnd int  // of the last name's spelling
	value         int  // where the last value begins
}

func (v *verifier) bad(what string) error {
	return fault.New(fault.InvalidRequest, opVerify, "", "%s at byte %d", what, v.pos)
}

func (v *verifier) next() byte {
	if v.pos < len(v.b) {
		return v.b[v.pos]
	}
	return 0
}

func (v *verifier) document() error {
	for {
		opened, err := v.value()
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		done, err := v.close()
		if done || err != nil {
			return err
		}
	}
}

func (v *verifier) value() (opened bool, err error) {
	switch c := v.next(); c {
	case '{', '[':
		if len(v.open) == MaxDepth {
			return false, fault.New(fault.LimitExceeded, opVerify, "", "depth at byte %d is over the limit of %d", v.pos, MaxDepth)
		}
		v.pos++
		if v.next() == c+2 {
			v.pos++
			return false, nil
		}
		v.open = append(v.open, level{object: c == '{'})
		if c == '{' {
			err = v.name(true)
		}
		return true, err
	case '"':
		_, err = v.str()
		return false, err
	case 't':
		return false, v.literal("true")
	case 'f':
		return false, v.literal("false")
	case 'n':
		return false, v.literal("null")
	}
	return false, v.number()
}

// close ends the containers that end behind a value; done means that the document does.
func (v *verifier) close() (done bool, err error) {
	for len(v.open) > 0 {
		in := &v.open[len(v.open)-1]
		if v.member != nil && in.object && len(v.open) == 1 {
			v.member(v.b[in.name:in.nameEnd], v.b[in.value:v.pos])
		}
		c := v.next()
		switch {
		case c == ',':
			v.pos++
			if in.object {
				err = v.name(false)
			}
			return false, err
		case in.object && c == '}' || !in.object && c == ']':
			v.pos++
			v.open = v.open[:len(v.open)-1]
		default:
			return false, v.bad("',' or the end of a container expected")
		}
	}
	return true, nil
}

// name checks a member name, its place in the order, and its colon.
func (v *verifier) name(first bool) error {
	if v.next() != '"' {
		return v.bad("a member name expected")
	}
	start := v.pos + 1
	asIs, err := v.str()
	if err != nil {
		return err
	}
	in := &v.open[len(v.open)-1]
	last, name := v.b[in.name:in.nameEnd], v.b[start:v.pos-1]
	if !first && !before(last, name, asIs && in.plain) {
		v.pos = start
		return v.bad("member name out of order")
	}
	if v.next() != ':' {
		return v.bad("':' expected")
	}
	v.pos++
	in.name, in.nameEnd, in.plain, in.value = start, start+len(name), asIs, v.pos
	return nil
}

// before orders two names by their canonical spelling.
func before(a, b []byte, plain bool) bool {
	if plain {
		return bytes.Compare(a, b) < 0
	}
	x, y := spelled{s: a}, spelled{s: b}
	return compareUnits(x.next, y.next) < 0
}

// spelled walks the UTF-16 units of a canonical string body.
type spelled struct {
	s   []byte
	low rune
}

func (p *spelled) next() rune {
	if p.low != 0 {
		r := p.low
		p.low = 0
		return r
	}
	if len(p.s) == 0 {
		return -1
	}
	r, n := utf8.DecodeRune(p.s)
	if r == '\\' {
		r, n = unescape(p.s)
	}
	p.s = p.s[n:]
	if r < beyond {
		return r
	}
	p.low = lowFirst + (r-beyond)&0x3ff
	return highFirst + (r-beyond)>>10
}

func (v *verifier) literal(word string) error {
	if !bytes.HasPrefix(v.b[v.pos:], []byte(word)) {
		return v.bad("a value expected")
	}
	v.pos += len(word)
	return nil
}

// str checks a string and reports whether it is ASCII without escapes.
func (v *verifier) str() (asIs bool, err error) {
	var or uint64
	for i := v.pos + 1; i < len(v.b); {
		if len(v.b)-i >= wordSize {
			word := binary.LittleEndian.Uint64(v.b[i:])
			special := notPlain(word)
			if special == 0 {
				or |= word
				i += wordSize
				continue
			}
			n := bits.TrailingZeros64(special) / 8
			or |= word & (1<<(8*n) - 1)
			i += n
		}
		c := v.b[i]
		if plain[c] {
			or |= uint64(c)
			i++
			continue
		}
		if c == '"' {
			v.pos = i + 1
			return or&highBits == 0, nil
		}
		n := 0
		if c == '\\' {
			n = canonicalEscape(v.b[i:])
		}
		if n == 0 {
			v.pos = i
			return false, v.bad("a character that is not spelled canonically")
		}
		or |= highBits
		i += n
	}
	v.pos = len(v.b)
	return false, v.bad("text ends inside a string")
}

// Eight bytes are looked at at once: most of a text is inside its strings.
const (
	wordSize = 8
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// notPlain has a high bit set for each byte that is below 0x20, a quotation mark or a
// backslash. Behind the first such byte others may be marked too.
func notPlain(word uint64) uint64 {
	quote, slash := word^('"'*lowBits), word^('\\'*lowBits)
	return ((word-0x20*lowBits)&^word | (quote-lowBits)&^quote | (slash-lowBits)&^slash) & highBits
}

// canonicalEscape is the length of the escape s begins with if the canonical form
// spells that character so, else 0.
func canonicalEscape(s []byte) int {
	r, n := unescape(s)
	var form [6]byte
	switch {
	case n == 0 || n == 2 && s[1] == '/':
		return 0
	case surrogate(r):
		form = [6]byte{'\\', 'u', 'd', lowerHex[r>>8&15], lowerHex[r>>4&15], lowerHex[r&15]}
	case r >= 0x20 && r != '"' && r != '\\':
		return 0
	default:
		copy(form[:], appendEscape(form[:0], byte(r)))
		if form[1] != 'u' {
			if n == 2 {
				return 2
			}
			return 0
		}
	}
	if !bytes.HasPrefix(s, form[:]) {
		return 0
	}
	return n
}

// safeDigits is how many digits an integer may have to be exact whatever they are.
const safeDigits = 15

// number checks a number. Most are short integers, whose digits are their canonical
// form; any other is compared with what its value prints as.
func (v *verifier) number() error {
	start, i := v.pos, v.pos
	if i < len(v.b) && v.b[i] == '-' {
		i++
	}
	first := i
	for i < len(v.b) && v.b[i] >= '0' && v.b[i] <= '9' {
		i++
	}
	if i == first {
		return v.bad("a value expected")
	}
	fraction := i < len(v.b) && (v.b[i] == '.' || v.b[i] == 'e')
	if !fraction && i-first <= safeDigits && (v.b[first] != '0' || i == start+1) {
		v.pos = i
		return nil
	}
	for i < len(v.b) && (v.b[i] >= '0' && v.b[i] <= '9' || v.b[i] == '.' || v.b[i] == 'e' || v.b[i] == '+' || v.b[i] == '-') {
		i++
	}
	n, err := strconv.ParseFloat(string(v.b[start:i]), 64)
	if err == nil {
		var buf [32]byte
		var form []byte
		if form, err = appendNumber(buf[:0], n); err == nil && bytes.Equal(form, v.b[start:i]) {
			v.pos = i
			return nil
		}
	}
	return v.bad("a number that is not spelled canonically")
}
