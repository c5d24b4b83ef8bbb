package verbs

import (
	"slices"

	"github.com/reeve-run/reeve/request"
)

// Texts of identifier_resolution, the same for every verb (VD-113).
const (
	fullText   = "A complete UUID, in a spelling the parameter takes, names one record directly, without a search; answers give it in lower case with dashes."
	prefixText = "At least 8 hexadecimal digits without dashes that do not form a complete UUID are searched for, within the scope of the parameter; the search can find nothing or more than one record."
	ruleText   = "A parameter that needs a complete UUID refuses a prefix and says why."
)

// Describe is the answer to help=true (VD-112 to VD-114, VD-210): what a verb is and
// takes, internal verbs included. A disabled one is unknown.
func (r *Registry) Describe(name string) (request.Value, error) {
	v, ok := r.Lookup(name)
	if !ok {
		return request.Value{}, r.UnknownVerb(name)
	}
	members := []request.Item{
		{Name: "verb", Value: request.OfString(v.Name)},
		{Name: "pack", Value: request.OfString(v.Pack)},
		{Name: "description", Value: request.OfString(v.Description)},
		{Name: "category", Value: request.OfString(string(v.Category))},
		{Name: "identifier_resolution", Value: resolution()},
		{Name: "params", Value: v.params()},
		{Name: "input_schema", Value: v.InputSchema()},
	}
	if v.Visibility == Internal {
		members = append(members,
			request.Item{Name: "visibility", Value: request.OfString("internal")},
			request.Item{Name: "callable_via_mcp", Value: request.OfBool(false)},
			request.Item{Name: "note", Value: request.OfString("Only the operator can call this; agents are refused.")})
	}
	return request.OfObject(members...), nil
}

func resolution() request.Value {
	texts := make([]request.Item, 0, len(modes))
	for _, mode := range sortedModes() {
		if mode != NoIdentifier {
			texts = append(texts, request.Item{Name: string(mode), Value: request.OfString(modes[mode])})
		}
	}
	return request.OfObject(
		request.Item{Name: "full_uuid", Value: request.OfString(fullText)},
		request.Item{Name: "short_prefix", Value: request.OfString(prefixText)},
		request.Item{Name: "parameter_rule", Value: request.OfString(ruleText)},
		request.Item{Name: "resolution_modes", Value: request.OfObject(texts...)},
	)
}

func (v *Verb) params() request.Value {
	list := make([]request.Value, len(v.Params))
	for i, p := range v.Params {
		list[i] = request.OfObject(
			request.Item{Name: "name", Value: request.OfString(p.Name)},
			request.Item{Name: "type", Value: request.OfString(string(p.Type))},
			request.Item{Name: "required", Value: request.OfBool(p.Required)},
			request.Item{Name: "description", Value: request.OfString(p.described())},
		)
	}
	return request.OfArray(list...)
}

// described adds how an identifier is resolved (VD-113).
func (p *Param) described() string {
	if p.Identifier == NoIdentifier {
		return p.Description
	}
	return p.Description + " " + modes[p.Identifier]
}

// InputSchema is the JSON Schema of the arguments, derived from the parameters, so
// that it accepts what Check accepts under canonical names.
func (v *Verb) InputSchema() request.Value {
	properties := make([]request.Item, len(v.Params))
	required := []request.Value{}
	for i, p := range v.Params {
		properties[i] = request.Item{Name: p.Name, Value: p.schema()}
		if p.Required {
			required = append(required, request.OfString(p.Name))
		}
	}
	return request.OfObject(
		request.Item{Name: "type", Value: request.OfString("object")},
		request.Item{Name: "properties", Value: request.OfObject(properties...)},
		request.Item{Name: "required", Value: request.OfArray(required...)},
		request.Item{Name: "additionalProperties", Value: request.OfBool(false)},
	)
}

func (p *Param) schema() request.Value {
	members := slices.Clone(schemas[p.Type].members)
	if len(p.Enum) > 0 {
		values := make([]request.Value, len(p.Enum))
		for i, s := range p.Enum {
			values[i] = request.OfString(s)
		}
		enum := request.Item{Name: "enum", Value: request.OfArray(values...)}
		if p.Type == Texts {
			members[1] = request.Item{Name: "items", Value: request.OfObject(typed("string", enum)...)}
		} else {
			members = append(members, enum)
		}
	}
	if p.Nullable && p.Type != Any {
		either := request.OfArray(request.OfObject(members...), request.OfObject(typed("null")...))
		members = []request.Item{{Name: "anyOf", Value: either}}
	}
	return request.OfObject(append(members, request.Item{Name: "description", Value: request.OfString(p.described())})...)
}
