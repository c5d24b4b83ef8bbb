package work

import (
	"math"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/canon"
)

// reader walks text that is known to be canonical. Closed objects have one spelling
// there, so their members are read by their literal text in order, and a member that
// is missing or too many is a literal that does not match. The first failure sticks;
// everything read after it is zero.
type reader struct {
	s      string
	pos    int
	failed string // what was expected at pos, empty while all is well
	unsafe bool   // skip passed a number that is not a safe integer
}

func (r *reader) fail(want string) {
	if r.failed == "" {
		r.failed = want
	}
}

func (r *reader) ok() bool { return r.failed == "" }

// has takes x if it comes next.
func (r *reader) has(x string) bool {
	if r.failed != "" || len(r.s)-r.pos < len(x) || r.s[r.pos:r.pos+len(x)] != x {
		return false
	}
	r.pos += len(x)
	return true
}

// next reports whether x comes next, and takes nothing.
func (r *reader) next(x string) bool {
	return r.failed == "" && strings.HasPrefix(r.s[r.pos:], x)
}

func (r *reader) lit(x string) {
	if !r.has(x) {
		r.fail(x)
	}
}

// spelled takes a string as it is spelled, quotes included.
func (r *reader) spelled() string {
	if r.failed != "" {
		return ""
	}
	if r.pos >= len(r.s) || r.s[r.pos] != '"' {
		r.fail("a string")
		return ""
	}
	end := stringEnd(r.s, r.pos)
	spelled := r.s[r.pos:end]
	r.pos = end
	return spelled
}

