package host

import (
	"context"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/session"
)

// note is what is recorded in a session's stream beside its cells: acts, sends, and
// what the operator says of them. The lane records it between two of its own
// events, also while a cell runs.
type note struct {
	step   step
	kept   bool        // it has happened: when it cannot be committed it is tried until it is
	word   bool        // the operator's, which a closed session takes as well
	undone func() step // what to record when it is not known whether an intent was
	open   opening     // to open the session with when it does not exist
	done   chan struct{}
	err    error
}

// record has a note recorded and waits for it. Of a kept one an error says that it
// is not committed yet.
func (l *lane) record(n *note) error {
	n.done = make(chan struct{})
	l.core.gate.RLock()
	l.mu.Lock()
	err := l.takesNote(n)
	if err == nil {
		l.notes = append(l.notes, n)
		l.ensureOwned()
	}
	l.mu.Unlock()
	l.core.gate.RUnlock()
	if err != nil {
		return err
	}
	<-n.done
	return n.err
}

// takesNote refuses a note that the session can never record. mu is held.
func (l *lane) takesNote(n *note) error {
	switch {
	case l.broken != nil:
		return quarantined(l.id, l.broken)
	case l.state.Phase == session.Closed && !n.word && !n.kept:
		return closedError(l.id, l.state.CloseBy)
	}
	return nil
}

// takeNotes records what waits to be recorded. Only the lane's goroutine calls it.
func (l *lane) takeNotes() {
	for {
		l.mu.Lock()
		if len(l.notes) == 0 {
			l.mu.Unlock()
			return
		}
		n := l.notes[0]
		l.notes = l.notes[1:]
		l.mu.Unlock()
		n.err = l.writeNote(n)
		close(n.done)
	}
}

func (l *lane) writeNote(n *note) error {
	if broken := l.quarantined(); broken != nil {
		return quarantined(l.id, broken)
	}
	if l.state.Phase == session.Unopened {
		if err := checkWorkspace(n.open.workspace); err != nil {
			return err
		}
		n.step.events = append([]event.Payload{
			event.SessionOpenedV1{Session: l.id, Workspace: n.open.workspace, By: n.open.by},
		}, n.step.events...)
	}
	if !n.kept {
		return l.intend(l.core.hard, n.step, n.undone)
	}
	if !l.settle(n.step) {
		return fault.New(fault.Unavailable, "record", l.id, "the journal has not taken it yet")
	}
	return nil
}

// noteEffect lists an act or send in the record of the cell that asked for it.
func (l *lane) noteEffect(execution, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.effects == nil {
		l.effects = map[string][]string{}
	}
	l.effects[execution] = append(l.effects[execution], id)
}

// takeEffects are the effects of a cell that has ended.
func (l *lane) takeEffects(execution string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := append([]string{}, l.effects[execution]...)
	delete(l.effects, execution)
	return ids
}

// flight counts work that is under way, so that a core that stops waits for its end.
func (c *Core) flight(ctx context.Context, session string) (done func(), err error) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	select {
	case <-c.stopping:
		return nil, stoppingError(session)
	default:
	}
	c.owners.Add(1)
	return c.owners.Done, ctx.Err()
}
