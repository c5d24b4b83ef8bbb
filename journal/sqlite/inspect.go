package sqlite

import (
	"context"
	"errors"
	"strings"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// fullCheckBytes is the size up to which an unclean start checks every index entry
// against its row; above, only the structure. At about 100 MB per second a larger
// file would delay the start by more than a second.
const fullCheckBytes = 64 << 20

const (
	fullCheck  = "PRAGMA integrity_check(10)"
	quickCheck = "PRAGMA quick_check(10)"
)

// checkFile looks at the structure of the file after an unclean end and returns
// what it did.
func checkFile(c *conn, path string) (string, error) {
	if sizeOf(path) > fullCheckBytes {
		return "quick", structure(c, quickCheck)
	}
	return "full", structure(c, fullCheck)
}

func structure(c *conn, pragma string) error {
	var problems []string
	err := c.rows(pragma, func(s *lite.Stmt) {
		if line := s.ColumnText(0); line != "ok" {
			problems = append(problems, line)
		}
	})
	if err != nil {
		return c.fail(err, "check journal")
	}
	if len(problems) > 0 {
		return fault.New(fault.Altered, "check journal", c.path, "%s", strings.Join(problems, "; ")).
			WithNext("stop, keep a copy of the file, and restore a backup")
	}
	return nil
}

// CheckStructure implements journal.Checker: every page, and every index entry
// against its row.
func (s *Store) CheckStructure(ctx context.Context) error {
	return s.readers.with(ctx, "check journal", func(c *conn) error {
		c.SetInterrupt(ctx.Done())
		defer c.SetInterrupt(nil)
		return structure(c, fullCheck)
	})
}

// maxTails bounds the check of stream ends after a disk failure to the streams that
// were written last.
const maxTails = 1000

const sqlTails = `SELECT name, seq, id, digest FROM streams ORDER BY id DESC LIMIT ?`

// checkTails compares the last event of the most recent streams with what their
// head says.
func checkTails(c *conn) error {
	stmt, err := c.prepare(sqlTails)
	if err != nil {
		return err
	}
	stmt.BindInt64(1, maxTails)
	var heads []journal.Head
	if err := each(stmt, func() (bool, error) {
		h := journal.Head{Stream: stmt.ColumnText(0), Seq: stmt.ColumnInt64(1), ID: stmt.ColumnInt64(2)}
		stmt.ColumnBytes(3, h.Digest[:])
		heads = append(heads, h)
		return true, nil
	}); err != nil {
		return err
	}
	last, err := c.prepare(sqlEventsOf)
	if err != nil {
		return err
	}
	chain := journal.NewChain()
	var problems []error
	for _, h := range heads {
		page, err := eventPage(last, 1, func(s *lite.Stmt) {
			s.BindText(1, h.Stream)
			s.BindInt64(2, h.Seq-1)
		})
		if err != nil {
			return err
		}
		if len(page) != 1 || page[0].ID != h.ID || chain.Link(page[0].Prev, h.Stream, h.Seq, &page[0].Event) != h.Digest {
			problems = append(problems, fault.New(fault.Altered, "check stream", h.Stream, "its last event is not the one that was committed"))
		}
	}
	return errors.Join(problems...)
}
