package session

import (
	"slices"
)

// Bounds of what a state remembers by name. Beyond them names are counted: a cell
// that binds a million names must not make every later event carry them.
const (
	MaxNames     = 4_096
	maxNameBytes = 256
)

// Names are the names of a namespace: the known ones, sorted, and how many more.
type Names struct {
	Known []string `json:"known"`
	More  int      `json:"more"`
}

// Len is how many names there are, listed or not.
func (n Names) Len() int { return len(n.Known) + n.More }

// with returns the names after some were bound and others removed. It leaves n as
// it is. A removal of a name that is not listed lowers More, as it must have been
// counted there.
func (n Names) with(added, removed []string) Names {
	if len(added) == 0 && len(removed) == 0 {
		return n
	}
	known := slices.Clone(n.Known)
	out := Names{More: n.More}
	for _, name := range removed {
		if i, ok := slices.BinarySearch(known, name); ok {
			known = slices.Delete(known, i, i+1)
		} else if out.More > 0 {
			out.More--
		}
	}
	for _, name := range added {
		i, ok := slices.BinarySearch(known, name)
		switch {
		case ok:
		case len(name) > maxNameBytes || len(known) >= MaxNames:
			out.More++
		default:
			known = slices.Insert(known, i, name)
		}
	}
	out.Known = known
	return out
}

// union returns the names that are in n or in m.
func (n Names) union(m Names) Names {
	out := n.with(m.Known, nil)
	out.More += m.More
	return out
}
