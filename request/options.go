package request

import (
	"slices"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// Format is how a result is written (VD-002).
type Format string

// Formats.
const (
	FormatJSON  Format = "json"
	FormatAuto  Format = "auto"
	FormatTable Format = "table"
)

var (
	presentations = []string{string(Agent), string(Verbose), string(Human)}
	formats       = []string{string(FormatJSON), string(FormatAuto), string(FormatTable)}
)

// Options are what stands beside the text of a request. An empty entry of a per-op
// list, or a position past its end, falls back to the common one.
type Options struct {
	Presentation string
	PerOp        []string
	Format       string
	FormatPerOp  []string
}

// Check refuses an unknown name and a list longer than the request has operations,
// before anything runs (VD-003).
func (o Options) Check(ops int) error {
	for _, c := range []struct {
		what  string
		valid []string
		one   string
		list  []string
	}{{"presentation", presentations, o.Presentation, o.PerOp}, {"format", formats, o.Format, o.FormatPerOp}} {
		if len(c.list) > ops {
			return fault.New(fault.InvalidRequest, "read options", c.what+"_per_op", "the list has %d entries for %d operations", len(c.list), ops)
		}
		for _, name := range append([]string{c.one}, c.list...) {
			if name != "" && !slices.Contains(c.valid, name) {
				return fault.New(fault.InvalidRequest, "read options", name, "no such %s; it is one of %s", c.what, strings.Join(c.valid, ", "))
			}
		}
	}
	return nil
}

// PresentationOf is the presentation of operation i, which calls verb: agent unless
// said otherwise, and verbose for verbs that are never shortened.
func (o Options) PresentationOf(i int, verb string) Presentation {
	name := o.Presentation
	if i < len(o.PerOp) && o.PerOp[i] != "" {
		name = o.PerOp[i]
	}
	if name != "" && name != string(Agent) {
		return Presentation(name)
	}
	if AlwaysVerbose(verb) {
		return Verbose
	}
	return Agent
}

// besidesPlan are the fields that a plan has no use for.
var besidesPlan = []string{"presentation", "presentation_per_op", "format", "format_per_op", "save_to", "request_id"}

// CheckPlan refuses a field of the request that is present, even as null, although
// only a plan is asked for (VD-004).
func CheckPlan(present []string) error {
	for _, name := range present {
		if slices.Contains(besidesPlan, name) {
			return fault.New(fault.InvalidRequest, "plan request", name, "the field has no meaning with plan").
				WithNext("leave %s out, or leave plan out", name)
		}
	}
	return nil
}
