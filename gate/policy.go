package gate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	cedar "github.com/cedar-policy/cedar-go"

	"github.com/reeve-run/reeve/fault"
)

// MaxPolicyBytes bounds all sources of one set together.
const MaxPolicyBytes = 1 << 20

// Source is one policy file.
type Source struct {
	Name string // base name, ends in .cedar
	Text []byte
}

// Rule is one policy of a set, as its author annotated it.
type Rule struct {
	ID     string
	Effect string // permit | forbid
	Reason string
	Remedy string
	File   string
	Line   int
	Text   string // canonical Cedar text, for diffs

	obligations []Obligation
	reads       []string // attributes its conditions look at, sorted
	allow, deny []Example
}

// Policy is a compiled, checked, immutable set.
type Policy struct {
	digest string
	rules  map[string]*Rule
	order  []string // ids, in source order
	set    *cedar.PolicySet
	scopes *cedar.PolicySet // the permits without their conditions: who comes near

	actions *cedar.PolicySet // for each rule a permit of the actions of its scope
	byVerb  sync.Map         // *static to rules: those about a verb
}

// Digest is the SHA-256 of the sources: files sorted by name, each fed as u64BE name
// length, name, u64BE content length, content.
func (p *Policy) Digest() string { return p.digest }

// Rules returns the rules in source order.
func (p *Policy) Rules() []Rule {
	out := make([]Rule, 0, len(p.order))
	for _, id := range p.order {
		out = append(out, *p.rules[id])
	}
	return out
}

// Load compiles sources and checks every example the rules carry. Every problem is
// one fault that names file, line and rule; a set with any problem is refused whole.
func Load(sources []Source) (*Policy, error) {
	if err := checkSources(sources); err != nil {
		return nil, err
	}
	sorted := slices.Clone(sources)
	slices.SortFunc(sorted, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	p := &Policy{
		digest: digest(sorted),
		rules:  map[string]*Rule{},
		set:    cedar.NewPolicySet(),
		scopes: cedar.NewPolicySet(), actions: cedar.NewPolicySet(),
	}
	for _, src := range sorted {
		list, err := cedar.NewPolicyListFromBytes(src.Name, src.Text)
		if err != nil {
			return nil, fault.New(fault.InvalidRequest, "load policy", src.Name, "%s", err).
				WithNext("mend %s and run: reeve policy test", src.Name)
		}
		for _, c := range list {
			if err := p.add(src.Name, c); err != nil {
				return nil, err
			}
		}
	}
	if err := p.checkExamples(); err != nil {
		return nil, err
	}
	return p, nil
}

func checkSources(sources []Source) error {
	total, seen := 0, map[string]bool{}
	for _, s := range sources {
		if s.Name == "" || seen[s.Name] {
			return fault.New(fault.InvalidRequest, "load policy", s.Name, "file name is empty or occurs twice")
		}
		seen[s.Name] = true
		total += len(s.Text)
	}
	if total > MaxPolicyBytes {
		return fault.New(fault.LimitExceeded, "load policy", "", "%d bytes in all, the limit is %d", total, MaxPolicyBytes)
	}
	return nil
}

func digest(sorted []Source) string {
	h := sha256.New()
	feed := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, s := range sorted {
		feed([]byte(s.Name))
		feed(s.Text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (p *Policy) add(file string, c *cedar.Policy) error {
	line := c.Position().Line
	fail := func(id, format string, args ...any) error {
		return fault.New(fault.InvalidRequest, "load policy", file, "line %d, rule %q: %s", line, id, fmt.Sprintf(format, args...)).
			WithNext("mend the rule and run: reeve policy test")
	}
	rule, err := annotated(c)
	if err != nil {
		return fail(rule.ID, "%s", err)
	}
	rule.File, rule.Line = file, line
	if prior := p.rules[rule.ID]; prior != nil {
		return fail(rule.ID, "the id is taken by line %d of %s", prior.Line, prior.File)
	}
	est, err := readTree(c)
	if err != nil {
		return fail(rule.ID, "%s", err)
	}
	rule.reads = est.reads()
	for _, name := range rule.reads {
		if near, ok := checkAttribute(name); !ok {
			return fail(rule.ID, "reads %s, which no request has (nearest: %s)", name, near)
		}
	}
	rule.Text = string(c.MarshalCedar())
	p.rules[rule.ID] = &rule
	p.order = append(p.order, rule.ID)
	p.set.Add(cedar.PolicyID(rule.ID), c)
	action, err := est.actionOnly()
	if err != nil {
		return fail(rule.ID, "%s", err)
	}
	p.actions.Add(cedar.PolicyID(rule.ID), action)
	if c.Effect() == cedar.Permit {
		scope, err := est.scopeOnly()
		if err != nil {
			return fail(rule.ID, "%s", err)
		}
		p.scopes.Add(cedar.PolicyID(rule.ID), scope)
	}
	return nil
}
