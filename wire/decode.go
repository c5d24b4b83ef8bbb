package wire

import (
	"bytes"
	"encoding/base64"
	"math/bits"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

const opDecode = "read frame"

// Length reads a frame's header. A length of 0 is invalid_request, one over
// MaxFrame is limit_exceeded; in both cases the connection is lost (CP-005, CP-008).
func Length(header [4]byte) (int, error) {
	n := uint32(header[0])<<24 | uint32(header[1])<<16 | uint32(header[2])<<8 | uint32(header[3])
	if n == 0 {
		return 0, fault.New(fault.InvalidRequest, opDecode, "length", "0 bytes; a frame holds at least 1")
	}
	if n > MaxFrame {
		return 0, fault.New(fault.LimitExceeded, opDecode, "length", "%d bytes are over the limit of %d", n, MaxFrame)
	}
	return int(n), nil
}

// Decode reads the payload of one frame: CP-005 to CP-009 and the message table of
// the protocol, nothing else accepted. Strings and free-form values are copies, so
// the caller may reuse payload. A *fault.Error names the member, the rule and, for
// text that is not JSON, the byte; its code is limit_exceeded for a bound that was
// passed and invalid_request for the rest.
func Decode(payload []byte) (Envelope, error) {
	e, f := decode(payload)
	if f != nil {
		f.Op = opDecode
		return Envelope{}, f
	}
	return e, nil
}

func decode(payload []byte) (Envelope, *fault.Error) {
	if f := text(payload); f != nil {
		return Envelope{}, f
	}
	s := scanner{b: payload}
	e, f := s.envelope()
	if f != nil {
		return Envelope{}, f
	}
	if s.peek(); s.pos < len(s.b) {
		s.field = "payload"
		return Envelope{}, s.bad("trailing text")
	}
	return e, check(e)
}

// text refuses what is wrong with a payload before any JSON is read.
func text(payload []byte) *fault.Error {
	if len(payload) == 0 {
		return refuse(fault.InvalidRequest, "payload", "0 bytes; a frame holds at least 1")
	}
	if len(payload) > MaxFrame {
		return refuse(fault.LimitExceeded, "payload", "%d bytes are over the limit of %d", len(payload), MaxFrame)
	}
	if bytes.HasPrefix(payload, []byte("\ufeff")) {
		return refuse(fault.InvalidRequest, "payload", "begins with a byte order mark")
	}
	return encoded("payload", payload)
}

func encoded(field string, b []byte) *fault.Error {
	if utf8.Valid(b) {
		return nil
	}
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return refuse(fault.InvalidRequest, field, "invalid UTF-8 at byte %d", at)
}

// Members of the envelope, as bits of what was seen.
const (
	hasVersion = 1 << iota
	hasSession
	hasGeneration
	hasMessage
	hasAll = 1<<iota - 1
)

var envelopeFields = []string{"envelope.version", "envelope.session_id", "envelope.generation", "envelope.message"}

func (s *scanner) envelope() (e Envelope, f *fault.Error) {
	s.field = "envelope"
	seen := 0
	more, f := s.enter('{')
	for ; more && f == nil; more, f = s.more('}') {
		name, f := s.name()
		if f != nil {
			return e, f
		}
		bit, field := lookup(envelopeFields, name)
		if f := member("envelope", name, seen, bit); f != nil {
			return e, f
		}
		seen |= bit
		s.field = field
		switch bit {
		case hasVersion:
			f = s.version()
		case hasSession:
			e.SessionID, f = s.string()
		case hasGeneration:
			e.Generation, f = s.string()
		default:
			e.Message, f = s.message()
		}
		if f != nil {
			return e, f
		}
		s.field = "envelope"
	}
	if f == nil && seen != hasAll {
		f = missing("envelope", seen, hasAll, envelopeFields)
	}
	return e, f
}

func (s *scanner) version() *fault.Error {
	v, f := s.integer()
	if f == nil && v != Version {
		f = refuse(fault.InvalidRequest, s.field, "%d is not the version spoken here, %d", v, Version)
	}
	return f
}

// member refuses a member that is unknown (no bit) or came before.
func member(object string, name []byte, seen, bit int) *fault.Error {
	if bit == 0 {
		return refuse(fault.InvalidRequest, object, "unknown member %q", shorten(string(name)))
	}
	if seen&bit != 0 {
		return refuse(fault.InvalidRequest, object, "duplicate member %q", name)
	}
	return nil
}

func missing(object string, seen, want int, fields []string) *fault.Error {
	if want&^seen == 0 {
		return nil
	}
	return refuse(fault.InvalidRequest, object, "%q is missing", fields[bits.TrailingZeros(uint(want&^seen))])
}

// surplus refuses members that another kind or form has, but not this one.
func surplus(object string, seen, want int, fields []string, kind string) *fault.Error {
	if seen&^want == 0 {
		return nil
	}
	return refuse(fault.InvalidRequest, object, "%q is unknown in %q", fields[bits.TrailingZeros(uint(seen&^want))], kind)
}

// string reads a typed string member.
func (s *scanner) string() (string, *fault.Error) {
	body, escaped, f := s.body()
	if f != nil || !escaped {
		return string(body), f
	}
	return string(unescape(make([]byte, 0, len(body)), body)), nil
}

// words are the values of the closed sets; reading one makes no new string.
var words = func() map[string]string {
	all := map[string]string{"ok": "ok", "error": "error", "cell": "cell", "hook": "hook", "failed": "failed"}
	for kind := range members {
		all[string(kind)] = string(kind)
	}
	for _, set := range [][]string{HookSlots, roles, statuses, streams} {
		for _, word := range set {
			all[word] = word
		}
	}
	return all
}()

// word reads a string member that holds one of words when it is valid.
func (s *scanner) word() (string, *fault.Error) {
	start := s.pos
	body, escaped, f := s.body()
	if f != nil {
		return "", f
	}
	if word, known := words[string(body)]; known && !escaped {
		return word, nil
	}
	s.pos = start
	return s.string()
}

// body is the inside of a string member, still escaped.
func (s *scanner) body() (body []byte, escaped bool, f *fault.Error) {
	if s.peek() != '"' {
		return nil, false, s.unexpected("a string")
	}
	start := s.pos + 1
	escaped, f = s.str()
	if f != nil {
		return nil, false, f
	}
	return s.b[start : s.pos-1], escaped, nil
}

// optional reads a string or null.
func (s *scanner) optional() (*string, *fault.Error) {
	if s.peek() == 'n' {
		return nil, s.literal("null")
	}
	if s.b[min(s.pos, len(s.b)-1)] != '"' {
		return nil, s.unexpected("a string or null")
	}
	text, f := s.string()
	return &text, f
}

// strings reads an array of at most most strings; the list is never nil.
func (s *scanner) strings(most int) ([]string, *fault.Error) {
	room := min(most, 1+bytes.Count(s.b[s.pos:], []byte{','}))
	list := make([]string, 0, room)
	more, f := s.enter('[')
	for ; more && f == nil; more, f = s.more(']') {
		if len(list) == most {
			return nil, refuse(fault.LimitExceeded, s.field, "more than %d items", most)
		}
		text, f := s.string()
		if f != nil {
			return nil, f
		}
		list = append(list, text)
	}
	return list, f
}

func (s *scanner) boolean() (bool, *fault.Error) {
	switch s.peek() {
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	}
	return false, s.unexpected("true or false")
}

// base64 reads bytes: the standard alphabet, padded, no white space (RFC 4648 §4).
func (s *scanner) base64() ([]byte, *fault.Error) {
	body, escaped, f := s.body()
	if f != nil {
		return nil, f
	}
	if escaped {
		body = unescape(make([]byte, 0, len(body)), body)
	}
	if len(body) > base64.StdEncoding.EncodedLen(MaxArtifactPart) {
		return nil, refuse(fault.LimitExceeded, s.field, "more than %d bytes", MaxArtifactPart)
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(body)))
	n, err := base64.StdEncoding.Strict().Decode(data, body)
	if err != nil || bytes.ContainsAny(body, "\r\n") {
		return nil, refuse(fault.InvalidRequest, s.field, "not padded standard base64")
	}
	return data[:n], nil
}

// raw reads a free-form value and keeps its bytes.
func (s *scanner) raw() (Raw, *fault.Error) {
	s.peek()
	start := s.pos
	if f := s.value(); f != nil {
		return nil, f
	}
	return bytes.Clone(s.b[start:s.pos]), nil
}
