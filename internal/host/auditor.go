package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

const (
	// operatorStream is the operator's lane.
	operatorStream = "operator"
	// recordAudit is the record whose revision counts the auditor's batches: it gives
	// a batch that many others write beside an identity.
	recordAudit = "audit"

	maxOwed  = 8192 // rows that wait
	maxBatch = 256  // rows of one batch
)

func (c *Core) auditStream() string { return "audit/" + c.host.ID }

// auditor writes the audit rows that stand alone: of reads, refusals and whatever
// failed before it began. Rows that come while a batch is being written share the
// next one (VD-163).
type auditor struct {
	store  journal.Store
	stream string
	host   string
	id     func() string
	log    *slog.Logger
	wrote  func()

	owed chan owedRow
	stop chan struct{}
	gone chan struct{}
	once sync.Once
	rev  int64
}

type owedRow struct {
	row  event.AuditDispatchV1
	done chan error
}

func newAuditor(ctx context.Context, c *Core) (*auditor, error) {
	a := &auditor{
		store: c.store, stream: c.auditStream(), host: c.host.ID, id: func() string { return c.newID("audit") }, log: c.log,
		wrote: c.watch.notify, owed: make(chan owedRow, maxOwed), stop: make(chan struct{}), gone: make(chan struct{}),
	}
	rows, err := a.store.Find(ctx, journal.Query{Kind: recordAudit, KeyPrefix: a.host, Max: 1})
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 && rows[0].Key == a.host {
		a.rev = rows[0].Rev
	}
	return a, nil
}

// owe takes a row. When too many wait it is lost for certain, and said to be
// (VD-164).
func (a *auditor) owe(row event.AuditDispatchV1) <-chan error {
	o := owedRow{row, make(chan error, 1)}
	select {
	case a.owed <- o:
	default:
		a.log.Error("an audit row is lost: too many wait", "verb", row.Verb, "id", row.ID)
		o.done <- fault.New(fault.Unavailable, "write audit row", row.ID, "%d rows wait already", maxOwed).Retryable()
	}
	return o.done
}

// run writes until close is asked for and everything owed is written, or hard ends.
func (a *auditor) run(hard context.Context) {
	defer close(a.gone)
	for {
		select {
		case o := <-a.owed:
			a.write(hard, a.more(o))
		case <-a.stop:
			for {
				select {
				case o := <-a.owed:
					a.write(hard, a.more(o))
				default:
					return
				}
			}
		}
	}
}

// close waits until what is owed has been written, as long as the store takes it.
func (a *auditor) close() {
	a.once.Do(func() { close(a.stop) })
	<-a.gone
}

// more are the rows that wait beside o.
func (a *auditor) more(o owedRow) []owedRow {
	rows := []owedRow{o}
	for len(rows) < maxBatch {
		select {
		case o := <-a.owed:
			rows = append(rows, o)
		default:
			return rows
		}
	}
	return rows
}

// write commits rows, trying again while the store has a fault that may pass. Once
// the core stops each row gets one more try.
func (a *auditor) write(hard context.Context, rows []owedRow) {
	err := a.try(hard, rows)
	if err != nil {
		a.log.Error("audit rows are lost", "rows", len(rows), "cause", err)
	}
	for _, o := range rows {
		o.done <- err
	}
}

func (a *auditor) try(hard context.Context, rows []owedRow) error {
	b, err := a.batch(rows)
	if err != nil {
		return err
	}
	retry := backoff{first: 20 * time.Millisecond, most: 2 * time.Second}
	for tried, last := false, false; ; tried = true {
		_, err := a.store.Commit(hard, b)
		var moved *journal.ConflictError
		switch {
		case err == nil:
			a.rev++
			a.wrote()
			return nil
		case errors.As(err, &moved) && tried && moved.Now == a.rev+1:
			// Nobody else writes the record: the attempt that seemed to fail has landed.
			a.rev++
			return nil
		case errors.As(err, &moved) && !tried:
			a.rev = moved.Now
			if b, err = a.batch(rows); err != nil {
				return err
			}
			continue
		case permanent(err) || last || hard.Err() != nil:
			return err
		}
		a.log.Warn("audit rows wait", "rows", len(rows), "cause", err)
		select {
		case <-time.After(retry.next()):
		case <-hard.Done():
		case <-a.stop:
			last = true
		}
	}
}

func (a *auditor) batch(rows []owedRow) (journal.Batch, error) {
	to := journal.Append{Stream: a.stream, Head: journal.AnyHead, Events: make([]journal.Event, len(rows))}
	for i, o := range rows {
		version, payload, err := event.Encode(o.row)
		if err != nil {
			return journal.Batch{}, err
		}
		to.Events[i] = journal.Event{Kind: string(event.AuditDispatch), Version: version, AtMS: o.row.AtMS, Payload: payload}
	}
	return journal.Batch{
		ID: a.id(), Append: []journal.Append{to},
		Put: []journal.Record{{Kind: recordAudit, Key: a.host, State: "open", Rev: a.rev}},
	}, nil
}
