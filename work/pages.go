package work

import (
	"strconv"
)

// MaxPage is how many receipts a page may have (DV-223).
const MaxPage = 100

// Cursor is where a page of a projection begins. Only Read makes one.
type Cursor struct {
	self       *Cursor
	projection Digest
	next       int
	digest     Digest
}

// Digest is DV-060.
func (c *Cursor) Digest() Digest { return c.digest }

// Next is the ordinal the page begins at.
func (c *Cursor) Next() int { return c.next }

// Projection is the digest of the projection the cursor belongs to.
func (c *Cursor) Projection() Digest { return c.projection }

// Page is some receipts of a projection in a row.
type Page struct {
	self       *Page
	projection Digest
	start      int
	receipts   []Receipt
	refs       []Digest
	next       *Cursor
	digest     Digest
}

// Start is the ordinal of the first receipt.
func (p *Page) Start() int { return p.start }

// Receipts are those of the page.
func (p *Page) Receipts() []Receipt { return append([]Receipt(nil), p.receipts...) }

// Refs are the digests that tie the receipts to the projection (DV-059).
func (p *Page) Refs() []Digest { return append([]Digest(nil), p.refs...) }

// Next is the cursor of the page behind, nil at the end.
func (p *Page) Next() *Cursor { return p.next }

// Digest is DV-061.
func (p *Page) Digest() Digest { return p.digest }

// Target is what a page is read from: a projection, or none while one is being made.
type Target struct {
	Current    *Projection
	Refreshing bool
}

// Read takes a page of at most size receipts at the cursor, nil meaning the start. It
// costs the page, however long the projection (DV-223).
func Read(t Target, at *Cursor, size int) (*Page, *Refusal) {
	switch {
	case t.Refreshing:
		return nil, refuse(ProjectionRefreshing, "the projection is being refreshed")
	case !t.Current.Genuine():
		return nil, refuse(InvalidProjection, "the projection was not made here")
	}
	p := t.Current
	start := 0
	if at != nil {
		switch {
		case at.self != at:
			return nil, refuse(InvalidCursor, "the cursor was not made here")
		case at.projection != p.digest:
			return nil, refuse(StaleCursor, "the cursor belongs to another projection")
		}
		start = at.next
	}
	if size < 1 || size > MaxPage {
		return nil, refuse(InvalidReceiptInput, "a page has 1 to %d receipts", MaxPage)
	}
	end := min(start+size, p.Len())
	page := &Page{projection: p.digest, start: start}
	page.self = page
	for i := start; i < end; i++ {
		page.receipts = append(page.receipts, p.At(i))
		page.refs = append(page.refs, p.refDigest(i))
	}
	if end < p.Len() {
		page.next = newCursor(p.digest, end)
	}
	page.digest = page.hash()
	return page, nil
}

// Verify checks that the page was made here from a projection of t's content (DV-224).
func (p *Page) Verify(t *Projection) *Refusal {
	switch {
	case !t.Genuine():
		return refuse(InvalidProjection, "the projection was not made here")
	case p == nil || p.self != p:
		return refuse(InvalidPage, "the page was not made here")
	case p.projection != t.digest:
		return refuse(StalePage, "the page belongs to another projection")
	}
	return nil
}

func newCursor(projection Digest, next int) *Cursor {
	c := &Cursor{projection: projection, next: next}
	c.self = c
	b := strconv.AppendInt([]byte(`{"domain":"developer/v8/receipt-page-cursor","fields":{"nextOrdinal":`), int64(next), 10)
	b = append(append(append(b, `,"projectionSha256":"`...), projection...), `"}}`...)
	c.digest = digestOfBytes(b)
	return c
}

func (p *Page) hash() Digest {
	b := appendIDs([]byte(`{"domain":"developer/v8/receipt-page","fields":{"entryRefSha256s":`), p.refs)
	var next Digest
	if p.next != nil {
		next = p.next.digest
	}
	b = appendQuoted(append(b, `,"nextCursorSha256":`...), next)
	b = append(append(b, `,"projectionSha256":"`...), p.projection...)
	b = strconv.AppendInt(append(b, `","startOrdinal":`...), int64(p.start), 10)
	return digestOfBytes(append(b, `}}`...))
}
