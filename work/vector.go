package work

// vector is a persistent list that is read by index. A version costs the path to its
// end. The zero value is empty.
type vector[T any] struct {
	root  *page[T]
	depth int
	n     int
}

// page has items at the bottom, and pages above it.
type page[T any] struct {
	own   *owner
	below []*page[T]
	items []T
}

const breadth = 1 << fan

func (v *vector[T]) get(i int) T {
	p := v.root
	for level := v.depth; level > 0; level-- {
		p = p.below[i>>(fan*level)&(breadth-1)]
	}
	return p.items[i&(breadth-1)]
}

// push adds an item to this version. What o made is changed in place.
func (v *vector[T]) push(o *owner, item T) {
	switch {
	case v.root == nil:
		v.root = &page[T]{own: o}
	case v.n == 1<<(fan*(v.depth+1)):
		v.root = &page[T]{own: o, below: []*page[T]{v.root}}
		v.depth++
	}
	v.root = v.root.push(o, v.n, v.depth, item)
	v.n++
}

func (p *page[T]) push(o *owner, at, level int, item T) *page[T] {
	if p.own != o {
		p = &page[T]{own: o, below: append([]*page[T](nil), p.below...), items: append([]T(nil), p.items...)}
	}
	if level == 0 {
		p.items = append(p.items, item)
		return p
	}
	i := at >> (fan * level) & (breadth - 1)
	if i == len(p.below) {
		p.below = append(p.below, &page[T]{own: o})
	}
	p.below[i] = p.below[i].push(o, at, level-1, item)
	return p
}
