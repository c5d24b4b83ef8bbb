package work

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// owner is the right to change in place what it made. A fold has one; when the fold
// ends the owner is forgotten, and everything it made is immutable from then on.
type owner struct{ _ byte }

// table is a persistent map: a hash trie whose versions share what they have in common.
// A version costs the path to what changed, whatever the size. The zero value is empty.
type table[K ~string, V any] struct {
	root *node[K, V]
	n    int
}

// node has a slot for each bit set of bits, in their order. At the deepest level bits is
// unused: keys whose hashes are equal lie side by side.
type node[K ~string, V any] struct {
	own   *owner
	bits  uint32
	slots []slot[K, V]
}

// slot holds a key, or the node of the keys that share its bits so far.
type slot[K ~string, V any] struct {
	key   K
	value V
	below *node[K, V]
}

const (
	fan     = 5  // bits of the hash that a level takes
	deepest = 12 // the level at which the hash is used up
)

// seed makes the shape of a trie unpredictable to whoever chooses the keys. Nothing that
// is observed depends on it.
var seed = maphash.MakeSeed()

func hashOf[K ~string](key K) uint64 { return maphash.String(seed, string(key)) }

func (t *table[K, V]) len() int { return t.n }

func (t *table[K, V]) get(key K) (value V, found bool) {
	n := t.root
	if n == nil {
		return value, false
	}
	for h, level := hashOf(key), 0; level < deepest; h, level = h>>fan, level+1 {
		bit := uint32(1) << (h & (1<<fan - 1))
		if n.bits&bit == 0 {
			return value, false
		}
		s := &n.slots[bits.OnesCount32(n.bits&(bit-1))]
		if s.below == nil {
			if s.key == key {
				return s.value, true
			}
			return value, false
		}
		n = s.below
	}
	for i := range n.slots {
		if n.slots[i].key == key {
			return n.slots[i].value, true
		}
	}
	return value, false
}

func (t *table[K, V]) has(key K) bool {
	_, found := t.get(key)
	return found
}

// set makes key mean value in this version. What o made is changed in place.
func (t *table[K, V]) set(o *owner, key K, value V) {
	if t.root == nil {
		t.root = &node[K, V]{own: o}
	}
	var added bool
	t.root, added = t.root.set(o, hashOf(key), 0, key, value)
	if added {
		t.n++
	}
}

// mine is n itself when o made it, else a copy that o may change.
func (n *node[K, V]) mine(o *owner) *node[K, V] {
	if n.own == o {
		return n
	}
	return &node[K, V]{own: o, bits: n.bits, slots: append(make([]slot[K, V], 0, len(n.slots)+1), n.slots...)}
}

func (n *node[K, V]) set(o *owner, h uint64, level int, key K, value V) (_ *node[K, V], added bool) {
	n = n.mine(o)
	if level == deepest {
		for i := range n.slots {
			if n.slots[i].key == key {
				n.slots[i].value = value
				return n, false
			}
		}
		n.slots = append(n.slots, slot[K, V]{key: key, value: value})
		return n, true
	}
	bit := uint32(1) << (h & (1<<fan - 1))
	i := bits.OnesCount32(n.bits & (bit - 1))
	if n.bits&bit == 0 {
		n.bits |= bit
		n.slots = append(n.slots, slot[K, V]{})
		copy(n.slots[i+1:], n.slots[i:])
		n.slots[i] = slot[K, V]{key: key, value: value}
		return n, true
	}
	s := &n.slots[i]
	switch {
	case s.below != nil:
		s.below, added = s.below.set(o, h>>fan, level+1, key, value)
		return n, added
	case s.key == key:
		s.value = value
		return n, false
	}
	below := &node[K, V]{own: o, slots: make([]slot[K, V], 0, 2)}
	below, _ = below.set(o, hashOf(s.key)>>(fan*(level+1)), level+1, s.key, s.value)
	below, _ = below.set(o, h>>fan, level+1, key, value)
	*s = slot[K, V]{below: below}
	return n, true
}

// remove takes key out of this version.
func (t *table[K, V]) remove(o *owner, key K) {
	if t.has(key) {
		t.root = t.root.remove(o, hashOf(key), 0, key)
		t.n--
	}
}

func (n *node[K, V]) remove(o *owner, h uint64, level int, key K) *node[K, V] {
	n = n.mine(o)
	i, bit := 0, uint32(0)
	if level == deepest {
		for n.slots[i].key != key {
			i++
		}
	} else {
		bit = uint32(1) << (h & (1<<fan - 1))
		i = bits.OnesCount32(n.bits & (bit - 1))
		if s := &n.slots[i]; s.below != nil {
			if s.below = s.below.remove(o, h>>fan, level+1, key); len(s.below.slots) > 0 {
				return n
			}
		}
	}
	last := len(n.slots) - 1
	copy(n.slots[i:], n.slots[i+1:])
	n.slots[last] = slot[K, V]{}
	n.slots = n.slots[:last]
	n.bits &^= bit
	return n
}

// all yields every key in no order that means anything.
func (t *table[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if t.root != nil {
			t.root.each(yield)
		}
	}
}

func (n *node[K, V]) each(yield func(K, V) bool) bool {
	for i := range n.slots {
		if s := &n.slots[i]; s.below != nil {
			if !s.below.each(yield) {
				return false
			}
		} else if !yield(s.key, s.value) {
			return false
		}
	}
	return true
}

// stack is a persistent list that grows at one end. The zero value is empty.
type stack[T any] struct {
	top *layer[T]
	n   int
}

type layer[T any] struct {
	item  T
	below *layer[T]
}

func (s *stack[T]) push(item T) {
	s.top = &layer[T]{item: item, below: s.top}
	s.n++
}

// slice is the items from the first to the last.
func (s *stack[T]) slice() []T {
	items := make([]T, s.n)
	for i, l := s.n-1, s.top; l != nil; i, l = i-1, l.below {
		items[i] = l.item
	}
	return items
}
