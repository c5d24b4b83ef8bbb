package link

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/fault"
)

// decodeFrame reads the JSON of one frame. Kinds and members are closed: what is
// unknown, missing, repeated or of another type is refused. Bodies alias text.
func decodeFrame(text []byte) (frame, error) {
	var f frame
	if !utf8.Valid(text) {
		return frame{}, fault.New(fault.InvalidRequest, "read frame", "", "it is not UTF-8")
	}
	s := scanner{text: text}
	s.open()
	var seen member
	for n := 0; s.err == nil && s.next(n); n++ {
		name := s.name()
		m := members[string(name)]
		switch {
		case s.err != nil:
		case m == 0:
			s.refuse("no member is called " + strconv.QuoteToASCII(clip(name)))
		case seen&m != 0:
			s.refuse("a second " + string(name))
		default:
			seen |= m
			s.member(m, &f)
		}
	}
	if s.end(); s.err != nil {
		return frame{}, s.err
	}
	return f, complete(f.kind, seen)
}

// complete reports what is missing from or too much in a frame of kind k.
func complete(k kind, seen member) error {
	want := has[k] | mKind
	if k == failure {
		want = want&^mID | seen&mID
	}
	if k != 0 && seen == want {
		return nil
	}
	wrong := func(what string) error {
		return fault.New(fault.InvalidRequest, "read frame", k.String(), "%s", what)
	}
	if k == 0 {
		return wrong("it has no kind")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch m := members[name]; {
		case want&m != 0 && seen&m == 0:
			return wrong(name + " is missing")
		case want&m == 0 && seen&m != 0:
			return wrong("it has no " + name)
		}
	}
	return nil
}

// member reads the value of m into f.
func (s *scanner) member(m member, f *frame) {
	switch m {
	case mKind:
		f.kind = s.kind()
	case mID:
		if f.id = s.number(); f.id == 0 && s.err == nil {
			s.refuse("an id is at least 1")
		}
	case mTimeout:
		f.timeout = s.number()
	case mSeq:
		f.seq = s.number()
	case mMethod:
		f.method = s.str()
	case mRequestID:
		f.requestID = s.str()
	case mReplay:
		f.replay = s.truth()
	case mBody:
		f.body = s.value()
	case mCode, mMessage, mNext, mReason, mRetryable:
		if f.fault == nil {
			f.fault = &refusal{}
		}
		s.refusal(m, f.fault)
	default:
		if f.hello == nil {
			f.hello = &hello{}
		}
		s.hello(m, f.hello)
	}
}

func (s *scanner) kind() kind {
	name := s.str()
	if k := slices.Index(kindNames[:], name); k > 0 {
		return kind(k)
	}
	s.refuse("no kind is called " + strconv.QuoteToASCII(clip([]byte(name))))
	return 0
}

func (s *scanner) refusal(m member, r *refusal) {
	switch m {
	case mCode:
		r.code = fault.Code(s.str())
	case mMessage:
		r.message = s.str()
	case mNext:
		r.next = s.str()
	case mReason:
		r.reason = Reason(s.str())
	default:
		r.retryable = s.truth()
	}
}

func (s *scanner) hello(m member, h *hello) {
	switch m {
	case mMin:
		h.min = s.number()
	case mMax:
		h.max = s.number()
	case mProtocol:
		h.protocol = s.number()
	case mPID:
		h.pid = s.number()
	case mClient:
		h.client = s.str()
	case mVersion:
		h.version = s.str()
	case mConfigID:
		h.configID = s.str()
	case mConfig:
		h.config = s.value()
	default:
		h.readOnly = s.truth()
	}
}

func clip(b []byte) string { return string(b[:min(len(b), 40)]) }

// checkValue reports why text is not exactly one JSON value in UTF-8.
func checkValue(text []byte) error {
	if !utf8.Valid(text) {
		return fault.New(fault.InvalidRequest, "write frame", "body", "it is not UTF-8")
	}
	s := scanner{text: text}
	s.value()
	s.end()
	return s.err
}

// scanner walks JSON once. It stops at the first error and recurses nowhere. The
// text is valid UTF-8.
type scanner struct {
	text []byte
	at   int
	err  error
}

// refuse notes what is wrong here, unless something was wrong before.
func (s *scanner) refuse(what string) {
	if s.err == nil {
		s.err = fault.New(fault.InvalidRequest, "read frame", "", "%s at byte %d", what, s.at)
	}
}

// peek skips white space and returns the byte there, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) open() {
	if s.peek() != '{' {
		s.refuse("an object is due")
		return
	}
	s.at++
}

// next reports whether the outer object has another member; n have been read.
func (s *scanner) next(n int) bool {
	switch c := s.peek(); {
	case c == '}':
		s.at++
		return false
	case n == 0:
		return true
	case c == ',':
		s.at++
		return true
	}
	s.refuse("',' or '}' is due")
	return false
}

func (s *scanner) end() {
	if s.err != nil {
		return
	}
	if s.peek(); s.at < len(s.text) {
		s.refuse("text after the value")
	}
}

// quoted reads a string and returns it with its quotes; simple says that it has no
// escapes.
func (s *scanner) quoted() (text []byte, simple bool) {
	if s.peek() != '"' {
		s.refuse("a string is due")
		return nil, false
	}
	start := s.at
	simple = true
	for i := start + 1; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case plain[c] || c >= 0x80:
		case c == '"':
			s.at = i + 1
			return s.text[start:s.at], simple
		case c == '\\':
			simple = false
			n := escape(s.text[i:])
			if n == 0 {
				s.at = i
				s.refuse("no such escape")
				return nil, false
			}
			i += n - 1
		default:
			s.at = i
			s.refuse("a control character in a string")
			return nil, false
		}
	}
	s.at = len(s.text)
	s.refuse("the string does not end")
	return nil, false
}

// escape is the length of the escape at the start of b, 0 when it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if strings.IndexByte(`"\/bfnrt`, b[1]) >= 0 {
		return 2
	}
	if b[1] != 'u' || len(b) < 6 {
		return 0
	}
	for _, c := range b[2:6] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return 0
		}
	}
	return 6
}

// name reads a member name and its colon. Escapes are not taken in names: every
// name we know is plain.
func (s *scanner) name() []byte {
	text, simple := s.quoted()
	if s.err != nil {
		return nil
	}
	if !simple {
		s.refuse("an escape in a member name")
		return nil
	}
	if s.peek() != ':' {
		s.refuse("':' is due")
		return nil
	}
	s.at++
	return text[1 : len(text)-1]
}

// str reads one string.
func (s *scanner) str() string {
	text, simple := s.quoted()
	switch {
	case s.err != nil:
		return ""
	case simple:
		return string(text[1 : len(text)-1])
	}
	out, err := jsontext.AppendUnquote(nil, text)
	if err != nil {
		s.refuse("half a surrogate pair in a string")
		return ""
	}
	return string(out)
}

// number reads an unsigned integer without leading zeros.
func (s *scanner) number() uint64 {
	s.peek()
	start := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	digits := s.text[start:s.at]
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil || n > maxNumber || len(digits) > 1 && digits[0] == '0' {
		s.refuse("an integer from 0 to 9007199254740991 is due")
		return 0
	}
	return n
}

func (s *scanner) truth() bool {
	s.peek()
	switch {
	case s.literal("true"):
		return true
	case !s.literal("false"):
		s.refuse("true or false is due")
	}
	return false
}

func (s *scanner) literal(word string) bool {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}
