package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	lite "zombiezen.com/go/sqlite"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

const (
	// maxGroup bounds the jobs under one sync, and so the wait of the first one.
	maxGroup = 256
	// maxGroupBytes bounds the same wait by size; a batch alone may be larger.
	maxGroupBytes = 8 << 20
	// probeEvery is how often a store that refused a write looks whether the disk has
	// recovered, when nobody asks it to write.
	probeEvery = time.Second
	// idleAfter is how long the writer waits for more before it folds the log into the
	// file.
	idleAfter = 2 * time.Second
)

// job is one transaction's worth of work: a batch, or a function of the lease
// table.
type job struct {
	ctx     context.Context
	op      string
	subject string
	batch   *journal.Batch
	change  func(*writer) error

	result journal.Result
	err    error
	done   chan struct{}
}

func (j *job) answer(err error) {
	j.err = err
	close(j.done)
}

func (j *job) size() int {
	n := 0
	if j.batch != nil {
		for _, a := range j.batch.Append {
			for i := range a.Events {
				n += len(a.Events[i].Payload)
			}
		}
	}
	return n
}

// writer owns the one connection that writes. Everything in it belongs to its
// goroutine.
type writer struct {
	store *Store
	conn  *conn // nil: to be reopened before the next write
	stmt  statements
	chain *journal.Chain

	heads   map[string]*head // ends of streams as in the file
	nextID  int64
	version int64 // PRAGMA data_version: moves when another connection writes
	causes  []byte

	spoiled  bool // the transaction holds a part of a batch that failed
	several  bool // the last group held more than one job
	unfolded bool // written since the last checkpoint
	groups   int  // since the last look at the log
	bytes    int  // of payloads, since the same
	foldAt   int64
}

// head is the end of a stream.
type head struct {
	n, seq, id, bytes int64
	digest            journal.Digest
}

// maxHeads bounds the memory of the cache; past it the cache starts over.
const maxHeads = 20_000

func (s *Store) synchronous() int {
	if s.opt.Unsafe {
		return 1
	}
	return 2
}

func (w *writer) open() error {
	if err := makeFile(w.store.path); err != nil {
		return classifyFile(err, w.store.path)
	}
	// Checkpoints are the writer's own, between groups, not inside a commit that
	// somebody waits for. The log keeps its file: rewriting it in place is cheaper to
	// sync than growing it.
	name, flags := w.store.path, lite.OpenReadWrite
	if !w.store.opt.Unsafe {
		uri, err := logURI(w.store.path)
		if err != nil {
			return err
		}
		name, flags = uri, flags|lite.OpenURI
	}
	c, err := openAs(name, w.store.path, flags, w.store.synchronous(),
		"journal_mode=WAL", "wal_autocheckpoint=0", "journal_size_limit="+strconv.Itoa(walKeep))
	if err != nil {
		return err
	}
	w.conn, w.chain, w.foldAt = c, journal.NewChain(), w.store.opt.LogPages
	return nil
}

// makeFile makes the database readable by its owner only, which its log inherits,
// and makes its name durable.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(dir.Sync(), dir.Close(), f.Close())
}

func classifyFile(err error, path string) error {
	code := fault.Unavailable
	switch {
	case errors.Is(err, os.ErrNotExist):
		code = fault.NotFound
	case errors.Is(err, os.ErrPermission):
		code = fault.Denied
	}
	return fault.Wrap(err, code, "open journal", path)
}

// run commits what is queued, group by group, until the store is closed.
func (w *writer) run() {
	defer close(w.store.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(w.patience())
		select {
		case j := <-w.store.jobs:
			w.group(w.gather(j))
			w.fold(false)
		case <-timer.C:
			w.idle()
		case <-w.store.quit:
			w.drain()
			w.store.closeErr = w.finish()
			return
		}
	}
}

// patience is how long to wait for a job before doing something useful.
func (w *writer) patience() time.Duration {
	switch {
	case w.store.status.get() != journal.StateOK:
		return probeEvery
	case w.unfolded:
		return idleAfter
	default:
		return time.Hour
	}
}

