// Package canon is the canonical JSON form whose bytes developer/v8 hashes
// (DV-001…DV-011), and the scalar grammars its fields are held to (DV-020…DV-028).
//
// Invariants: Parse reads UTF-8 text exactly as an ECMAScript JSON.parse does, the
// last of equal names winning and lone surrogates kept; a value has one canonical
// form, and that form parses to an equal value; depth is bounded, so no input
// exhausts a stack.
//
// A string value is a sequence of UTF-16 units. As a Go string it is WTF-8: UTF-8,
// with a unit that belongs to no pair as the three bytes UTF-8 would give it.
//
// The package knows nothing of envelopes, of what is hashed, or of who asks. Formats
// of reeve's own are not read here: they refuse duplicate and unknown members, which
// is json.RejectUnknownMembers of go-json-experiment.
package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"math"
)

// Limits. DV-009 leaves depth between 1,000 and 12,000 open.
const (
	MaxDepth      = 2_000
	MaxPayload    = 64_000 // canonical bytes of an envelope's payload (DV-010)
	MaxText       = 4_000  // UTF-16 units of a text (DV-020)
	MaxIdentifier = 160    // UTF-16 units of an identifier (DV-021)
	MaxItems      = 100    // items of an array (DV-028)
	MaxInteger    = 1<<53 - 1
)

// ErrUnsupported is the cause when a value parsed but has no canonical form: a number
// beyond the range of a double (DV-003), or a Go string that is not WTF-8.
var ErrUnsupported = errors.New("value has no canonical form")

// Kind is the JSON type of a value.
type Kind uint8

// The kinds. The zero Value is null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is one JSON value. It is immutable; copies share their items.
type Value struct {
	kind  Kind
	num   float64 // of a number; 1 for true
	text  string  // of a string, WTF-8
	items []Item
}

// Item is a member of an object, or with an empty name an item of an array.
type Item struct {
	Name  string
	Value Value
}

// OfBool, OfNumber and OfString make scalars. A number that is not finite and a
// string that is not WTF-8 make values without a canonical form.
func OfBool(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.num = 1
	}
	return v
}

// OfNumber makes a number.
func OfNumber(n float64) Value { return Value{kind: Number, num: n} }

// OfString makes a string from WTF-8.
func OfString(s string) Value { return Value{kind: String, text: s} }

// OfArray makes an array.
func OfArray(values ...Value) Value {
	v := Value{kind: Array, items: make([]Item, len(values))}
	for i := range values {
		v.items[i].Value = values[i]
	}
	return v
}

// OfObject makes an object. The last of members with equal names wins, in the place
// of the first.
func OfObject(members ...Item) Value {
	return Value{kind: Object, items: distinct(append([]Item(nil), members...))}
}

// Kind is the type of v.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.kind == Null }

// Bool is the value of a boolean; ok is false for every other kind.
func (v Value) Bool() (b, ok bool) { return v.num == 1, v.kind == Bool }

// Number is the value of a number, which may be infinite.
func (v Value) Number() (n float64, ok bool) { return v.num, v.kind == Number }

// Text is the value of a string, WTF-8.
func (v Value) Text() (s string, ok bool) { return v.text, v.kind == String }

// Integer is the value of a safe integer, whatever its spelling (DV-024). The caller
// checks its sign.
func (v Value) Integer() (n int64, ok bool) {
	if v.kind != Number || math.Trunc(v.num) != v.num || math.Abs(v.num) > MaxInteger {
		return 0, false
	}
	return int64(v.num), true
}

// Loose is the value of an integral finite number of any size (DV-025).
func (v Value) Loose() (n float64, ok bool) {
	return v.num, v.kind == Number && math.Trunc(v.num) == v.num && !math.IsInf(v.num, 0)
}

// Len counts the items of an array or the members of an object.
func (v Value) Len() int { return len(v.items) }

// At is item i of an array, or the value of member i in the order of the text.
func (v Value) At(i int) Value { return v.items[i].Value }

// Items yields items with their index; for an object, member values.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i := range v.items {
			if !yield(i, v.items[i].Value) {
				return
			}
		}
	}
}

// Members yields the members of an object in the order of the text; none for any
// other kind.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.kind != Object {
			return
		}
		for i := range v.items {
			if !yield(v.items[i].Name, v.items[i].Value) {
				return
			}
		}
	}
}

// Member is the value of an object's member.
func (v Value) Member(name string) (Value, bool) {
	if v.kind == Object {
		for i := range v.items {
			if v.items[i].Name == name {
				return v.items[i].Value, true
			}
		}
	}
	return Value{}, false
}

// Hash is the SHA-256, in lower-case hex, of the parts joined (DV-011). The parts
// together are one canonical text; nothing here checks that.
func Hash(parts ...[]byte) string {
	if len(parts) == 1 {
		sum := sha256.Sum256(parts[0])
		return hex.EncodeToString(sum[:])
	}
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Hash is the digest of the canonical form of v.
func (v Value) Hash() (string, error) {
	b, err := v.Append(nil)
	if err != nil {
		return "", err
	}
	return Hash(b), nil
}

// fewNames is how many names are compared pair by pair rather than put in a map.
const fewNames = 16

// distinct keeps the last of equal names, in place of the first (DV-002).
func distinct(members []Item) []Item {
	if ascending(members) {
		return members
	}
	if len(members) > fewNames {
		return distinctOfMany(members)
	}
	kept := members[:0]
next:
	for _, m := range members {
		for i := range kept {
			if kept[i].Name == m.Name {
				kept[i].Value = m.Value
				continue next
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// ascending is true for names in strictly rising order of bytes, as stored text has
// them nearly always; no two are equal then.
func ascending(members []Item) bool {
	for i := 1; i < len(members); i++ {
		if members[i-1].Name >= members[i].Name {
			return false
		}
	}
	return true
}

func distinctOfMany(members []Item) []Item {
	at := make(map[string]int, len(members))
	kept := members[:0]
	for _, m := range members {
		if i, found := at[m.Name]; found {
			kept[i].Value = m.Value
			continue
		}
		at[m.Name] = len(kept)
		kept = append(kept, m)
	}
	return kept
}
