package host

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/artifact"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/session"
	"github.com/reeve-run/reeve/wire"
)

// inlineCode is how long code may be to stand in its event.
const inlineCode = 16 << 10

// do implements task.
func (t *cellTask) do(l *lane) {
	result, err := l.run(t)
	t.finish(result, err)
}

// run takes a cell from its turn to its recorded outcome.
func (l *lane) run(t *cellTask) (control.CellResult, error) {
	if err := t.stopped(); err != nil {
		return control.CellResult{}, err
	}
	if err := l.ensureWorker(t.ctx, opening{workspace: t.request.Workspace, by: t.request.By}); err != nil {
		if stop := t.stopped(); stop != nil {
			return control.CellResult{}, stop
		}
		return control.CellResult{}, err
	}
	row, err := l.begin(t)
	if err != nil {
		return control.CellResult{}, err
	}
	l.sink.begin(t.execution, t.handle, t.feed.output)
	t.nowRunning(l)
	done, err := l.execute(t)
	return l.complete(t, row, outcome{capture: l.sink.end(), completion: done, err: err, elapsed: time.Since(t.began)}), nil
}

// execute runs the code. Meanwhile what others have done in the session, and the
// cell itself by asking for it, is recorded.
func (l *lane) execute(t *cellTask) (supervise.Completion, error) {
	type answer struct {
		done supervise.Completion
		err  error
	}
	ended, worker := make(chan answer, 1), l.worker
	go func() {
		done, err := worker.Execute(t.ctx, t.execution, t.request.Code)
		ended <- answer{done, err}
	}()
	for {
		select {
		case a := <-ended:
			return a.done, a.err
		case <-l.wake:
			l.takeNotes()
		}
	}
}

// begin commits the intent.
func (l *lane) begin(t *cellTask) (cellRow, error) {
	sum, code := artifact.Sum([]byte(t.request.Code)), &t.request.Code
	if len(t.request.Code) > inlineCode {
		if _, err := l.core.artifacts.PutBytes([]byte(t.request.Code)); err != nil {
			return cellRow{}, l.refused(err)
		}
		code = nil
	}
	var timeout *int64
	if t.request.TimeoutMS > 0 {
		timeout = &t.request.TimeoutMS
	}
	for {
		execution := session.Execution(l.state.Executions + 1)
		row := cellRow{
			Execution: execution, Generation: l.state.Generation, StartedSeq: l.state.Seq + 1, LateSeqs: []int64{},
			StartedAtMS: time.Now().UnixMilli(), Code: firstLine(t.request.Code), By: t.request.By,
		}
		record, err := cellRecord(t.handle, l.id, cellRunning, 0, row)
		if err != nil {
			return cellRow{}, err
		}
		started := event.CellStartedV1{
			Cell: t.handle, Execution: execution, Generation: l.state.Generation, Code: code, CodeSHA256: sum,
			CodeBytes: int64(len(t.request.Code)), TimeoutMS: timeout, By: t.request.By,
		}
		st := step{events: []event.Payload{started}, put: []journal.Record{record}}
		if t.row != nil {
			st.audit = []event.AuditDispatchV1{*t.row}
		}
		err = l.intend(l.core.hard, st, func() step {
			return l.unsent(t, row)
		})
		if taken(err, t.handle) {
			l.rename(t)
			continue
		}
		l.mu.Lock()
		t.execution, t.generation, t.startedMS = execution, row.Generation, row.StartedAtMS
		l.mu.Unlock()
		return row, err
	}
}

// taken reports whether the handle belongs to another cell.
func taken(err error, handle string) bool {
	var moved *journal.ConflictError
	return errors.As(err, &moved) && moved.Key == journal.RecordKey(recordCell, handle)
}

func (l *lane) rename(t *cellTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.handle = l.core.handles.next(time.Now())
}

