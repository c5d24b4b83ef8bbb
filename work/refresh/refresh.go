// Package refresh coordinates the making of a projection with its reading: one
// coordinator for each branch that is shown, whose states follow one another.
//
// Invariants: only the newest state of a coordinator acts, and an older one answers
// with it; a projection is published by the ticket that was asked for last and by no
// other; a failed refresh never brings an earlier publication back. States, tickets and
// publications are handles: a copy of one is refused.
//
// The package knows nothing of how a projection is made, or who reads it.
package refresh

import (
	"strconv"
	"sync"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/work"
)

// Code says why a coordinator did not do what it was asked.
type Code string

// The codes of misuse, which leave everything as it was (DV-232…DV-236).
const (
	InvalidInput       Code = "invalid-input"
	AlreadyInitialized Code = "coordinator-already-initialized"
	InvalidState       Code = "invalid-state"
	InvalidTicket      Code = "invalid-ticket"
	InvalidProjection  Code = "invalid-projection"
	InvalidPublication Code = "invalid-publication"
)

// The codes of answers that a correct caller may get.
const (
	StaleState       Code = "stale-state"
	ForeignTicket    Code = "foreign-ticket"
	StaleTicket      Code = "stale-ticket"
	Unavailable      Code = "projection-unavailable"
	StalePublication Code = "stale-publication"
)

// Refusal is a no with its code. A fault is misuse: the caller holds something that was
// not made here.
type Refusal struct {
	Code  Code
	Fault bool
}

func (r *Refusal) Error() string { return "coordinate projection: " + string(r.Code) }

func fault(c Code) *Refusal { return &Refusal{Code: c, Fault: true} }

func answer(c Code) *Refusal { return &Refusal{Code: c} }

// Kind is whether there is something to read.
type Kind string

// The kinds of availability (DV-230).
const (
	KindUnavailable Kind = "unavailable"
	KindRefreshing  Kind = "refreshing"
	KindCurrent     Kind = "current"
)

// The reasons of being unavailable.
const (
	notYet = "not-yet-projected"
	failed = "refresh-failed"
)

// State is one state of a coordinator. It is immutable.
type State struct {
	self *State
	of   *coordinator
	id   work.CoordinatorID

	transitions int64
	requests    int64

	kind        Kind
	reason      string // of being unavailable
	last        work.Digest
	ticket      *Ticket
	publication *Publication
	projection  *work.Projection
	digest      work.Digest
}

// Ticket is the right to end one refresh.
type Ticket struct {
	self      *Ticket
	id        work.CoordinatorID
	sequence  int64
	requested work.Digest
	prior     work.Digest // empty when there was none
	digest    work.Digest
}

// Publication is the proof of what was published, which a reader shows.
type Publication struct {
	self       *Publication
	id         work.CoordinatorID
	sequence   int64
	requested  work.Digest
	projection work.Digest
	digest     work.Digest
}

// coordinator holds the one live state.
type coordinator struct {
	mu   sync.Mutex // guards head; nothing else is done under it
	head *State
}

// Registry is the coordinators of a process. The zero value is ready.
type Registry struct {
	mu    sync.Mutex // guards known
	known map[work.CoordinatorID]struct{}
}

