package sqlite

import (
	"context"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/journal"
)

const (
	// scanEvents and scanBytes end a page of a scan: enough that handing it over costs
	// nothing, and little enough that it is still in a cache when it is seen.
	scanEvents = journal.MaxPage
	scanBytes  = 1 << 20
)

// scanPage holds events and their payloads, and is used again for others.
type scanPage struct {
	events []journal.Stored
	bytes  []byte
	err    error // met after the events
}

// payload returns an empty slice with room for size bytes.
func (p *scanPage) payload(size int) []byte {
	if cap(p.bytes)-len(p.bytes) < size {
		p.bytes = make([]byte, 0, max(size, scanBytes)) // what is in use stays where it is
	}
	at := len(p.bytes)
	p.bytes = p.bytes[:at+size]
	return p.bytes[at : at : at+size]
}

// Scan implements journal.Scanner. Another goroutine, which ends with the call,
// reads the page after the one that is seen.
func (s *Store) Scan(ctx context.Context, after int64, see func(*journal.Stored)) error {
	full, empty := make(chan *scanPage, 2), make(chan *scanPage, 2)
	empty <- &scanPage{}
	empty <- &scanPage{}
	go s.readAhead(ctx, after, full, empty)
	defer func() {
		close(empty)
		for p := range full {
			p.events = nil // read ahead of a see that panicked
		}
	}()
	for page := range full {
		for i := range page.events {
			see(&page.events[i])
		}
		if page.last() {
			return page.err
		}
		empty <- page
	}
	return nil
}

func (p *scanPage) last() bool { return p.err != nil || len(p.events) == 0 }

// readAhead fills pages until it has filled the last one, or gets no more, and
// closes full.
func (s *Store) readAhead(ctx context.Context, after int64, full chan<- *scanPage, empty <-chan *scanPage) {
	defer close(full)
	r := scanReader{streams: map[int64]string{}}
	for page := range empty {
		page.events, page.bytes = page.events[:0], page.bytes[:0]
		page.err = s.readers.with(ctx, "read events", func(c *conn) error {
			return c.fail(r.page(c, after, page), "read events")
		})
		last := page.last()
		if !last {
			after = page.events[len(page.events)-1].ID
		}
		full <- page
		if last {
			return
		}
	}
}

// scanReader keeps what repeats from page to page. It looks up the name of a stream
// once, and not for each row by a join.
type scanReader struct {
	names
	streams map[int64]string
	number  int64 // of names.stream
}

func (r *scanReader) page(c *conn, after int64, p *scanPage) error {
	stmt, err := c.prepare(sqlScan)
	if err != nil {
		return err
	}
	name, err := c.prepare(sqlStreamName)
	if err != nil {
		return err
	}
	stmt.BindInt64(1, after)
	stmt.BindInt64(2, scanEvents)
	return each(stmt, func() (bool, error) {
		if err := r.lookUp(name, stmt.ColumnInt64(streamColumn)); err != nil {
			return false, err
		}
		p.events = append(p.events, journal.Stored{Event: journal.Event{Payload: p.payload(stmt.ColumnLen(payloadColumn))}})
		if err := readEventOf(stmt, r.stream, &p.events[len(p.events)-1], &r.names); err != nil {
			p.events = p.events[:len(p.events)-1]
			return false, err
		}
		return len(p.bytes) < scanBytes, nil
	})
}

// lookUp sets r.stream to the name of stream number n. An event of a stream that is
// not there has none, which no chain agrees with.
func (r *scanReader) lookUp(stmt *lite.Stmt, n int64) error {
	if n == r.number {
		return nil
	}
	name, known := r.streams[n]
	if !known {
		stmt.BindInt64(1, n)
		if _, err := one(stmt, func(s *lite.Stmt) { name = s.ColumnText(0) }); err != nil {
			return err
		}
		r.streams[n] = name
	}
	r.number, r.stream = n, name
	return nil
}