// unsent is the outcome of a cell whose intent may or may not be in the store: in
// both cases its code was not sent.
func (l *lane) unsent(t *cellTask, row cellRow) step {
	done := event.CellCompletedV2{
		Cell: t.handle, Execution: row.Execution, Generation: row.Generation, Status: event.CellFailed,
		Cause: &event.Cause{Kind: event.CauseStore, Text: "the journal did not confirm the intent, so the code was not sent"},
	}
	return l.completedStep(done, row)
}

func (l *lane) completedStep(done event.CellCompletedV2, row cellRow) step {
	row.CompletedSeq, row.ElapsedMS, row.BytesTotal = l.state.Seq+1, done.ElapsedMS, done.BytesTotal
	st := step{events: []event.Payload{done}}
	record, err := cellRecord(done.Cell, l.id, string(done.Status), 1, row)
	if err != nil { // a struct of texts and numbers always encodes
		l.core.log.Error("cell is missing in lists", "cell", done.Cell, "cause", err)
		return st
	}
	st.put = append(st.put, record)
	return st
}

// outcome is what is known when a cell has ended.
type outcome struct {
	capture    *capture
	completion supervise.Completion
	err        error
	elapsed    time.Duration
}

// complete records the outcome and makes the answer.
func (l *lane) complete(t *cellTask, row cellRow, o outcome) control.CellResult {
	done := l.completed(t, row, o)
	untold := l.state.Loss
	st := l.completedStep(done, row)
	exit, died := lostExit(o.err)
	if died {
		if after, err := session.Apply(l.state, session.Recorded{Seq: l.state.Seq + 1, Payload: done}); err == nil {
			st.events = append(st.events, l.endEvent(exit, after))
		}
	}
	recorded := l.settle(st)
	if !recorded {
		l.core.unrecorded.Add(1)
	}
	result := control.CellResult{
		Cell: t.handle, Session: l.id, Generation: done.Generation, Execution: done.Execution, Status: string(done.Status),
		Output: done.Output, TruncatedBytes: done.TruncatedBytes, BytesTotal: done.BytesTotal, Error: done.Error, Cause: done.Cause,
		Artifacts: done.Artifacts, Spool: done.Spool, ElapsedMS: done.ElapsedMS, QueuedMS: done.QueuedMS, CPUMS: done.CPUMS,
		StartedAtMS: row.StartedAtMS, Unrecorded: !recorded,
	}
	raw := l.unattributed()
	var own *session.Loss
	if died {
		own = l.state.Loss
		l.dropWorker()
	}
	result.Notice = also(l.notice(t, done, untold, own), raw)
	return result
}

// notice is what the answer must say beside the output.
func (l *lane) notice(t *cellTask, done event.CellCompletedV2, untold, own *session.Loss) *control.Notice {
	var n *control.Notice
	why, wasStopped := t.why()
	switch {
	case wasStopped && done.Status != event.CellOK:
		n = stopNotice(why, t.handle, t.rung, l.timing.Bound().String(), own, done.Generation)
	case own != nil:
		n = lossNotice(own, "")
	}
	if untold == nil {
		return n
	}
	before := lossNotice(untold, done.Generation)
	if n != nil {
		before.Text += " " + n.Text
	}
	return before
}

