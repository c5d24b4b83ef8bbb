package canon

import (
	"strings"
	"unicode/utf8"
)

// The surrogates of UTF-16.
const (
	highFirst = 0xd800
	highLast  = 0xdbff
	lowFirst  = 0xdc00
	lowLast   = 0xdfff
	beyond    = 0x10000 // the first character that takes two units
)

func join(high, low rune) rune { return beyond + (high-highFirst)<<10 + (low - lowFirst) }

func surrogate(r rune) bool { return r >= highFirst && r <= lowLast }

// appendUnit adds a character, or a lone surrogate, as WTF-8.
func appendUnit(b []byte, r rune) []byte {
	if surrogate(r) {
		return append(b, 0xed, byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
	}
	return utf8.AppendRune(b, r)
}

// decode reads the character or lone surrogate that WTF-8 text begins with. Bytes
// that are neither give n 0. A pair that was written surrogate by surrogate, as the
// joining of two strings can leave it, is the character it means.
func decode(s string) (r rune, n int) {
	r, n = utf8.DecodeRuneInString(s)
	if r != utf8.RuneError || n != 1 {
		return r, n
	}
	if r, ok := loneUnit(s); ok {
		if low, ok := loneUnit(s[3:]); ok && r <= highLast && low >= lowFirst {
			return join(r, low), 6
		}
		return r, 3
	}
	return utf8.RuneError, 0
}

func loneUnit(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2] < 0x80 || s[2] > 0xbf {
		return 0, false
	}
	return highFirst&0xf000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

// Units counts the UTF-16 units of WTF-8 text: what a length limit of developer/v8
// counts (DV-020).
func Units(s string) int {
	n := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0xf0:
			n += 2
		case c < 0x80 || c >= 0xc0:
			n++
		}
	}
	return n
}

// Cut is the longest start of WTF-8 text that has at most most UTF-16 units. A character
// of two units is cut between them when the limit falls there.
func Cut(s string, most int) string {
	n := 0
	for i := 0; i < len(s); {
		r, size := decode(s[i:])
		width := 1
		if r >= beyond {
			width = 2
		}
		if n+width > most {
			if n < most {
				return s[:i] + string(appendUnit(nil, highFirst+(r-beyond)>>10))
			}
			return s[:i]
		}
		n += width
		i += max(size, 1)
	}
	return s
}

// Compare orders WTF-8 texts by their UTF-16 units (DV-007, DV-027). Bytes give the
// same order except that a character of two units sorts among the surrogates.
func Compare(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n || a[i] < 0xed || b[i] < 0xed {
		return strings.Compare(a[i:], b[i:])
	}
	x, y := units{s: a[i:]}, units{s: b[i:]}
	return compareUnits(x.next, y.next)
}

// compareUnits orders two sequences, each of which ends with -1.
func compareUnits(x, y func() rune) int {
	for {
		u, v := x(), y()
		switch {
		case u != v && u < v:
			return -1
		case u != v:
			return 1
		case u < 0:
			return 0
		}
	}
}

// units walks the UTF-16 units of WTF-8 text.
type units struct {
	s   string
	low rune // the second unit of the character before, 0 when there is none
}

func (u *units) next() rune {
	if u.low != 0 {
		r := u.low
		u.low = 0
		return r
	}
	if u.s == "" {
		return -1
	}
	r, n := decode(u.s)
	u.s = u.s[max(n, 1):]
	if r < beyond {
		return r
	}
	u.low = lowFirst + (r-beyond)&0x3ff
	return highFirst + (r-beyond)>>10
}
