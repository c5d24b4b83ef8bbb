package request

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

// Code names one way in which a text is refused (VD-045). It is stable; the wording
// of the message is not.
type Code string

// Codes.
const (
	Empty               Code = "empty"
	InputTooLarge       Code = "input_too_large"
	TooManyOps          Code = "too_many_ops"
	NestingTooDeep      Code = "nesting_too_deep"
	UnexpectedChar      Code = "unexpected_char"
	UnexpectedEOF       Code = "unexpected_eof"
	InvalidIdentifier   Code = "invalid_identifier"
	UnsupportedNesting  Code = "unsupported_verb_nesting"
	DuplicateArg        Code = "duplicate_arg"
	InvalidValue        Code = "invalid_value"
	UnclosedString      Code = "unclosed_string"
	UnclosedCall        Code = "unclosed_call"
	UnclosedBracket     Code = "unclosed_bracket"
	TrailingComma       Code = "trailing_comma"
	EmptyBatch          Code = "empty_batch"
	MixedSeparators     Code = "mixed_separators"
	PrevOutsideChain    Code = "prev_ref_outside_chain"
	PrevInJSON          Code = "prev_ref_in_json_form"
	ReservedEnvelopeArg Code = "reserved_envelope_arg"
	InvalidJSON         Code = "invalid_json"
)

// nowhere is the offset of an error that belongs to the text as a whole.
const nowhere = -1

// ParseError says why a text is no request and where. Offset counts bytes of the
// trimmed text and is -1 when the error has no place; Line and Column count from 1,
// Column in characters; Excerpt is the line with a caret below the place.
type ParseError struct {
	Code    Code
	Message string
	Offset  int
	Line    int
	Column  int
	Excerpt string
}

// Error reads "at byte N: message (line L, column C)", or the message alone.
func (e *ParseError) Error() string {
	if e.Offset < 0 {
		return e.Message
	}
	return fmt.Sprintf("at byte %d: %s (line %d, column %d)", e.Offset, e.Message, e.Line, e.Column)
}

// Unwrap gives the error the code with which it crosses a boundary.
func (e *ParseError) Unwrap() error {
	return fault.New(fault.InvalidRequest, "parse request", "", "%s", e.Error())
}

func (p *parser) fail(code Code, at int, format string, args ...any) error {
	return located(p.text, code, at, format, args...)
}

func located(text string, code Code, at int, format string, args ...any) error {
	e := &ParseError{Code: code, Message: fmt.Sprintf(format, args...), Offset: at}
	if at < 0 {
		return e
	}
	before := text[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	e.Line = 1 + strings.Count(before, "\n")
	e.Column = 1 + utf8.RuneCountInString(before[start:])
	e.Excerpt = excerpt(text, start, at)
	return e
}

// Width of an excerpt on either side of the caret, in characters: together they fit
// a terminal.
const margin = 36

// excerpt shows the line that begins at start, cut to margin around at.
func excerpt(text string, start, at int) string {
	end := len(text)
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
	}
	left := lastRunes(text[start:at], margin)
	right := firstRunes(text[at:end], margin)
	var b strings.Builder
	caret := utf8.RuneCountInString(left)
	if len(left) < at-start {
		b.WriteString("…")
		caret++
	}
	for _, r := range left + right {
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		b.WriteRune(r)
	}
	if len(right) < end-at {
		b.WriteString("…")
	}
	b.WriteByte('\n')
	b.WriteString(strings.Repeat(" ", caret))
	b.WriteByte('^')
	return b.String()
}

func firstRunes(s string, most int) string {
	for i := range s {
		if most == 0 {
			return s[:i]
		}
		most--
	}
	return s
}

func lastRunes(s string, most int) string {
	i := len(s)
	for ; most > 0 && i > 0; most-- {
		_, n := utf8.DecodeLastRuneInString(s[:i])
		i -= n
	}
	return s[i:]
}

// found describes what stands at a place, for a message.
func (p *parser) found(at int) string {
	if at >= len(p.text) {
		return "the end of the text"
	}
	r, _ := utf8.DecodeRuneInString(p.text[at:])
	return fmt.Sprintf("%q", r)
}
