package work

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/reeve-run/reeve/canon"
)

// Draft is an event that is to be, without its place in a scope (DV-200).
type Draft struct {
	Event    EventID
	Kind     Kind
	Payload  []byte // JSON
	Causes   []EventRef
	CausedBy []EventID // earlier drafts of the same request
	At       string    // a timestamp (DV-023)
}

// Request asks for a batch. Scope is empty when the open scope is meant; Rules are those
// of the scope when the batch opens one.
type Request struct {
	Scope  ScopeID
	Rules  Rules
	Drafts []Draft
}

// Batch is envelopes that are accepted when they are stored in their order behind the
// branch they were checked against. Only Preflight makes one.
type Batch struct {
	self    *Batch
	scope   ScopeID
	entries []*Entry
	before  *Branch
	after   *Branch
}

// Genuine reports whether the batch was made here and is no copy (DV-205).
func (b *Batch) Genuine() bool { return b != nil && b.self == b }

// Scope is the scope of all events of the batch.
func (b *Batch) Scope() ScopeID { return b.scope }

// Entries are the events in the order they are stored in.
func (b *Batch) Entries() []*Entry { return slices.Clone(b.entries) }

// Before is the branch the batch was checked against.
func (b *Batch) Before() *Branch { return b.before }

// After is the branch once all of the batch is stored (DV-204).
func (b *Batch) After() *Branch { return b.after }

// Preflight forms the envelopes of the drafts and replays them behind the branch. A batch
// is made only when all are accepted (DV-201…DV-203). It costs the batch, however long
// the branch.
func (b *Branch) Preflight(q Request) (*Batch, *Refusal) {
	if no := b.admits(&q); no != nil {
		return nil, no
	}
	batch := &Batch{scope: q.Scope, before: b}
	if batch.scope == "" {
		batch.scope = b.Active().id
	}
	var previous Digest
	var next int64
	if sc := b.Active(); sc != nil {
		previous, next = sc.head.Digest, sc.head.Sequence+1
	}
	for i := range q.Drafts {
		causes, no := resolve(&q.Drafts[i], batch.entries)
		if no != nil {
			return nil, no
		}
		e, no := seal(&q.Drafts[i], batch.scope, next+int64(i), previous, causes)
		if no != nil {
			return nil, no
		}
		batch.entries = append(batch.entries, e)
		previous = e.Digest
	}
	batch.after = b.Extend(slices.Values(batch.entries), All(q.Rules))
	if no := batch.after.first; no != nil {
		return nil, &Refusal{Code: PreflightRejected, Entry: no.Code, Transition: no.Transition, Message: no.Message}
	}
	batch.self = batch
	return batch, nil
}

// admits checks the request against the branch, in the order of DV-201.
func (b *Branch) admits(q *Request) *Refusal {
	if !b.Genuine() {
		return refuse(InvalidReconstruction, "the branch was not made here")
	}
	if why := b.Blocked(); why != "" {
		return refuse(BlockedHistory, "%s", why)
	}
	if len(q.Drafts) == 0 {
		return refuse(InvalidBatch, "a batch has at least one draft")
	}
	sc := b.Active()
	switch opens := q.Drafts[0].Kind == ScopeOpened; {
	case sc != nil && q.Scope != "" && q.Scope != sc.id:
		return refuse(ScopeMismatch, "scope %s is open, not %s", sc.id, q.Scope)
	case sc != nil && opens:
		return refuse(ScopeMismatch, "scope %s is open already", sc.id)
	case sc == nil && q.Scope == "":
		return refuse(ScopeMismatch, "no scope is open and none is named")
	case sc == nil && !opens:
		return refuse(ScopeMismatch, "a scope begins with its opening")
	case q.Scope != "" && !canon.IsIdentifier(string(q.Scope)):
		return refuse(InvalidProtocolValue, "the scope is no identifier")
	}
	return nil
}

// resolve joins the causes of a draft. They are ordered by their parts (DV-202), which
// is another order than the one an envelope demands when one id is the beginning of
// another: such a batch is refused.
func resolve(d *Draft, earlier []*Entry) ([]EventRef, *Refusal) {
	causes := slices.Clone(d.Causes)
	for _, id := range d.CausedBy {
		i := slices.IndexFunc(earlier, func(e *Entry) bool { return e.Event == id })
		if i < 0 {
			return nil, refuse(InvalidBatch, "cause %s is no earlier draft of the batch", id)
		}
		causes = append(causes, earlier[i].Ref())
	}
	slices.SortFunc(causes, func(a, b EventRef) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Event, b.Event), cmp.Compare(a.Digest, b.Digest))
	})
	return causes, nil
}

// seal makes the envelope of a draft and reads it back, which checks it.
func seal(d *Draft, scope ScopeID, sequence int64, previous Digest, causes []EventRef) (*Entry, *Refusal) {
	payload, err := canon.Canonicalize(nil, d.Payload)
	if err != nil {
		return nil, refuse(InvalidProtocolValue, "event %s: payload: %s", d.Event, err)
	}
	head := appendList([]byte(`{"causalRefs":`), causes, func(b []byte, ref EventRef) []byte { return ref.append(b) })
	head, err = appendText(append(head, `,"eventId":`...), string(d.Event))
	var tail []byte
	if err == nil {
		tail, err = appendText([]byte(`,"kind":`), string(d.Kind))
	}
	if err == nil {
		tail, err = appendText(append(tail, `,"occurredAt":`...), d.At)
	}
	if err != nil {
		return nil, refuse(InvalidProtocolValue, "event: %s", err)
	}
	tail = append(append(tail, `,"payload":`...), payload...)
	tail = appendQuoted(append(tail, `,"previousScopeEventSha256":`...), previous)
	tail = strconv.AppendInt(append(tail, `,"protocolVersion":"`+Protocol+`","scopeSequence":`...), sequence, 10)
	tail = append(append(append(tail, `,"workScopeId":"`...), scope...), `"}`...)
	digest := digestOf(`{"domain":"developer.event-envelope/v8","value":`, string(head), string(tail), "}")
	e := Parse(slices.Concat(head, []byte(`,"eventSha256":"`+string(digest)+`"`), tail))
	if no := e.Refusal(); no != nil {
		return nil, &Refusal{Code: InvalidProtocolValue, Message: no.Message}
	}
	return e, nil
}

func appendText(b []byte, s string) ([]byte, error) { return canon.OfString(s).Append(b) }
