package worker

import "github.com/reeve-run/reeve/fault"

// String names the phase as status and logs show it.
func (p Phase) String() string {
	switch p {
	case Starting:
		return "starting"
	case Ready:
		return "ready"
	case Busy:
		return "busy"
	case Interrupting:
		return "interrupting"
	case Stopping:
		return "stopping"
	case Dead:
		return "dead"
	default:
		return "invalid"
	}
}

// Change is something that happens to a worker.
type Change int

// Changes. The zero Change is invalid.
const (
	Greeted     Change = iota + 1 // a valid hello arrived
	Began                         // an operation is to be sent
	Ended                         // the running operation completed
	Cut                           // an interrupt of the running operation is asked for
	Quit                          // the worker is to leave
	Broken                        // the connection is invalid; what follows is the kill
	Disappeared                   // the worker and its descendants are gone
)

// String names the change as refusals do.
func (c Change) String() string {
	switch c {
	case Greeted:
		return "hello"
	case Began:
		return "operation"
	case Ended:
		return "completion"
	case Cut:
		return "interrupt"
	case Quit:
		return "stop"
	case Broken:
		return "broken connection"
	case Disappeared:
		return "exit"
	default:
		return "invalid"
	}
}

// row is what each change does in one phase; a change that is absent is refused
// with the row's code for it, or conflict.
type row struct {
	next    map[Change]Phase
	refusal map[Change]fault.Code
}

var transitions = map[Phase]row{
	Starting: {
		next: map[Change]Phase{
			Greeted: Ready, Quit: Stopping, Broken: Stopping, Disappeared: Dead,
		},
		refusal: map[Change]fault.Code{Began: fault.Unavailable, Cut: fault.NotFound},
	},
	Ready: {
		next: map[Change]Phase{
			Began: Busy, Quit: Stopping, Broken: Stopping, Disappeared: Dead,
		},
		refusal: map[Change]fault.Code{Cut: fault.NotFound},
	},
	Busy: {
		next: map[Change]Phase{
			Ended: Ready, Cut: Interrupting, Quit: Stopping, Broken: Stopping, Disappeared: Dead,
		},
	},
	Interrupting: {
		next: map[Change]Phase{
			Ended: Ready, Cut: Interrupting, Quit: Stopping, Broken: Stopping, Disappeared: Dead,
		},
	},
	Stopping: {
		next: map[Change]Phase{
			Ended: Stopping, Quit: Stopping, Broken: Stopping, Disappeared: Dead,
		},
		refusal: map[Change]fault.Code{Began: fault.Unavailable, Cut: fault.NotFound},
	},
	Dead: {
		next:    map[Change]Phase{Quit: Dead, Broken: Dead},
		refusal: map[Change]fault.Code{Began: fault.Unavailable, Cut: fault.NotFound},
	},
}

// Next is the phase after c. A change that phase p has no place for is refused:
// not_found for an interrupt with nothing to interrupt, unavailable for an
// operation that no worker can take, else conflict; the phase stays as it was.
//
// A greeting or a completion that is refused came from the worker and is a
// protocol violation; the caller answers it with Broken.
func Next(p Phase, c Change) (Phase, error) {
	r := transitions[p]
	if next, ok := r.next[c]; ok {
		return next, nil
	}
	code, ok := r.refusal[c]
	if !ok {
		code = fault.Conflict
	}
	return p, fault.New(code, "advance worker", "", "%s while %s", c, p)
}

// Running reports whether an operation is in flight in phase p.
func (p Phase) Running() bool { return p == Busy || p == Interrupting }
