package host

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/journal"
)

// recover closes what an earlier core left open (CP-120): its workers are gone, so
// a cell that has no outcome was interrupted, and a generation that has no end is
// lost. A session whose stream cannot be read is set aside and stops nobody else.
// When the store takes no writes the outcomes wait in the lanes. What the workers
// left is looked through for their output and removed.
func (c *Core) recover(ctx context.Context, left []supervise.Remains) error {
	cells, namespaces, aside := 0, 0, 0
	for r, err := range journal.Records(ctx, c.store, journal.Query{Kind: recordSession, State: stateOpen}) {
		if err != nil {
			return err
		}
		if !leftOpen(r) {
			continue
		}
		l, err := c.lane(ctx, r.Key)
		if err != nil {
			return err
		}
		if l.broken != nil {
			c.log.Error("session set aside", "session", l.id, "cause", l.broken)
			aside++
			continue
		}
		if l.state.Open != nil {
			if err := c.closeCell(ctx, l, remainsOf(l, left)); err != nil {
				return err
			}
			cells++
		}
		if l.state.Live() {
			l.settle(step{events: []event.Payload{event.KernelLostV1{
				Generation: l.state.Generation, Cause: restarted(), Names: append([]string{}, l.state.Names.Known...), NamesMore: l.state.Names.More,
			}}})
			namespaces++
		}
		if len(l.out.pending) > 0 {
			l.mu.Lock()
			l.ensureOwned()
			l.mu.Unlock()
		}
	}
	for _, r := range left {
		if err := r.Remove(); err != nil {
			return err
		}
	}
	acts, err := c.recoverActs(ctx)
	if err != nil {
		return err
	}
	c.recovered = recoveredText(cells, namespaces, acts, aside)
	if cells+namespaces+acts+aside > 0 {
		c.log.Warn("an earlier core did not stop in order", "recovery", c.recovered)
	}
	return nil
}

// leftOpen reports whether the session may have a worker that lived when its core
// ended. The record is written at every begin and end of a generation, so it is
// right about that; one that cannot be read is looked into.
func leftOpen(r journal.Record) bool {
	var snap snapshot
	if err := json.Unmarshal(r.Body, &snap); err != nil || snap.Rule != foldRule {
		return true
	}
	return snap.State.Live()
}

func restarted() event.Cause {
	return event.Cause{Kind: event.CauseCoreRestart, Text: "the core ended without being stopped, and its workers with it"}
}

// remainsOf are those of the generation that lived; zero when there are none.
func remainsOf(l *lane, left []supervise.Remains) supervise.Remains {
	for _, r := range left {
		if r.Session == l.id && r.Generation == l.state.Generation {
			return r
		}
	}
	return supervise.Remains{}
}

// closeCell records that the open cell was interrupted, with what its worker left.
// It never runs again.
func (c *Core) closeCell(ctx context.Context, l *lane, left supervise.Remains) error {
	open, cause := *l.state.Open, restarted()
	done := event.CellCompletedV2{
		Cell: open.Cell, Execution: open.Execution, Generation: l.state.Generation, Status: event.CellInterrupted, Cause: &cause,
	}
	cause.Text += "; " + l.salvage(&done, left)
	if lived := left.Until.UnixMilli() - open.StartedAtMS; !left.Until.IsZero() && lived > 0 {
		done.ElapsedMS = lived
	}
	st := step{events: []event.Payload{done}}
	r, err := c.findCell(ctx, open.Cell)
	switch {
	case fault.HasCode(err, fault.NotFound):
		c.log.Error("an open cell has no record", "cell", open.Cell)
	case err != nil:
		return err
	default:
		row, err := readCell(r)
		if err != nil {
			return err
		}
		row.CompletedSeq, row.ElapsedMS, row.BytesTotal = l.state.Seq+1, done.ElapsedMS, done.BytesTotal
		if r, err = cellRecord(open.Cell, l.id, string(event.CellInterrupted), r.Rev, row); err != nil {
			return err
		}
		st.put = append(st.put, r)
	}
	l.settle(st)
	return nil
}

// salvage keeps the output that the worker of an open cell had spooled, and says
// what is known of all of it. None of it is in a record: the spool does not say
// which stream a byte was on.
func (l *lane) salvage(done *event.CellCompletedV2, left supervise.Remains) string {
	const unknown = "what the cell had printed is not known"
	if left.Session == "" {
		return unknown
	}
	spool, err := left.Spool(done.Execution)
	if err == nil {
		done.Spool, err = l.keepSpool(spool)
	}
	switch {
	case err != nil:
		l.core.log.Error("output of an open cell is lost", "cell", done.Cell, "cause", err)
		return unknown + ": " + valid(err.Error())
	case done.Spool == nil:
		return unknown + ": a core has the beginning of an output to itself"
	}
	done.TruncatedBytes, done.BytesTotal = done.Spool.Total, done.Spool.Total
	return fmt.Sprintf("%d bytes that the cell had printed were found", done.Spool.Total)
}

func recoveredText(cells, namespaces, acts, aside int) string {
	if cells+namespaces+acts+aside == 0 {
		return "nothing was open"
	}
	text := fmt.Sprintf("cells interrupted: %d, namespaces lost: %d", cells, namespaces)
	if acts > 0 {
		text += fmt.Sprintf(", acts unknown: %d", acts)
	}
	if aside > 0 {
		text += fmt.Sprintf(", sessions set aside: %d", aside)
	}
	return text
}
