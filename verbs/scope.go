package verbs

import (
	"slices"
	"strings"

	"github.com/reeve-run/reeve/request"
)

// DefaultNamespace is where writes go that name none (VD-116).
const DefaultNamespace = "local"

// maxNamespace bounds a namespace's text, in bytes.
const maxNamespace = 256

// CheckNamespace refuses a text that is no namespace: segments of ASCII letters,
// digits, "-", "_" and ".", joined by ":" (VD-116).
func CheckNamespace(s string) error {
	if s == "" || len(s) > maxNamespace {
		return invalid("namespace has %d bytes; it needs 1 to %d", len(s), maxNamespace)
	}
	for segment := range strings.SplitSeq(s, ":") {
		if segment == "" {
			return invalid(`namespace %q has an empty segment: segments are joined by ":"`, s)
		}
		for i := range len(segment) {
			if c := segment[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
				return invalid(`namespace %q has a byte that is no letter, digit, "-", "_" or "."`, s)
			}
		}
	}
	return nil
}

// Below reports whether namespace is a descendant of parent.
func Below(namespace, parent string) bool { return strings.HasPrefix(namespace, parent+":") }

// Actor is who asks, resolved once per operation (VD-097, VD-119a). Kinds are those
// of package gate.
type Actor struct {
	Kind string
	ID   string
}

// anonymous never matches a binding of identity.
var anonymous = Actor{"anonymous", DefaultNamespace}

// NewActor takes an id as it is, not trimmed; without a kind or with a blank id the
// actor is anonymous.
func NewActor(kind, id string) Actor {
	if kind == "" || kind == anonymous.Kind || strings.TrimSpace(id) == "" {
		return anonymous
	}
	return Actor{kind, id}
}

// Anonymous reports whether nobody vouched for the actor.
func (a Actor) Anonymous() bool { return a.Kind == anonymous.Kind || a.Kind == "" }

// Identity is what a request brings, or the server's own when it brings none.
type Identity struct {
	Actor     Actor
	Visible   []string // namespaces read beside the default one
	Default   string   // what the gate sees when an operation names none; "" is local
	RequestID uint64   // groups the operations of one request
	Process   string   // which process asks, if known
}

// Nested is the identity of a call made by a handler: same actor and scope, no
// correlation id (VD-119a).
func (i Identity) Nested() Identity {
	i.RequestID = 0
	return i
}

// Token is what a handler may rely on: who asks and where it reads and writes. Only
// dispatch mints one (VD-118).
type Token struct {
	actor     Actor
	write     string
	read      []string
	gate      string
	explicit  bool
	requestID uint64
	process   string
}

// Actor is who asks.
func (t Token) Actor() Actor { return t.actor }

// Namespace is where writes go.
func (t Token) Namespace() string { return t.write }

// Reads are the namespaces that searches see.
func (t Token) Reads() []string { return slices.Clone(t.read) }

// GateNamespace is the resource the gate was asked about.
func (t Token) GateNamespace() string { return t.gate }

// Explicit reports whether the operation named its namespace.
func (t Token) Explicit() bool { return t.explicit }

// RequestID groups the operations of one request; 0 means none.
func (t Token) RequestID() uint64 { return t.requestID }

// Process is the process that asks, if known.
func (t Token) Process() string { return t.process }

// ResolveNamespace reads the namespace of an operation before the gate is asked: a
// value that is present must be a well-formed string, of whatever wrong kind it is
// otherwise (VD-100). explicit is false when there is none.
func ResolveNamespace(op *request.Op) (namespace string, explicit bool, err error) {
	v, present := op.Arg(namespaceArg)
	if !present {
		return "", false, nil
	}
	s, ok := v.Text()
	if !ok {
		return "", true, invalid("namespace must be a string, not %s", v.Kind())
	}
	return s, true, CheckNamespace(s)
}

// Mint makes the token of an operation that the gate has allowed (VD-119). With a
// namespace of its own it reads and writes exactly that one. Otherwise it writes to
// local and reads local, what is visible to it and, when that is a namespace, its
// actor's id. skipped are visible entries that are no namespaces, for the log.
func Mint(id Identity, namespace string, explicit bool) (t Token, skipped []string) {
	t = Token{actor: id.Actor, explicit: explicit, requestID: id.RequestID, process: id.Process}
	if t.actor.Anonymous() {
		t.actor = anonymous
	}
	if explicit {
		t.write, t.read, t.gate = namespace, []string{namespace}, namespace
		return t, nil
	}
	t.write, t.gate = DefaultNamespace, id.Default
	if t.gate == "" {
		t.gate = DefaultNamespace
	}
	t.read = []string{DefaultNamespace}
	for _, ns := range id.Visible {
		if CheckNamespace(ns) != nil {
			skipped = append(skipped, ns)
		} else if !slices.Contains(t.read, ns) {
			t.read = append(t.read, ns)
		}
	}
	if own := t.actor.ID; !t.actor.Anonymous() && CheckNamespace(own) == nil && !slices.Contains(t.read, own) {
		t.read = append(t.read, own)
	}
	return t, skipped
}
