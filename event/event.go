// Package event is what can have happened: one struct per kind, closed, versioned,
// decoded strictly.
//
// Invariants: a released (kind, version) never changes its shape, a new shape is a
// new version with a lifting function; decoding refuses unknown, duplicate and
// case-variant members; only this package can implement Payload. It does not know
// how events are stored, chained or acted upon. docs/events.md is generated from
// the structs here by go run ./internal/gen/events.
package event

// Kind is noun.past_tense.
type Kind string

// Payload is one kind's content.
type Payload interface {
	Kind() Kind
	sealed()
}
