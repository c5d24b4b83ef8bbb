package request

import (
	"slices"
	"strings"
)

// json reads the JSON form (VD-037): one operation, or an array of them.
func (p *parser) json() (*Request, error) {
	if err := p.scan(); err != nil {
		return nil, err
	}
	p.exact = 2 // the operation and its arguments
	if p.text[0] == '[' {
		p.exact = 3
	}
	v, err := p.document()
	if err != nil {
		return nil, err
	}
	r := &Request{Mode: Single}
	entries := []Item{{Value: v}}
	if v.kind == Array {
		r.Mode, entries = Parallel, v.items
	}
	if len(entries) > MaxOps {
		return nil, p.fail(TooManyOps, nowhere, "the request has %d operations, the limit is %d: split it", len(entries), MaxOps)
	}
	r.Ops = make([]Op, 0, len(entries))
	for _, e := range entries {
		op, err := p.entry(e.Value)
		if err != nil {
			return nil, err
		}
		r.Units = append(r.Units, Unit{len(r.Ops), len(r.Ops) + 1})
		r.Ops = append(r.Ops, op)
	}
	for _, op := range r.Ops {
		for _, a := range op.Args {
			if ref, found := referenceText(a.Value); found {
				return nil, p.fail(PrevInJSON, ref.At(),
					"argument %q of %s refers to $prev, which the JSON form does not have: use the call form, a() | b(x=$prev.id)", a.Name, op.Tool)
			}
		}
	}
	if err := p.unreserved(r.Ops); err != nil {
		return nil, err
	}
	return r, nil
}

// scan checks the nesting of the whole text, the envelope included, and that every
// string closes. It is linear and keeps only a count, so that nothing that recurses
// ever sees a hostile text.
func (p *parser) scan() error {
	depth := 0
	for i := 0; i < len(p.text); i++ {
		switch p.text[i] {
		case '"':
			end := stringEnd(p.text, i)
			if end < 0 {
				return p.unclosedString(i)
			}
			i = end - 1
		case '[', '{':
			if depth++; depth > MaxDepth {
				return p.fail(NestingTooDeep, i, "containers are nested %d deep here, the limit is %d", depth, MaxDepth)
			}
		case ']', '}':
			depth--
		}
	}
	return nil
}

// entry reads one operation object.
func (p *parser) entry(v Value) (Op, error) {
	op := Op{At: v.At()}
	if v.kind != Object {
		return op, p.fail(InvalidJSON, v.At(), `an operation is an object such as {"tool": "stats", "args": {}}, not %s`, v.kind)
	}
	if m, again := repeated(v.items); again {
		return op, p.fail(InvalidJSON, m.Value.At(), "member %q is given twice", firstRunes(m.Name, margin))
	}
	for _, m := range v.items {
		switch m.Name {
		case "tool":
			if m.Value.kind != String {
				return op, p.fail(InvalidJSON, m.Value.At(), `"tool" must be a string, not %s`, m.Value.kind)
			}
			if err := p.tool(m.Value); err != nil {
				return op, err
			}
			op.Tool = m.Value.text
		case "args":
			if m.Value.kind != Object {
				return op, p.fail(InvalidJSON, m.Value.At(), `"args" must be an object, not %s`, m.Value.kind)
			}
			op.Args = m.Value.items
		default:
			return op, p.fail(InvalidJSON, m.Value.At(), `unknown member %q: an operation has "tool" and "args"`, firstRunes(m.Name, margin))
		}
	}
	if op.Tool == "" {
		return op, p.fail(InvalidJSON, v.At(), `an operation needs "tool", the name of a verb`)
	}
	slices.SortStableFunc(op.Args, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	if a, again := repeated(op.Args); again {
		return op, p.fail(DuplicateArg, a.Value.At(), "argument %q of %s is given twice", firstRunes(a.Name, margin), op.Tool)
	}
	return op, nil
}

// repeated is the first member whose name an earlier one has.
func repeated(members []Item) (Item, bool) {
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if seen[m.Name] {
			return m, true
		}
		seen[m.Name] = true
	}
	return Item{}, false
}

