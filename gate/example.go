package gate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// Example is a request written in one line, as rules carry them and as
// reeve policy test takes them:
//
//	KIND[:ID] VERB EFFECT [name=value …]
//
// for instance "session:main workspace.run workspace authorized=true argv=[\"go\",\"test\"]".
// Names are the attributes of the schema without their prefixes, and namespace. A
// value is a JSON value or a bare word.
type Example struct {
	Text    string
	Request Request
}

// ParseExample reads one line.
func ParseExample(line string) (Example, error) {
	fields, err := cut(line, " \t")
	if err != nil {
		return Example{}, err
	}
	if len(fields) < 3 {
		return Example{}, fmt.Errorf("%q: want KIND[:ID] VERB EFFECT [name=value …]", line)
	}
	kind, id, _ := strings.Cut(fields[0], ":")
	if id == "" {
		id = "example"
	}
	pack, _, ok := strings.Cut(fields[1], ".")
	if !ok {
		pack = ""
	}
	r := Request{
		Actor:     Actor{Kind: ActorKind(kind), ID: id},
		Namespace: "local",
		Verb:      Verb{Name: fields[1], Pack: pack, Effect: Effect(fields[2])},
		Work:      Work{Discipline: "advisory"},
		Context:   Context{Surface: "mcp", Isolation: "off"},
	}
	for _, f := range fields[3:] {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return Example{}, fmt.Errorf("%q: %q is not name=value", line, f)
		}
		if err := r.set(name, value); err != nil {
			return Example{}, fmt.Errorf("%q: %w", line, err)
		}
	}
	if err := r.Validate(); err != nil {
		return Example{}, fmt.Errorf("%q: %w", line, err)
	}
	return Example{Text: line, Request: r}, nil
}

func (r *Request) set(name, value string) error {
	text := func(dst *string) error { *dst = unquote(value); return nil }
	flag := func(dst *bool) (err error) { *dst, err = strconv.ParseBool(value); return err }
	list := func(dst *[]string) error { return json.Unmarshal([]byte(value), dst) }
	switch name {
	case "namespace":
		return text(&r.Namespace)
	case "pack":
		return text(&r.Verb.Pack)
	case "category":
		return text(&r.Verb.Category)
	case "surface":
		return text(&r.Context.Surface)
	case "session":
		return text(&r.Context.SessionID)
	case "isolation":
		return text(&r.Context.Isolation)
	case "attended":
		return flag(&r.Context.Attended)
	case "discipline":
		return text(&r.Work.Discipline)
	case "authorized":
		return flag(&r.Work.Authorized)
	case "scope_open":
		return flag(&r.Work.Scope)
	case "path":
		return text(&r.Args.Path)
	case "paths":
		return list(&r.Args.Paths)
	case "argv":
		return list(&r.Args.Argv)
	case "target":
		return text(&r.Args.Target)
	case "scope":
		return text(&r.Args.Scope)
	case "dry_run":
		return flag(&r.Args.DryRun)
	case "bytes":
		n, err := strconv.ParseInt(value, 10, 64)
		r.Args.Bytes = n
		return err
	}
	return fmt.Errorf("unknown attribute %q", name)
}

func unquote(s string) string {
	var out string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &out) == nil {
		return out
	}
	return s
}

// cut parts s at any byte of seps outside of double quotes, dropping empty parts.
func cut(s, seps string) ([]string, error) {
	var fields []string
	var b strings.Builder
	quoted, escaped := false, false
	flush := func() {
		if b.Len() > 0 {
			fields = append(fields, b.String())
			b.Reset()
		}
	}
	for _, c := range s {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && quoted:
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune(seps, c):
			flush()
			continue
		}
		b.WriteRune(c)
	}
	if quoted {
		return nil, fmt.Errorf("%q: a quote is not closed", s)
	}
	flush()
	return fields, nil
}

// parseExamples reads an annotation: examples parted by semicolons.
func parseExamples(text string) ([]Example, error) {
	var out []Example
	lines, err := cut(text, ";")
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		ex, err := ParseExample(line)
		if err != nil {
			return nil, err
		}
		out = append(out, ex)
	}
	return out, nil
}

// Result is how one example of a rule came out.
type Result struct {
	Rule     string
	Want     Ruling
	Example  string
	Decision Decision
}

// Pass reports whether the ruling is the one the example demands.
func (r Result) Pass() bool { return r.Decision.Ruling == r.Want }

// Test runs the examples of every rule against the whole set.
func (p *Policy) Test() []Result {
	var out []Result
	for _, id := range p.order {
		rule := p.rules[id]
		for _, ex := range rule.allow {
			out = append(out, Result{Rule: id, Want: Allow, Example: ex.Text, Decision: p.Decide(ex.Request)})
		}
		for _, ex := range rule.deny {
			out = append(out, Result{Rule: id, Want: Deny, Example: ex.Text, Decision: p.Decide(ex.Request)})
		}
	}
	return out
}

func (p *Policy) checkExamples() error {
	for _, r := range p.Test() {
		if r.Pass() {
			continue
		}
		rule := p.rules[r.Rule]
		return fault.New(fault.InvalidRequest, "load policy", rule.File,
			"line %d, rule %q: example %q must be %s but is %s (%s)", rule.Line, r.Rule, r.Example, r.Want, r.Decision.Ruling, r.Decision.why()).
			WithNext("mend the rule or its example and run: reeve policy test")
	}
	return nil
}

func (d Decision) why() string {
	if d.Ruling == Allow {
		return "by " + quoteList("rule", d.Rules)
	}
	return d.Reason
}
