// Package verbs is the table of what may be asked: packs as static data, each verb
// with its parameters, its effect and its help. One table feeds the check of
// arguments, the help, the JSON schema and the catalogue, so they cannot disagree.
//
// Invariants:
//   - a registry is built whole or not at all: a clash is an error, never a warning;
//   - one name means one verb, aliases and internal verbs included;
//   - an argument that no parameter declares is refused;
//   - a disabled verb cannot be told from one that does not exist.
//
// The package runs nothing and rules on nothing. It knows no store, no policy and no
// surface; a pack's factory is called by whoever opens the registry for serving.
// identifier.go and scope.go are the rules for identifiers, namespaces, actors and
// tokens, which every handler shares.
package verbs

import (
	"time"
)

// Visibility says who may call a verb (VD-086).
type Visibility string

// Visibilities.
const (
	Public   Visibility = "verb"       // on every surface
	Internal Visibility = "subhandler" // the operator only; described to all
)

// Category is documentation and never permission (VD-087).
type Category string

// Categories.
const (
	Assertive   Category = "assertive"   // reports state
	Directive   Category = "directive"   // asks someone to act
	Commissive  Category = "commissive"  // commits to a lasting change
	Declaration Category = "declaration" // changes status by saying so
)

// Effect is the most a verb can touch (VD-200). The texts are those of package gate.
type Effect string

// Effects.
const (
	Read      Effect = "read"
	Record    Effect = "record"    // writes only the journal
	Workspace Effect = "workspace" // files and processes of the session
	External  Effect = "external"  // anything beyond
)

// Type is the type of a parameter; the vocabulary is closed (VD-086).
type Type string

// Types.
const (
	Text    Type = "string"
	Integer Type = "integer"
	Float   Type = "number"
	Boolean Type = "boolean"
	Struct  Type = "object"
	Texts   Type = "array of string"
	Records Type = "array of object"
	List    Type = "array"
	Any     Type = "any"
)

// Fact names the member of the gate's question that a parameter feeds; the pack
// normalises the value first.
type Fact string

// Facts.
const (
	FactPath   Fact = "path"
	FactPaths  Fact = "paths"
	FactArgv   Fact = "argv"
	FactTarget Fact = "target"
	FactScope  Fact = "scope"
	FactBytes  Fact = "bytes"
	FactDryRun Fact = "dry_run"
)

// Param is one named argument.
type Param struct {
	Name        string
	Type        Type
	Required    bool
	Nullable    bool // an explicit null is a value of its own, such as "clear the field"
	Description string
	Aliases     []string // other spellings; two of them at once are refused
	Enum        []string // the values a string may have; empty means any
	Identifier  Mode     // how an identifier is resolved; zero means it is none
	Fact        Fact     // what a policy sees of it; empty means nothing
	FreeText    bool     // prose that the secret gate scans (VD-211)
}

// Spec is one verb.
type Spec struct {
	Name        string // "pack.verb", or bare in a pack that says so
	Description string
	Visibility  Visibility
	Category    Category
	Effect      Effect
	Repeatable  bool          // doing it twice is doing it once
	Query       bool          // answers from state only: may be resent, its audit row deferred
	Records     bool          // the handler commits intent, outcome and audit row itself
	Timeout     time.Duration // zero is the request's own deadline
	Aliases     []string      // other names; policy and audit only see Name
	Params      []Param
}

// SubType is a sub-type of an entity kind.
type SubType struct {
	Kind    string
	Name    string
	Aliases []string
}

// Table is the static part of a pack (VD-085).
type Table struct {
	Name          string
	Requires      []string
	Bare          bool // its verbs are not prefixed by its name (VD-088)
	Verbs         []Spec
	NoteKinds     []string
	EntityKinds   []string
	SubTypes      []SubType
	ConsumerKinds []string
}

// Pack is a table and the factory of its handler. Whatever is registered as a Pack
// is trusted; the name a pack gives itself proves nothing (VD-091).
type Pack struct {
	Table
	New func() (Handler, error)
}
