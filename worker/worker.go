// Package worker is the life of a Python worker as data: its states, the ladder
// an interrupt or a stop climbs, and whether a dead worker is started again.
//
// Everything here is a pure function of values; internal/supervise obeys it and
// owns the process. The package knows no sockets, no clocks, no signals by number.
package worker

import "time"

// Role is what a worker serves (CP-136).
type Role string

// Roles.
const (
	Workbench Role = "workbench"
	Hooks     Role = "hooks"
)

// Phase is where a worker's life stands.
type Phase int

// Phases. The zero Phase is invalid.
const (
	Starting Phase = iota + 1
	Ready
	Busy
	Interrupting
	Stopping
	Dead
)

// Rung is one step of a ladder. Rungs are climbed in order; each has its time
// before the next one is taken.
type Rung string

// Rungs, gentlest first.
const (
	RungCancel    Rung = "cancel"  // interrupt frame: cooperative
	RungSignal    Rung = "sigint"  // SIGINT to the worker
	RungClose     Rung = "close"   // close the socket
	RungTerminate Rung = "sigterm" // SIGTERM to the group
	RungKill      Rung = "sigkill" // SIGKILL to the group and all descendants
)

// Step is a rung and how long reeve waits after it.
type Step struct {
	Rung Rung
	Wait time.Duration
}

// Timing is every duration of a worker's life that reeve guards (CP-010, CP-026,
// CP-028, CP-135).
type Timing struct {
	Start    time.Duration // spawn to valid hello
	Body     time.Duration // rest of a frame whose header was read
	Shutdown time.Duration // shutdown frame to exit
	Ladder   []Step        // an interrupt, climbed until the operation ends
}

// DefaultTiming is what the configuration starts from. An interrupt ends within
// the sum of the ladder's waits: 5.5 s.
func DefaultTiming() Timing {
	return Timing{
		Start:    10 * time.Second,
		Body:     5 * time.Second,
		Shutdown: 2 * time.Second,
		Ladder: []Step{
			{RungCancel, 1 * time.Second},
			{RungSignal, 2 * time.Second},
			{RungClose, 500 * time.Millisecond},
			{RungTerminate, 1 * time.Second},
			{RungKill, 1 * time.Second},
		},
	}
}

// Bound is the longest an interrupt takes.
func (t Timing) Bound() time.Duration {
	var sum time.Duration
	for _, s := range t.Ladder {
		sum += s.Wait
	}
	return sum
}
