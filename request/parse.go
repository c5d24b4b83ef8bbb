package request

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse reads a text in any of its forms. An error is a *ParseError.
func Parse(text string) (*Request, error) {
	p := parser{text: strings.TrimSpace(text)}
	switch {
	case p.text == "":
		return nil, p.fail(Empty, nowhere, "the request is empty: write a call such as stats()")
	case len(p.text) > MaxBytes:
		return nil, p.fail(InputTooLarge, nowhere, "the request has %d bytes, the limit is %d: split it", len(p.text), MaxBytes)
	}
	if at := invalidUTF8(p.text); at >= 0 {
		return nil, p.fail(UnexpectedChar, at, "byte 0x%02X is not UTF-8", p.text[at])
	}
	switch {
	case jsonForm(p.text):
		return p.json()
	case p.text[0] == '[':
		return p.batch()
	}
	return p.chain()
}

func jsonForm(text string) bool {
	if text[0] == '[' {
		text = strings.TrimLeft(text[1:], " \t\n\r")
	}
	return text != "" && text[0] == '{'
}

// invalidUTF8 is the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// parser reads text from pos. Its recursion is bounded: depth counts the open
// containers of the value at hand and never passes MaxDepth.
type parser struct {
	text  string
	pos   int
	depth int
	exact int    // of the JSON form: how deep objects keep members that repeat
	stack []Item // what the open containers hold so far; they end up in slices of their own, exactly as long as needed
}

// take moves what stands above base off the stack.
func (p *parser) take(base int) []Item {
	items := slices.Clone(p.stack[base:])
	p.stack = p.stack[:base]
	return items
}

// peek is the byte at pos, or 0 at the end. A zero byte in the text is never what
// a rule wants, so the two need not be told apart here.
func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *parser) atEnd() bool { return p.pos >= len(p.text) }

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func (p *parser) space() {
	for p.pos < len(p.text) && blank(p.text[p.pos]) {
		p.pos++
	}
}

// wrong refuses what stands at pos.
func (p *parser) wrong(expected string) error {
	if p.atEnd() {
		return p.fail(UnexpectedEOF, p.pos, "the text ends where %s is expected", expected)
	}
	return p.fail(UnexpectedChar, p.pos, "found %s where %s is expected", p.found(p.pos), expected)
}

