package request

import "errors"

// Catalogue is what planning knows of verbs.
type Catalogue interface {
	// PackOf is the pack that owns a verb which the asker may call, or false.
	PackOf(verb string) (pack string, known bool)
}

// Bounds are the limits as a plan reports them.
type Bounds struct {
	MaxOps   int `json:"max_ops"`
	MaxDepth int `json:"max_depth"`
	MaxInput int `json:"max_input_len"` // bytes
}

// Stage is one operation of a plan.
type Stage struct {
	Index int     `json:"index"`
	Verb  string  `json:"verb"`
	Pack  *string `json:"pack"`
	Known bool    `json:"known"`
	Args  Members `json:"args"`
	Prev  []Use   `json:"prev_refs"`
	Unit  int     `json:"unit_index"`
}

// Use is one reference of a stage: the argument that holds it and its text.
type Use struct {
	Argument string `json:"arg"`
	Path     string `json:"ref"`
}

// Members are arguments, written as an object.
type Members []Item

// MarshalJSON implements json.Marshaler.
func (m Members) MarshalJSON() ([]byte, error) { return appendMembers(nil, m), nil }

// Plan says what a text would do (VD-065). It implies no permission.
type Plan struct {
	Parsed bool      `json:"parsed"`
	Mode   Mode      `json:"mode,omitempty"`
	Count  int       `json:"stage_count,omitempty"`
	Stages []Stage   `json:"stages,omitempty"`
	Units  []Unit    `json:"units,omitempty"`
	Error  *PlanFail `json:"error,omitempty"`
	Limits Bounds    `json:"limits"`
}

// PlanFail is a refusal of the text, which a plan reports as its answer.
type PlanFail struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Offset  *int   `json:"byte,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Excerpt string `json:"excerpt,omitempty"`
}

// MakePlan reads text and looks its verbs up. It has no other source than the two.
func MakePlan(text string, known Catalogue) Plan {
	plan := Plan{Limits: Bounds{MaxOps, MaxDepth, MaxBytes}}
	r, err := Parse(text)
	if err != nil {
		plan.Error = failure(err)
		return plan
	}
	plan.Parsed, plan.Mode, plan.Count, plan.Units = true, r.Mode, len(r.Ops), r.Units
	for i, op := range r.Ops {
		s := Stage{Index: i, Verb: op.Tool, Args: op.Args, Prev: []Use{}, Unit: r.UnitOf(i)}
		if pack, ok := known.PackOf(op.Tool); ok {
			s.Pack, s.Known = &pack, true
		}
		for _, a := range op.Args {
			s.Prev = uses(s.Prev, a.Name, a.Value)
		}
		plan.Stages = append(plan.Stages, s)
	}
	return plan
}

func failure(err error) *PlanFail {
	var e *ParseError
	if !errors.As(err, &e) {
		return &PlanFail{Message: err.Error()}
	}
	f := &PlanFail{Code: e.Code, Message: e.Error(), Line: e.Line, Column: e.Column, Excerpt: e.Excerpt}
	if e.Offset >= 0 {
		f.Offset = &e.Offset
	}
	return f
}

func uses(found []Use, argument string, v Value) []Use {
	if !v.dynamic {
		return found
	}
	if v.kind == Reference {
		return append(found, Use{argument, v.path.String()})
	}
	for _, it := range v.items {
		found = uses(found, argument, it.Value)
	}
	return found
}
