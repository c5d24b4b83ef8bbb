package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/journal"
)

// findCell returns the record of the one cell whose handle begins with name.
func (c *Core) findCell(ctx context.Context, name string) (journal.Record, error) {
	rows, err := c.store.Find(ctx, journal.Query{Kind: recordCell, KeyPrefix: fullHandle(name), Max: 9})
	switch {
	case err != nil:
		return journal.Record{}, err
	case len(rows) == 0 || name == "":
		return journal.Record{}, fault.New(fault.NotFound, "find cell", name, "no cell has a handle that begins so").WithNext("reeve cell list")
	case len(rows) > 1 && rows[0].Key != fullHandle(name):
		handles := make([]string, len(rows))
		for i, r := range rows {
			handles[i] = r.Key
		}
		return journal.Record{}, ambiguous(name, handles)
	}
	return rows[0], nil
}

// waitingOrRunning finds a cell that has not ended.
func (c *Core) waitingOrRunning(handle string) (*lane, *cellTask) {
	for _, l := range c.allLanes() {
		l.mu.Lock()
		tasks := l.cellTasks()
		i := slices.IndexFunc(tasks, func(t *cellTask) bool { return strings.HasPrefix(t.handle, fullHandle(handle)) })
		l.mu.Unlock()
		if i >= 0 {
			return l, tasks[i]
		}
	}
	return nil, nil
}

// Cell implements control.Cells.
func (c *Core) Cell(ctx context.Context, name string) (control.CellDetail, error) {
	r, err := c.findCell(ctx, name)
	if err != nil {
		if l, t := c.waitingOrRunning(name); t != nil && fault.HasCode(err, fault.NotFound) {
			return control.CellDetail{Result: l.runningResult(t), Code: t.request.Code, By: t.request.By}, nil
		}
		return control.CellDetail{}, err
	}
	row, err := readCell(r)
	if err != nil {
		return control.CellDetail{}, err
	}
	d, err := c.detail(ctx, r, row)
	if err != nil {
		return d, err
	}
	if l, t := c.waitingOrRunning(r.Key); row.CompletedSeq == 0 && t != nil {
		d.Result = l.runningResult(t)
	}
	return d, nil
}

// detail reads a cell's events.
func (c *Core) detail(ctx context.Context, r journal.Record, row cellRow) (control.CellDetail, error) {
	d := control.CellDetail{Result: control.CellResult{
		Cell: r.Key, Session: r.Session, Generation: row.Generation, Execution: row.Execution, Status: r.State,
		Output: []event.Output{}, Artifacts: []event.Artifact{}, StartedAtMS: row.StartedAtMS,
	}, By: row.By}
	started, at, err := readEvent[event.CellStartedV1](ctx, c, r.Session, row.StartedSeq)
	if err != nil {
		return d, err
	}
	d.CodeSHA256, d.EventID = started.CodeSHA256, at.ID
	if started.Code != nil {
		d.Code = *started.Code
	} else {
		code, err := c.artifacts.ReadAll(started.CodeSHA256, started.CodeBytes)
		if err != nil {
			return d, err
		}
		d.Code = string(code)
	}
	for _, seq := range row.LateSeqs {
		late, _, err := readEvent[event.CellLateOutputV1](ctx, c, r.Session, seq)
		if err != nil {
			return d, err
		}
		d.Late += late.Text
	}
	if row.CompletedSeq == 0 {
		return d, nil
	}
	done, _, err := readEvent[event.CellCompletedV2](ctx, c, r.Session, row.CompletedSeq)
	if err != nil {
		return d, err
	}
	res := &d.Result
	res.Output, res.TruncatedBytes, res.BytesTotal, res.Error, res.Cause = done.Output, done.TruncatedBytes, done.BytesTotal, done.Error, done.Cause
	res.Artifacts, res.Spool, res.ElapsedMS, res.QueuedMS, res.CPUMS = done.Artifacts, done.Spool, done.ElapsedMS, done.QueuedMS, done.CPUMS
	return d, nil
}

// readEvent reads one event of a session, which must be a P.
func readEvent[P event.Payload](ctx context.Context, c *Core, id string, seq int64) (P, journal.Stored, error) {
	var want P
	page, err := c.store.Events(ctx, stream(id), seq-1, 1)
	if err != nil {
		return want, journal.Stored{}, err
	}
	if len(page) == 0 || page[0].Seq != seq {
		return want, journal.Stored{}, fault.New(fault.Truncated, "read event", stream(id), "event %d is missing", seq).WithNext("reeve verify")
	}
	p, err := event.Decode(event.Kind(page[0].Kind), page[0].Version, page[0].Payload)
	if err != nil {
		return want, page[0], err
	}
	got, ok := p.(P)
	if !ok {
		return want, page[0], fault.New(fault.Altered, "read event", stream(id), "event %d is %s, not %s", seq, p.Kind(), want.Kind()).WithNext("reeve verify")
	}
	return got, page[0], nil
}

