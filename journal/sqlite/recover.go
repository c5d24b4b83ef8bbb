package sqlite

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// status is what the store says of itself while the writer works.
type status struct {
	foreign atomic.Int64
	mu      sync.Mutex
	state   string // empty: ok
	problem string
}

func (s *status) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == "" {
		return journal.StateOK
	}
	return s.state
}

func (s *status) set(state, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.problem = state, problem
}

// recovered notes that a write went through.
func (s *status) recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.problem = "", ""
}

func (s *status) both() (state, problem string) {
	state = s.get()
	s.mu.Lock()
	defer s.mu.Unlock()
	return state, s.problem
}

// abandon ends a transaction that failed before its COMMIT: nothing of it is
// stored.
func (w *writer) abandon(err error) error {
	failure := classify(err, "commit batch", w.store.path)
	if fault.HasCode(failure, fault.StoreFull) && w.settle() {
		w.store.status.set(journal.StateFull, err.Error())
		return failure
	}
	w.distrust(err)
	return failure
}

// undecided ends a transaction whose COMMIT failed. SQLite writes the mark that
// makes a transaction valid last, so a disk that was full before it holds nothing;
// after any other failure the mark may or may not be on the disk.
func (w *writer) undecided(err error) error {
	failure := classify(err, "commit batch", w.store.path)
	if fault.HasCode(failure, fault.StoreFull) && w.settle() {
		w.store.status.set(journal.StateFull, err.Error())
		return failure
	}
	w.distrust(err)
	return fault.Wrap(err, fault.Unknown, "commit batch", w.store.path).
		WithNext("send the batch with the same id again").Retryable()
}

// settle brings the connection back to where no transaction is open.
func (w *writer) settle() bool {
	w.forget()
	if !w.conn.AutocommitEnabled() {
		if err := w.rollback(); err != nil {
			return false
		}
	}
	return w.conn.AutocommitEnabled()
}

// distrust closes the connection after a failure that may have left the page cache
// and the disk at odds. The next write, or the probe, reopens.
func (w *writer) distrust(err error) {
	if closeErr := w.close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	w.store.status.set(journal.StateUnavailable, err.Error())
}

// reopen reads the file again from the disk, checks the ends of the streams, and
// writes the log into the file, which puts to the disk whatever the failed sync did
// not.
func (w *writer) reopen() error {
	err := w.store.readers.recycle(w.open)
	if err == nil {
		w.stmt, err = prepareAll(w.conn)
	}
	if err == nil {
		err = w.recheck()
	}
	if err != nil {
		failure := classify(err, "reopen journal", w.store.path)
		w.distrust(err)
		return failure
	}
	w.store.status.recovered()
	return nil
}

func (w *writer) recheck() error {
	if err := checkTails(w.conn); err != nil {
		return err
	}
	return w.conn.exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

// probe writes one small row to learn whether the disk takes writes again.
func (w *writer) probe() {
	if err := w.begin(); err != nil {
		return // begin has noted the problem
	}
	stmt := w.stmt.of(sqlProbe)
	stmt.BindInt64(1, w.store.opt.Now().UnixMilli())
	if err := run(stmt); err != nil {
		w.noteProbe(w.abandon(err))
		return
	}
	if err := run(w.stmt.of(sqlCommit)); err != nil {
		w.noteProbe(w.undecided(err))
		return
	}
	w.unfolded = true
	w.store.status.recovered()
}

// noteProbe exists because a probe has no caller: the problem is in Info.
func (w *writer) noteProbe(err error) {
	state, _ := w.store.status.both()
	w.store.status.set(state, err.Error())
}

const (
	// defaultLogPages is long enough that fewer than one commit in a hundred waits for a
	// checkpoint, and short enough that recovery after a kill reads 16 MiB at most.
	defaultLogPages = 4096
	// walKeep is the length to which the log's file is cut after it was longer.
	walKeep = 32 << 20
	// readerWait is how long a checkpoint of a log that has grown too long waits for
	// readers, and with it every writer.
	readerWait = 200 * time.Millisecond
	// lookEvery is how many groups, and lookBytes how many payload bytes, pass between
	// two looks at the length of the log.
	lookEvery = 16
	lookBytes = 4 << 20
)

// fold checkpoints the log when it is long, or whenever now is set. A reader that
// holds an old page keeps a passive checkpoint from the end of the log: then it is
// tried again a little later, and waited for when the log has twice its length.
func (w *writer) fold(now bool) {
	if w.conn == nil || !w.unfolded {
		return
	}
	if w.groups++; !now && w.groups < lookEvery && w.bytes < lookBytes {
		return
	}
	w.groups, w.bytes = 0, 0
	length := w.store.opt.LogPages
	if !now {
		pages, _, err := w.checkpoint("NOOP")
		if err != nil || pages < w.foldAt {
			return
		}
	}
	pages, folded, err := w.checkpoint("PASSIVE")
	if err == nil && folded < pages && pages >= 2*length {
		// Readers of this process end within a page; for another process's the writer
		// does not wait long.
		w.conn.SetBusyTimeout(readerWait)
		pages, folded, err = w.checkpoint("RESTART")
		w.conn.SetBusyTimeout(busyTimeout)
	}
	switch {
	case err != nil && lite.ErrCode(err).ToPrimary() == lite.ResultIOErr:
		w.distrust(err)
	case err != nil:
		// A checkpoint is only tidying: what the disk has no room for stays in the log.
		w.foldAt += length
	case folded < pages:
		w.foldAt = pages + length/4
	default:
		w.foldAt, w.unfolded = length, false
	}
}

func (w *writer) checkpoint(mode string) (pages, folded int64, err error) {
	err = w.conn.rows("PRAGMA wal_checkpoint("+mode+")", func(s *lite.Stmt) {
		pages, folded = s.ColumnInt64(1), s.ColumnInt64(2)
	})
	return pages, folded, err
}
