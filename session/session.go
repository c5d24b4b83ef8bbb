// Package session is a session as data: the fold of its stream "session/<id>".
//
// Invariants: Apply is pure and refuses an event that cannot follow (a refused
// stream is quarantined by the caller, never skipped); the state after any prefix
// of a stream says which cell is open, which generation lives, and which names
// it held; a State shares nothing that changes with the one it came from, so a
// snapshot may be kept. The package knows no store, no clock, no process.
package session

import (
	"github.com/reeve-run/reeve/event"
)

// Phase is where a session stands after an event. The zero Phase is a stream
// without events.
type Phase string

// Phases.
const (
	Unopened Phase = ""
	Stopped  Phase = "stopped" // open, no worker lives
	Ready    Phase = "ready"   // a generation lives and waits
	Running  Phase = "running" // it runs a cell
	Closed   Phase = "closed"  // for ever
)

// Phases returns every phase in the order of a life.
func Phases() []Phase { return []Phase{Unopened, Stopped, Ready, Running, Closed} }

// Cell is the cell that is open: started and not yet completed.
type Cell struct {
	Cell        string      `json:"cell"`
	Execution   string      `json:"execution"`
	Seq         int64       `json:"seq"` // of its cell.started
	StartedAtMS int64       `json:"started_at_ms"`
	By          event.Actor `json:"by"`
}

// Ended says how a generation came to its end.
type Ended string

// Ways to end.
const (
	EndedLost    Ended = "lost"    // against anyone's wish
	EndedStopped Ended = "stopped" // on request
)

// Loss is a namespace that is gone and of whose loss no reply has told yet.
// When a second generation is lost before a reply, Names has the names of both.
type Loss struct {
	How        Ended       `json:"how"`
	Generation string      `json:"generation"` // the last one lost
	Cause      event.Cause `json:"cause"`
	By         event.Actor `json:"by"` // for EndedStopped
	AtMS       int64       `json:"at_ms"`
	Names      Names       `json:"names"`
	// Partial: a cell was running, and what it had bound is in nobody's record.
	Partial bool `json:"partial"`
}

// Death is an unwanted end of a generation, for the restart policy.
type Death struct {
	Generation  string      `json:"generation"`
	Cause       event.Cause `json:"cause"`
	StartedAtMS int64       `json:"started_at_ms"`
	AtMS        int64       `json:"at_ms"`
}

// Act is an act that was intended and whose outcome is not in the stream: it runs,
// or it is unknown and waits to be settled.
type Act struct {
	Act     string `json:"act"`
	Verb    string `json:"verb"`
	Seq     int64  `json:"seq"` // of its act.intended
	AtMS    int64  `json:"at_ms"`
	Unknown bool   `json:"unknown"`
}

// maxDeaths bounds Deaths: more than any restart policy looks back.
const maxDeaths = 16

// State is the fold of a stream up to Seq. Its JSON form is a snapshot.
type State struct {
	Session    string       `json:"session"`
	Workspace  string       `json:"workspace"`
	OpenedBy   event.Actor  `json:"opened_by"`
	OpenedAtMS int64        `json:"opened_at_ms"`
	Phase      Phase        `json:"phase"`
	SinceMS    int64        `json:"since_ms"` // of the event that led to Phase
	LastAtMS   int64        `json:"last_at_ms"`
	Seq        int64        `json:"seq"`        // of the last event; the head
	Generation string       `json:"generation"` // the one that lives, else empty
	Number     int64        `json:"number"`     // of the last generation
	ReadyAtMS  int64        `json:"ready_at_ms"`
	Python     event.Python `json:"python"`
	Executions int64        `json:"executions"` // number of the last execution
	Cells      int64        `json:"cells"`      // started
	Names      Names        `json:"names"`      // bound in the generation that lives
	Open       *Cell        `json:"open"`
	Unanswered string       `json:"unanswered"` // generation whose last cell ended without an answer of its worker
	Loss       *Loss        `json:"loss"`
	Deaths     []Death      `json:"deaths"` // since the last requested reset, oldest first
	Acts       []Act        `json:"acts"`   // without an outcome, oldest first
	CloseBy    event.Actor  `json:"close_by"`
	CloseWhy   string       `json:"close_why"`
}

// Live reports whether a generation lives.
func (s State) Live() bool { return s.Phase == Ready || s.Phase == Running }