// completed is the event of the outcome.
func (l *lane) completed(t *cellTask, row cellRow, o outcome) event.CellCompletedV2 {
	done := event.CellCompletedV2{
		Cell: t.handle, Execution: row.Execution, Generation: row.Generation, ElapsedMS: o.elapsed.Milliseconds(),
		QueuedMS: t.began.Sub(t.queued).Milliseconds(), CPUMS: o.completion.CPUMS,
		NamesAdded: o.capture.added, NamesRemoved: o.capture.removed, Effects: l.takeEffects(row.Execution),
	}
	spool, spoolErr := o.completion.Spool, o.completion.SpoolErr
	var rest []wire.OutputRecord
	switch exit, died := lostExit(o.err); {
	case died:
		cause := validCause(exit.Cause)
		done.Status, done.Cause, spool, spoolErr = event.CellFailed, &cause, exit.Spool, exit.SpoolErr
		l.mu.Lock()
		e := l.ending
		l.mu.Unlock()
		if e != nil {
			done.Cause = &event.Cause{Kind: event.CauseShutdown, Text: e.text}
		}
		if _, stopped := t.why(); stopped || e != nil {
			done.Status = event.CellInterrupted
		}
	case o.err != nil:
		done.Status = event.CellFailed
		if _, stopped := t.why(); stopped {
			done.Status = event.CellInterrupted
		}
		done.Cause = &event.Cause{Kind: event.CauseProtocol, Text: valid(o.err.Error())}
	case o.completion.Failed != nil:
		text := valid(*o.completion.Failed)
		done.Status, done.Error = event.CellFailed, &text
		done.Cause = &event.Cause{Kind: event.CauseProtocol, Text: "the worker refused the operation"}
	default:
		cell := o.completion.Cell
		done.Status, done.Error, done.TruncatedBytes = event.CellStatus(cell.Status), cell.Error, cell.TruncatedBytes
		rest = cell.Output
		if o.completion.Rung != "" && done.Status == event.CellInterrupted {
			done.Cause = &event.Cause{Kind: event.CauseInterrupt, Text: fmt.Sprintf("ended by %s; the namespace is kept", o.completion.Rung)}
		}
	}
	if spoolErr != nil {
		o.capture.refuseSpool(spoolErr)
	}
	l.output(&done, o.capture, rest, spool)
	return done
}

// output fills in what the cell printed and showed.
func (l *lane) output(done *event.CellCompletedV2, c *capture, rest []wire.OutputRecord, spool *supervise.Spool) {
	done.Artifacts = c.keep(func(b []byte) (string, error) {
		ref, err := l.core.artifacts.PutBytes(b)
		return ref.SHA256, err
	})
	kept, err := l.keepSpool(spool)
	if err != nil {
		c.refuseSpool(err)
	}
	done.Spool = kept
	var over int64
	done.Output, over = merge(c.output, rest, done.TruncatedBytes)
	done.TruncatedBytes += over
	if len(rest) == 0 && spool != nil && done.Status != event.CellOK {
		// The worker is gone and with it the last half of its record: what was printed
		// and is not here is counted.
		done.TruncatedBytes = max(done.TruncatedBytes, spool.Total-shown(done.Output))
	}
	done.BytesTotal = shown(done.Output) + done.TruncatedBytes
	if len(c.refused) > 0 {
		done.Output = append(done.Output, event.Output{Stream: "stderr", Text: valid(strings.Join(c.refused, ""))})
	}
}

func shown(out []event.Output) int64 {
	var n int64
	for _, o := range out {
		n += int64(len(o.Text))
	}
	return n
}

func (l *lane) keepSpool(s *supervise.Spool) (*event.Spool, error) {
	if s == nil {
		return nil, nil
	}
	ref, err := l.core.artifacts.Put(s.Body)
	if err := errors.Join(err, s.Body.Close()); err != nil {
		return nil, err
	}
	return &event.Spool{SHA256: ref.SHA256, Size: ref.Size, Total: s.Total, DropFrom: s.DropFrom, DropTo: s.DropTo}, nil
}

// firstLine is the first line of code that says something, for lists.
func firstLine(code string) string {
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			if utf8.RuneCountInString(line) > 120 {
				line = string([]rune(line)[:119]) + "…"
			}
			return line
		}
	}
	return ""
}

// lostExit is how the worker ended, when that is what err says.
func lostExit(err error) (supervise.Exit, bool) {
	var lost *supervise.Lost
	if !errors.As(err, &lost) {
		return supervise.Exit{}, false
	}
	return lost.Exit, true
}
