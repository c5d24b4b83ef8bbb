package verbs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// Config is what a registry is built from.
type Config struct {
	Packs    []Pack              // in load order
	Disabled map[string][]string // verbs an operator took away, by pack
	Mounts   []string            // prefixes served by external catalogues
}

// Verb is a Spec in its pack.
type Verb struct {
	Spec
	Pack string
}

// Registry is the built table. It does not change.
type Registry struct {
	packs  []Pack // in dependency order
	verbs  map[string]*Verb
	public []*Verb // sorted by name
	full   map[string]bool
	kinds  []string
}

// Build checks the tables in a fixed order and puts them together; the first error
// ends it (VD-089). It activates nothing (VD-096).
func Build(c Config) (*Registry, error) {
	for _, check := range []func(Config) error{packsOnce, mountsFree, envelopeFree, packsPresent} {
		if err := check(c); err != nil {
			return nil, err
		}
	}
	packs, err := ordered(c.Packs)
	if err != nil {
		return nil, err
	}
	r := &Registry{packs: packs, verbs: map[string]*Verb{}, full: map[string]bool{}}
	for _, check := range []func([]Pack) error{noteKindsOnce, r.add, subTypesOnce, subTypesApart, consumersWellFormed} {
		if err := check(packs); err != nil {
			return nil, err
		}
	}
	if err := r.disable(c.Disabled); err != nil {
		return nil, err
	}
	if err := wellFormed(packs); err != nil {
		return nil, err
	}
	r.index()
	return r, nil
}

// add registers every verb, internal ones and aliases included (VD-205).
func (r *Registry) add(packs []Pack) error {
	for _, p := range packs {
		for i := range p.Verbs {
			v := &Verb{Spec: p.Verbs[i], Pack: p.Name}
			for _, name := range append([]string{v.Name}, v.Aliases...) {
				if other, taken := r.verbs[name]; taken {
					return boot(VerbCollision, []string{name, other.Pack, p.Name}, "verb %q is declared by pack %q and by pack %q", name, other.Pack, p.Name)
				}
				r.verbs[name] = v
			}
		}
	}
	return nil
}

// disable takes verbs away as if no pack had declared them (VD-090).
func (r *Registry) disable(by map[string][]string) error {
	for _, pack := range sortedKeys(by) {
		for _, name := range by[pack] {
			v, ok := r.verbs[name]
			if !ok || v.Pack != pack || v.Visibility != Public || v.Name != name {
				return boot(UnknownDisabled, []string{pack, name}, "disabled verb %q is no public verb of a loaded pack %q", name, pack)
			}
			for _, spelling := range append([]string{v.Name}, v.Aliases...) {
				delete(r.verbs, spelling)
			}
		}
	}
	return nil
}

func (r *Registry) index() {
	for name, v := range r.verbs {
		for _, p := range v.Params {
			if p.Identifier.fullOnly() {
				r.full[p.Name] = true
			}
		}
		if name == v.Name && v.Visibility == Public {
			r.public = append(r.public, v)
		}
	}
	slices.SortFunc(r.public, func(a, b *Verb) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range r.packs {
		r.kinds = append(r.kinds, p.EntityKinds...)
	}
	slices.Sort(r.kinds)
	r.kinds = slices.Compact(r.kinds)
}

// Lookup finds a verb by its name or an alias. Whoever it was asked for under an
// alias goes on with the canonical Name (VD-201).
func (r *Registry) Lookup(name string) (*Verb, bool) {
	v, ok := r.verbs[name]
	return v, ok
}

// PackOf implements request.Catalogue: internal verbs are unknown to it.
func (r *Registry) PackOf(verb string) (string, bool) {
	v, ok := r.verbs[verb]
	if !ok || v.Visibility != Public {
		return "", false
	}
	return v.Pack, true
}

// Catalogue lists public verbs by name; an empty pack or category means any.
func (r *Registry) Catalogue(pack string, category Category) []*Verb {
	var found []*Verb
	for _, v := range r.public {
		if (pack == "" || v.Pack == pack) && (category == "" || v.Category == category) {
			found = append(found, v)
		}
	}
	return found
}

// Packs are the packs, each after those it requires.
func (r *Registry) Packs() []Pack { return slices.Clone(r.packs) }

// EntityKinds are the entity kinds of all packs, merged and sorted.
func (r *Registry) EntityKinds() []string { return slices.Clone(r.kinds) }

// FullOnly reports whether a parameter of that name takes complete identifiers only
// in some loaded verb: presentation must then not shorten it (VD-207).
func (r *Registry) FullOnly(param string) bool { return r.full[param] }

// Open activates the packs in dependency order. When one fails the others that were
// opened are returned with the error, for the caller to close.
func (r *Registry) Open() (map[string]Handler, error) {
	opened := make(map[string]Handler, len(r.packs))
	for _, p := range r.packs {
		h, err := p.New()
		if err != nil {
			return opened, fault.Wrap(err, fault.CodeOf(err), "open pack", p.Name)
		}
		opened[p.Name] = h
	}
	return opened, nil
}

// UnknownVerb is the answer for a name that nothing owns, also when it is disabled
// (VD-090, VD-204). The text starts "unknown verb" and lists the public verbs.
func (r *Registry) UnknownVerb(name string) error {
	names := make([]string, len(r.public))
	for i, v := range r.public {
		names[i] = v.Name
	}
	e := fault.New(fault.UnknownMethod, "unknown verb", name, "available: %s", strings.Join(names, ", "))
	if near, ok := fault.Nearest(name, names); ok {
		return e.WithNext("call %s(help=true) to see whether it is the one you mean", near)
	}
	return e.WithNext("call one of the available verbs; verb(help=true) describes it")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// BootKind names one way in which tables do not fit together.
type BootKind string

// BootError says why no registry came to be. Subjects are the names involved, in the
// order of the message.
type BootError struct {
	Kind     BootKind
	Subjects []string
	Message  string
}

// Error reads: build registry: message.
func (e *BootError) Error() string { return "build registry: " + e.Message }

// Unwrap gives the error the code with which it leaves the program.
func (e *BootError) Unwrap() error {
	return fault.New(fault.Usage, "build registry", "", "%s", e.Message).WithNext("correct the packs or the configuration named here")
}

func boot(kind BootKind, subjects []string, format string, args ...any) error {
	return &BootError{kind, subjects, fmt.Sprintf(format, args...)}
}
