package wire

import (
	"strconv"

	"github.com/reeve-run/reeve/fault"
)

// maxInteger is the largest integer every peer represents exactly (CP-131).
const maxInteger = 1<<53 - 1

// safeExponent is the largest decimal exponent for which no finite literal can
// leave the range of a double.
const safeExponent = 308

// number checks the number at pos and moves behind it: the grammar of JSON, at most
// MaxNumberDigits digits, and a value a double can hold.
func (s *scanner) number() *fault.Error {
	start := s.pos
	i := start
	if s.b[i] == '-' {
		i++
	}
	whole := run(s.b, i)
	if whole == i {
		s.pos = i
		return s.unexpected("a digit")
	}
	if s.b[i] == '0' && whole > i+1 {
		s.pos = i
		return s.bad("number with a leading zero")
	}
	digits := whole - i
	size := digits // digits before the point, then moved by the exponent
	i = whole
	if i < len(s.b) && s.b[i] == '.' {
		end := run(s.b, i+1)
		if end == i+1 {
			s.pos = end
			return s.unexpected("a digit")
		}
		digits += end - i - 1
		i = end
	}
	if i < len(s.b) && (s.b[i] == 'e' || s.b[i] == 'E') {
		i++
		negative := i < len(s.b) && s.b[i] == '-'
		if i < len(s.b) && (s.b[i] == '-' || s.b[i] == '+') {
			i++
		}
		end := run(s.b, i)
		if end == i {
			s.pos = end
			return s.unexpected("a digit")
		}
		digits += end - i
		if !negative {
			size += magnitude(s.b[i:end])
		}
		i = end
	}
	if digits > MaxNumberDigits {
		return refuse(fault.LimitExceeded, s.field, "number of %d digits at byte %d is over the limit of %d", digits, start, MaxNumberDigits)
	}
	if size > safeExponent {
		if _, err := strconv.ParseFloat(string(s.b[start:i]), 64); err != nil {
			return s.bad("number outside the range of a double")
		}
	}
	s.pos = i
	return nil
}

// run is the end of the digits that begin at i.
func run(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// magnitude is the value of an exponent, held below what could overflow an int.
func magnitude(digits []byte) int {
	v := 0
	for _, c := range digits {
		if v < 1<<20 {
			v = v*10 + int(c-'0')
		}
	}
	return v
}

// integer reads a typed member: a literal without fraction or exponent, 0…2^53−1.
func (s *scanner) integer() (int64, *fault.Error) {
	c := s.peek()
	if c != '-' && (c < '0' || c > '9') {
		return 0, s.unexpected("an integer")
	}
	start := s.pos
	if f := s.number(); f != nil {
		return 0, f
	}
	n, err := strconv.ParseInt(string(s.b[start:s.pos]), 10, 64)
	if err != nil || n < 0 || n > maxInteger {
		s.pos = start
		return 0, s.bad("an integer within 0 and %d is due", int64(maxInteger))
	}
	return n, nil
}