func (p *parser) expect(c byte, expected string) error {
	if p.peek() != c {
		return p.wrong(expected)
	}
	p.pos++
	return nil
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// identEnd is the end of the identifier that starts at i, or i when none does.
func identEnd(s string, i int) int {
	if i >= len(s) || !letter(s[i]) {
		return i
	}
	for i++; i < len(s) && (letter(s[i]) || digit(s[i])); i++ {
	}
	return i
}

func (p *parser) ident(what string) (string, error) {
	end := identEnd(p.text, p.pos)
	if end == p.pos {
		return "", p.fail(InvalidIdentifier, p.pos,
			"found %s where %s is expected: it starts with an ASCII letter or _ and goes on with letters, digits or _", p.found(p.pos), what)
	}
	name := p.text[p.pos:end]
	p.pos = end
	return name, nil
}

// chain reads one call or several joined by "|".
func (p *parser) chain() (*Request, error) {
	r := &Request{Mode: Single, Ops: make([]Op, 0, 1)}
	for {
		op, err := p.call(len(r.Ops))
		if err != nil {
			return nil, err
		}
		r.Ops = append(r.Ops, op)
		p.space()
		if p.peek() == '|' {
			r.Mode = Chain
		}
		if r.Mode == Chain {
			if err := p.unreserved(r.Ops[len(r.Ops)-1:]); err != nil {
				return nil, err
			}
		}
		if p.peek() != '|' {
			break
		}
		p.pos++
		p.space()
	}
	r.Units = []Unit{{0, len(r.Ops)}}
	switch {
	case p.peek() == ',':
		return nil, p.fail(MixedSeparators, p.pos,
			`"," between calls belongs in brackets and "|" makes a chain: write [a(), b() | c()] with brackets around all, or send two requests`)
	case !p.atEnd():
		return nil, p.fail(UnexpectedChar, p.pos, `found %s after a complete call: join calls by "|", or put them in brackets with "," between`, p.found(p.pos))
	case r.Mode == Chain:
		return r, nil
	}
	return p.placed(r)
}

// batch reads "[" units "]".
func (p *parser) batch() (*Request, error) {
	r := &Request{Mode: Parallel, Ops: make([]Op, 0, 8), Units: make([]Unit, 0, 8)}
	p.pos++
	p.space()
	if p.peek() == ']' {
		return nil, p.fail(EmptyBatch, 0, "the batch has no calls")
	}
	for {
		if err := p.unit(r); err != nil {
			return nil, err
		}
		comma := p.pos
		if p.peek() != ',' {
			break
		}
		p.pos++
		p.space()
		if p.peek() == ']' {
			return nil, p.fail(TrailingComma, comma, `remove the "," before "]"`)
		}
	}
	if err := p.expect(']', `"," or "]"`); err != nil {
		return nil, err
	}
	p.space()
	if !p.atEnd() {
		return nil, p.fail(UnexpectedChar, p.pos, "found %s after the end of the batch", p.found(p.pos))
	}
	return p.placed(r)
}

// unit reads calls joined by "|" and the white space after them.
func (p *parser) unit(r *Request) error {
	start := len(r.Ops)
	for {
		op, err := p.call(len(r.Ops))
		if err != nil {
			return err
		}
		r.Ops = append(r.Ops, op)
		p.space()
		if p.peek() != '|' {
			r.Units = append(r.Units, Unit{start, len(r.Ops)})
			return nil
		}
		p.pos++
		p.space()
	}
}

// placed checks what can only be said of the whole: that the first call of each
// unit refers to nothing (VD-035), then that no argument has a reserved name (VD-042).
func (p *parser) placed(r *Request) (*Request, error) {
	for _, u := range r.Units {
		for _, a := range r.Ops[u.Start].Args {
			if a.Value.dynamic {
				return nil, p.fail(PrevOutsideChain, reference(a.Value).At(),
					`argument %q of %s uses $prev, but no call stands before it: join the calls by "|"`, a.Name, r.Ops[u.Start].Tool)
			}
		}
	}
	if err := p.unreserved(r.Ops); err != nil {
		return nil, err
	}
	return r, nil
}

// reference is the first reference inside v, which has one.
func reference(v Value) Value {
	for v.kind != Reference {
		i := slices.IndexFunc(v.items, func(it Item) bool { return it.Value.dynamic })
		if i < 0 {
			return v
		}
		v = v.items[i].Value
	}
	return v
}

func (p *parser) unreserved(ops []Op) error {
	for _, op := range ops {
		for _, a := range op.Args {
			if Reserved(a.Name) {
				return p.fail(ReservedEnvelopeArg, op.At,
					"%s belongs to the request, not to a call: give it beside ops instead of as an argument of %s", a.Name, op.Tool)
			}
		}
	}
	return nil
}

// call reads verb "(" args ")"; before counts the calls read so far.
func (p *parser) call(before int) (Op, error) {
	if before >= MaxOps {
		return Op{}, p.fail(TooManyOps, p.pos, "the request has %d operations or more, the limit is %d: split it", before+1, MaxOps)
	}
	op := Op{At: p.pos}
	var err error
	if op.Tool, err = p.verb(); err != nil {
		return op, err
	}
	p.space()
	open := p.pos
	if err := p.expect('(', `"("`); err != nil {
		return op, err
	}
	p.space()
	switch {
	case p.peek() == ')':
		p.pos++
		return op, nil
	case p.atEnd():
		return op, p.unclosed(open, op.Tool)
	}
	op.Args, err = p.args(open, op.Tool)
	return op, err
}

func (p *parser) unclosed(open int, tool string) error {
	return p.fail(UnclosedCall, open, `the call of %s is not closed: ")" is expected before the text ends`, tool)
}

func (p *parser) verb() (string, error) {
	start := p.pos
	pack, err := p.ident("the name of a verb")
	if err != nil || p.peek() != '.' {
		return pack, err
	}
	p.pos++
	direct := p.pos
	p.space()
	name, err := p.ident(`the name of a verb after "."`)
	if err != nil {
		return "", err
	}
	if p.peek() == '.' {
		return "", p.nested()
	}
	if p.pos-len(name) == direct {
		return p.text[start:p.pos], nil
	}
	return pack + "." + name, nil
}

func (p *parser) nested() error {
	return p.fail(UnsupportedNesting, p.pos, "a verb has one dot only: verb or pack.verb")
}

// args reads the arguments and the closing parenthesis.
func (p *parser) args(open int, tool string) ([]Item, error) {
	if p.stack == nil {
		p.stack = make([]Item, 0, 8) // enough for most requests
	}
	base := len(p.stack)
	for {
		at := p.pos
		name, err := p.ident("the name of an argument (arguments are written name=value)")
		if err != nil {
			return nil, err
		}
		p.space()
		if err := p.expect('=', `"="`); err != nil {
			return nil, err
		}
		p.space()
		v, err := p.value(name, false)
		if err != nil {
			return nil, err
		}
		i, twice := slices.BinarySearchFunc(p.stack[base:], name, byName)
		if twice {
			return nil, p.fail(DuplicateArg, at, "argument %q of %s is given twice", name, tool)
		}
		p.stack = slices.Insert(p.stack, base+i, Item{name, v})
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.space()
			continue
		case ')':
			p.pos++
			return p.take(base), nil
		}
		if p.atEnd() {
			return nil, p.unclosed(open, tool)
		}
		return nil, p.wrong(`"," or ")"`)
	}
}
