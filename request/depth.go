package request

// Depth is how many containers stand inside each other in v, 0 for a scalar. It does
// not recurse: a result of any depth can be measured before anything walks it
// (VD-056).
func (v Value) Depth() int {
	type level struct {
		items []Item
		depth int
	}
	deepest := 0
	var open []level
	enter := func(v Value, depth int) {
		if v.kind == Array || v.kind == Object {
			deepest = max(deepest, depth)
			open = append(open, level{v.items, depth})
		}
	}
	enter(v, 1)
	for len(open) > 0 {
		l := open[len(open)-1]
		open = open[:len(open)-1]
		for i := range l.items {
			enter(l.items[i].Value, l.depth+1)
		}
	}
	return deepest
}
