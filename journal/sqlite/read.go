package sqlite

import (
	"context"
	"os"
	"strings"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// maxPageBytes ends a page early, so that no read transaction is long because its
// rows are large.
const maxPageBytes = 4 << 20

// Events implements journal.Store.
func (s *Store) Events(ctx context.Context, stream string, seq int64, limit int) (page []journal.Stored, err error) {
	seq = max(seq, 0)
	err = s.readers.with(ctx, "read events", func(c *conn) error {
		stmt, err := c.prepare(sqlEventsOf)
		if err != nil {
			return c.fail(err, "read events")
		}
		page, err = eventPage(stmt, limit, func(stmt *lite.Stmt) {
			stmt.BindText(1, stream)
			stmt.BindInt64(2, seq)
		})
		if err == nil {
			err = contiguous(page, stream, seq)
		}
		return classify(err, "read events", stream)
	})
	return page, err
}

// contiguous refuses a page that left something out: a reader that folds it would
// come to a wrong state in silence.
func contiguous(page []journal.Stored, stream string, after int64) error {
	for i := range page {
		if want := after + int64(i) + 1; page[i].Seq != want {
			return fault.New(fault.Altered, "read events", stream, "event %d is missing before %d", want, page[i].Seq).WithNext("run reeve verify")
		}
	}
	return nil
}

// ByID implements journal.Store.
func (s *Store) ByID(ctx context.Context, after int64, max int) (page []journal.Stored, err error) {
	err = s.readers.with(ctx, "read events", func(c *conn) error {
		stmt, err := c.prepare(sqlEventsByID)
		if err != nil {
			return c.fail(err, "read events")
		}
		page, err = eventPage(stmt, max, func(stmt *lite.Stmt) { stmt.BindInt64(1, after) })
		return c.fail(err, "read events")
	})
	return page, err
}

// Columns of eventColumns that are read by themselves.
const (
	streamColumn  = 1
	payloadColumn = 10
)

// eventPage reads one page with a statement whose last parameter is its limit.
func eventPage(stmt *lite.Stmt, max int, bind func(*lite.Stmt)) ([]journal.Stored, error) {
	bind(stmt)
	stmt.BindInt64(stmt.BindParamCount(), int64(journal.Page(max)))
	var page []journal.Stored
	size := 0
	var names names
	err := each(stmt, func() (bool, error) {
		var e journal.Stored
		if err := readEvent(stmt, &e, &names); err != nil {
			return false, err
		}
		page = append(page, e)
		size += len(e.Payload)
		return size < maxPageBytes, nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// each steps through the rows until the end, until row returns false, or until an
// error, and resets the statement: the read transaction ends here.
func each(stmt *lite.Stmt, row func() (more bool, err error)) error {
	for {
		found, err := stmt.Step()
		if err != nil {
			return err // Step has reset it
		}
		if !found {
			return stmt.Reset()
		}
		more, err := row()
		if err != nil {
			// The row was bad, not the reset, whose error would repeat a step's.
			_ = stmt.Reset()
			return err
		}
		if !more {
			return stmt.Reset()
		}
	}
}

// names shares the strings that repeat from row to row: a walk over the store
// would otherwise make three for each event.
type names struct {
	stream, kind, batch string
	buf                 [journal.MaxName]byte
}

func (n *names) same(stmt *lite.Stmt, col int, last string) string {
	size := stmt.ColumnBytes(col, n.buf[:])
	switch {
	case size == len(n.buf):
		return stmt.ColumnText(col) // as long as a name may be, or longer, in a damaged row
	case string(n.buf[:size]) == last:
		return last
	default:
		return string(n.buf[:size])
	}
}

func readEvent(stmt *lite.Stmt, e *journal.Stored, n *names) error {
	n.stream = n.same(stmt, streamColumn, n.stream)
	return readEventOf(stmt, n.stream, e, n)
}

// readEventOf is readEvent for a row that names its stream otherwise.
func readEventOf(stmt *lite.Stmt, stream string, e *journal.Stored, n *names) error {
	n.kind, n.batch = n.same(stmt, 3, n.kind), n.same(stmt, 6, n.batch)
	e.ID, e.Stream, e.Seq = stmt.ColumnInt64(0), stream, stmt.ColumnInt64(2)
	e.Kind, e.Version, e.AtMS, e.Batch = n.kind, int(stmt.ColumnInt64(4)), stmt.ColumnInt64(5), n.batch
	stmt.ColumnBytes(7, e.Prev[:])
	if stmt.ColumnBytes(8, e.Digest[:]) != len(e.Digest) || stmt.ColumnLen(8) != len(e.Digest) {
		return fault.New(fault.Altered, "read event", e.Stream, "event %d has no digest of 32 bytes", e.Seq)
	}
	e.Causes = nil
	if size := stmt.ColumnLen(9); size > 0 {
		causes, err := journal.ParseCauses(bytesOf(stmt, 9, nil))
		if err != nil {
			return err
		}
		e.Causes = causes
	}
	e.Payload = bytesOf(stmt, payloadColumn, e.Payload)
	return nil
}

// bytesOf copies a column into buf, or a new buffer when it is too small; empty
// reads as nil when there is no buf.
func bytesOf(stmt *lite.Stmt, col int, buf []byte) []byte {
	size := stmt.ColumnLen(col)
	if size == 0 {
		return buf[:0]
	}
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	return buf[:stmt.ColumnBytes(col, buf[:size])]
}

// Heads implements journal.Store.
func (s *Store) Heads(ctx context.Context, after string, max int) (page []journal.Head, err error) {
	err = s.readers.with(ctx, "read heads", func(c *conn) error {
		stmt, err := c.prepare(sqlHeads)
		if err != nil {
			return c.fail(err, "read heads")
		}
		stmt.BindText(1, after)
		stmt.BindInt64(2, int64(journal.Page(max)))
		return c.fail(each(stmt, func() (bool, error) {
			h := journal.Head{Stream: stmt.ColumnText(0), Seq: stmt.ColumnInt64(1), ID: stmt.ColumnInt64(2)}
			stmt.ColumnBytes(3, h.Digest[:])
			page = append(page, h)
			return true, nil
		}), "read heads")
	})
	return page, err
}

// Inbox implements journal.Store.
func (s *Store) Inbox(ctx context.Context, session string, after int64, max int) (page []journal.Delivered, err error) {
	err = s.readers.with(ctx, "read inbox", func(c *conn) error {
		stmt, err := c.prepare(sqlInbox)
		if err != nil {
			return c.fail(err, "read inbox")
		}
		stmt.BindText(1, session)
		stmt.BindInt64(2, after)
		stmt.BindInt64(3, int64(journal.Page(max)))
		size := 0
		return classify(each(stmt, func() (bool, error) {
			d := journal.Delivered{N: stmt.ColumnInt64(0), Input: journal.Input{To: session, ID: stmt.ColumnText(1), Body: bytesOf(stmt, 2, nil)}}
			page = append(page, d)
			size += len(d.Body)
			return size < maxPageBytes, nil
		}), "read inbox", session)
	})
	return page, err
}

// Find implements journal.Store.
func (s *Store) Find(ctx context.Context, q journal.Query) (page []journal.Record, err error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	query, args := selectRecords(q)
	err = s.readers.with(ctx, "find records", func(c *conn) error {
		// The one read that may scan more than it returns, so the one that can be
		// interrupted.
		c.SetInterrupt(ctx.Done())
		defer c.SetInterrupt(nil)
		stmt, err := c.prepare(query)
		if err != nil {
			return c.fail(err, "find records")
		}
		for i, a := range args {
			switch v := a.(type) {
			case string:
				stmt.BindText(i+1, v)
			case int64:
				stmt.BindInt64(i+1, v)
			}
		}
		size := 0
		return classify(each(stmt, func() (bool, error) {
			r := journal.Record{
				Kind: stmt.ColumnText(0), Key: stmt.ColumnText(1), Session: stmt.ColumnText(2), State: stmt.ColumnText(3),
				Rev: stmt.ColumnInt64(4), DueMS: stmt.ColumnInt64(5), Body: bytesOf(stmt, 6, nil),
			}
			page = append(page, r)
			size += len(r.Body)
			return size < maxPageBytes, nil
		}), "find records", q.Kind)
	})
	return page, err
}

// selectRecords builds the query for the members that restrict. The text depends
// only on which ones do, so few different statements are ever prepared.
func selectRecords(q journal.Query) (string, []any) {
	var where []string
	var args []any
	add := func(cond string, values ...any) {
		where = append(where, cond)
		args = append(args, values...)
	}
	if q.Kind != "" {
		add("kind = ?", q.Kind)
	}
	if q.Session != "" {
		add("session = ? AND session <> ''", q.Session)
	}
	if q.State != "" {
		add("state = ? AND state <> ''", q.State)
	}
	if q.DueByMS != 0 {
		add("due_ms > 0 AND due_ms <= ?", q.DueByMS)
	}
	if q.KeyPrefix != "" {
		add("key >= ?", q.KeyPrefix)
		add("substr(CAST(key AS BLOB), 1, ?) = CAST(? AS BLOB)", int64(len(q.KeyPrefix)), q.KeyPrefix)
		if end, ok := after(q.KeyPrefix); ok {
			add("key < ?", end)
		}
	}
	switch {
	case q.After == "":
	case q.Kind != "":
		add("key > ?", q.After)
	default:
		kind, key, _ := journal.SplitKey(q.After)
		add("(kind, key) > (?, ?)", kind, key)
	}
	query := "SELECT kind, key, session, state, rev, due_ms, body FROM records"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	return query + " ORDER BY kind, key LIMIT ?", append(args, int64(journal.Page(q.Max)))
}

// after returns the least text above every text that begins with prefix, as far as
// raising the last byte below 0x7f gives one; it only helps the index.
func after(prefix string) (string, bool) {
	last := prefix[len(prefix)-1]
	if last >= 0x7f {
		return "", false
	}
	return prefix[:len(prefix)-1] + string(rune(last+1)), true
}

// Info implements journal.Informer.
func (s *Store) Info(ctx context.Context) (journal.Info, error) {
	state, problem := s.status.both()
	info := journal.Info{
		Engine: "sqlite " + s.start.version, State: state, Problem: problem,
		Migrations: s.start.migrations, StartCheck: s.start.check, Foreign: s.status.foreign.Load(),
	}
	err := s.readers.with(ctx, "read store state", func(c *conn) error {
		err := c.rows(sqlTotals, func(stmt *lite.Stmt) {
			info.Events, info.Streams, info.PayloadBytes = stmt.ColumnInt64(0), stmt.ColumnInt64(1), stmt.ColumnInt64(2)
		})
		if err != nil {
			return c.fail(err, "read store state")
		}
		n, err := c.number("PRAGMA synchronous")
		info.Synchronous = map[int64]string{0: "off", 1: "normal", 2: "full", 3: "extra"}[n]
		return c.fail(err, "read store state")
	})
	info.FileBytes, info.WALBytes = sizeOf(s.path), sizeOf(s.path+"-wal")
	return info, err
}

// sizeOf is 0 for a file that is not there: a log is removed at a clean end.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