// ListCells implements control.Cells: the newest first.
func (c *Core) ListCells(ctx context.Context, id string, most int) ([]control.Cell, error) {
	if id != "" {
		if _, err := c.known(ctx, id); err != nil {
			return nil, err
		}
	}
	if most <= 0 {
		most = 50
	}
	records, err := c.newest(ctx, id, most)
	if err != nil {
		return nil, err
	}
	rows := []control.Cell{}
	for _, l := range c.allLanes() {
		if id == "" || l.id == id {
			rows = append(rows, l.queuedRows()...)
		}
	}
	now := time.Now().UnixMilli()
	for _, r := range records {
		row, err := readCell(r)
		if err != nil {
			return nil, err
		}
		shown := row.list(r)
		if r.State == cellRunning {
			shown.ElapsedMS = now - row.StartedAtMS
		}
		rows = append(rows, shown)
	}
	return rows[:min(len(rows), most)], nil
}

// newest finds the last cells. Handles begin with their time, so it looks back
// over ever longer spans until there are enough.
func (c *Core) newest(ctx context.Context, id string, most int) ([]journal.Record, error) {
	for _, span := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour, 0} {
		q := journal.Query{Kind: recordCell, Session: id}
		if span > 0 {
			q.After = c.handles.floor(time.Now().Add(-span))
		}
		var found []journal.Record
		for r, err := range journal.Records(ctx, c.store, q) {
			if err != nil {
				return nil, err
			}
			if found = append(found, r); len(found) > 2*most {
				found = slices.Delete(found, 0, most)
			}
		}
		if len(found) >= most || span == 0 {
			slices.Reverse(found)
			return found[:min(len(found), most)], nil
		}
	}
	return nil, nil
}

// queuedRows are the cells that wait, the last one first.
func (l *lane) queuedRows() []control.Cell {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []control.Cell
	for _, t := range slices.Backward(l.cellTasks()) {
		if t.execution == "" {
			rows = append(rows, control.Cell{Cell: t.handle, Session: l.id, Status: "queued", Code: firstLine(t.request.Code), By: t.request.By})
		}
	}
	return rows
}

// Output implements control.Cells: what is kept of all that a cell printed, and
// its result after it. Of a cell that runs it is what has come so far.
func (c *Core) Output(ctx context.Context, name string, offset int64) (control.OutputRange, error) {
	if l, t := c.waitingOrRunning(name); t != nil {
		if out, ok, err := l.liveOutput(t, offset); ok || err != nil {
			return out, err
		}
	}
	d, err := c.Cell(ctx, name)
	if err != nil {
		return control.OutputRange{}, err
	}
	r := d.Result
	var printed, result strings.Builder
	for _, o := range r.Output {
		if o.Stream == "result" {
			result.WriteString(o.Text)
		} else {
			printed.WriteString(o.Text)
		}
	}
	if r.Spool == nil {
		return inMemory(printed.String()+result.String(), r.TruncatedBytes, offset, r.Cell)
	}
	body, err := c.artifacts.Open(r.Spool.SHA256)
	if err != nil {
		return control.OutputRange{}, err
	}
	return spooled(body, *r.Spool, result.String(), offset, r.Cell)
}

func inMemory(text string, truncated, offset int64, cell string) (control.OutputRange, error) {
	total := int64(len(text))
	if err := inRange(offset, total, cell); err != nil {
		return control.OutputRange{}, err
	}
	out := control.OutputRange{Offset: offset, Total: total, Body: io.NopCloser(strings.NewReader(text[offset:]))}
	if truncated > 0 {
		out.Total += truncated
		out.Gap = &control.Gap{From: total, To: total + truncated}
	}
	return out, nil
}

func inRange(offset, total int64, cell string) error {
	if offset < 0 || offset > total {
		return fault.New(fault.InvalidRequest, "read output of", cell, "offset %d is not within 0 to %d", offset, total)
	}
	return nil
}

// spooled reads from the bytes that were kept: [0,DropFrom), [DropTo,Total), and
// the result after them. An offset within the gap reads from its end.
func spooled(body io.ReadSeekCloser, s event.Spool, result string, offset int64, cell string) (control.OutputRange, error) {
	total := s.Total + int64(len(result))
	if err := inRange(offset, total, cell); err != nil {
		return control.OutputRange{}, errors.Join(err, body.Close())
	}
	out := control.OutputRange{Offset: offset, Total: total}
	dropped := s.DropTo - s.DropFrom
	if dropped > 0 {
		if offset >= s.DropFrom && offset < s.DropTo {
			out.Offset = s.DropTo
		}
		if out.Offset < s.DropFrom {
			out.Gap = &control.Gap{From: s.DropFrom, To: s.DropTo}
		}
	}
	at := out.Offset
	if at >= s.DropTo {
		at -= dropped
	}
	after := bytes.NewReader([]byte(result))
	if at > s.Size {
		if _, err := after.Seek(at-s.Size, io.SeekStart); err != nil {
			return control.OutputRange{}, errors.Join(err, body.Close())
		}
		at = s.Size
	}
	if _, err := body.Seek(at, io.SeekStart); err != nil {
		return control.OutputRange{}, fault.Wrap(errors.Join(err, body.Close()), fault.Unavailable, "read output of", cell)
	}
	out.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(body, after), body}
	return out, nil
}
