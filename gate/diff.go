package gate

import (
	"slices"
	"strings"
)

// Change is one difference between two policy sets.
type Change struct {
	Kind   string // added | removed | changed | ruling
	Rule   string
	Before string // rule text, or the ruling of Example
	After  string
	// Example is set for kind ruling: a request that the examples of either set
	// contain and on which the two sets differ.
	Example string
}

// Diff compares two sets: first the rules, sorted by id, then every example of
// either set whose ruling would change.
func Diff(before, after *Policy) []Change {
	var out []Change
	for _, id := range unionIDs(before, after) {
		b, a := before.rules[id], after.rules[id]
		switch {
		case b == nil:
			out = append(out, Change{Kind: "added", Rule: id, After: a.Text})
		case a == nil:
			out = append(out, Change{Kind: "removed", Rule: id, Before: b.Text})
		case b.Text != a.Text:
			out = append(out, Change{Kind: "changed", Rule: id, Before: b.Text, After: a.Text})
		}
	}
	seen := map[string]bool{}
	for _, set := range []*Policy{before, after} {
		for _, id := range set.order {
			for _, ex := range slices.Concat(set.rules[id].allow, set.rules[id].deny) {
				if seen[ex.Text] {
					continue
				}
				seen[ex.Text] = true
				b, a := before.Decide(ex.Request).Ruling, after.Decide(ex.Request).Ruling
				if b != a {
					out = append(out, Change{Kind: "ruling", Rule: id, Before: string(b), After: string(a), Example: ex.Text})
				}
			}
		}
	}
	return out
}

func unionIDs(a, b *Policy) []string {
	ids := slices.Concat(a.order, b.order)
	slices.SortFunc(ids, strings.Compare)
	return slices.Compact(ids)
}
