package verbs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/request"
)

// Kinds of boot errors, in the order in which they are looked for (VD-089).
const (
	PackRedeclared        BootKind = "pack_redeclared"
	MountCollision        BootKind = "mount_collision"
	ReservedEnvelopeParam BootKind = "reserved_envelope_param"
	MissingPacks          BootKind = "missing_packs"
	CircularPacks         BootKind = "circular_packs"
	NoteKindCollision     BootKind = "note_kind_collision"
	VerbCollision         BootKind = "verb_collision"
	SubTypeCollision      BootKind = "sub_type_collision"
	SubTypeIsNoteKind     BootKind = "sub_type_is_note_kind"
	MalformedConsumer     BootKind = "malformed_consumer_kind"
	UnknownDisabled       BootKind = "unknown_disabled_verb"
	MalformedTable        BootKind = "malformed_table"
)

func packsOnce(c Config) error {
	seen := map[string]int{}
	for i, p := range c.Packs {
		if first, again := seen[p.Name]; again {
			return boot(PackRedeclared, []string{p.Name, strconv.Itoa(first), strconv.Itoa(i)}, "pack %q is declared at positions %d and %d", p.Name, first, i)
		}
		seen[p.Name] = i
	}
	return nil
}

func mountsFree(c Config) error {
	for _, mount := range c.Mounts {
		for _, p := range c.Packs {
			for _, v := range p.Verbs {
				if v.Name == mount || strings.HasPrefix(v.Name, mount+".") {
					return boot(MountCollision, []string{mount, v.Name}, "mounted namespace %q hides verb %q", mount, v.Name)
				}
			}
		}
	}
	return nil
}

func envelopeFree(c Config) error {
	for _, p := range c.Packs {
		for _, v := range p.Verbs {
			for _, param := range v.Params {
				for _, name := range append([]string{param.Name}, param.Aliases...) {
					if request.Reserved(name) {
						return boot(ReservedEnvelopeParam, []string{p.Name, v.Name, name}, "pack %q: verb %q declares parameter %q, which belongs to the request", p.Name, v.Name, name)
					}
				}
			}
		}
	}
	return nil
}

func packsPresent(c Config) error {
	present := map[string]bool{}
	for _, p := range c.Packs {
		present[p.Name] = true
	}
	var missing, subjects []string
	for _, p := range c.Packs {
		for _, need := range p.Requires {
			if !present[need] {
				missing = append(missing, strconv.Quote(need)+" (required by "+strconv.Quote(p.Name)+")")
				subjects = append(subjects, need)
			}
		}
	}
	if missing == nil {
		return nil
	}
	return boot(MissingPacks, subjects, "missing packs: %s", strings.Join(missing, ", "))
}

// ordered sorts packs so that each stands after those it requires, otherwise in
// load order (Kahn's algorithm, always taking the first that is ready).
func ordered(packs []Pack) ([]Pack, error) {
	out := make([]Pack, 0, len(packs))
	placed := map[string]bool{}
	for len(out) < len(packs) {
		i := slices.IndexFunc(packs, func(p Pack) bool {
			return !placed[p.Name] && !slices.ContainsFunc(p.Requires, func(need string) bool { return !placed[need] })
		})
		if i < 0 {
			path := cycle(packs, placed)
			return nil, boot(CircularPacks, path, "packs require each other: %s", strings.Join(path, " → "))
		}
		placed[packs[i].Name] = true
		out = append(out, packs[i])
	}
	return out, nil
}

// cycle walks from one pack that could not be placed to what it waits for, until a
// pack comes again.
func cycle(packs []Pack, placed map[string]bool) []string {
	waits := map[string]string{}
	start := ""
	for _, p := range packs {
		if placed[p.Name] {
			continue
		}
		if start == "" {
			start = p.Name
		}
		i := slices.IndexFunc(p.Requires, func(need string) bool { return !placed[need] })
		waits[p.Name] = p.Requires[i]
	}
	var path []string
	for at := start; ; at = waits[at] {
		if i := slices.Index(path, at); i >= 0 {
			return append(path[i:], at)
		}
		path = append(path, at)
	}
}

func noteKindsOnce(packs []Pack) error {
	owner := map[string]string{}
	for _, p := range packs {
		for _, kind := range p.NoteKinds {
			if first, taken := owner[kind]; taken {
				return boot(NoteKindCollision, []string{kind, first, p.Name}, "note kind %q is declared by pack %q and by pack %q", kind, first, p.Name)
			}
			owner[kind] = p.Name
		}
	}
	return nil
}

