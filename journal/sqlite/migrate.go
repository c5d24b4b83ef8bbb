package sqlite

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	lite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/reeve-run/reeve/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as a reeve journal ("reev").
const applicationID = 0x72656576

const createMigrations = `CREATE TABLE IF NOT EXISTS migrations (
  name   TEXT    PRIMARY KEY,
  sha256 TEXT    NOT NULL,
  at_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID`

type migration struct {
	name, sql, sum string
}

// known returns the embedded migrations in order.
func known() ([]migration, error) {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, e := range entries {
		sql, err := migrations.ReadFile("migrations/" + e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(sql)
		all = append(all, migration{strings.TrimSuffix(e.Name(), ".sql"), string(sql), hex.EncodeToString(sum[:])})
	}
	return all, nil
}

// migrate applies what is missing, each in a transaction of its own. A file that a
// newer reeve has written, or whose history differs from ours, is refused.
func migrate(c *conn, now time.Time) error {
	id, err := c.number("PRAGMA application_id")
	if err != nil {
		return c.fail(err, "migrate journal")
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return c.fail(err, "migrate journal")
	}
	if tables > 0 && id != applicationID {
		return fault.New(fault.InvalidRequest, "open journal", c.path, "the file is a database of another program")
	}
	if err := refuseNewer(c); err != nil {
		return err
	}
	all, err := known()
	if err != nil {
		return fault.Wrap(err, fault.Internal, "migrate journal", c.path)
	}
	done, err := applied(c)
	if err != nil {
		return err
	}
	for _, m := range all {
		if slices.Contains(done, m.name) {
			continue
		}
		if err := apply(c, m, now); err != nil {
			return c.fail(err, "migrate journal")
		}
	}
	return nil
}

func apply(c *conn, m migration, now time.Time) (err error) {
	end, err := sqlitex.ImmediateTransaction(c.Conn)
	if err != nil {
		return err
	}
	defer end(&err)
	if err := sqlitex.ExecScript(c.Conn, m.sql); err != nil {
		return err
	}
	if err := c.exec(createMigrations); err != nil {
		return err
	}
	if err := sqlitex.Execute(c.Conn, "INSERT INTO migrations (name, sha256, at_ms) VALUES (?, ?, ?)",
		&sqlitex.ExecOptions{Args: []any{m.name, m.sum, now.UnixMilli()}}); err != nil {
		return err
	}
	return c.exec("PRAGMA application_id=" + strconv.Itoa(applicationID))
}

// applied returns the names of the migrations that the file has had.
func applied(c *conn) ([]string, error) {
	rows, err := history(c)
	var names []string
	for _, m := range rows {
		names = append(names, m.name)
	}
	return names, err
}

func history(c *conn) ([]migration, error) {
	var rows []migration
	n, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'")
	if err == nil && n > 0 {
		err = c.rows("SELECT name, sha256 FROM migrations ORDER BY name", func(s *lite.Stmt) {
			rows = append(rows, migration{name: s.ColumnText(0), sum: s.ColumnText(1)})
		})
	}
	return rows, c.fail(err, "read migrations")
}

func refuseNewer(c *conn) error {
	rows, err := history(c)
	if err != nil {
		return err
	}
	all, err := known()
	if err != nil {
		return fault.Wrap(err, fault.Internal, "read migrations", c.path)
	}
	var problems []error
	for _, row := range rows {
		i := slices.IndexFunc(all, func(m migration) bool { return m.name == row.name })
		switch {
		case i < 0:
			problems = append(problems, fault.New(fault.Unavailable, "open journal", c.path, "a newer reeve has applied migration %s", row.name).
				WithNext("use the newer reeve"))
		case all[i].sum != row.sum:
			problems = append(problems, fault.New(fault.Unavailable, "open journal", c.path, "migration %s is not the one this reeve knows", row.name).
				WithNext("use the reeve that made the file"))
		}
	}
	return errors.Join(problems...)
}
