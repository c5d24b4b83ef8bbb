package wire

import (
	"github.com/reeve-run/reeve/fault"
)

// Members of the result of a host_reply or a completed.
const (
	rKind = 1 << iota
	rValue
	rCode
	rMessage
	rStatus
	rOutput
	rTruncated
	rError
)

// resultFields are the members in the order of their bits, as faults name them.
var resultFields = []string{
	"message.result.kind", "message.result.value", "message.result.code", "message.result.message",
	"message.result.status", "message.result.output", "message.result.truncated_bytes", "message.result.error",
}

// result holds the members of a result until its kind is known.
type result struct {
	seen          int
	kind          string
	value         Raw
	code, message string
	status        string
	output        []OutputRecord
	truncated     int64
	error         *string
}

const (
	resultField = "message.result"
	outputField = "message.result.output"
)

var recordFields = []string{"message.result.output.stream", "message.result.output.text"}

func (s *scanner) result(r *result) *fault.Error {
	more, f := s.enter('{')
	for ; more && f == nil; more, f = s.more('}') {
		s.field = resultField
		name, f := s.name()
		if f != nil {
			return f
		}
		bit, field := lookup(resultFields, name)
		if f := member(resultField, name, r.seen, bit); f != nil {
			return f
		}
		r.seen |= bit
		s.field = field
		if f := s.resultMember(r, bit); f != nil {
			return f
		}
	}
	return f
}

func (s *scanner) resultMember(r *result, bit int) (f *fault.Error) {
	switch bit {
	case rKind:
		r.kind, f = s.word()
	case rValue:
		r.value, f = s.raw()
	case rCode:
		r.code, f = s.string()
	case rMessage:
		r.message, f = s.string()
	case rStatus:
		r.status, f = s.word()
	case rOutput:
		r.output, f = s.records()
	case rTruncated:
		r.truncated, f = s.integer()
	case rError:
		r.error, f = s.optional()
	}
	return f
}

// records reads the output of a cell; the list is nil when there is none.
func (s *scanner) records() (list []OutputRecord, f *fault.Error) {
	more, f := s.enter('[')
	for ; more && f == nil; more, f = s.more(']') {
		if len(list) == MaxOutputItems {
			return nil, refuse(fault.LimitExceeded, outputField, "more than %d records", MaxOutputItems)
		}
		record, f := s.record()
		if f != nil {
			return nil, f
		}
		list = append(list, record)
		s.field = outputField
	}
	return list, f
}

func (s *scanner) record() (r OutputRecord, f *fault.Error) {
	seen := 0
	more, f := s.enter('{')
	for ; more && f == nil; more, f = s.more('}') {
		name, f := s.name()
		if f != nil {
			return r, f
		}
		bit, field := lookup(recordFields, name)
		if f := member(outputField, name, seen, bit); f != nil {
			return r, f
		}
		seen |= bit
		s.field = field
		if bit == 1 {
			r.Stream, f = s.word()
		} else {
			r.Text, f = s.string()
		}
		if f != nil {
			return r, f
		}
	}
	if f == nil {
		f = missing(outputField, seen, 3, recordFields)
	}
	return r, f
}

// exactly refuses a result whose members are not those of its form.
func (r *result) exactly(want int) *fault.Error {
	if f := missing(resultField, r.seen, want, resultFields); f != nil {
		return f
	}
	return surplus(resultField, r.seen, want, resultFields, r.kind)
}

// form tells the forms of a result apart; an unknown one is refused.
func (r *result) form(forms map[string]int) *fault.Error {
	if r.seen&rKind == 0 {
		return missing(resultField, r.seen, rKind, resultFields)
	}
	want, known := forms[r.kind]
	if !known {
		return refuse(fault.InvalidRequest, resultField+".kind", "%q is not a form of this result", shorten(r.kind))
	}
	return r.exactly(rKind | want)
}

var (
	replyForms     = map[string]int{"ok": rValue, "error": rCode | rMessage}
	completedForms = map[string]int{"cell": rStatus | rOutput | rTruncated | rError, "hook": rValue, "failed": rError}
)

func (m *fields) hostReply() (Message, *fault.Error) {
	r := &m.result
	if f := r.form(replyForms); f != nil {
		return nil, f
	}
	reply := HostReply{ID: m.id, ExecutionID: m.executionID, Value: r.value, Code: r.code, Text: r.message}
	if r.kind == "error" && r.code == "" {
		return nil, refuse(fault.InvalidRequest, resultField+".code", "is empty")
	}
	return reply, nil
}

func (m *fields) completed() (Message, *fault.Error) {
	r := &m.result
	if f := r.form(completedForms); f != nil {
		return nil, f
	}
	done := Completed{ID: m.id}
	switch r.kind {
	case "cell":
		done.Cell = &CellResult{Status: r.status, Output: r.output, TruncatedBytes: r.truncated, Error: r.error}
	case "hook":
		done.Hook = r.value
	default:
		if r.error == nil {
			return nil, refuse(fault.InvalidRequest, resultField+".error", "a string is due, found null")
		}
		done.Failed = r.error
	}
	return done, nil
}
