package work

import (
	"iter"
	"strconv"
)

// Projection is the ordered receipts of the accepted events of a branch, and the chain
// over them (DV-222). Only this package makes one, and a copy of one is refused.
type Projection struct {
	self        *Projection
	receipts    vector[Receipt]
	chain       Digest
	first, last EventRef
	digest      Digest
}

// NewProjection is the projection of no receipts. Each is one of its own, equal in
// content to every other.
func NewProjection() *Projection {
	return (&Projection{chain: emptyChain}).seal()
}

var emptyChain = digestOf(`{"domain":"developer/v8/receipt-root-empty"}`)

// Project makes the projection of events that a State accepted, in their order. A Branch
// keeps its own; this one checks what it is given.
func Project(events iter.Seq[*Accepted]) (*Projection, *Refusal) {
	x := NewProjection().extender()
	known := map[EventID]struct{}{}
	last := -1
	for a := range events {
		if a == nil || a.self != a {
			return nil, refuse(UnacceptedEvent, "an event was not accepted by a state here")
		}
		if _, twice := known[a.Event]; twice {
			return nil, refuse(DuplicateEventID, "event %s has a receipt already", a.Event)
		}
		if a.index <= last {
			return nil, refuse(NoncanonicalOrder, "stored index %d does not follow %d", a.index, last)
		}
		known[a.Event], last = struct{}{}, a.index
		x.add(a)
	}
	return x.to.seal(), nil
}

// extender adds receipts to a projection in the making.
type extender struct {
	own  *owner
	to   *Projection
	room []byte
	link []byte
}

func (p *Projection) extender() *extender {
	c := *p
	c.self = nil
	return &extender{own: new(owner), to: &c}
}

func (x *extender) add(a *Accepted) {
	p := x.to
	r := receiptOf(a, &x.room)
	b := append(x.link[:0], `{"domain":"developer/v8/receipt-root-link","eventRef":`...)
	b = a.Ref().append(b)
	b = strconv.AppendInt(append(b, `,"ordinal":`...), int64(p.receipts.n), 10)
	b = append(append(b, `,"previous":"`...), p.chain...)
	b = append(append(append(b, `","receiptSha256":"`...), r.Digest...), `"}`...)
	x.link = b
	p.chain = digestOfBytes(b)
	if p.receipts.n == 0 {
		p.first = a.Ref()
	}
	p.last = a.Ref()
	p.receipts.push(x.own, r)
}

// seal ends the making of a projection: its digest is DV-058.
func (p *Projection) seal() *Projection {
	b := []byte(`{"domain":"developer/v8/receipt-projection","fields":`)
	b = append(p.appendFields(b, ""), '}')
	p.digest = digestOfBytes(b)
	p.self = p
	return p
}

// appendFields writes the head of the projection, with its digest when there is one.
func (p *Projection) appendFields(b []byte, digest Digest) []byte {
	refs := [2]string{"null", "null"}
	if p.receipts.n > 0 {
		refs = [2]string{string(p.first.append(nil)), string(p.last.append(nil))}
	}
	b = append(append(b, `{"firstEventRef":`...), refs[0]...)
	b = append(append(b, `,"lastEventRef":`...), refs[1]...)
	b = append(append(b, `,"orderedReceiptRootSha256":"`...), p.chain...)
	if digest != "" {
		b = append(append(b, `","projectionSha256":"`...), digest...)
	}
	b = strconv.AppendInt(append(b, `","receiptCount":`...), int64(p.receipts.n), 10)
	return append(b, '}')
}

// Append writes the head of the projection as canonical JSON, its digest included.
func (p *Projection) Append(b []byte) []byte { return p.appendFields(b, p.digest) }

// Genuine reports whether p was made here and is no copy (DV-210).
func (p *Projection) Genuine() bool { return p != nil && p.self == p }

// Digest is that of the projection (DV-058).
func (p *Projection) Digest() Digest { return p.digest }

// Len counts the receipts.
func (p *Projection) Len() int { return p.receipts.n }

// At is the receipt at an ordinal, from 0.
func (p *Projection) At(ordinal int) Receipt { return p.receipts.get(ordinal) }

// refDigest is DV-059.
func (p *Projection) refDigest(ordinal int) Digest {
	r := p.At(ordinal)
	b := r.Event.Ref().append([]byte(`{"domain":"developer/v8/receipt-projection-ref","fields":{"eventRef":`))
	b = strconv.AppendInt(append(b, `,"ordinal":`...), int64(ordinal), 10)
	b = append(append(b, `,"projectionSha256":"`...), p.digest...)
	b = append(append(append(b, `","receiptSha256":"`...), r.Digest...), `"}}`...)
	return digestOfBytes(b)
}
