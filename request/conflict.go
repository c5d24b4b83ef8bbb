package request

import (
	"fmt"
	"strings"
)

// Keyer names what an operation would write, as far as its literal arguments tell:
// one text per record. The verb's pack declares it. References and missing parts
// give no key (VD-061).
type Keyer interface {
	WriteKeys(op *Op) []string
}

// Conflict is an operation that must not run because another of the same request
// writes the same record.
type Conflict struct {
	Op    int
	Other int    // an operation that shares the key
	Key   string // as declared
}

// Error reads as the message of the failed entry, whose kind is write_key_conflict.
func (c Conflict) Error() string {
	return fmt.Sprintf("operation %d writes %s, and so does operation %d of the same request: send them one after the other, or as one chain", c.Op, c.Key, c.Other)
}

// Conflicts finds the operations that nothing may be started of. In a batch of single
// operations each of those that share a key is refused and the rest proceed; in a
// batch of chains a unit that shares a key with another unit is refused whole, and
// only its first operation is listed (the others count as aborted). Inside one unit
// keys may repeat. A chain never conflicts (VD-062). Each unit is listed once, in
// order.
//
// UUIDs are compared in their canonical spelling, whatever spelling the caller used.
// Prefixes cannot be: whoever resolves them asks again with the resolved keys
// (VD-063).
func Conflicts(r *Request, keys Keyer) []Conflict {
	if r.Mode == Chain {
		return nil
	}
	type holder struct{ op, unit int }
	first := map[string]holder{}
	refused := make([]*Conflict, len(r.Units))
	refuse := func(unit, op, other int, key string) {
		if refused[unit] == nil {
			refused[unit] = &Conflict{op, other, key}
		}
	}
	for u, unit := range r.Units {
		for i := unit.Start; i < unit.End; i++ {
			for _, declared := range keys.WriteKeys(&r.Ops[i]) {
				key := canonicalKey(declared)
				h, taken := first[key]
				switch {
				case !taken:
					first[key] = holder{i, u}
				case h.unit != u:
					refuse(h.unit, h.op, i, declared)
					refuse(u, i, h.op, declared)
				}
			}
		}
	}
	var all []Conflict
	for u, c := range refused {
		if c != nil {
			c.Op = r.Units[u].Start
			all = append(all, *c)
		}
	}
	return all
}

// canonicalKey rewrites every complete UUID among the colon-separated parts of a key.
func canonicalKey(key string) string {
	parts := strings.Split(key, ":")
	out := parts[:0]
	for _, part := range parts {
		id, ok := CanonicalUUID(part)
		if !ok {
			out = append(out, part)
			continue
		}
		if n := len(out); n >= 2 && strings.EqualFold(out[n-2], "urn") && strings.EqualFold(out[n-1], "uuid") {
			out = out[:n-2]
		}
		out = append(out, id)
	}
	return strings.Join(out, ":")
}

// CanonicalUUID reads a complete UUID in any spelling of VD-121 (dashed, 32 digits,
// braced, urn:uuid:, any case) and gives it in lower case with dashes.
func CanonicalUUID(s string) (string, bool) {
	if len(s) > 9 && strings.EqualFold(s[:9], "urn:uuid:") {
		s = s[9:]
	} else if len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' {
		s = s[1 : len(s)-1]
	}
	dashed := len(s) == 36
	if !dashed && len(s) != 32 {
		return "", false
	}
	out := make([]byte, 0, 36)
	for i := range len(s) {
		c := s[i]
		if dashed && (i == 8 || i == 13 || i == 18 || i == 23) {
			if c != '-' {
				return "", false
			}
			continue
		}
		if c |= 0x20; !digit(s[i]) && (c < 'a' || c > 'f') {
			return "", false
		}
		if n := len(out); n == 8 || n == 13 || n == 18 || n == 23 {
			out = append(out, '-')
		}
		if digit(s[i]) {
			c = s[i]
		}
		out = append(out, c)
	}
	return string(out), true
}
