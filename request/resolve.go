package request

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Reason says why a reference could not be filled in (VD-055).
type Reason string

// Reasons.
const (
	NoPrecedingOp   Reason = "no_preceding_op"    // nothing ran before in this unit
	PathNotFound    Reason = "path_not_found"     // no such member or element
	PathWrongType   Reason = "path_wrong_type"    // a member of something that is no object, and the like
	PathUnsupported Reason = "path_unsupported"   // longer than any result can be deep
	BareAmbiguous   Reason = "bare_ref_ambiguous" // a whole object or array as an argument
)

// SubstitutionError says which reference failed. Its operation was not started.
type SubstitutionError struct {
	Reason   Reason
	Argument string // the top-level argument
	Location string // where inside it, "" for the argument itself: [1].name
	Path     string // the reference as written
	Detail   string
}

// Error names argument, place, path and what was there.
func (e *SubstitutionError) Error() string {
	return fmt.Sprintf("argument %q: %s cannot be filled in: %s (only the result of the operation just before, in the same chain, can be referred to)",
		e.Argument+e.Location, e.Path, e.Detail)
}

// Resolve fills in the references of args from prev, the canonical result of the
// operation just before in the same unit; nil means there is none (VD-054). Two
// members of one name end as the last of them. An error is a *SubstitutionError.
func Resolve(args []Item, prev *Value) ([]Item, error) {
	if !slices.ContainsFunc(args, func(a Item) bool { return a.Value.dynamic }) {
		return args, nil
	}
	filled := make([]Item, len(args))
	for i, a := range args {
		r := resolver{argument: a.Name, prev: prev}
		v, err := r.value(a.Value, "")
		if err != nil {
			return nil, err
		}
		if a.Value.kind == Reference && len(*a.Value.path) == 0 && (v.kind == Object || v.kind == Array) {
			return nil, r.fail(BareAmbiguous, "", a.Value, "the result is "+describe(v)+": say which part is meant, such as $prev.id")
		}
		filled[i] = Item{a.Name, v}
	}
	return filled, nil
}

type resolver struct {
	argument string
	prev     *Value
}

func (r resolver) fail(why Reason, location string, ref Value, detail string) error {
	return &SubstitutionError{why, r.argument, location, ref.path.String(), detail}
}

// value recurses as deep as the parser let containers nest.
func (r resolver) value(v Value, location string) (Value, error) {
	if !v.dynamic {
		return v, nil
	}
	if v.kind == Reference {
		return r.follow(v, location)
	}
	out := Value{kind: v.kind, at: v.at, items: make([]Item, len(v.items))}
	for i, it := range v.items {
		place := location + "[" + strconv.Itoa(i) + "]"
		if v.kind == Object {
			place = location + "." + it.Name
		}
		e, err := r.value(it.Value, place)
		if err != nil {
			return Value{}, err
		}
		out.items[i] = Item{it.Name, e}
	}
	if out.kind == Object {
		out.items = lastWins(out.items)
	}
	return out, nil
}

func (r resolver) follow(ref Value, location string) (Value, error) {
	if r.prev == nil {
		return Value{}, r.fail(NoPrecedingOp, location, ref, "no operation ran before this one")
	}
	path := *ref.path
	if len(path) > MaxDepth {
		return Value{}, r.fail(PathUnsupported, location, ref, fmt.Sprintf("the path has %d steps, but results nest at most %d deep", len(path), MaxDepth))
	}
	v := *r.prev
	for i, step := range path {
		need, here := Object, path[:i].String()
		if step.Element {
			need = Array
		}
		if v.kind != need {
			return Value{}, r.fail(PathWrongType, location, ref, fmt.Sprintf("%s is %s, %s needs an %s", here, describe(v), path[:i+1], need))
		}
		if step.Element {
			if step.Index >= len(v.items) {
				return Value{}, r.fail(PathNotFound, location, ref, fmt.Sprintf("%s has %d elements", here, len(v.items)))
			}
			v = v.items[step.Index].Value
			continue
		}
		next, ok := v.Member(step.Name)
		if !ok {
			return Value{}, r.fail(PathNotFound, location, ref, fmt.Sprintf("%s has no member %q; it is %s", here, step.Name, describe(v)))
		}
		v = next
	}
	v.at = ref.at
	return v, nil
}

// shown is how many member names a message lists.
const shown = 20

// describe says what a value is: an object by its members, an array by its length.
func describe(v Value) string {
	switch v.kind {
	case Array:
		return fmt.Sprintf("an array of %d elements", len(v.items))
	case Object:
		names := slices.Compact(v.names())
		switch {
		case len(names) == 0:
			return "an object without members"
		case len(names) > shown:
			return fmt.Sprintf("an object with the members %s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
		}
		return "an object with the members " + strings.Join(names, ", ")
	}
	return v.kind.String()
}
