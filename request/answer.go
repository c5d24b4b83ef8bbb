package request

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Disposition says whether the act of an operation took lasting effect (VD-074).
type Disposition string

// Dispositions. Whatever is missing or unreadable is Undetermined: never a licence
// to try again.
const (
	Committed    Disposition = "committed"
	NotCommitted Disposition = "not_committed"
	Undetermined Disposition = "unknown"
)

// Status of an answer (VD-070).
type Status string

// Statuses.
const (
	Success Status = "success"
	Partial Status = "partial"
)

// Kinds of failures that this package can name itself; packs and transports have
// more (VD-155).
const (
	KindSubstitution   = "substitution_error"
	KindWriteConflict  = "write_key_conflict"
	KindResultTooDeep  = "result_too_deep"
	KindBudget         = "response_budget_exceeded"
	KindFrameBudget    = "response_frame_budget_exceeded"
	KindNoOutcome      = "runtime_error"
	frameAdviceRead    = "nothing was changed: ask for less and retry"
	frameAdviceWritten = "the act was carried out: read its outcome instead of repeating it"
)

// Advisory is a remark of the transport about a success (VD-076). It changes neither
// result nor summary.
type Advisory struct {
	Code      string `json:"code"`
	Severity  string `json:"severity"`
	Component string `json:"component"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// Failure is why an operation did not succeed (VD-072).
type Failure struct {
	Kind        string
	Message     string
	Disposition Disposition
	Details     []Item // further members, by the kind
}

// MarshalJSON implements json.Marshaler.
func (f *Failure) MarshalJSON() ([]byte, error) {
	members := []Item{
		{"kind", OfString(f.Kind)},
		{"message", OfString(f.Message)},
		{"domain_disposition", OfString(string(f.disposition()))},
	}
	return appendMembers(nil, append(members, f.Details...)), nil
}

func (f *Failure) disposition() Disposition {
	switch f.Disposition {
	case Committed, NotCommitted:
		return f.Disposition
	}
	return Undetermined
}

// Refused is the failure of an operation that was never started for err, which this
// package made: a *SubstitutionError or a Conflict.
func Refused(err error) *Failure {
	f := &Failure{Message: err.Error(), Disposition: NotCommitted}
	switch e := err.(type) { //nolint:errorlint // made here, never wrapped
	case *SubstitutionError:
		f.Kind, f.Details = KindSubstitution, []Item{{"reason", OfString(string(e.Reason))}}
	case Conflict:
		f.Kind, f.Details = KindWriteConflict, []Item{{"key", OfString(e.Key)}, {"other_op_index", OfInt(int64(e.Other))}}
	default:
		f.Kind = KindNoOutcome
	}
	return f
}

// Outcome is what became of one operation. The zero Outcome is that of one that was
// never started. Done and Failure exclude each other.
type Outcome struct {
	Done       bool
	Result     Value // canonical, or presented just before assembly
	Advisories []Advisory
	Siblings   []Item // of a success, beside result: usage, partial, … (VD-071)
	Failure    *Failure
	Reason     string // of a failure, from the closed set of VD-077
}

// Entry is one operation of an answer.
type Entry struct {
	OK          bool        `json:"ok"`
	Tool        string      `json:"tool"`
	Index       int         `json:"op_index"`
	Unit        *int        `json:"unit_index,omitempty"`
	Step        *int        `json:"step_index,omitempty"`
	Aborted     bool        `json:"aborted,omitempty"`
	Disposition Disposition `json:"domain_disposition,omitempty"`
	Result      *Value      `json:"result,omitempty"`
	Error       *Failure    `json:"error,omitempty"`
	Reason      string      `json:"reason,omitempty"`
	Message     string      `json:"message,omitempty"`
	Advisories  []Advisory  `json:"advisories,omitempty"`
	Siblings    []Item      `json:"-"`
}

// MarshalJSON implements json.Marshaler: siblings stand beside the other members.
func (e Entry) MarshalJSON() ([]byte, error) {
	type plain Entry
	b, err := json.Marshal(plain(e))
	if err != nil || len(e.Siblings) == 0 {
		return b, err
	}
	b[len(b)-1] = ','
	return append(b, appendMembers(nil, e.Siblings)[1:]...), nil
}

// Summary counts entries; Total is the number of operations (VD-051).
type Summary struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Aborted   int `json:"aborted"`
}

// Answer is the envelope of section 5 of the requirements.
type Answer struct {
	Results []Entry `json:"results"`
	Summary Summary `json:"summary"`
	Status  Status  `json:"status"`
}

// Assemble puts outcomes, one per operation in the order of the request, into the
// answer. In a unit, what follows a failure and was not started is aborted (VD-053,
// VD-073). An operation that was not started although nothing before it failed, or
// whose outcome is missing, is a failure of unknown disposition.
func Assemble(r *Request, outcomes []Outcome) Answer {
	a := Answer{Results: make([]Entry, len(r.Ops))}
	placed := r.chains()
	for u, unit := range r.Units {
		failed := -1
		for i := unit.Start; i < unit.End; i++ {
			e := Entry{Tool: r.Ops[i].Tool, Index: i}
			if placed {
				step := i - unit.Start
				e.Unit, e.Step = &u, &step
			}
			var o Outcome
			if i < len(outcomes) {
				o = outcomes[i]
			}
			switch {
			case o.Failure != nil:
				e.Error, e.Disposition, e.Reason = o.Failure, o.Failure.disposition(), o.Reason
			case o.Done:
				e.OK, e.Result, e.Siblings, e.Advisories = true, &o.Result, o.Siblings, once(o.Advisories)
			case failed >= 0:
				e.Aborted, e.Disposition = true, NotCommitted
				e.Message = fmt.Sprintf("not evaluated: operation %d (%s) before it failed", failed, r.Ops[failed].Tool)
			default:
				e.Error = &Failure{Kind: KindNoOutcome, Message: "no outcome of the operation is known"}
				e.Disposition = Undetermined
			}
			if e.Error != nil && failed < 0 {
				failed = i
			}
			a.Results[i] = e
		}
	}
	a.count()
	return a
}

// once keeps the first advisory of each code.
func once(all []Advisory) []Advisory {
	var kept []Advisory
	for _, a := range all {
		if !slices.ContainsFunc(kept, func(k Advisory) bool { return k.Code == a.Code }) {
			kept = append(kept, a)
		}
	}
	return kept
}

func (a *Answer) count() {
	a.Summary, a.Status = Summary{Total: len(a.Results)}, Success
	for i := range a.Results {
		switch e := &a.Results[i]; {
		case e.OK:
			a.Summary.Succeeded++
			continue
		case e.Aborted:
			a.Summary.Aborted++
		default:
			a.Summary.Failed++
		}
		a.Status = Partial
	}
}

// IsError reports whether nothing succeeded and something did not (VD-007).
func (a *Answer) IsError() bool {
	return a.Summary.Succeeded == 0 && a.Summary.Failed+a.Summary.Aborted > 0
}

// Withdraw replaces the success of operation i, whose result does not fit the frame,
// by a failure that says so, and counts again (VD-058). wrote tells whether the
// operation may have changed anything: then its disposition is committed.
func (a *Answer) Withdraw(i, size, limit int, wrote bool) {
	e := &a.Results[i]
	if !e.OK {
		return
	}
	f := &Failure{Kind: KindFrameBudget, Disposition: NotCommitted}
	advice := frameAdviceRead
	if wrote {
		f.Disposition, advice = Committed, frameAdviceWritten
	}
	f.Message = fmt.Sprintf("the result has %d bytes, %d fit: %s", size, limit, advice)
	e.OK, e.Result, e.Error, e.Disposition = false, nil, f, f.Disposition
	a.count()
}
