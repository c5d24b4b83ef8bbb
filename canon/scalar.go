package canon

import (
	"strings"
	"unicode/utf8"
)

// blank is what String.prototype.trim strips (DV-020): white space and line ends of
// ECMAScript, U+FEFF included and U+0085 not.
func blank(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0d, r == 0x20, r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a,
		r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000, r == 0xfeff:
		return true
	}
	return false
}

// Trim strips white space from both ends as ECMAScript does.
func Trim(s string) string { return strings.TrimFunc(s, blank) }

// IsText reports whether s is a text of at most most UTF-16 units (DV-020): not
// empty, and without white space at its ends.
func IsText(s string, most int) bool {
	if s == "" || len(s) > most && Units(s) > most {
		return false
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return !blank(first) && !blank(last)
}

// IsIdentifier reports whether s is an identifier (DV-021): a letter, then letters,
// digits and . _ : / -, at most MaxIdentifier.
func IsIdentifier(s string) bool {
	if s == "" || len(s) > MaxIdentifier || classes[s[0]]&letter == 0 {
		return false
	}
	all := inIdentifier
	for i := range len(s) {
		all &= classes[s[i]]
	}
	return all != 0
}

// IsDigest reports whether s is a SHA-256 in lower-case hex (DV-022).
func IsDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	all := inDigest
	for i := range len(s) {
		all &= classes[s[i]]
	}
	return all != 0
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// What a byte may be part of.
const (
	letter uint8 = 1 << iota
	inIdentifier
	inDigest
)

// classes says of each byte what it may be part of.
var classes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			t[c] = letter | inIdentifier
		case digit(byte(c)):
			t[c] = inIdentifier | inDigest
		case strings.IndexByte("._:/-", byte(c)) >= 0:
			t[c] = inIdentifier
		}
		if c >= 'a' && c <= 'f' {
			t[c] |= inDigest
		}
	}
	return t
}()

// IsTimestamp reports whether s is a real instant as YYYY-MM-DDTHH:MM:SS.mmmZ
// (DV-023), years 0000 to 9999 of the proleptic Gregorian calendar.
func IsTimestamp(s string) bool {
	const form = "0000-00-00T00:00:00.000Z"
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		if form[i] == '0' && !digit(s[i]) || form[i] != '0' && s[i] != form[i] {
			return false
		}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	year, month, day := two(0)*100+two(2), two(5), two(8)
	return month >= 1 && month <= 12 && day >= 1 && day <= days(year, month) &&
		two(11) < 24 && two(14) < 60 && two(17) < 60
}

func days(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
