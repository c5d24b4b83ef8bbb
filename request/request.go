// Package request is the language in which anything is asked of reeve: one call,
// a chain of calls joined by "|", a bracketed batch of chains, or JSON. It turns a
// text into operations, says what those would do without doing it (Plan), fills in
// references to earlier results, and puts outcomes together into the answer.
//
// Invariants:
//   - a text of any bytes is parsed or refused in linear time, with bounded
//     recursion; a refusal has a stable code and, where there is one, a position;
//   - numbers keep the digits they were written with: no value passes through a
//     floating-point number;
//   - an answer has exactly one entry per operation, in the order of the request,
//     and every entry that is not a success says whether it committed.
//
// The package runs nothing. It knows no verb beyond its spelling, no policy, no
// clock and no transport. docs/format/request.md is the page for people who write
// requests.
package request

import (
	"slices"
	"strings"
)

// Limits of a request (VD-020, VD-040, VD-041). They bound what one caller can make
// the core hold at once.
const (
	MaxBytes = 1 << 20 // of the text, after outer white space is trimmed
	MaxOps   = 100     // over batches, chains and JSON arrays
	MaxDepth = 64      // of containers; in JSON form the envelope counts too
)

// Mode says how the operations of a request relate (VD-050).
type Mode string

// Modes.
const (
	Single   Mode = "single"   // one operation
	Parallel Mode = "parallel" // units run beside each other
	Chain    Mode = "chain"    // one unit, in sequence, may refer to $prev
)

// Unit is a half-open range of operations that run in sequence. The units of a
// request partition its operations.
type Unit struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Request is a parsed text.
type Request struct {
	Mode  Mode
	Ops   []Op
	Units []Unit
}

// UnitOf is the index of the unit that holds operation i, or -1.
func (r *Request) UnitOf(i int) int {
	return slices.IndexFunc(r.Units, func(u Unit) bool { return u.Start <= i && i < u.End })
}

// chains reports whether some unit of a batch is longer than one operation, in
// which case entries carry their place (VD-075).
func (r *Request) chains() bool {
	return r.Mode == Parallel && len(r.Units) < len(r.Ops)
}

// Op is one call. Args are sorted by name and no name is twice in them.
type Op struct {
	Tool string // "verb" or "pack.verb"
	Args []Item
	At   int // byte offset of the call in the trimmed text
}

// Arg returns the named argument.
func (o *Op) Arg(name string) (Value, bool) {
	i, ok := slices.BinarySearchFunc(o.Args, name, byName)
	if !ok {
		return Value{}, false
	}
	return o.Args[i].Value, true
}

func byName(it Item, name string) int { return strings.Compare(it.Name, name) }

// Help reports whether the operation asks for its description: the literal boolean
// true, nothing that merely looks like it (VD-066, VD-097).
func (o *Op) Help() bool {
	v, ok := o.Arg("help")
	return ok && v.IsTrue()
}

// reserved are names of the request envelope, which no argument may have (VD-042).
var reserved = []string{"presentation", "presentation_per_op"}

// Reserved reports whether name belongs to the envelope of a request.
func Reserved(name string) bool { return slices.Contains(reserved, name) }
