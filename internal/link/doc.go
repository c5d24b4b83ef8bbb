// Package link is one connection between a front end and a core: frames of JSON on a
// Unix socket, many operations at a time, each cancellable, with exact outcomes.
//
// Invariants: a handshake comes first and once, and nobody but a process of the same
// user is talked to; a request frame is written at most once, and whoever asked
// learns whether it was handed over: not handed over is unavailable and may be
// tried again, handed over and unanswered is unknown and is never repeated for it;
// an error with an operation's id ends that operation, an error without ends the
// connection. A cancelled request is still answered with what came of it.
//
// The package does not know what a body means, who asks, or how a core is started:
// identity and content travel in bodies, and starting is a function it is given.
package link

// Versions of the protocol that this build speaks. A version rises when an older
// peer could misread or ignore something that matters.
const (
	oldest = 1
	newest = 1
)
