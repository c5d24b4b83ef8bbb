package work

import (
	"cmp"
	"crypto/sha256"
	"hash"
	"iter"
	"slices"

	"github.com/reeve-run/reeve/canon"
)

// RuntimeData takes the stored value out of a branch entry, or reports that the entry
// carries none (DV-190): only a custom entry of type developer.runtime does, and its data
// may be anything, null included.
func RuntimeData(entry canon.Value) (data canon.Value, runtime bool) {
	kind, _ := entry.Member("type")
	custom, _ := entry.Member("customType")
	kindText, _ := kind.Text()
	customText, _ := custom.Text()
	if kindText != "custom" || customText != "developer.runtime" {
		return canon.Value{}, false
	}
	return entry.Member("data")
}

// Branch is what the stored values of one branch come to: the state, the projection of
// its receipts, and what was rejected. It is immutable, and the one ground on which a
// batch may be formed (DV-205).
type Branch struct {
	self       *Branch
	state      State
	stored     int
	rejections stack[*Rejection]
	first      *Rejection
	revision   hash.Hash // over the accepted events so far; never written once the branch is made
	projection *Projection
}

// NewBranch is the branch without entries.
func NewBranch() *Branch {
	b := &Branch{revision: sha256.New(), projection: NewProjection()}
	b.revision.Write([]byte(`{"domain":"developer/v8/runtime-branch-revision","events":[`))
	b.self = b
	return b
}

// Reconstruct folds the stored values of a branch in their order (DV-150). rules are
// those of each scope; All(Reference) reads a history made elsewhere.
func Reconstruct(entries iter.Seq[*Entry], rules func(ScopeID) Rules) *Branch {
	return NewBranch().Extend(entries, rules)
}

// Extend is b with further stored values. It costs these, however long the branch.
func (b *Branch) Extend(entries iter.Seq[*Entry], rules func(ScopeID) Rules) *Branch {
	c := *b
	c.self = &c
	c.revision = cloned(b.revision)
	receipts := b.projection.extender()
	var room []byte
	c.state = b.state.Replay(entries, b.stored, rules, func(a *Accepted, no *Rejection) {
		c.stored++
		if no != nil {
			if c.first == nil {
				c.first = no
			}
			c.rejections.push(no)
			return
		}
		room = room[:0]
		if receipts.to.receipts.n > 0 {
			room = append(room, ',')
		}
		room = a.Ref().append(room)
		c.revision.Write(room)
		receipts.add(a)
	})
	c.projection = receipts.to.seal()
	return &c
}

func cloned(h hash.Hash) hash.Hash {
	c, err := h.(hash.Cloner).Clone()
	if err != nil {
		panic("work: SHA-256 cannot be cloned: " + err.Error()) // crypto/sha256 promises that it can
	}
	return c
}

// Genuine reports whether b was made here and is no copy (DV-205).
func (b *Branch) Genuine() bool { return b != nil && b.self == b }

// State is what was accepted.
func (b *Branch) State() *State { return &b.state }

// Stored counts the stored values, rejected ones too.
func (b *Branch) Stored() int { return b.stored }

// Rejections are the values that were not accepted, in order.
func (b *Branch) Rejections() []*Rejection { return b.rejections.slice() }

// Projection is that of the accepted events, also of a blocked branch (DV-194).
func (b *Branch) Projection() *Projection { return b.projection }

// Revision is the digest of the accepted events (DV-055).
func (b *Branch) Revision() Digest {
	h := cloned(b.revision)
	h.Write([]byte(`]}`))
	return spell([sha256.Size]byte(h.Sum(nil)))
}

// Blocked says why nothing may be added to the branch, nothing when something may
// (DV-191).
func (b *Branch) Blocked() string {
	switch {
	case b.first != nil:
		return refuse("", "stored value %d was rejected: %s", b.first.StoredIndex, b.first.Message).Message
	case b.state.OpenScopes() > 1:
		return "more than one scope is open"
	}
	return ""
}

// Mode is how a branch stands as a whole (DV-192).
type Mode string

// The modes.
const (
	ModeEmpty   Mode = "empty"
	ModeActive  Mode = "v8-active"
	ModeClosed  Mode = "v8-closed"
	ModeBlocked Mode = "blocked"
)

// Mode is how the branch stands.
func (b *Branch) Mode() Mode {
	switch {
	case b.Blocked() != "":
		return ModeBlocked
	case b.state.OpenScopes() == 1:
		return ModeActive
	case b.stored > 0:
		return ModeClosed
	}
	return ModeEmpty
}

// Active is the scope that work goes on in, nil when the branch is blocked or has none
// (DV-193).
func (b *Branch) Active() *Scope {
	if b.Blocked() != "" {
		return nil
	}
	return b.state.Only()
}

// Interruption is an invocation that an earlier process left active, and the settlement
// that is due for it (DV-364).
type Interruption struct {
	Scope      ScopeID
	Sequence   int64    // that the settlement would have
	Previous   Digest   // the head it would follow
	Cause      EventRef // the start of the invocation
	Invocation InvocationID
	Assignment AssignmentID
}

// Interruptions are those of all scopes by rising id. It costs the number of scopes, and
// is asked once at a start.
func (b *Branch) Interruptions() []Interruption {
	var all []Interruption
	for id, sc := range b.state.scopes.all() {
		if sc.active != nil {
			all = append(all, Interruption{
				Scope: id, Sequence: sc.head.Sequence + 1, Previous: sc.head.Digest, Cause: sc.activeBy,
				Invocation: sc.active.Invocation, Assignment: sc.active.Assignment,
			})
		}
	}
	slices.SortFunc(all, func(a, b Interruption) int { return cmp.Compare(a.Scope, b.Scope) })
	return all
}

// interrupted is the reason that the settlement of an interruption gives.
const interrupted = "Active runtime lease was unavailable after reload."

// Settlement is the canonical text of the settlement that ends the interruption.
func (i Interruption) Settlement() []byte {
	b := append([]byte(`{"assignmentId":"`), i.Assignment...)
	b = append(append(b, `","invocationId":"`...), i.Invocation...)
	b = append(b, `","kind":"lifecycle","lifecycle":{"executionUncertain":true,"kind":"cancelled","reason":"`...)
	return append(append(b, interrupted...), `"}}`...)
}
