package host

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// recover closes what an earlier core left open (CP-120): its workers are gone, so
// a cell that has no outcome was interrupted, and a generation that has no end is
// lost. A session whose stream cannot be read is set aside and stops nobody else.
// When the store takes no writes the outcomes wait in the lanes.
func (c *Core) recover(ctx context.Context) error {
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
			if err := c.closeCell(ctx, l); err != nil {
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
	c.recovered = recoveredText(cells, namespaces, aside)
	if cells+namespaces+aside > 0 {
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

// closeCell records that the open cell was interrupted. It never runs again.
func (c *Core) closeCell(ctx context.Context, l *lane) error {
	open, cause := *l.state.Open, restarted()
	st := step{events: []event.Payload{event.CellCompletedV2{
		Cell: open.Cell, Execution: open.Execution, Generation: l.state.Generation, Status: event.CellInterrupted, Cause: &cause,
	}}}
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
		row.CompletedSeq = l.state.Seq + 1
		if r, err = cellRecord(open.Cell, l.id, string(event.CellInterrupted), r.Rev, row); err != nil {
			return err
		}
		st.put = append(st.put, r)
	}
	l.settle(st)
	return nil
}

func recoveredText(cells, namespaces, aside int) string {
	if cells+namespaces+aside == 0 {
		return "nothing was open"
	}
	text := fmt.Sprintf("cells interrupted: %d, namespaces lost: %d", cells, namespaces)
	if aside > 0 {
		text += fmt.Sprintf(", sessions set aside: %d", aside)
	}
	return text
}
