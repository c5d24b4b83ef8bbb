// Package supervise owns worker processes: it makes the private directory and the
// listener, starts the shim and through it Python, checks the greeting, drains what
// the process prints, climbs the interrupt ladder, and leaves nothing behind.
//
// Invariants: a Process that was started ends, and with it every descendant, on
// every path, also when the core is killed; nothing is resumed after a partial
// frame; Output, Names and Artifact of a cell reach the Sink before its Execute
// returns, in the order sent. It does not know the journal, sessions or restart
// decisions; package worker says what the rungs and limits are.
package supervise

import (
	"context"
	"io"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// Spec says how one worker is started.
type Spec struct {
	Session    string
	Generation string
	Role       worker.Role
	Python     string   // interpreter, a path or a name on PATH
	Source     string   // directory of the unpacked worker, as Unpack returned it
	Shim       []string // argv of the shim: this binary and its hidden command
	Dir        string   // working directory of the worker
	Env        []string // whole environment of the worker
	Runtime    string   // where private directories are made; short, see MaxSocketPath
	Skills     string   // file of skills for the worker to load; empty for none
	Verbs      string   // file that describes the verbs the worker may ask for; empty for none
	Timing     worker.Timing
	Sink       Sink

	// OnRung, when set, is told of every rung of an interrupt's ladder as it is
	// taken, so that a caller hears of a namespace about to be lost before it is
	// (W4). It is called from the ladder's goroutine and must not block.
	OnRung func(execution string, r worker.Rung)
}

// Sink receives what a worker sends besides results. Its methods are called from
// one goroutine per worker and must not block.
type Sink interface {
	Output(o wire.Output)
	Names(n wire.Names)
	Artifact(a wire.Artifact)
	// Request answers a host request by calling reply once, from any goroutine, at
	// any time; replies after the cell has ended are discarded and counted.
	Request(ctx context.Context, r wire.HostRequest, reply func(wire.HostReply))
}

// Completion is the end of an operation that the worker reported.
type Completion struct {
	Cell     *wire.CellResult
	Hook     wire.Raw
	Failed   *string
	Rung     worker.Rung // set when an interrupt was on its way
	Spool    *Spool      // output beyond the record; the receiver closes it
	SpoolErr error       // why a spool that is there cannot be read
	CPUMS    *int64
}

// Spool is the file that holds a cell's output beyond its record; the reader takes
// what was kept (first and last parts) and the caller closes it.
type Spool struct {
	Total    int64
	DropFrom int64
	DropTo   int64
	Body     io.ReadCloser
}

// Exit is how a worker ended, from the host's own observation (CP-024).
type Exit struct {
	Cause    event.Cause
	Stdout   event.Tail
	Stderr   event.Tail
	Spool    *Spool // of the operation that was running, if it had one
	SpoolErr error  // why it cannot be read
	Left     int    // descendants that could not be killed; 0 but for other users' processes
}

// Lost is the error of an Execute whose worker ended before it answered.
type Lost struct{ Exit Exit }

func (l *Lost) Error() string { return "worker lost: " + l.Exit.Cause.Text }
