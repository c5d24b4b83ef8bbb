package work

import (
	"strconv"

	"github.com/reeve-run/reeve/canon"
)

// Envelope is one event as it is stored (DV-080). It was read from canonical text and
// its digest verified.
type Envelope struct {
	Event    EventID
	Scope    ScopeID
	Sequence int64  // in its scope, from 0
	Previous Digest // of the event before it in its scope; empty at sequence 0
	Causes   []EventRef
	At       string // when it happened, which orders nothing (DV-082)
	Kind     Kind
	Digest   Digest

	text    string // canonical, all of it
	payload string // canonical; a part of text
}

// Ref names the event.
func (e *Envelope) Ref() EventRef { return EventRef{Scope: e.Scope, Event: e.Event, Digest: e.Digest} }

// Text is the canonical event text (DV-083): what is stored and exported.
func (e *Envelope) Text() string { return e.text }

// PayloadText is the canonical text of the payload.
func (e *Envelope) PayloadText() string { return e.payload }

// Entry is one stored value as it was read: the event, or why it is none. It depends
// on nothing but the text, so entries may be parsed anywhere and in any order.
type Entry struct {
	Envelope
	payload   Payload
	envelope  *Refusal  // why the text is no envelope
	shape     *Refusal  // why the payload is none of its kind
	imprecise string    // why strict rules refuse the text (DV-401)
	observed  *Identity // of a text that is no envelope
}

// Payload is what the event says, or nil with the refusal when it has no shape of a
// known kind.
func (e *Entry) Payload() (Payload, *Refusal) { return e.payload, e.shape }

// Refusal is why the stored value is no envelope at all, nil when it is one.
func (e *Entry) Refusal() *Refusal { return e.envelope }

// Observed is what the entry says of itself.
func (e *Entry) Observed() Identity {
	if e.observed != nil {
		return *e.observed
	}
	protocol, event, scope, digest := Protocol, string(e.Event), string(e.Scope), string(e.Digest)
	return Identity{Protocol: &protocol, Event: &event, Scope: &scope, Digest: &digest}
}

// Parse reads a stored value: envelope, digest and payload. Canonical text is read in
// place; any other JSON is brought to its canonical form first. The entry keeps the
// text alive, and nothing of the slice given.
func Parse(text []byte) *Entry {
	e := ParseEnvelope(text)
	if e.envelope == nil {
		e.payload, e.shape = decodePayload(e.Kind, e.Envelope.payload)
	}
	return e
}

// ParseEnvelope is Parse without the payload: what a check of stored digests needs. Such
// an entry is refused by a State.
func ParseEnvelope(text []byte) *Entry {
	e := &Entry{shape: &unread}
	if canon.Verify(text) == nil && e.read(string(text)) == "" {
		return e
	}
	return e.readAny(text)
}

var unread = Refusal{Code: InvalidPayload, Message: "payload was not read"}

// The envelope's own limits (DV-081).
const (
	maxSequence = 1_000_000_000
	maxCauses   = canon.MaxItems
)

// read takes canonical text as an envelope and says what is wrong with it, nothing
// when it is one.
func (e *Entry) read(s string) (wrong string) {
	r := reader{s: s}
	r.lit(`{"causalRefs":`)
	e.Causes = causes(&r)
	r.lit(`,"eventId":`)
	e.Event = readID[EventID](&r)
	cut := r.pos
	r.lit(`,"eventSha256":`)
	e.Digest = r.digest()
	rest := r.pos
	r.lit(`,"kind":`)
	e.Kind = readID[Kind](&r)
	r.lit(`,"occurredAt":`)
	e.At = r.str()
	r.lit(`,"payload":`)
	e.Envelope.payload = r.skip()
	r.lit(`,"previousScopeEventSha256":`)
	if !r.has("null") {
		e.Previous = r.digest()
	}
	r.lit(`,"protocolVersion":"` + Protocol + `","scopeSequence":`)
	e.Sequence = r.integer()
	r.lit(`,"workScopeId":`)
	e.Scope = readID[ScopeID](&r)
	r.lit("}")
	switch {
	case !r.ok():
		return r.failed + " expected at byte " + strconv.Itoa(r.pos)
	case !canon.IsTimestamp(e.At):
		return "occurredAt is no instant"
	case e.Sequence > maxSequence:
		return "scopeSequence is over its limit"
	case (e.Sequence == 0) != (e.Previous == ""):
		return "previousScopeEventSha256 does not fit scopeSequence"
	case !rising(e.Causes, joined):
		return "causalRefs are not in rising order"
	case len(e.Envelope.payload) > canon.MaxPayload:
		return "payload is over " + strconv.Itoa(canon.MaxPayload) + " bytes"
	case !e.Digest.hashes(`{"domain":"developer.event-envelope/v8","value":`, s[:cut], s[rest:], "}"):
		return "eventSha256 is not the digest of the event"
	}
	if r.unsafe {
		e.imprecise = "a number is not a safe integer"
	}
	e.text = s
	return ""
}

// causes is list for refs: a reader that no function value sees needs no heap.
func causes(r *reader) (all []EventRef) {
	if r.has("[]") {
		return nil
	}
	for r.lit("["); ; r.lit(",") {
		all = append(all, eventRef(r))
		switch {
		case r.has("]") || !r.ok():
			return all
		case len(all) == maxCauses:
			r.fail("fewer causes")
			return all
		}
	}
}

func eventRef(r *reader) (ref EventRef) {
	r.lit(`{"eventId":`)
	ref.Event = readID[EventID](r)
	r.lit(`,"eventSha256":`)
	ref.Digest = r.digest()
	r.lit(`,"workScopeId":`)
	ref.Scope = readID[ScopeID](r)
	r.lit("}")
	return ref
}

// joined is the key that causes are ordered and distinct by. Identifiers may hold
// colons, so two refs can share a key; they are refused as one (DV-081).
func joined(ref EventRef) string {
	return string(ref.Scope) + ":" + string(ref.Event) + ":" + string(ref.Digest)
}

// readAny takes text of any spelling, and says why when it is no envelope.
func (e *Entry) readAny(text []byte) *Entry {
	*e = Entry{shape: e.shape}
	v, repeated, err := canon.ParseNoting(text)
	if err != nil {
		e.observed = &Identity{}
		e.envelope = refuse(InvalidEnvelope, "%s", err)
		return e
	}
	observed := observe(v)
	e.observed = &observed
	if named := e.observed.Protocol; named != nil && *named != Protocol {
		e.envelope = refuse(UnsupportedProtocol, "protocol %q is not %s", *named, Protocol)
		return e
	}
	form, err := v.Append(nil)
	if err != nil {
		e.envelope = refuse(InvalidEnvelope, "%s", err)
		return e
	}
	if wrong := e.read(string(form)); wrong != "" {
		*e = Entry{shape: e.shape, observed: e.observed, envelope: refuse(InvalidEnvelope, "%s", wrong)}
		return e
	}
	e.observed = nil
	if repeated {
		e.imprecise = "an object names a member twice"
	}
	return e
}

// observe takes the parts of an identity that are strings, cut to their limits.
func observe(v canon.Value) Identity {
	part := func(name string, most int) *string {
		m, _ := v.Member(name)
		s, ok := m.Text()
		if !ok {
			return nil
		}
		s = canon.Cut(s, most)
		return &s
	}
	const digest = 64
	return Identity{
		Protocol: part("protocolVersion", canon.MaxIdentifier), Event: part("eventId", canon.MaxIdentifier),
		Scope: part("workScopeId", canon.MaxIdentifier), Digest: part("eventSha256", digest),
	}
}
