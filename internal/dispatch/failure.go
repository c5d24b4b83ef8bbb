package dispatch

import (
	"errors"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
)

// Values of reason beside a failure (VD-077).
const (
	reasonGate = "gate-refusal"
	reasonVerb = "verb-refused"
)

// refusal is a failure whose kind is of the transport and stands in no fault table.
type refusal struct{ kind, code, text string }

func (r *refusal) Error() string { return r.text }

// Unwrap gives the fault nearest to it.
func (r *refusal) Unwrap() error { return fault.New(fault.Code(r.code), "", "", "%s", r.text) }

// kept is a failure as its receipt tells it, in the words of the first answer.
type kept struct{ r *Receipt }

func (k *kept) Error() string { return k.r.Message }

// Unwrap gives the fault that it was.
func (k *kept) Unwrap() error {
	return &fault.Error{Code: fault.Code(k.r.Code), Message: k.r.Message, Next: k.r.Next, Retry: k.r.Retry}
}

// boundary is the one table from fault codes to the verb plane (CP-134, VD-155,
// VD-158): the kind, the code where it is spelt otherwise, and how the text begins.
var boundary = map[fault.Code]struct{ kind, code, begins string }{
	fault.InvalidRequest:  {"invalid_input", "invalid_input", "invalid input"},
	fault.Usage:           {"invalid_input", "invalid_input", "invalid input"},
	fault.UnknownMethod:   {"runtime_error", "unknown_verb", ""},
	fault.Denied:          {"runtime_error", "permission_denied", ""},
	fault.GateUnavailable: {"runtime_error", "gate_unavailable", ""},
	fault.NotFound:        {"not_found", "", "not found"},
	fault.Conflict:        {"conflict", "", "conflict"},
	fault.StaleEpoch:      {"conflict", "", "conflict"},
	fault.Ambiguous:       {"ambiguous", "", "ambiguous"},
	fault.SecretDetected:  {"secret_detected", "", ""},
	fault.AuditObligation: {"obligation", "", ""},
	fault.Unavailable:     {"unavailable", "", "unavailable"},
	fault.StoreFull:       {"unavailable", "", "storage"},
	fault.LimitExceeded:   {"limit_exceeded", "", "limit exceeded"},
	fault.Timeout:         {"timeout", "", "deadline exceeded"},
	fault.Cancelled:       {"cancelled", "", "cancelled"},
	fault.Held:            {"held", "", "held"},
	fault.Unknown:         {"unknown", "", "outcome unknown"},
	fault.Internal:        {"runtime_error", "", "internal"},
}

// seen is an error as the verb plane shows it.
type seen struct {
	kind, code, message, next string
	retry                     bool
}

func view(err error) seen {
	var r *refusal
	if errors.As(err, &r) {
		return seen{kind: r.kind, code: r.code, message: r.text}
	}
	var again *kept
	if errors.As(err, &again) && again.r.Kind != "" {
		return seen{kind: again.r.Kind, code: again.r.Shown, message: again.r.Message, next: again.r.Next, retry: again.r.Retry}
	}
	code := fault.CodeOf(err)
	row, known := boundary[code]
	if !known {
		row.kind = "runtime_error"
	}
	s := seen{kind: row.kind, code: row.code, message: err.Error()}
	if s.code == "" {
		s.code = string(code)
	}
	if row.begins != "" && !strings.HasPrefix(s.message, row.begins+": ") {
		s.message = row.begins + ": " + s.message
	}
	var f *fault.Error
	if errors.As(err, &f) {
		s.next, s.retry = f.Next, f.Retry
	}
	return s
}

// answer makes the entry's outcome.
func answer(o outcome, tool string) request.Outcome {
	if o.err == nil {
		return request.Outcome{Done: true, Result: o.value, Siblings: o.siblings, Advisories: o.advisories}
	}
	s := view(o.err)
	f := &request.Failure{Kind: s.kind, Message: s.message, Disposition: o.disp}
	f.Details = append(f.Details, request.Item{Name: "code", Value: request.OfString(s.code)})
	if s.next != "" {
		f.Details = append(f.Details, request.Item{Name: "next", Value: request.OfString(s.next)})
	}
	f.Details = append(f.Details, request.Item{Name: "retryable", Value: request.OfBool(s.retry)})
	if o.act != "" {
		f.Details = append(f.Details, request.Item{Name: "act", Value: request.OfString(o.act)})
	}
	if o.domain != nil {
		f.Details = append(f.Details, request.Item{Name: "domain_result", Value: *o.domain})
	}
	for _, it := range o.details {
		if it.Name != "verb" || tool != "" {
			f.Details = append(f.Details, it)
		}
	}
	return request.Outcome{Failure: f, Reason: o.reason}
}
