package verbs

import (
	"slices"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
)

// Arguments every verb accepts beside its own: they are answered before a handler
// sees them.
const (
	helpArg      = "help"
	namespaceArg = "namespace"
)

// Check compares arguments, whose references have been filled in, with the verb's
// parameters: unknown ones, missing ones and wrong types are refused. The result is
// sorted, has canonical names only, and neither help nor an undeclared namespace,
// which the caller has resolved before.
func (v *Verb) Check(args []request.Item) ([]request.Item, error) {
	out := make([]request.Item, 0, len(args))
	for _, a := range args {
		p := v.param(a.Name)
		switch {
		case p != nil:
		case a.Name == namespaceArg:
			continue
		case a.Name == helpArg:
			if b, ok := a.Value.Bool(); !ok || b {
				return nil, invalid("argument %q of %s must be the boolean true, alone, or be left out", a.Name, v.Name)
			}
			continue
		default:
			return nil, v.unknown(a.Name)
		}
		if given := slices.IndexFunc(out, func(o request.Item) bool { return o.Name == p.Name }); given >= 0 {
			return nil, invalid("argument %q of %s is given under two names", p.Name, v.Name)
		}
		if err := v.checkValue(p, a.Value); err != nil {
			return nil, err
		}
		out = append(out, request.Item{Name: p.Name, Value: a.Value})
	}
	for _, p := range v.Params {
		if p.Required && !slices.ContainsFunc(out, func(o request.Item) bool { return o.Name == p.Name }) {
			return nil, invalid("%s needs argument %q: %s", v.Name, p.Name, p.Description)
		}
	}
	slices.SortFunc(out, func(a, b request.Item) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidRequest, "invalid input", "", format, args...)
}

// param finds the parameter that goes by name or has it as an alias.
func (v *Verb) param(name string) *Param {
	for i := range v.Params {
		if p := &v.Params[i]; p.Name == name || slices.Contains(p.Aliases, name) {
			return p
		}
	}
	return nil
}

func (v *Verb) unknown(name string) error {
	names := make([]string, len(v.Params))
	for i, p := range v.Params {
		names[i] = p.Name
	}
	takes := "it takes none"
	if len(names) > 0 {
		takes = "it takes " + strings.Join(names, ", ")
	}
	e := invalid("%s has no argument %q; %s", v.Name, name, takes)
	if near, ok := fault.Nearest(name, names); ok {
		return e.WithNext("write %s instead of %s, or call %s(help=true)", near, name, v.Name)
	}
	return e.WithNext("call %s(help=true)", v.Name)
}

func (v *Verb) checkValue(p *Param, value request.Value) error {
	if value.IsNull() && p.Nullable {
		return nil
	}
	if !schemas[p.Type].accepts(value) {
		return invalid("argument %q of %s must be %s, not %s", p.Name, v.Name, article(p.Type), value.Kind())
	}
	values := []request.Item{{Value: value}}
	if p.Type == Texts {
		values = value.Items()
	}
	for _, one := range values {
		s, _ := one.Value.Text()
		if p.Identifier != NoIdentifier {
			if _, err := p.Identifier.Admit(p.Name, s); err != nil {
				return err
			}
		}
		if len(p.Enum) > 0 && !slices.Contains(p.Enum, s) {
			return invalid("argument %q of %s is %q; it must be one of %s", p.Name, v.Name, s, strings.Join(p.Enum, ", "))
		}
	}
	return nil
}

func article(t Type) string {
	if strings.IndexByte("aeio", t[0]) >= 0 {
		return "an " + string(t)
	}
	return "a " + string(t)
}

// schema is what a type of the vocabulary means: which values have it, and its JSON
// Schema.
type schema struct {
	accepts func(request.Value) bool
	members []request.Item
}

func typed(name string, more ...request.Item) []request.Item {
	return append([]request.Item{{Name: "type", Value: request.OfString(name)}}, more...)
}

func kind(k request.Kind) func(request.Value) bool {
	return func(v request.Value) bool { return v.Kind() == k }
}

func each(k request.Kind) func(request.Value) bool {
	return func(v request.Value) bool {
		return v.Kind() == request.Array && !slices.ContainsFunc(v.Items(), func(it request.Item) bool { return it.Value.Kind() != k })
	}
}

func items(name string) request.Item {
	return request.Item{Name: "items", Value: request.OfObject(typed(name)...)}
}

// whole reports whether v is an integer: written without fraction and exponent, so
// that no digit is in doubt.
func whole(v request.Value) bool {
	digits, ok := v.Digits()
	return ok && !strings.ContainsAny(digits, ".eE")
}

var schemas = map[Type]schema{
	Text:    {kind(request.String), typed("string")},
	Integer: {whole, typed("integer")},
	Float:   {kind(request.Number), typed("number")},
	Boolean: {kind(request.Bool), typed("boolean")},
	Struct:  {kind(request.Object), typed("object")},
	Texts:   {each(request.String), typed("array", items("string"))},
	Records: {each(request.Object), typed("array", items("object"))},
	List:    {kind(request.Array), typed("array")},
	Any:     {func(request.Value) bool { return true }, nil},
}
