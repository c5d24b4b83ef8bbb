package control

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/fault"
)

// Envelope is the one shape of every answer, success or failure, on the control
// socket and on the standard output of a command that was given --json.
type Envelope struct {
	OK    bool           `json:"ok"`
	Kind  string         `json:"kind"` // what Data is: "cell_result", "sessions", …; "error" for a failure
	Data  jsontext.Value `json:"data"`
	Error *Fault         `json:"error"`
	Meta  *Meta          `json:"meta,omitzero"` // set by the command line
}

// Meta is about the answer, not in it.
type Meta struct {
	Version   string            `json:"version"`
	ElapsedMS int64             `json:"elapsed_ms"`
	IDs       map[string]string `json:"ids"` // what the answer is about: "cell", "session"
}

// Fault is a fault.Error as it travels. Message is its whole text.
type Fault struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	Next      string     `json:"next"`
	Retryable bool       `json:"retryable"`
}

// Success wraps data.
func Success(kind string, data any) (Envelope, error) {
	b, err := json.Marshal(data)
	if err != nil {
		return Envelope{}, fault.Wrap(err, fault.Internal, "encode answer", kind)
	}
	return Envelope{OK: true, Kind: kind, Data: b}, nil
}

// Failure wraps err; an error without a code is internal.
func Failure(err error) Envelope {
	f := Fault{Code: fault.CodeOf(err), Message: err.Error()}
	var e *fault.Error
	if errors.As(err, &e) {
		f.Next, f.Retryable = e.Next, e.Retry
	}
	return Envelope{Kind: "error", Error: &f}
}

// Err is the error that f describes. A code this build does not know, from a newer
// core, counts as internal and stays in the text.
func (f Fault) Err() *fault.Error {
	e := &fault.Error{Code: f.Code, Message: f.Message, Next: f.Next, Retry: f.Retryable}
	if !f.Code.Known() {
		e.Code, e.Message = fault.Internal, string(f.Code)+": "+f.Message
	}
	return e
}
