package journal

import (
	"bytes"
	"slices"

	"github.com/reeve-run/reeve/fault"
)

// Same reports whether stored is what e would have become: everything but the
// time, which a caller that tries again takes anew.
func Same(stored *Stored, e *Event) bool {
	return stored.Kind == e.Kind && stored.Version == e.Version &&
		slices.Equal(stored.Causes, e.Causes) && bytes.Equal(stored.Payload, e.Payload)
}

// Conflicted is the refusal of the batch id because what does not hold.
func Conflicted(id string, what CondKind, key string, want, now int64) error {
	e := fault.Wrap(&ConflictError{What: what, Key: key, Want: want, Now: now}, fault.Conflict, "commit batch", id)
	return e.WithNext("read the current state and decide again")
}

// Reused is the refusal of a batch whose id stands for other events.
func Reused(id, stream string, seq int64) error {
	return fault.New(fault.InvalidRequest, "commit batch", id, "the id already stands for other events at %q %d", stream, seq).
		WithNext("use a new id for a new intent")
}

// ReusedElsewhere is Reused for a batch whose appends at any head are not where its
// definite ones say.
func ReusedElsewhere(b *Batch) error {
	for i := range b.Append {
		if a := &b.Append[i]; a.Head != AnyHead {
			return Reused(b.ID, a.Stream, a.Head+1)
		}
	}
	return Reused(b.ID, "", 0)
}

// Superseded is the refusal of a writer that no longer owns the session.
func Superseded(op, subject string, format string, args ...any) error {
	return fault.New(fault.StaleEpoch, op, subject, format, args...)
}
