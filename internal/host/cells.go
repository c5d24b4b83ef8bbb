package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/session"
	"github.com/reeve-run/reeve/wire"
)

// beat is how often a running cell's caller hears from it.
const beat = 5 * time.Second

// execute runs a cell; row is the audit row of the leave to do so, which is committed
// with its intent.
func (c *Core) execute(ctx context.Context, r control.ExecuteRequest, row *event.AuditDispatchV1, progress func(control.CellProgress)) (control.CellResult, error) {
	if err := checkExecute(r); err != nil {
		return control.CellResult{}, err
	}
	r.By = validActor(r.By)
	l, err := c.lane(ctx, r.Session)
	if err != nil {
		return control.CellResult{}, err
	}
	if l.phase() == session.Unopened {
		if err := checkWorkspace(r.Workspace); err != nil {
			return control.CellResult{}, err
		}
	}
	t := c.newCellTask(r)
	t.row = row
	if r.TimeoutMS > 0 {
		limit := time.Duration(r.TimeoutMS) * time.Millisecond
		t.limit = time.AfterFunc(limit, func() {
			l.stopCell(t, stopReason{noticeTimeout, fmt.Sprintf("the timeout of %s was reached", limit)})
		})
	}
	if err := l.enqueue(t); err != nil {
		t.finish(control.CellResult{}, err)
		return control.CellResult{}, err
	}
	if ahead := l.ahead(t); ahead > 0 {
		t.feed.waiting(ahead)
	}
	if progress == nil {
		progress = func(control.CellProgress) {}
	}
	return l.await(ctx, t, progress)
}

func checkExecute(r control.ExecuteRequest) error {
	const op = "run cell"
	switch {
	case !identifier(r.Session):
		return badSession(op, r.Session)
	case len(r.Code) > wire.MaxCode:
		return fault.New(fault.LimitExceeded, op, r.Session, "code has %d bytes, more than %d", len(r.Code), wire.MaxCode).
			WithNext("write the code to a file in the workspace and import it")
	case !utf8.ValidString(r.Code):
		return fault.New(fault.InvalidRequest, op, r.Session, "code is not valid UTF-8")
	case r.TimeoutMS < 0:
		return fault.New(fault.InvalidRequest, op, r.Session, "timeout_ms is %d", r.TimeoutMS).WithNext("give a positive number, or 0 for none")
	}
	return nil
}

func badSession(op, id string) error {
	return fault.New(fault.InvalidRequest, op, id, "a session id is 1 to 128 of A-Z a-z 0-9 _ . -")
}

// checkWorkspace checks the directory that cells of a new session start in.
func checkWorkspace(dir string) error {
	const op = "open session in"
	if !filepath.IsAbs(dir) {
		return fault.New(fault.InvalidRequest, op, dir, "the workspace must be an absolute path")
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return fault.Wrap(err, fault.InvalidRequest, op, dir)
	case !info.IsDir():
		return fault.New(fault.InvalidRequest, op, dir, "it is not a directory")
	}
	return nil
}

func validActor(a event.Actor) event.Actor {
	return event.Actor{Kind: valid(a.Kind), Name: valid(a.Name), Surface: valid(a.Surface)}
}

// phase is where the session stands.
func (l *lane) phase() session.Phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Phase
}

// ahead is how many cells come before t.
func (l *lane) ahead(t *cellTask) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	if l.current != nil && l.current != t {
		n++
	}
	for _, other := range l.queue {
		if other == task(t) {
			return n
		}
		if _, ok := other.(*cellTask); ok {
			n++
		}
	}
	return 0
}

// await passes progress on until the cell has ended, or for a detached one until
// it runs. When ctx ends the cell is interrupted and its end still waited for.
func (l *lane) await(ctx context.Context, t *cellTask, progress func(control.CellProgress)) (control.CellResult, error) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	detached, gone := t.running, ctx.Done()
	if !t.request.Detach {
		detached = nil
	}
	tell := func() {
		for _, p := range t.feed.take() {
			progress(l.stamp(t, p))
		}
	}
	for {
		select {
		case <-t.feed.news:
			tell()
		case <-ticker.C:
			progress(l.stamp(t, control.CellProgress{Kind: "heartbeat", Ahead: l.ahead(t)}))
		case <-gone:
			gone = nil
			l.stopCell(t, stopReason{noticeInterrupted, "the caller went away"})
		case <-detached:
			tell()
			return l.runningResult(t), nil
		case <-t.done:
			tell()
			return t.result, t.err
		}
	}
}

func (l *lane) stamp(t *cellTask, p control.CellProgress) control.CellProgress {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.Cell, p.Elapsed = t.handle, time.Since(t.began).Milliseconds()
	return p
}

