package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/request"
)

// Scene is where an operation takes place and on whose behalf.
type Scene struct {
	Session   string       // whose workspace, workbench and stream; empty for none
	Workspace string       // absolute root of the session's workspace
	By        event.Actor  // who asks, as events name it
	Agent     bool         // an agent asks, not the operator (VD-059)
	Asked     *event.Asked // the host request of a cell, else nil (CP-132)
	Act       string       // of a verb whose intent is in the journal, else empty
	Approved  string       // the held act that the operator let pass, else empty
}

// Call is what a handler receives: the verb under its canonical name and checked
// arguments without references, sorted by name.
type Call struct {
	Verb  *Verb
	Args  []request.Item
	Token Token
	Scene Scene
	// Admitted is the audit row of the operation, for a verb that Records, to be
	// committed with its intent; whoever has committed it sets it to nil, else the row
	// of a failure is owed beside it. Other handlers leave it alone.
	Admitted *event.AuditDispatchV1
}

// Arg returns the named argument; absent ones are not ok.
func (c *Call) Arg(name string) (request.Value, bool) {
	for i := range c.Args {
		if c.Args[i].Name == name {
			return c.Args[i].Value, true
		}
	}
	return request.Value{}, false
}

// Text is a string argument, empty when it is absent.
func (c *Call) Text(name string) string {
	v, _ := c.Arg(name)
	s, _ := v.Text()
	return s
}

// Int is an integer argument, otherwise when it is absent. Check has seen to it
// that it is whole; one beyond an int64 is held to the nearest.
func (c *Call) Int(name string, otherwise int64) int64 {
	v, ok := c.Arg(name)
	if !ok {
		return otherwise
	}
	digits, _ := v.Digits()
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil && n == 0 {
		return otherwise
	}
	return n
}

// True reports whether a boolean argument is given and true.
func (c *Call) True(name string) bool {
	v, _ := c.Arg(name)
	return v.IsTrue()
}

// Answer makes a reply of a Go value by its JSON form.
func Answer(v any) (Reply, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return Reply{}, fault.Wrap(err, fault.Internal, "write result", "")
	}
	value, err := request.ParseResult(b)
	if err != nil {
		return Reply{}, fault.Wrap(err, fault.Internal, "write result", "")
	}
	return Reply{Value: value}, nil
}

// Reply is what a handler answers.
type Reply struct {
	Value    request.Value  // canonical: full identifiers, full times, every member (VD-080)
	Changes  Changes        // what is to be committed with the outcome
	Siblings []request.Item // beside result in the entry (VD-071)
}

// Changes are committed in one batch with the outcome and its audit row (CP-151).
type Changes struct {
	In       string             // the session whose stream Session is for; empty for the scene's
	Files    []event.FileChange // what an act did to the workspace
	Session  []event.Payload    // appended to the session's stream
	Operator []event.Payload    // appended to the stream "operator"
	Put      []journal.Record
	Deliver  []journal.Input
}

// Empty reports whether nothing is to be committed.
func (c *Changes) Empty() bool {
	return len(c.Files)+len(c.Session)+len(c.Operator)+len(c.Put)+len(c.Deliver) == 0
}

// Handler is the running part of a pack. Handle is called for the verbs of its pack
// only, from many goroutines. When ctx ends it stops what it started, and answers
// what has become of it. An error is a fault; whether the act took effect is read
// from its code (DispositionOf), or from a Settled around it.
type Handler interface {
	Handle(ctx context.Context, call *Call) (Reply, error)
}

// Facts are what a policy may see of the arguments, normalised: paths are relative
// to the workspace root with slashes, absolute or starting "../" when outside it,
// links resolved. The members are those of gate.Args.
type Facts struct {
	Path   string
	Paths  []string
	Argv   []string
	Target string
	Scope  string
	Bytes  int64
	DryRun bool
}

// Judge is a Handler that normalises facts itself; for others they are the
// arguments as they are. It is asked before the gate and must have no effect.
type Judge interface {
	Facts(ctx context.Context, call *Call) (Facts, error)
}

// Settled is an error that proves what became of an act, and carries what it did
// change.
type Settled struct {
	Err         error
	Disposition request.Disposition
	Changes     Changes
}

func (s *Settled) Error() string { return s.Err.Error() }

// Unwrap gives the fault.
func (s *Settled) Unwrap() error { return s.Err }

// DispositionOf is what an error of a handler proves (VD-074, CP-134). A read
// commits nothing. For the rest internal, timeout, unavailable, cancelled and
// unknown prove nothing; every other code is a refusal.
func DispositionOf(err error, effect Effect) request.Disposition {
	var s *Settled
	if errors.As(err, &s) {
		return s.Disposition
	}
	if effect == Read {
		return request.NotCommitted
	}
	switch fault.CodeOf(err) {
	case fault.Internal, fault.Timeout, fault.Unavailable, fault.Cancelled, fault.Unknown:
		return request.Undetermined
	}
	return request.NotCommitted
}
