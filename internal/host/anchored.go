package host

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/anchor"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// openStore opens the journal of the directory, unless it is no more what the last
// note signed: to go on there would be to make a history without what was
// acknowledged. A file that is gone is not made anew then.
func (c *Core) openStore(ctx context.Context) (journal.Store, error) {
	signed, note, problems := anchor.In(c.dirs.anchors).Newest()
	for _, err := range problems {
		c.log.Warn("a signed head cannot be compared with the journal", "cause", err)
	}
	if note == "" {
		return sqlite.Open(ctx, c.dirs.db, sqlite.Options{})
	}
	if _, err := os.Stat(c.dirs.db); errors.Is(err, fs.ErrNotExist) && signed.Events > 0 {
		return nil, c.notAsSigned(fault.Wrap(err, fault.Truncated, "look for", c.dirs.db), note)
	}
	store, err := sqlite.Open(ctx, c.dirs.db, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	err = signed.Hold(ctx, store)
	if fault.HasCode(err, fault.Truncated) || fault.HasCode(err, fault.Altered) {
		err = c.notAsSigned(err, note)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func (c *Core) notAsSigned(err error, note string) error {
	f := fault.Wrap(err, fault.CodeOf(err), "open journal", c.dirs.db)
	f.Message = "it is not what " + note + " signed"
	return f.WithNext("put reeve.db back from a backup; to go on knowingly with the journal as it is, mv %q %q", c.dirs.anchors, c.dirs.anchors+".before")
}
