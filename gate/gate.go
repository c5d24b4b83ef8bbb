// Package gate rules on whether an act may be done. A ruling is a pure function of
// a compiled policy set and a request: allow with obligations, deny with the rule
// and the fact that decided, or error.
//
// Invariants:
//   - whatever no rule permits is denied; a forbid beats every permit;
//   - a rule that could not be evaluated is an error ruling, never an allow. Cedar
//     itself skips such a rule, which would let an act past a broken forbid;
//   - the context of a request always has every attribute of the fixed schema, and
//     a rule that reads another is refused when the policy is loaded;
//   - Decide, Explain and Test are one code path.
//
// The package reads no file, keeps no clock and knows no verb: what a verb is
// (pack, category, effect) comes with the request. docs/format/policy.md is the
// page for people who write policies.
package gate

import (
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// ActorKind is the kind of a principal.
type ActorKind string

// Kinds of actors, and the Cedar entity types they become.
const (
	Operator  ActorKind = "operator"
	Session   ActorKind = "session"
	Client    ActorKind = "client"
	Hook      ActorKind = "hook"
	Anonymous ActorKind = "anonymous"
)

var entityTypes = map[ActorKind]string{
	Operator:  "Operator",
	Session:   "Session",
	Client:    "Client",
	Hook:      "Hook",
	Anonymous: "Anonymous",
}

// Actor is who asks (VD-098, VD-119a).
type Actor struct {
	Kind ActorKind `json:"kind"`
	ID   string    `json:"id"`
}

// Effect is what a verb can touch at most (VD-200).
type Effect string

// Effects.
const (
	Read      Effect = "read"
	Record    Effect = "record"
	Workspace Effect = "workspace"
	External  Effect = "external"
)

// Verb is the static description of the act that a policy may depend on.
type Verb struct {
	Name     string
	Pack     string
	Category string // assertive | directive | commissive | declaration
	Effect   Effect

	static *static // prepared by NewVerb; nil means built per request
}

// NewVerb prepares what Cedar needs to know of a verb, so that it is not built again
// for every act. Registries make their verbs with it.
func NewVerb(name, pack, category string, effect Effect) Verb {
	v := Verb{Name: name, Pack: pack, Category: category, Effect: effect}
	v.static = v.prepare()
	return v
}

// Unknown is the pseudo-action for a name no pack owns (VD-204).
const Unknown = "unknown"

// Args are the arguments a verb marks as policy-relevant, normalised by the verb's
// pack before the gate is asked: paths are resolved and relative to the workspace
// root ("../" and absolute when outside it). Absent ones keep their zero value.
type Args struct {
	Path   string   // the one path of the act
	Paths  []string // all paths of the act
	Argv   []string // of workspace.run
	Target string   // peer, remote, destination
	Scope  string   // orientation scope, skill id and the like
	Bytes  int64    // size of the content
	DryRun bool
}

// Work is the state of the caller's work scope (developer/v8) as replay gives it.
type Work struct {
	Discipline string // off | advisory | enforced
	Scope      bool   // a scope is open
	Authorized bool   // it holds an active authorization
}

// Context says where the act comes from.
type Context struct {
	SessionID string // the session on whose behalf, may be empty
	Surface   string // cli | mcp | worker | control | core
	Isolation string // off | confined
	Attended  bool   // an operator is attached
}

// Request is one question. Namespace is the resource.
type Request struct {
	Actor     Actor
	Namespace string
	Verb      Verb
	Args      Args
	Work      Work
	Context   Context
}

// Validate refuses a request with an empty kind, id, verb or namespace, or one whose
// kind or effect is not in the closed sets (VD-098).
func (r Request) Validate() error {
	switch {
	case entityTypes[r.Actor.Kind] == "":
		return invalid("actor kind", string(r.Actor.Kind), "is not one of operator, session, client, hook, anonymous")
	case strings.TrimSpace(r.Actor.ID) == "":
		return invalid("actor id", r.Actor.ID, "is empty")
	case r.Verb.Name == "":
		return invalid("verb", "", "is empty")
	case r.Namespace == "":
		return invalid("namespace", "", "is empty")
	}
	switch r.Verb.Effect {
	case Read, Record, Workspace, External:
		return nil
	}
	return invalid("effect", string(r.Verb.Effect), "is not one of read, record, workspace, external")
}

func invalid(what, value, why string) error {
	return fault.New(fault.InvalidRequest, "build gate request", value, "%s %s", what, why)
}

// Ruling is the outcome of a question.
type Ruling string

// Rulings.
const (
	Allow Ruling = "allow"
	Deny  Ruling = "deny"
	Error Ruling = "error"
)

// Decision answers a Request.
type Decision struct {
	Ruling      Ruling
	Rules       []string     // ids that decided, sorted; empty when nothing permits
	Forbidden   bool         // deny: a rule forbids it; otherwise no rule permits it
	Reason      string       // deny and error: one sentence, never empty
	Facts       []Fact       // deny: what the deciding (or nearest) rules looked at
	Remedy      string       // deny: what would allow it; may be empty
	Obligations []Obligation // allow
	Broken      []Broken     // error: the rules that could not be evaluated
	Digest      string       // of the policy set, 64 hex
}

// Fact is an attribute that a deciding rule reads, with the value it had.
type Fact struct {
	Name  string `json:"name"`  // "context.work.authorized", "principal", "action", "resource"
	Value string `json:"value"` // as Cedar text
}

// Broken is a rule whose evaluation failed.
type Broken struct {
	Rule    string
	Message string // for the operator's log, not for the caller
}

// ObligationKind is what must be done with an allowed act.
type ObligationKind string

// Kinds of obligations (VD-099, VD-203).
const (
	ObligeAudit     ObligationKind = "audit"
	ObligeHold      ObligationKind = "hold"
	ObligeRateLimit ObligationKind = "rate_limit"
)

// Obligation comes from an annotation of a rule that permitted the act.
type Obligation struct {
	Kind       ObligationKind `json:"kind"`
	Rule       string         `json:"rule"`
	Tag        string         `json:"tag,omitempty"`         // audit
	Reason     string         `json:"reason,omitempty"`      // hold
	Max        int64          `json:"max,omitempty"`         // rate_limit
	WindowSecs int64          `json:"window_secs,omitempty"` // rate_limit
}

// Hold returns the first hold obligation.
func (d Decision) Hold() (Obligation, bool) {
	for _, o := range d.Obligations {
		if o.Kind == ObligeHold {
			return o, true
		}
	}
	return Obligation{}, false
}

// Err is nil for an allow, else the refusal as a fault: denied or gate_unavailable.
func (d Decision) Err(verb string) error {
	switch d.Ruling {
	case Allow:
		return nil
	case Deny:
		e := fault.New(fault.Denied, "run verb", verb, "%s", d.Reason)
		if d.Remedy != "" {
			e.Next = d.Remedy
		}
		return e
	}
	return fault.New(fault.GateUnavailable, "run verb", verb, "%s", d.Reason).
		WithNext("ask the operator to run: reeve policy test")
}