// stringEnd is the place behind the canonical string that begins at i.
func stringEnd(s string, i int) int {
	for i++; ; i++ {
		i += strings.IndexByte(s[i:], '"')
		escapes := 0
		for s[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// str takes a string as what it says.
func (r *reader) str() string {
	at := r.pos
	q := r.spelled()
	if r.failed != "" {
		return ""
	}
	if body := q[1 : len(q)-1]; strings.IndexByte(body, '\\') < 0 {
		return body
	}
	v, err := canon.Parse([]byte(q))
	if err != nil {
		r.pos = at
		r.fail("a string")
		return ""
	}
	said, _ := v.Text()
	return said
}

// text takes a text of at most most units (DV-020).
func (r *reader) text(most int) string {
	at := r.pos
	said := r.str()
	if r.failed == "" && !canon.IsText(said, most) {
		r.pos = at
		r.fail("a text")
	}
	return said
}

func readID[T ~string](r *reader) T {
	at := r.pos
	s := r.spelled()
	if r.failed != "" {
		return ""
	}
	if s = s[1 : len(s)-1]; !canon.IsIdentifier(s) {
		r.pos = at
		r.fail("an identifier")
		return ""
	}
	return T(s)
}

// readIDOrNull gives the empty id for null.
func readIDOrNull[T ~string](r *reader) T {
	if r.has("null") {
		return ""
	}
	return readID[T](r)
}

func (r *reader) digest() Digest {
	const spelling = 66
	if r.failed != "" {
		return ""
	}
	if len(r.s)-r.pos >= spelling && r.s[r.pos] == '"' && r.s[r.pos+spelling-1] == '"' {
		if s := r.s[r.pos+1 : r.pos+spelling-1]; canon.IsDigest(s) {
			r.pos += spelling
			return Digest(s)
		}
	}
	r.fail("a digest")
	return ""
}

// number takes a number as it is spelled.
func (r *reader) number() string {
	start := r.pos
	if r.failed != "" {
		return ""
	}
	for r.pos < len(r.s) && numeric(r.s[r.pos]) {
		r.pos++
	}
	if r.pos == start {
		r.fail("a number")
	}
	return r.s[start:r.pos]
}

func numeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '.' || c == 'e' || c == '+'
}

// integer takes an integer that is safe and not negative (DV-024).
func (r *reader) integer() int64 {
	at := r.pos
	spelled := r.number()
	n, err := strconv.ParseInt(spelled, 10, 64)
	if r.failed == "" && (err != nil || n < 0 || n > canon.MaxInteger) {
		r.pos = at
		r.fail("an integer")
		return 0
	}
	return n
}

// loose takes a whole number that is not negative (DV-025); one that is not safe is -1,
// which equals nothing a state holds.
func (r *reader) loose() int64 {
	at := r.pos
	n, err := strconv.ParseFloat(r.number(), 64)
	if r.failed == "" && (err != nil || n < 0 || math.Trunc(n) != n) {
		r.pos = at
		r.fail("an integer")
		return 0
	}
	if n > canon.MaxInteger {
		return -1
	}
	return int64(n)
}

// skip passes one value of any kind and returns its text.
func (r *reader) skip() string {
	start := r.pos
	if r.failed != "" {
		return ""
	}
	for depth := 0; r.pos < len(r.s); {
		switch c := r.s[r.pos]; {
		case c == '"':
			r.pos = stringEnd(r.s, r.pos)
		case c == '{' || c == '[':
			depth++
			r.pos++
		case c == '}' || c == ']':
			depth--
			r.pos++
		case c == '-' || c >= '0' && c <= '9':
			if !safeNumber(r.number()) {
				r.unsafe = true
			}
		case c == 't' || c == 'n':
			r.pos += len("true")
		case c == 'f':
			r.pos += len("false")
		default: // a comma or a colon
			r.pos++
			continue
		}
		if depth == 0 {
			return r.s[start:r.pos]
		}
	}
	r.fail("a value")
	return ""
}

func safeNumber(spelled string) bool {
	const sure = 15 // so many digits are safe whatever they are
	n, err := strconv.ParseInt(spelled, 10, 64)
	return err == nil && (len(spelled) <= sure || n <= canon.MaxInteger && n >= -canon.MaxInteger)
}

// list takes an array of least to most items.
func list[T any](r *reader, least, most int, item func(*reader) T) []T {
	var items []T
	r.lit("[")
	if r.has("]") {
		if least > 0 {
			r.fail("an item")
		}
		return items
	}
	for r.failed == "" {
		if len(items) == most {
			r.fail("fewer items")
			break
		}
		items = append(items, item(r))
		if r.has("]") {
			break
		}
		r.lit(",")
	}
	if r.failed == "" && len(items) < least {
		r.fail("more items")
	}
	return items
}

// maxShort is the bound of the lists that hold few texts.
const maxShort = 32

// texts takes a short list of distinct texts in any order.
func (r *reader) texts(least int) []string {
	all := list(r, least, maxShort, text)
	if r.failed == "" && repeats(all) {
		r.fail("texts that differ")
	}
	return all
}

func text(r *reader) string { return r.text(canon.MaxText) }

// repeats compares pairs: lists that must be distinct have at most a hundred items.
func repeats[T comparable](all []T) bool {
	for i := range all {
		for _, earlier := range all[:i] {
			if all[i] == earlier {
				return true
			}
		}
	}
	return false
}

// rising reports whether keys rise strictly in the order of UTF-16 units (DV-027).
func rising[T any](all []T, key func(T) string) bool {
	for i := 1; i < len(all); i++ {
		if canon.Compare(key(all[i-1]), key(all[i])) >= 0 {
			return false
		}
	}
	return true
}

func asString[T ~string](s T) string { return string(s) }

// risingIDs takes a canonical list of identifiers (DV-027).
func risingIDs[T ~string](r *reader, least, most int) []T {
	ids := list(r, least, most, readID[T])
	if r.failed == "" && !rising(ids, asString[T]) {
		r.fail("identifiers in rising order")
	}
	return ids
}

// choice takes one of some words.
func choice[T ~string](r *reader, among []T) T {
	at := r.pos
	said := T(r.str())
	for _, c := range among {
		if r.failed == "" && said == c {
			return c
		}
	}
	r.pos = at
	r.fail("one of the words of this field")
	return ""
}
