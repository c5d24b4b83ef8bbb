// Package dispatch is the one path from asking to doing: every verb, whoever asks
// for it and through whichever surface, is resolved, ruled on, recorded and run
// here.
//
// Invariants:
//   - the gate is asked before a pack is invoked, and what it cannot decide is
//     refused;
//   - the intent of a verb that touches the workspace or anything beyond is
//     committed before it runs, its outcome and audit row in one batch after it;
//   - every failure says truthfully whether it committed, and what is not known is
//     called unknown.
//
// The package knows no surface, no store and no pack: what it records goes through
// a Ledger, what it runs comes from a registry.
package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/verbs"
)

// Caller is who asks and from where. It comes from the surface's configuration and
// never from arguments (VD-103).
type Caller struct {
	Identity  verbs.Identity
	By        event.Actor
	Session   string // on whose behalf; empty for none
	Workspace string // of that session
	Agent     bool   // the wire boundary holds: internal verbs are refused (VD-059)
	Asked     *event.Asked
	Approved  *Approved // set when the operator lets a held act pass
}

// Approved is a held act that is tried again.
type Approved struct {
	Held string
	By   event.Actor
}

// Receipt is what is kept of a request of a cell, so that asking again does nothing
// again (CP-042).
type Receipt struct {
	Verb        string  `json:"verb"`
	ArgsSHA256  string  `json:"args_sha256"`
	Act         string  `json:"act"`
	OK          bool    `json:"ok"`
	Disposition string  `json:"disposition"`
	Result      *string `json:"result"` // JSON text
	Code        string  `json:"code"`   // of the fault
	Kind        string  `json:"kind,omitempty"`
	Shown       string  `json:"shown,omitempty"` // the code as the verb plane spells it
	Message     string  `json:"message"`
	Next        string  `json:"next"`
	Retry       bool    `json:"retry,omitempty"`
	Held        string  `json:"held,omitempty"` // what waits for the operator
}

// Conclusion is everything that is committed when an operation has been done.
type Conclusion struct {
	Finished *event.ActFinishedV1 // of an act whose intent is in the journal, else nil
	Verb     string
	Changes  verbs.Changes
	Receipt  *Receipt // kept under the scene's Asked
	Row      event.AuditDispatchV1
}

// Ledger keeps what is done.
type Ledger interface {
	// Recall finds the receipt of a host request.
	Recall(ctx context.Context, session string, asked event.Asked) (Receipt, bool, error)
	// Intend commits an intent; on error nothing followed and nothing may follow.
	Intend(ctx context.Context, scene verbs.Scene, e event.ActIntendedV1) error
	// Conclude commits c in one batch. With c.Finished, an error means that it is not
	// committed yet and will be tried until it is; without, that nothing was changed,
	// or fault.Unknown.
	Conclude(ctx context.Context, scene verbs.Scene, c Conclusion) error
	// Owe takes an audit row that stands alone and writes it as soon as it can. The
	// channel gets one value when that has been done or has failed for good.
	Owe(row event.AuditDispatchV1) <-chan error
}

// Hook sees what succeeded; its errors are logged and never returned (VD-105).
type Hook func(ctx context.Context, row event.AuditDispatchV1) error

// Secrets finds a secret in a text: which kind, and an excerpt that does not give it
// away (VD-170).
type Secrets func(text string) (detector, excerpt string, found bool)

// Reads says how the audit row of a read is waited for (VD-209).
type Reads string

// Ways.
const (
	ReadsSync  Reads = "sync"
	ReadsAsync Reads = "async"
)

// Options are what a Dispatcher is made of.
type Options struct {
	Registry *verbs.Registry
	Ledger   Ledger
	// Work is the state of the work scope of a session; nil means that there is no
	// discipline.
	Work     func(session string) gate.Work
	Attended func() bool
	Secrets  Secrets
	Mask     func(text string) string // takes secrets out of what is logged and kept; nil leaves them
	Hook     Hook
	Reads    Reads
	ReadOnly bool // the store takes no audit rows (VD-120)
	Log      *slog.Logger
	Now      func() time.Time
}

// Dispatcher dispatches. It is safe for use by many goroutines.
type Dispatcher struct {
	o        Options
	handlers map[string]verbs.Handler // by pack
	verbs    map[string]gate.Verb
	policy   atomic.Pointer[policy]

	mu      sync.Mutex // guards what follows
	limiter gate.Limiter
	flights map[string]*flight
}

// policy is the set in force, or why there is none.
type policy struct {
	set *gate.Policy
	err error
}

// flight is a host request that is being answered.
type flight struct {
	done chan struct{}
	args string // digest
	out  outcome
}

// New opens the packs of the registry. Until SetPolicy every operation is refused.
func New(o Options) (*Dispatcher, error) {
	handlers, err := o.Registry.Open()
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Work == nil {
		o.Work = func(string) gate.Work { return gate.Work{Discipline: "off"} }
	}
	if o.Mask == nil {
		o.Mask = func(text string) string { return text }
	}
	if o.Attended == nil {
		o.Attended = func() bool { return false }
	}
	d := &Dispatcher{o: o, handlers: handlers, verbs: map[string]gate.Verb{}, flights: map[string]*flight{}}
	for _, p := range o.Registry.Packs() {
		for _, s := range p.Verbs {
			if v, ok := o.Registry.Lookup(s.Name); ok {
				d.verbs[v.Name] = gate.NewVerb(v.Name, v.Pack, string(v.Category), gate.Effect(v.Effect))
			}
		}
	}
	d.verbs[gate.Unknown] = gate.NewVerb(gate.Unknown, gate.Unknown, string(verbs.Assertive), gate.Read)
	d.SetPolicy(nil, nil)
	return d, nil
}

// SetPolicy puts a policy set in force, or with err the reason why there is none,
// which refuses everything.
func (d *Dispatcher) SetPolicy(set *gate.Policy, err error) {
	d.policy.Store(&policy{set, err})
}

// Policy is the set in force.
func (d *Dispatcher) Policy() (*gate.Policy, error) {
	p := d.policy.Load()
	return p.set, p.err
}

// Registry is what can be asked for.
func (d *Dispatcher) Registry() *verbs.Registry { return d.o.Registry }