// runningResult is a cell that has not ended, as far as it is known.
func (l *lane) runningResult(t *cellTask) control.CellResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := control.CellResult{
		Cell: t.handle, Session: l.id, Generation: t.generation, Execution: t.execution, Status: "queued",
		Output: []event.Output{}, Artifacts: []event.Artifact{}, StartedAtMS: t.startedMS, QueuedMS: time.Since(t.queued).Milliseconds(),
	}
	if t.execution != "" {
		r.Status, r.ElapsedMS, r.QueuedMS = cellRunning, time.Since(t.began).Milliseconds(), t.began.Sub(t.queued).Milliseconds()
		if l.sink != nil {
			if out, n := l.sink.soFar(t.execution); n > 0 {
				r.Output, r.BytesTotal = out, n
			}
		}
	}
	return r
}

// stopCell makes a cell stop: one that waits is taken out of the queue, one that
// runs is interrupted. It reports whether the cell was still waiting.
func (l *lane) stopCell(t *cellTask, why stopReason) bool {
	t.stop(&stopError{why})
	if l.remove(t) {
		t.refuse(t.stopped())
		return true
	}
	return false
}

func (c *Core) interrupt(ctx context.Context, cell string, by event.Actor) (control.InterruptReport, error) {
	l, t, err := c.runningCell(ctx, cell)
	if err != nil {
		return control.InterruptReport{}, err
	}
	if t == nil {
		return control.InterruptReport{Cell: cell, NamespaceKept: true, Text: "No cell of that name waits or runs; nothing was done."}, nil
	}
	asked := time.Now()
	waited := l.stopCell(t, stopReason{noticeInterrupted, "interrupted by " + actorText(validActor(by))})
	select {
	case <-t.done:
	case <-ctx.Done():
		return control.InterruptReport{}, fault.Wrap(context.Cause(ctx), fault.Cancelled, "interrupt cell", cell).
			WithNext("the interrupt goes on; reeve cell show %s tells how it ended", cell)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	report := control.InterruptReport{
		Cell: t.handle, Found: true, Rung: t.rung, ElapsedMS: time.Since(asked).Milliseconds(),
		NamespaceKept: t.result.Generation == "" || t.result.Generation == l.state.Generation,
	}
	switch {
	case waited:
		report.Text = "The cell was still waiting; it was taken out of the queue and never ran."
	case t.err != nil:
		report.Text = "The cell had not started: " + t.err.Error() + "."
	case t.result.Notice != nil:
		report.Text = t.result.Notice.Text
	default:
		report.Text = "The cell had ended by itself with status " + t.result.Status + "."
	}
	return report, nil
}

// runningCell finds a cell that waits or runs by its handle, the beginning of one,
// or the id of a session whose cell runs. Without such a cell t is nil; the name
// must be known all the same.
func (c *Core) runningCell(ctx context.Context, name string) (*lane, *cellTask, error) {
	type match struct {
		l *lane
		t *cellTask
	}
	var found []match
	for _, l := range c.allLanes() {
		l.mu.Lock()
		if l.id == name {
			t := l.current
			l.mu.Unlock()
			return l, t, nil
		}
		for _, t := range l.cellTasks() {
			if strings.HasPrefix(t.handle, fullHandle(name)) && name != "" {
				found = append(found, match{l, t})
			}
		}
		l.mu.Unlock()
	}
	switch len(found) {
	case 1:
		return found[0].l, found[0].t, nil
	case 0:
		if _, err := c.findCell(ctx, name); err != nil && !c.knows(ctx, name) {
			if fault.HasCode(err, fault.NotFound) {
				err = fault.New(fault.NotFound, "interrupt", name, "no cell has a handle that begins so, and no session has this id").WithNext("reeve cell list")
			}
			return nil, nil, err
		}
		return nil, nil, nil
	}
	handles := make([]string, len(found))
	for i, m := range found {
		handles[i] = m.t.handle
	}
	return nil, nil, ambiguous(name, handles)
}

// cellTasks are the cells that wait or run. mu is held.
func (l *lane) cellTasks() []*cellTask {
	var all []*cellTask
	if l.current != nil {
		all = append(all, l.current)
	}
	for _, t := range l.queue {
		if cell, ok := t.(*cellTask); ok {
			all = append(all, cell)
		}
	}
	return all
}

func ambiguous(name string, handles []string) error {
	return fault.New(fault.Ambiguous, "find cell", name, "%d cells begin so: %s", len(handles), strings.Join(handles[:min(len(handles), 8)], ", ")).
		WithNext("give more characters of the handle")
}