// gather takes what is queued; it never waits for more. Callers that the last group
// has just answered often have the next batch ready: they get a turn first, or they
// would be one group behind for ever.
func (w *writer) gather(first *job) []*job {
	if w.several {
		runtime.Gosched()
	}
	group, size := []*job{first}, first.size()
	for more := true; more && len(group) < maxGroup && size < maxGroupBytes; {
		select {
		case j := <-w.store.jobs:
			group = append(group, j)
			size += j.size()
		default:
			more = false
		}
	}
	w.several = len(group) > 1
	w.bytes += size
	return group
}

func (w *writer) drain() {
	for {
		select {
		case j := <-w.store.jobs:
			w.group(w.gather(j))
		default:
			return
		}
	}
}

func (w *writer) idle() {
	if w.store.status.get() != journal.StateOK {
		w.probe()
		return
	}
	w.fold(true)
}

// group runs jobs in one transaction and answers them after the sync.
func (w *writer) group(jobs []*job) {
	if err := w.begin(); err != nil {
		w.refuse(jobs, err)
		return
	}
	errs := make([]error, len(jobs))
	wrote := false
	for i, j := range jobs {
		err := w.one(j)
		switch {
		case broken(err):
			w.refuse(jobs, w.abandon(err))
			return
		case w.spoiled && len(jobs) > 1:
			w.separately(jobs)
			return
		}
		errs[i] = err
		wrote = wrote || err == nil && !j.result.Replayed
	}
	if !wrote {
		// Nothing changed, or what did belongs to the one batch that failed.
		if err := w.rollback(); err != nil {
			w.refuse(jobs, w.abandon(err))
			return
		}
	} else if err := run(w.stmt.of(sqlCommit)); err != nil {
		w.refuse(jobs, w.undecided(err))
		return
	}
	if wrote {
		w.unfolded = true
		w.store.status.recovered()
	}
	for i, j := range jobs {
		j.answer(errs[i])
	}
}

// separately begins again with a transaction for each job, because one of them
// failed after its first write. That takes a damaged file, so it may be slow; a
// savepoint before every batch would be slow always.
func (w *writer) separately(jobs []*job) {
	if err := w.rollback(); err != nil {
		w.refuse(jobs, w.abandon(err))
		return
	}
	w.forget()
	for i := range jobs {
		w.group(jobs[i : i+1])
	}
}

// begin opens a transaction and makes sure that what is cached is still so.
func (w *writer) begin() error {
	if w.conn == nil {
		if err := w.reopen(); err != nil {
			return err
		}
	}
	w.spoiled = false
	if err := run(w.stmt.of(sqlBegin)); err != nil {
		return w.abandon(err)
	}
	version, err := w.stmt.number(sqlDataVersion)
	if err == nil && version != w.version {
		if w.version != 0 {
			w.store.status.foreign.Add(1)
		}
		w.version = version
		w.forget()
	}
	if err != nil {
		return w.abandon(err)
	}
	return nil
}

func (w *writer) forget() {
	clear(w.heads)
	w.nextID = 0
}

// one runs a job. An error has left nothing behind unless it is broken or the
// transaction is spoiled.
func (w *writer) one(j *job) error {
	if err := j.ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Cancelled, j.op, j.subject)
	}
	return w.do(j)
}

func (w *writer) do(j *job) error {
	if j.batch == nil {
		return j.change(w)
	}
	res, err := w.commit(j.batch)
	j.result = res
	return err
}

// engineError is a failure of the engine rather than a refusal of ours: the whole
// group fails with it.
type engineError struct{ err error }

func (e *engineError) Error() string { return e.err.Error() }
func (e *engineError) Unwrap() error { return e.err }

func broken(err error) bool {
	var e *engineError
	return errors.As(err, &e)
}

// refuse answers every job of a group with one failure, named for each.
func (w *writer) refuse(jobs []*job, err error) {
	for _, j := range jobs {
		var known *fault.Error
		if errors.As(err, &known) {
			named := *known
			named.Op, named.Subject = j.op, j.subject
			j.answer(&named)
			continue
		}
		j.answer(classify(err, j.op, j.subject))
	}
}

func (w *writer) rollback() error { return run(w.stmt.of(sqlRollback)) }

// finish folds the log into the file and closes the connection. The readers are
// closed by Close: the last one out removes the log.
func (w *writer) finish() error {
	if w.conn == nil {
		return nil
	}
	w.fold(true)
	return w.close()
}

func (w *writer) close() error {
	if w.conn == nil {
		return nil
	}
	err := w.conn.Close()
	w.conn, w.version = nil, 0
	w.forget()
	return err
}