// tool applies the rule of the call form to a verb's name.
func (p *parser) tool(v Value) error {
	name := v.text
	end := identEnd(name, 0)
	if end > 0 && end < len(name) && name[end] == '.' {
		second := identEnd(name, end+1)
		if second > end+1 && second < len(name) && name[second] == '.' {
			return p.fail(UnsupportedNesting, v.At(), "tool %q: a verb has one dot only: verb or pack.verb", firstRunes(name, margin))
		}
		if second == end+1 {
			end = 0
		} else {
			end = second
		}
	}
	if end == 0 || end < len(name) {
		return p.fail(InvalidIdentifier, v.At(), "tool %q is no verb: verb or pack.verb, of ASCII letters, digits and _, neither part starting with a digit", firstRunes(name, margin))
	}
	return nil
}

// referenceText is the first string in v that would be a reference in the call form,
// well formed or not (VD-036).
func referenceText(v Value) (Value, bool) {
	if v.kind == String && promotable(v.text) {
		return v, true
	}
	for _, e := range v.items {
		if found, ok := referenceText(e.Value); ok {
			return found, true
		}
	}
	return Value{}, false
}

// document reads one strict JSON value that fills the text. The caller has scanned
// the text, which bounds the recursion. Objects at most exact deep keep members
// that repeat, so that they can be refused; in others the last one counts.
func (p *parser) document() (Value, error) {
	p.strictSpace()
	v, err := p.strict()
	if err != nil {
		return v, err
	}
	p.strictSpace()
	if !p.atEnd() {
		return v, p.malformed("the end of the text")
	}
	return v, nil
}

func (p *parser) malformed(expected string) error {
	return p.fail(InvalidJSON, p.pos, "found %s where %s is expected", p.found(p.pos), expected)
}

func (p *parser) strictSpace() {
	for p.pos < len(p.text) && p.text[p.pos] != '\f' && blank(p.text[p.pos]) {
		p.pos++
	}
}

func (p *parser) strict() (Value, error) {
	at := int32(p.pos)
	var v Value
	var err error
	switch p.peek() {
	case '{', '[':
		v, err = p.strictContainer()
	case '"':
		v.kind = String
		v.text, err = p.strictString()
	default:
		v, err = p.strictPlain()
	}
	v.at = at
	return v, err
}

func (p *parser) strictString() (string, error) {
	start := p.pos
	if p.peek() != '"' {
		return "", p.malformed("a double-quoted name")
	}
	end := stringEnd(p.text, start)
	if end < 0 {
		return "", p.unclosedString(start)
	}
	s, why := unquote(p.text[start+1:end-1], false)
	if why != "" {
		return "", p.fail(InvalidJSON, start, "%s", why)
	}
	p.pos = end
	return s, nil
}

func (p *parser) strictPlain() (Value, error) {
	end := p.pos
	for end < len(p.text) && !blank(p.text[end]) && strings.IndexByte(`,:]}[{"`, p.text[end]) < 0 {
		end++
	}
	v, why := plain(p.text[p.pos:end])
	if why != "" {
		return v, p.fail(InvalidJSON, p.pos, "%s", why)
	}
	p.pos = end
	return v, nil
}

func (p *parser) strictContainer() (Value, error) {
	v := Value{kind: Array}
	last, expected := byte(']'), `"," or "]"`
	if p.peek() == '{' {
		v.kind, last, expected = Object, '}', `"," or "}"`
	}
	p.pos++
	p.depth++
	p.strictSpace()
	if p.peek() == last {
		p.close()
		return v, nil
	}
	base := len(p.stack)
	for {
		var item Item
		var err error
		if v.kind == Object {
			if item.Name, err = p.strictString(); err != nil {
				return v, err
			}
			p.strictSpace()
			if p.peek() != ':' {
				return v, p.malformed(`":"`)
			}
			p.pos++
			p.strictSpace()
		}
		if item.Value, err = p.strict(); err != nil {
			return v, err
		}
		p.stack = append(p.stack, item)
		p.strictSpace()
		switch p.peek() {
		case ',':
			p.pos++
			p.strictSpace()
		case last:
			v.items = p.take(base)
			if v.kind == Object && p.depth > p.exact {
				v.items = lastWins(v.items)
			}
			p.close()
			return v, nil
		default:
			return v, p.malformed(expected)
		}
	}
}
