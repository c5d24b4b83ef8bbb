// Package configid says whether a core and a client mean the same configuration.
//
// An Identity is what decides how a request is understood: where it is stored, in
// which mode, with which packs and policy. Its ID is the SHA-256 of a canonical JSON
// object. What travels beside the ID is a Print: a digest for each field, enough to
// name every field that differs and to show no value.
//
// Invariants: the same fields give the same ID whatever the order in which they were
// set; no value can imitate structure; namespace, actor and process are never in
// it, they come with each request. The package reads neither files nor environment:
// the caller builds an Identity from configuration alone (VD-133).
package configid

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/fault"
)

// Identity is a set of named fields. The zero value has none.
type Identity struct{ fields map[string]field }

type field struct {
	value any // string, bool, or sorted []string
	more  bool
}

func (i *Identity) set(name string, f field) {
	if i.fields == nil {
		i.fields = map[string]field{}
	}
	i.fields[name] = f
}

// Text sets a field whose values must be equal.
func (i *Identity) Text(name, value string) { i.set(name, field{value: value}) }

// Truth is Text for a truth value.
func (i *Identity) Truth(name string, value bool) { i.set(name, field{value: value}) }

// Set sets a field of values without order that must be the same ones.
func (i *Identity) Set(name string, values ...string) { i.set(name, field{value: sorted(values)}) }

// AtLeast is Set for a field of which the core may have more than the client
// (VD-132: embedders beyond the first).
func (i *Identity) AtLeast(name string, values ...string) {
	i.set(name, field{value: sorted(values), more: true})
}

// Path is Text for a file path, which is cleaned without a look at the disk. A
// relative path means another file in each process and is refused.
func (i *Identity) Path(name, path string) error {
	if !filepath.IsAbs(path) {
		return fault.New(fault.InvalidRequest, "identify configuration", path, "%s is not an absolute path", name)
	}
	i.Text(name, filepath.Clean(path))
	return nil
}

func sorted(values []string) []string {
	s := slices.Clone(values)
	slices.Sort(s)
	if s = slices.Compact(s); s == nil {
		s = []string{}
	}
	return s
}

// Canonical is the identity as canonical JSON, one member a field.
func (i Identity) Canonical() ([]byte, error) {
	plain := make(map[string]any, len(i.fields))
	for name, f := range i.fields {
		plain[name] = f.value
	}
	return canonical(plain)
}

func canonical(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err == nil {
		text, err = canon.Canonicalize(nil, text)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "identify configuration", "")
	}
	return text, nil
}

// ID is the SHA-256 of Canonical, 64 hexadecimal digits.
func (i Identity) ID() (string, error) {
	text, err := i.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Print is what may be told of an identity: digests by field.
type Print map[string]Digest

// Digest is one field: a digest of the whole value, or one for each member when the
// core may have more of them.
type Digest struct {
	Whole   string
	Members []string // sorted; nil unless the field was set by AtLeast
}

// Print digests each field.
func (i Identity) Print() (Print, error) {
	p := make(Print, len(i.fields))
	for name, f := range i.fields {
		if members, ok := f.value.([]string); ok && f.more {
			d := Digest{Members: make([]string, 0, len(members))}
			for _, m := range members {
				one, err := digest(name, m)
				if err != nil {
					return nil, err
				}
				d.Members = append(d.Members, one)
			}
			slices.Sort(d.Members)
			p[name] = d
			continue
		}
		whole, err := digest(name, f.value)
		if err != nil {
			return nil, err
		}
		p[name] = Digest{Whole: whole}
	}
	return p, nil
}

// digest is half a SHA-256, of name and value together: equal values of two fields
// do not look alike.
func digest(name string, value any) (string, error) {
	text, err := canonical([]any{name, value})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// Diff names every field in which core does not serve client, sorted: all must be
// equal, but of a field set by AtLeast the core may have more. A field that one of
// them lacks differs.
func Diff(client, core Print) []string {
	var names []string
	for name, c := range client {
		if d, ok := core[name]; !ok || !serves(c, d) {
			names = append(names, name)
		}
	}
	for name := range core {
		if _, ok := client[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func serves(client, core Digest) bool {
	if client.Members == nil || core.Members == nil {
		return client.Members == nil && core.Members == nil && client.Whole == core.Whole
	}
	for _, m := range client.Members {
		if !slices.Contains(core.Members, m) {
			return false
		}
	}
	return true
}

// MarshalJSON gives an object of field names: a text, or an array of texts for a
// field of members.
func (p Print) MarshalJSON() ([]byte, error) {
	plain := make(map[string]any, len(p))
	for name, d := range p {
		plain[name] = d.Whole
		if d.Members != nil {
			plain[name] = d.Members
		}
	}
	return canonical(plain)
}

// UnmarshalJSON reads what MarshalJSON gives.
func (p *Print) UnmarshalJSON(text []byte) error {
	var raw map[string]jsontext.Value
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	out := make(Print, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		d, v := Digest{}, raw[name]
		var err error
		if v.Kind() == '[' {
			err = json.Unmarshal(v, &d.Members)
		} else {
			err = json.Unmarshal(v, &d.Whole)
		}
		if err != nil {
			return err
		}
		slices.Sort(d.Members)
		out[name] = d
	}
	*p = out
	return nil
}
