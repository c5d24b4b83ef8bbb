package canon

import (
	"math"
	"slices"
	"strconv"

	"github.com/reeve-run/reeve/fault"
)

const opAppend = "write canonical JSON"

// Append adds the canonical form of v to dst (DV-004, DV-005, DV-007). On an error,
// whose cause is ErrUnsupported or whose code is limit_exceeded for a value deeper
// than MaxDepth, dst comes back as it was.
func (v Value) Append(dst []byte) ([]byte, error) {
	out, err := v.append(dst, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func (v Value) append(out []byte, depth int) ([]byte, error) {
	switch v.kind {
	case Bool:
		return strconv.AppendBool(out, v.num == 1), nil
	case Number:
		return appendNumber(out, v.num)
	case String:
		return appendString(out, v.text)
	case Array, Object:
		if depth == MaxDepth {
			return nil, fault.New(fault.LimitExceeded, opAppend, "", "depth is over the limit of %d", MaxDepth)
		}
		if v.kind == Array {
			return v.appendArray(out, depth+1)
		}
		return v.appendObject(out, depth+1)
	default:
		return append(out, "null"...), nil
	}
}

func (v Value) appendArray(out []byte, depth int) (_ []byte, err error) {
	out = append(out, '[')
	for i := range v.items {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = v.items[i].Value.append(out, depth); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func (v Value) appendObject(out []byte, depth int) (_ []byte, err error) {
	members := v.items
	if !slices.IsSortedFunc(members, byName) {
		members = slices.SortedFunc(slices.Values(members), byName)
	}
	out = append(out, '{')
	for i := range members {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendString(out, members[i].Name); err != nil {
			return nil, err
		}
		if out, err = members[i].Value.append(append(out, ':'), depth); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func byName(a, b Item) int { return Compare(a.Name, b.Name) }

// exact is the magnitude below which an integral double prints as its digits.
const exact = 1e15

// appendNumber writes a number as ECMAScript does.
func appendNumber(out []byte, n float64) ([]byte, error) {
	switch size := math.Abs(n); {
	case math.IsInf(n, 0) || math.IsNaN(n):
		return nil, unsupported("a number outside the range of a double")
	case size < exact && math.Trunc(n) == n:
		return strconv.AppendInt(out, int64(n), 10), nil
	case size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(out, n, 'f', -1, 64), nil
	}
	out = strconv.AppendFloat(out, n, 'e', -1, 64)
	if e := len(out) - 2; out[e] == '0' && out[e-1] == '-' { // e-07: Go pads the exponent
		out = append(out[:e], out[e+1])
	}
	return out, nil
}

func unsupported(what string) error {
	f := fault.New(fault.InvalidRequest, opAppend, "", "%s", what)
	f.Err = ErrUnsupported
	return f
}

const lowerHex = "0123456789abcdef"

// appendString writes WTF-8 text as a JSON string.
func appendString(out []byte, s string) ([]byte, error) {
	out = append(out, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < 0x80 {
			i++
			if !plain[c] {
				out = appendEscape(append(out, s[done:i-1]...), c)
				done = i
			}
			continue
		}
		r, n := decode(s[i:])
		switch {
		case n == 0:
			return nil, unsupported("a string that is neither UTF-8 nor WTF-8")
		case surrogate(r):
			out = append(out, s[done:i]...)
			out = append(out, '\\', 'u', 'd', lowerHex[r>>8&15], lowerHex[r>>4&15], lowerHex[r&15])
			done = i + n
		case n == 6:
			out = appendUnit(append(out, s[done:i]...), r)
			done = i + n
		}
		i += n
	}
	return append(append(out, s[done:]...), '"'), nil
}

func appendEscape(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\b':
		return append(out, '\\', 'b')
	case '\f':
		return append(out, '\\', 'f')
	case '\n':
		return append(out, '\\', 'n')
	case '\r':
		return append(out, '\\', 'r')
	case '\t':
		return append(out, '\\', 't')
	}
	return append(out, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
}
