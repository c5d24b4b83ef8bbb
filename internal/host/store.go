package host

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/session"
)

// cellRow is the body of a cell record: a row of a list, and where its events are.
type cellRow struct {
	Execution    string      `json:"execution"`
	Generation   string      `json:"generation"`
	StartedSeq   int64       `json:"started_seq"`
	CompletedSeq int64       `json:"completed_seq"` // 0 while it runs
	LateSeqs     []int64     `json:"late_seqs"`
	StartedAtMS  int64       `json:"started_at_ms"`
	ElapsedMS    int64       `json:"elapsed_ms"`
	BytesTotal   int64       `json:"bytes_total"`
	Code         string      `json:"code"` // first line
	By           event.Actor `json:"by"`
}

// cellRunning is the state of a cell's record until its outcome.
const cellRunning = "running"

func cellRecord(handle, session, state string, rev int64, row cellRow) (journal.Record, error) {
	body, err := json.Marshal(row)
	if err != nil {
		return journal.Record{}, fault.Wrap(err, fault.Internal, "record cell", handle)
	}
	return journal.Record{Kind: recordCell, Key: handle, Session: session, State: state, Rev: rev, Body: body}, nil
}

func readCell(r journal.Record) (cellRow, error) {
	var row cellRow
	if err := json.Unmarshal(r.Body, &row, json.RejectUnknownMembers(true)); err != nil {
		return row, fault.Wrap(err, fault.Unavailable, "read record of cell", r.Key)
	}
	return row, nil
}

// row is how a list shows the cell.
func (row cellRow) list(r journal.Record) control.Cell {
	return control.Cell{
		Cell: r.Key, Session: r.Session, Execution: row.Execution, Generation: row.Generation, Status: r.State,
		StartedAtMS: row.StartedAtMS, ElapsedMS: row.ElapsedMS, BytesTotal: row.BytesTotal, Code: row.Code, By: row.By,
	}
}

// loaded is a session as the store has it.
type loaded struct {
	state   session.State
	snapSeq int64 // head at the snapshot
	snapRev int64
}

// load folds a session: its snapshot, then the events after it.
func load(ctx context.Context, store journal.Store, id string) (loaded, error) {
	var out loaded
	rows, err := store.Find(ctx, journal.Query{Kind: recordSession, KeyPrefix: id, Max: 1})
	if err != nil {
		return out, err
	}
	if len(rows) > 0 && rows[0].Key == id {
		var snap snapshot
		if err := json.Unmarshal(rows[0].Body, &snap, json.RejectUnknownMembers(true)); err != nil {
			return out, fault.Wrap(err, fault.Unavailable, "read record of session", id)
		}
		out.snapRev = rows[0].Rev
		if snap.Rule == foldRule {
			out.state, out.snapSeq = snap.State, snap.State.Seq
		}
	}
	for e, err := range journal.Stream(ctx, store, stream(id), out.state.Seq) {
		if err != nil {
			return out, err
		}
		if out.state, err = fold(out.state, e); err != nil {
			return out, err
		}
	}
	return out, nil
}

// fold applies a stored event. A *brokenError means that the stream itself is at
// fault, not the store.
func fold(s session.State, e journal.Stored) (session.State, error) {
	p, err := event.Decode(event.Kind(e.Kind), e.Version, e.Payload)
	if err == nil {
		s, err = session.Apply(s, session.Recorded{Seq: e.Seq, AtMS: e.AtMS, Payload: p})
	}
	if err != nil {
		return s, &brokenError{stream: e.Stream, seq: e.Seq, cause: err}
	}
	return s, nil
}

// brokenError is a stream that cannot be folded past an event.
type brokenError struct {
	stream string
	seq    int64
	cause  error
}

func (b *brokenError) Error() string {
	return "stream " + b.stream + " is set aside at event " + itoa(b.seq) + ": " + b.cause.Error()
}

func (b *brokenError) Unwrap() error { return b.cause }