func subTypesOnce(packs []Pack) error {
	owner := map[[2]string]string{}
	for _, p := range packs {
		for _, s := range p.SubTypes {
			for _, name := range append([]string{s.Name}, s.Aliases...) {
				key := [2]string{s.Kind, name}
				if first, taken := owner[key]; taken {
					return boot(SubTypeCollision, []string{name, first, p.Name}, "sub-type %q of %q is declared by pack %q and by pack %q", name, s.Kind, first, p.Name)
				}
				owner[key] = p.Name
			}
		}
	}
	return nil
}

func subTypesApart(packs []Pack) error {
	notes := map[string]string{}
	for _, p := range packs {
		for _, kind := range p.NoteKinds {
			notes[kind] = p.Name
		}
	}
	for _, p := range packs {
		for _, s := range p.SubTypes {
			for _, name := range append([]string{s.Name}, s.Aliases...) {
				if other, taken := notes[name]; taken {
					return boot(SubTypeIsNoteKind, []string{name, p.Name, other}, "sub-type %q of pack %q is a note kind of pack %q", name, p.Name, other)
				}
			}
		}
	}
	return nil
}

func consumersWellFormed(packs []Pack) error {
	for _, p := range packs {
		for _, kind := range p.ConsumerKinds {
			if !verbName(kind) {
				return boot(MalformedConsumer, []string{kind, p.Name}, "consumer kind %q of pack %q is no name", kind, p.Name)
			}
		}
	}
	return nil
}

// verbName reports whether name is an identifier or two joined by a dot.
func verbName(name string) bool {
	first, second, dotted := strings.Cut(name, ".")
	return identifier(first) && (!dotted || identifier(second))
}

func identifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// wellFormed checks what each verb says of itself.
func wellFormed(packs []Pack) error {
	for _, p := range packs {
		if !identifier(p.Name) {
			return boot(MalformedTable, []string{p.Name}, "pack %q has no proper name", p.Name)
		}
		for _, v := range p.Verbs {
			if why := v.malformed(p.Table); why != "" {
				return boot(MalformedTable, []string{p.Name, v.Name}, "pack %q: verb %q %s", p.Name, v.Name, why)
			}
		}
	}
	return nil
}

func (s *Spec) malformed(t Table) string {
	pack, _, dotted := strings.Cut(s.Name, ".")
	switch {
	case !verbName(s.Name):
		return "has no proper name"
	case dotted && pack != t.Name, !dotted && !t.Bare:
		return "must be named " + t.Name + ".<verb>"
	case s.Description == "":
		return "has no description"
	case s.Visibility != Public && s.Visibility != Internal:
		return "has no visibility"
	case !slices.Contains([]Category{Assertive, Directive, Commissive, Declaration}, s.Category):
		return "has no category"
	case !slices.Contains([]Effect{Read, Record, Workspace, External}, s.Effect):
		return "has no effect"
	case s.Query && s.Effect != Read:
		return "is declared a query but its effect is not read"
	case s.Timeout < 0:
		return "has a negative timeout"
	}
	for _, alias := range s.Aliases {
		if !verbName(alias) {
			return "has the improper alias " + strconv.Quote(alias)
		}
	}
	seen := map[string]bool{"help": true}
	for _, p := range s.Params {
		if why := p.malformed(); why != "" {
			return "has a parameter " + strconv.Quote(p.Name) + " that " + why
		}
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if !identifier(name) || seen[name] {
				return "has an improper or repeated parameter name " + strconv.Quote(name)
			}
			seen[name] = true
		}
	}
	return ""
}

func (p *Param) malformed() string {
	_, known := schemas[p.Type]
	_, mode := modes[p.Identifier]
	switch {
	case !known:
		return "has an unknown type"
	case p.Description == "":
		return "has no description"
	case len(p.Enum) > 0 && p.Type != Text && p.Type != Texts:
		return "lists values but is no string"
	case !mode:
		return "has an unknown identifier mode"
	case p.Identifier != NoIdentifier && p.Type != Text && p.Type != Texts:
		return "is an identifier but no string"
	case p.Identifier != NoIdentifier && p.FreeText:
		return "is an identifier and free text"
	case !slices.Contains([]Fact{"", FactPath, FactPaths, FactArgv, FactTarget, FactScope, FactBytes, FactDryRun}, p.Fact):
		return "feeds an unknown fact"
	}
	return ""
}
