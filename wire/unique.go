package wire

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

// A member name is remembered in 32 bits: where its string begins, which fits 20
// bits because a frame does, and 12 bits of hash above. Sorting those numbers
// brings equal names together at a cost of four bytes a name, which keeps a frame
// made only of names within the memory bound of CP-011.
const (
	offsetBits = 20
	offsetMask = 1<<offsetBits - 1
)

var _ [1<<offsetBits - MaxFrame]struct{} // every offset in a frame fits

// fewNames is how many names are compared pair by pair rather than sorted.
const fewNames = 8

// key reads and remembers a member name of a free-form object, and its colon.
func (s *scanner) key() *fault.Error {
	if s.peek() != '"' {
		return s.unexpected("a member name")
	}
	start := s.pos
	escaped, f := s.str()
	if f != nil {
		return f
	}
	if len(s.keys) == cap(s.keys) {
		s.grow()
	}
	h := hashName(s.b[start+1:s.pos-1], escaped)
	s.keys = append(s.keys, h<<offsetBits|uint32(start))
	return s.colon()
}

// grow makes room once for every name that can still come: each has a colon.
func (s *scanner) grow() {
	room := 16
	if cap(s.keys) > 0 {
		room = len(s.keys) + 1 + bytes.Count(s.b[s.pos:], []byte{':'})
	}
	s.keys = append(make([]uint32, 0, room), s.keys...)
}

// hashName folds a name, as it reads after unescaping, into 12 bits (FNV-1a).
func hashName(body []byte, escaped bool) uint32 {
	h := uint32(2166136261)
	if !escaped {
		for _, c := range body {
			h = (h ^ uint32(c)) * 16777619
		}
	} else {
		var buf [utf8.UTFMax]byte
		for len(body) > 0 {
			r, n := char(body)
			body = body[n:]
			for _, c := range buf[:utf8.EncodeRune(buf[:], r)] {
				h = (h ^ uint32(c)) * 16777619
			}
		}
	}
	return (h ^ h>>12 ^ h>>24) & (1<<(32-offsetBits) - 1)
}

// unique refuses two equal names among those remembered since from.
func (s *scanner) unique(from int) *fault.Error {
	keys := s.keys[from:]
	if len(keys) > fewNames {
		slices.Sort(keys)
	}
	for len(keys) > 1 {
		n := 1
		for n < len(keys) && (len(keys) <= fewNames || keys[n]>>offsetBits == keys[0]>>offsetBits) {
			n++
		}
		if at, dup := s.twice(keys[:n]); dup {
			body, _ := s.nameAt(at)
			return s.bad("duplicate member %q in the object that ends", shorten(string(body)))
		}
		keys = keys[n:]
	}
	return nil
}

// twice looks for two equal names in a group that may hold some. A large group
// means that the hashes were made to collide; sorting it keeps that harmless.
func (s *scanner) twice(group []uint32) (uint32, bool) {
	if len(group) > fewNames {
		slices.SortFunc(group, s.compare)
		for i := 1; i < len(group); i++ {
			if s.compare(group[i-1], group[i]) == 0 {
				return group[i], true
			}
		}
		return 0, false
	}
	for i, a := range group {
		for _, b := range group[i+1:] {
			if a>>offsetBits == b>>offsetBits && s.compare(a, b) == 0 {
				return b, true
			}
		}
	}
	return 0, false
}

// nameAt is the body of the name that key remembers, and whether it has escapes.
func (s *scanner) nameAt(key uint32) ([]byte, bool) {
	rest := s.b[key&offsetMask+1:]
	end := bytes.IndexByte(rest, '"')
	if bytes.IndexByte(rest[:end], '\\') < 0 {
		return rest[:end], false
	}
	for end = 0; rest[end] != '"'; {
		_, n := char(rest[end:])
		end += n
	}
	return rest[:end], true
}

func (s *scanner) compare(a, b uint32) int {
	x, xEscaped := s.nameAt(a)
	y, yEscaped := s.nameAt(b)
	if !xEscaped && !yEscaped {
		return bytes.Compare(x, y)
	}
	for len(x) > 0 && len(y) > 0 {
		r, n := char(x)
		q, m := char(y)
		if r != q {
			return cmp.Compare(r, q)
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Compare(len(x), len(y))
}

// shorten keeps hostile text from filling a message.
func shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