// Init makes a coordinator, whose id is used once in a registry (DV-232).
func (r *Registry) Init(id work.CoordinatorID) (*State, *Refusal) {
	if !canon.IsIdentifier(string(id)) {
		return nil, fault(InvalidInput)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.known[id]; twice {
		return nil, fault(AlreadyInitialized)
	}
	if r.known == nil {
		r.known = map[work.CoordinatorID]struct{}{}
	}
	r.known[id] = struct{}{}
	s := &State{of: &coordinator{}, id: id, kind: KindUnavailable, reason: notYet}
	s.of.head = s.seal()
	return s, nil
}

// live checks that s is the newest state; head is the one that is (DV-233).
func (s *State) live() (head *State, no *Refusal) {
	if s == nil || s.self != s {
		return nil, fault(InvalidState)
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.head != s {
		return s.of.head, answer(StaleState)
	}
	return s, nil
}

// follow makes next the live state if s still is it.
func (s *State) follow(next *State) (*State, *Refusal) {
	next.transitions = s.transitions + 1
	next.of, next.id = s.of, s.id
	next.seal()
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.head != s {
		return s.of.head, answer(StaleState)
	}
	s.of.head = next
	return next, nil
}

// Begin asks for a refresh to a revision. A refresh under way is superseded (DV-234).
// A state that is not the newest gets the newest back with the refusal.
func (s *State) Begin(revision work.Digest) (*State, *Ticket, *Refusal) {
	head, no := s.live()
	if no != nil {
		return head, nil, no
	}
	if !canon.IsDigest(string(revision)) {
		return s, nil, fault(InvalidInput)
	}
	t := &Ticket{id: s.id, sequence: s.requests + 1, requested: revision}
	switch s.kind {
	case KindCurrent:
		t.prior = s.projection.Digest()
	case KindRefreshing:
		t.prior = s.ticket.prior
	}
	t.self = t
	t.digest = hash("projection-refresh-ticket", t.appendFields(nil, ""))
	next, no := s.follow(&State{kind: KindRefreshing, requests: t.sequence, ticket: t})
	if no != nil {
		return next, nil, no
	}
	return next, t, nil
}

// ends checks a ticket against the state, in the order of DV-235.
func (s *State) ends(t *Ticket, foreign func() *Refusal) (*State, *Refusal) {
	head, no := s.live()
	switch {
	case no != nil:
		return head, no
	case t == nil || t.self != t:
		return s, fault(InvalidTicket)
	}
	if no := foreign(); no != nil {
		return s, no
	}
	switch {
	case t.id != s.id:
		return s, answer(ForeignTicket)
	case s.ticket != t:
		return s, answer(StaleTicket)
	}
	return s, nil
}

// Complete publishes the projection that the ticket asked for.
func (s *State) Complete(t *Ticket, p *work.Projection) (*State, *Publication, *Refusal) {
	head, no := s.ends(t, func() *Refusal {
		if !p.Genuine() {
			return fault(InvalidProjection)
		}
		return nil
	})
	if no != nil {
		return head, nil, no
	}
	pub := &Publication{id: s.id, sequence: t.sequence, requested: t.requested, projection: p.Digest()}
	pub.self = pub
	pub.digest = hash("projection-publication", pub.appendFields(nil, ""))
	next, no := s.follow(&State{kind: KindCurrent, requests: s.requests, publication: pub, projection: p})
	if no != nil {
		return next, nil, no
	}
	return next, pub, nil
}

// Fail ends the refresh without a projection. What was published before stays away.
func (s *State) Fail(t *Ticket) (*State, *Refusal) {
	head, no := s.ends(t, func() *Refusal { return nil })
	if no != nil {
		return head, no
	}
	return s.follow(&State{kind: KindUnavailable, requests: s.requests, reason: failed, last: t.requested})
}

// Read is the target that pages are read from. A current projection demands its own
// publication (DV-236).
func (s *State) Read(p *Publication) (work.Target, *Refusal) {
	if _, no := s.live(); no != nil {
		return work.Target{}, no
	}
	switch s.kind {
	case KindUnavailable:
		return work.Target{}, answer(Unavailable)
	case KindRefreshing:
		return work.Target{Refreshing: true}, nil
	}
	switch {
	case p == nil:
		return work.Target{}, answer(StalePublication)
	case p.self != p:
		return work.Target{}, fault(InvalidPublication)
	case p != s.publication:
		return work.Target{}, answer(StalePublication)
	}
	return work.Target{Current: s.projection}, nil
}

// Refresh runs one refresh to the branch as it is: blocked, it fails, else it completes
// (DV-237).
func (s *State) Refresh(b *work.Branch) (*State, *Publication, *Refusal) {
	next, t, no := s.Begin(b.Revision())
	if no != nil {
		return next, nil, no
	}
	if b.Blocked() != "" {
		next, no = next.Fail(t)
		return next, nil, no
	}
	return next.Complete(t, b.Projection())
}

func hash(domain string, fields []byte) work.Digest {
	return work.Digest(canon.Hash([]byte(`{"domain":"developer/v8/`+domain+`","fields":`), fields, []byte("}")))
}

func (s *State) seal() *State {
	s.self = s
	s.digest = hash("projection-coordinator-state", s.appendFields(nil, ""))
	return s
}

// Digest is DV-064.
func (s *State) Digest() work.Digest { return s.digest }

// Kind is whether there is something to read.
func (s *State) Kind() Kind { return s.kind }

// Digest is DV-062.
func (t *Ticket) Digest() work.Digest { return t.digest }

// Digest is DV-063.
func (p *Publication) Digest() work.Digest { return p.digest }

// Append writes the state as canonical JSON.
func (s *State) Append(b []byte) []byte { return s.appendFields(b, s.digest) }

func quoted[T ~string](b []byte, s T) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendFields writes what the digest of the state covers, or with a digest the state
// itself, in which a ticket and a publication are written out (DV-231).
func (s *State) appendFields(b []byte, digest work.Digest) []byte {
	b = append(b, `{"availability":{"kind":"`...)
	b = append(append(b, s.kind...), '"')
	switch s.kind {
	case KindUnavailable:
		b = quoted(append(b, `,"lastRequestedRevisionSha256":`...), s.last)
		b = quoted(append(b, `,"reason":`...), s.reason)
	case KindRefreshing:
		b = quoted(append(b, `,"priorProjectionSha256":`...), s.ticket.prior)
		b = quoted(append(b, `,"requestedRevisionSha256":`...), s.ticket.requested)
		if digest == "" {
			b = quoted(append(b, `,"ticketSha256":`...), s.ticket.digest)
		} else {
			b = s.ticket.appendFields(append(b, `,"ticket":`...), s.ticket.digest)
		}
	case KindCurrent:
		b = quoted(append(b, `,"projectionSha256":`...), s.projection.Digest())
		if digest == "" {
			b = quoted(append(b, `,"publicationSha256":`...), s.publication.digest)
		} else {
			b = s.publication.appendFields(append(b, `,"publication":`...), s.publication.digest)
		}
	}
	b = quoted(append(b, `},"coordinatorId":`...), s.id)
	b = strconv.AppendInt(append(b, `,"lastRequestSequence":`...), s.requests, 10)
	if digest != "" {
		b = quoted(append(b, `,"stateSha256":`...), digest)
	}
	b = strconv.AppendInt(append(b, `,"transitionSequence":`...), s.transitions, 10)
	return append(b, '}')
}

func (t *Ticket) appendFields(b []byte, digest work.Digest) []byte {
	b = quoted(append(b, `{"coordinatorId":`...), t.id)
	b = quoted(append(b, `,"priorProjectionSha256":`...), t.prior)
	b = strconv.AppendInt(append(b, `,"requestSequence":`...), t.sequence, 10)
	b = quoted(append(b, `,"requestedRevisionSha256":`...), t.requested)
	if digest != "" {
		b = quoted(append(b, `,"ticketSha256":`...), digest)
	}
	return append(b, '}')
}

func (p *Publication) appendFields(b []byte, digest work.Digest) []byte {
	b = quoted(append(b, `{"coordinatorId":`...), p.id)
	b = quoted(append(b, `,"projectionSha256":`...), p.projection)
	if digest != "" {
		b = quoted(append(b, `,"publicationSha256":`...), digest)
	}
	b = strconv.AppendInt(append(b, `,"requestSequence":`...), p.sequence, 10)
	b = quoted(append(b, `,"requestedRevisionSha256":`...), p.requested)
	return append(b, '}')
}
