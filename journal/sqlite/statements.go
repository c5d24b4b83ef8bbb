package sqlite

import (
	lite "zombiezen.com/go/sqlite"
)

const (
	sqlBegin       = `BEGIN IMMEDIATE`
	sqlCommit      = `COMMIT`
	sqlRollback    = `ROLLBACK`
	sqlDataVersion = `PRAGMA data_version`
	sqlNextID      = `SELECT coalesce(max(id), 0) + 1 FROM events`
	sqlProbe       = `INSERT OR REPLACE INTO probe (n, at_ms) VALUES (1, ?)`

	sqlHead      = `SELECT n, seq, id, digest, bytes FROM streams WHERE name = ?`
	sqlNextN     = `SELECT coalesce(max(n), 0) + 1 FROM streams`
	sqlNewHead   = `INSERT INTO streams (name, seq, id, digest, bytes, n) VALUES (?, ?, ?, ?, ?, ?)`
	sqlMoveHead  = `UPDATE streams SET seq = ?, id = ?, digest = ?, bytes = ? WHERE n = ?`
	sqlEvent     = `INSERT INTO events (id, stream, seq, kind, version, at_ms, batch, prev, digest, causes, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlRevision  = `SELECT rev FROM records WHERE kind = ? AND key = ?`
	sqlNewRecord = `INSERT INTO records (kind, key, session, state, rev, due_ms, body) VALUES (?, ?, ?, ?, 1, ?, ?)`
	sqlPutRecord = `UPDATE records SET session = ?, state = ?, rev = ?, due_ms = ?, body = ? WHERE kind = ? AND key = ?`

	sqlSession    = `SELECT host, incarnation, epoch, inbox FROM sessions WHERE id = ?`
	sqlPutOwner   = `INSERT INTO sessions (id, host, incarnation, epoch, inbox) VALUES (?1, ?2, ?3, ?4, 0) ON CONFLICT (id) DO UPDATE SET host = ?2, incarnation = ?3, epoch = ?4`
	sqlPutInbox   = `INSERT INTO sessions (id, host, incarnation, epoch, inbox) VALUES (?1, '', 0, 0, ?2) ON CONFLICT (id) DO UPDATE SET inbox = ?2`
	sqlDelivered  = `SELECT n FROM inbox WHERE session = ? AND id = ?`
	sqlDeliver    = `INSERT INTO inbox (session, n, id, body) VALUES (?, ?, ?, ?)`
	sqlHost       = `SELECT incarnation, until_ms FROM hosts WHERE id = ?`
	sqlPutHost    = `INSERT INTO hosts (id, incarnation, until_ms) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET incarnation = ?2, until_ms = ?3`
	eventColumns  = `e.id, s.name, e.seq, e.kind, e.version, e.at_ms, e.batch, e.prev, e.digest, e.causes, e.payload`
	sqlEventsOf   = `SELECT ` + eventColumns + ` FROM streams s JOIN events e ON e.stream = s.n WHERE s.name = ? AND e.seq > ? ORDER BY e.seq LIMIT ?`
	sqlEventsByID = `SELECT ` + eventColumns + ` FROM events e JOIN streams s ON s.n = e.stream WHERE e.id > ? ORDER BY e.id LIMIT ?`
	sqlScan       = `SELECT id, stream, seq, kind, version, at_ms, batch, prev, digest, causes, payload FROM events WHERE id > ? ORDER BY id LIMIT ?`
	sqlStreamName = `SELECT name FROM streams WHERE n = ?`
	sqlHeads      = `SELECT name, seq, id, digest FROM streams WHERE name > ? ORDER BY name LIMIT ?`
	sqlInbox      = `SELECT n, id, body FROM inbox WHERE session = ? AND n > ? ORDER BY n LIMIT ?`
	sqlTotals     = `SELECT coalesce(sum(seq), 0), count(*), coalesce(sum(bytes), 0) FROM streams`
)

// writerQueries are prepared when the connection is opened, so that a schema that
// is not ours is noticed then and not in the middle of a commit.
var writerQueries = []string{
	sqlBegin, sqlCommit, sqlRollback, sqlDataVersion, sqlNextID, sqlProbe,
	sqlHead, sqlNextN, sqlNewHead, sqlMoveHead, sqlEvent, sqlRevision, sqlNewRecord, sqlPutRecord,
	sqlSession, sqlPutOwner, sqlPutInbox, sqlDelivered, sqlDeliver, sqlHost, sqlPutHost, sqlEventsOf, sqlEventsByID,
}

// statements holds the writer's prepared queries.
type statements map[string]*lite.Stmt

func prepareAll(c *conn) (statements, error) {
	all := statements{}
	for _, query := range writerQueries {
		stmt, err := c.prepare(query)
		if err != nil {
			return nil, c.fail(err, "open journal")
		}
		all[query] = stmt
	}
	return all, nil
}

// of returns a query of writerQueries.
func (s statements) of(query string) *lite.Stmt { return s[query] }

// one steps a query that returns at most one row, shows it to see, and leaves the
// statement ready for the next use.
func one(stmt *lite.Stmt, see func(*lite.Stmt)) (found bool, err error) {
	found, err = stmt.Step()
	if err != nil {
		return false, err // Step has reset it
	}
	if found {
		see(stmt)
	}
	return found, stmt.Reset()
}

func (s statements) number(query string) (n int64, err error) {
	_, err = one(s.of(query), func(stmt *lite.Stmt) { n = stmt.ColumnInt64(0) })
	return n, err
}
