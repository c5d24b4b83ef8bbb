package verbs

import (
	"slices"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
)

// Mode is how the identifier in a parameter is resolved (VD-129).
type Mode string

// Modes.
const (
	NoIdentifier   Mode = ""
	Unscoped       Mode = "unscoped_by_id"
	PrefixPrimary  Mode = "prefix_scoped_to_primary"
	Scoped         Mode = "full_and_prefix_scoped"
	FullScoped     Mode = "full_only_scoped"
	FullUnscoped   Mode = "full_only_unscoped"
	EdgeOrEvent    Mode = "edge_or_event_target"
	shortestPrefix      = 8
)

var modes = map[Mode]string{
	NoIdentifier:  "",
	Unscoped:      "Takes a complete UUID or a prefix; neither is limited to a namespace.",
	PrefixPrimary: "Takes a complete UUID from any namespace, or a prefix, which is searched in the caller's primary namespace only.",
	Scoped:        "Takes a complete UUID or a prefix; both are looked up in the namespaces the caller reads.",
	FullScoped:    "Takes a complete UUID only, looked up in the namespaces the caller reads: a prefix could come to mean another record later.",
	FullUnscoped:  "Takes a complete UUID only, from any namespace: a prefix could come to mean another record later.",
	EdgeOrEvent:   "Takes a complete UUID or a prefix of an edge, or of the target of an event.",
}

func sortedModes() []Mode {
	all := make([]Mode, 0, len(modes))
	for m := range modes {
		all = append(all, m)
	}
	slices.Sort(all)
	return all
}

func (m Mode) fullOnly() bool { return m == FullScoped || m == FullUnscoped }

// Form is what the text of an identifier is.
type Form uint8

// Forms.
const (
	Name     Form = iota // neither of the others: perhaps the name of a record
	Complete             // names one record
	Prefix               // must be searched for
)

// Identifier is a text read as an identifier.
type Identifier struct {
	Form Form
	Text string // Complete: canonical spelling; Prefix: lower-case digits; Name: as given
}

// ReadIdentifier reads a UUID in any spelling, or a prefix of one (VD-121 to VD-123).
func ReadIdentifier(s string) Identifier {
	if id, ok := request.CanonicalUUID(s); ok {
		return Identifier{Complete, id}
	}
	if prefix(s) {
		return Identifier{Prefix, strings.ToLower(s)}
	}
	return Identifier{Name, s}
}

func prefix(s string) bool {
	return len(s) >= shortestPrefix && len(s) < 32 && strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
}

// ReadHandle reads a typed identifier such as act_ and 32 digits, or a prefix after
// the type (VD-208). A Complete one is given with dashes, without the type.
func ReadHandle(typ, s string) Identifier {
	digits, ok := strings.CutPrefix(s, typ+"_")
	if id := ReadIdentifier(digits); ok && !strings.ContainsAny(digits, "-{:") && id.Form != Name {
		return id
	}
	return Identifier{Name, s}
}

// Admit reads the identifier in a parameter of mode m; a prefix that the mode does
// not take is refused with what could go wrong (VD-125).
func (m Mode) Admit(param, s string) (Identifier, error) {
	id := ReadIdentifier(s)
	if !m.fullOnly() || id.Form == Complete {
		return id, nil
	}
	if id.Form == Prefix {
		return id, invalid("argument %q needs a complete UUID, not the prefix %q: another record that starts so could be meant later", param, s).
			WithNext("look the record up, and give its id in full")
	}
	return id, invalid("argument %q needs a complete UUID, not %q", param, s)
}

// Choose decides what a search for a prefix has found: found are complete
// identifiers of live records, total how many there are in all. One is the answer,
// none is not_found, several are ambiguous with those that are known (VD-122).
func Choose(prefix string, found []string, total int) (string, error) {
	total = max(total, len(found))
	switch {
	case total == 0:
		return "", fault.New(fault.NotFound, "not found", prefix, "no record starts so").
			WithNext("check the digits, or search by name")
	case total == 1 && len(found) == 1:
		return found[0], nil
	}
	return "", fault.New(fault.Ambiguous, "ambiguous prefix", prefix, "matches %d records: %s", total, strings.Join(found, ", ")).
		WithNext("give more digits")
}
