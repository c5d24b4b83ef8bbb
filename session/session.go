// Package session is a session as data: the fold of its stream "session/<id>".
//
// Invariants: Apply is pure and refuses an event that cannot follow (a refused
// stream is quarantined by the caller, never skipped); the state after any prefix
// of a stream says which cells are open, which generation lives, and which names
// it held. The package knows no store, no clock, no process.
package session
