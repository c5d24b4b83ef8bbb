// Package sqlite keeps the journal in one SQLite file: WAL, synchronous=FULL, one
// writer goroutine that commits whatever is queued under one sync.
//
// Invariants:
//   - an answer of Commit is given after the sync that made it durable; FULL is set
//     on every connection and read back, and a store that cannot have it refuses to
//     open;
//   - only the writer goroutine writes; readers are query-only, copy out one bounded
//     page and end their transaction;
//   - after a failed sync nothing cached is trusted: all connections are closed, the
//     file is read again, and the ends of the streams are checked before the next
//     write.
//
// The caller owns the directory and holds its lock: this package does not keep a
// second process out, it only notices (Info.Foreign). It knows nothing of what
// events mean.
package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// Options of a store. The zero value is what production uses.
type Options struct {
	// ReadOnly opens an existing store for verification: no migration, no write.
	ReadOnly bool
	// Now is the clock of leases; nil means the machine's.
	Now func() time.Time
	// LogPages is the length of the log, in pages of 4 KiB, at which it is folded into
	// the file; 0 means 4096, which is 16 MiB.
	LogPages int64
	// Unsafe runs with synchronous=NORMAL, which loses acknowledged commits at a
	// power loss. It exists as the control of the power-loss test.
	Unsafe bool
}

// Store is a journal.Store, journal.Leaser and journal.Informer.
type Store struct {
	path    string
	opt     Options
	jobs    chan *job
	quit    chan struct{}
	done    chan struct{} // closed when the writer has ended
	readers *pool
	status  status
	start   startReport

	closeOnce sync.Once
	closeErr  error
}

// startReport is what Open found.
type startReport struct {
	version    string
	check      string // none | quick | full
	migrations []string
}

// Open opens or makes the store in the file path and brings its schema up to date.
// After an unclean end it first checks the file (fault.Altered when it is damaged).
func Open(ctx context.Context, path string, opt Options) (*Store, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.LogPages <= 0 {
		opt.LogPages = defaultLogPages
	}
	s := &Store{
		path: path,
		opt:  opt,
		jobs: make(chan *job, maxGroup),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
	s.readers = newPool(s.openReader)
	w := &writer{store: s, heads: map[string]*head{}}
	if err := s.prepare(ctx, w); err != nil {
		return nil, errors.Join(err, w.close(), s.readers.close())
	}
	if opt.ReadOnly {
		close(s.done)
		return s, nil
	}
	go w.run()
	return s, nil
}

func (s *Store) prepare(ctx context.Context, w *writer) error {
	if s.opt.ReadOnly {
		return s.prepareReadOnly(ctx)
	}
	unclean := hasWAL(s.path)
	if err := w.open(); err != nil {
		return err
	}
	if unclean {
		check, err := checkFile(w.conn, s.path)
		if err != nil {
			return err
		}
		s.start.check = check
	} else {
		s.start.check = "none"
	}
	if err := migrate(w.conn, s.opt.Now()); err != nil {
		return err
	}
	var err error
	if w.stmt, err = prepareAll(w.conn); err != nil {
		return err
	}
	return s.describe(w.conn)
}

func (s *Store) prepareReadOnly(ctx context.Context) error {
	if _, err := os.Stat(s.path); err != nil {
		return fault.Wrap(err, fault.NotFound, "open journal", s.path)
	}
	s.start.check = "none"
	return s.readers.with(ctx, "open journal", func(c *conn) error {
		if err := refuseNewer(c); err != nil {
			return err
		}
		return s.describe(c)
	})
}

func (s *Store) describe(c *conn) error {
	var err error
	if s.start.version, err = c.text("SELECT sqlite_version()"); err != nil {
		return c.fail(err, "open journal")
	}
	s.start.migrations, err = applied(c)
	return err
}

// hasWAL reports whether the last process left a log behind: a store that is
// closed in order removes it.
func hasWAL(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// Close answers what is queued, folds the log into the file and closes it.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.quit)
		<-s.done
		s.closeErr = errors.Join(s.closeErr, s.readers.close())
	})
	return s.closeErr
}

// Commit implements journal.Store.
func (s *Store) Commit(ctx context.Context, b journal.Batch) (journal.Result, error) {
	if err := b.Check(); err != nil {
		return journal.Result{}, err
	}
	j := &job{ctx: ctx, op: "commit batch", subject: b.ID, batch: &b, done: make(chan struct{})}
	if err := s.do(j); err != nil {
		return journal.Result{}, err
	}
	return j.result, nil
}

// do hands a job to the writer and waits. Once the writer has taken it, the
// context cannot end the wait: the answer would be a guess.
func (s *Store) do(j *job) error {
	if s.opt.ReadOnly {
		return fault.New(fault.Unavailable, j.op, j.subject, "the store is open for reading only")
	}
	if err := j.ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Cancelled, j.op, j.subject)
	}
	select {
	case <-s.quit:
		return closed(j.op, j.subject)
	default:
	}
	select {
	case s.jobs <- j:
	case <-s.quit:
		return closed(j.op, j.subject)
	case <-j.ctx.Done():
		return fault.Wrap(j.ctx.Err(), fault.Cancelled, j.op, j.subject)
	}
	select {
	case <-j.done:
		return j.err
	case <-s.done:
	}
	select {
	case <-j.done: // answered while the writer ended
		return j.err
	default:
		return closed(j.op, j.subject)
	}
}

func closed(op, subject string) error {
	return fault.New(fault.Unavailable, op, subject, "the store is closed")
}
