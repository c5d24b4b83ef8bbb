// Package fault is the closed set of ways in which reeve says no, and the one
// error type that carries them.
//
// A Code is stable: it crosses the worker wire, MCP, the control API and the
// command line unchanged, and each of those boundaries maps it by one table
// (ExitStatus here; HTTP and JSON-RPC numbers beside their servers). Text is
// for people and is never parsed.
//
// Invariants: every error that leaves a package of ours for a person or a peer
// is an *Error with a code from this file; the Next line, when present, is an
// instruction that can be followed as written; nothing in this package knows
// about transport, storage or processes.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Code names one kind of refusal or failure (CP-043, CP-134).
type Code string

// The codes of CP-043, which a host request may be answered with.
const (
	InvalidRequest  Code = "invalid_request"
	UnknownMethod   Code = "unknown_method"
	ScopeExpired    Code = "scope_expired"
	RequestLimit    Code = "request_limit"
	Denied          Code = "denied"
	GateUnavailable Code = "gate_unavailable"
	NotFound        Code = "not_found"
	Conflict        Code = "conflict"
	StaleEpoch      Code = "stale_epoch"
	StaleGeneration Code = "stale_generation"
	LimitExceeded   Code = "limit_exceeded"
	Timeout         Code = "timeout"
	Cancelled       Code = "cancelled"
	Unavailable     Code = "unavailable"
	Internal        Code = "internal"
)

// The codes CP-134 adds for the other planes.
const (
	Ambiguous       Code = "ambiguous"
	SecretDetected  Code = "secret_detected"
	AuditObligation Code = "audit_obligation"
	Unknown         Code = "unknown"
)

// The codes that only reeve's own surfaces use.
const (
	Usage        Code = "usage"        // the command line or the configuration is wrong
	Unauthorized Code = "unauthorized" // no right to talk to this core
	Held         Code = "held"         // waiting for the operator; nothing is done yet
	CellFailed   Code = "cell_failed"  // the code of a cell raised
	WorkerLost   Code = "worker_lost"  // the worker died and its namespace with it
	Altered      Code = "altered"      // checked: stored bytes differ from what was committed
	Truncated    Code = "truncated"    // checked: committed events are missing at the end
	Findings     Code = "findings"     // checked: something needs attention (doctor, diff)
	StoreFull    Code = "store_full"   // no space; nothing was written
)

// Error is the one error type of reeve.
type Error struct {
	Code    Code
	Op      string // what was attempted, a verb in the user's terms: "append", "start worker"
	Subject string // what it was attempted on; quoted in the text
	Message string // what happened and why, lower case, no full stop
	Next    string // what to do now, as an imperative; may be empty
	Retry   bool   // the same call may succeed later without any change
	Err     error  // the cause, for errors.Is and errors.As
}

// New makes an Error whose message is formatted from format and args.
func New(code Code, op, subject, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Subject: subject, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error from a cause. It keeps the cause's hint when it has one.
func Wrap(err error, code Code, op, subject string) *Error {
	e := &Error{Code: code, Op: op, Subject: subject, Err: err}
	var inner *Error
	if errors.As(err, &inner) {
		e.Next, e.Retry = inner.Next, inner.Retry
	}
	return e
}

// WithNext sets the hint and returns e.
func (e *Error) WithNext(format string, args ...any) *Error {
	e.Next = fmt.Sprintf(format, args...)
	return e
}

// Retryable marks e as worth the same call later and returns e.
func (e *Error) Retryable() *Error {
	e.Retry = true
	return e
}

// Error reads: operation "subject": message: cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Subject != "" {
		fmt.Fprintf(&b, " %q", e.Subject)
	}
	for _, part := range []string{e.Message, causeText(e.Err)} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	if b.Len() == 0 {
		return string(e.Code)
	}
	return b.String()
}

func causeText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error of the same code and no other demands,
// so that errors.Is(err, fault.Of(fault.Conflict)) works through wrapping.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Op == "" && t.Subject == "" && t.Message == "" && t.Err == nil
}

// Of returns a bare Error for use with errors.Is.
func Of(code Code) *Error { return &Error{Code: code} }

// CodeOf returns the outermost code in err's chain: Internal for an error that
// carries none, the empty code for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// HasCode reports whether any error in err's chain carries code.
func HasCode(err error, code Code) bool { return errors.Is(err, Of(code)) }
