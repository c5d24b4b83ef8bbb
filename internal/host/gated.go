package host

import (
	"context"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/request"
)

// The calls of the control API that have an effect are verbs: they pass the gate and
// leave an audit row like every other (VD-201).

// admit asks for a verb on behalf of a call of the control API.
func (c *Core) admit(ctx context.Context, by event.Actor, session, workspace, verb string, args ...request.Item) (*dispatch.Admission, error) {
	caller := c.caller(validActor(by), session, workspace, by.Kind != "operator")
	caller.Identity.RequestID = mintRequestID()
	return c.dispatcher.Admit(ctx, caller, &request.Op{Tool: verb, Args: args})
}

func argument(name, value string) request.Item {
	return request.Item{Name: name, Value: request.OfString(value)}
}

// Execute implements control.Cells.
func (c *Core) Execute(ctx context.Context, r control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
	if err := checkExecute(r); err != nil {
		return control.CellResult{}, err
	}
	a, err := c.admit(ctx, r.By, r.Session, r.Workspace, "workbench.execute", argument("code", r.Code))
	if err != nil {
		return control.CellResult{}, err
	}
	res, err := c.execute(ctx, r, &a.Row, progress)
	if err != nil {
		a.Failed(err)
	}
	return res, err
}

// Interrupt implements control.Cells.
func (c *Core) Interrupt(ctx context.Context, cell string, by event.Actor) (control.InterruptReport, error) {
	return changed(ctx, c, by, "", "workbench.interrupt", argument("cell", cell), func() (control.InterruptReport, error) {
		return c.interrupt(ctx, cell, by)
	})
}

// Resume implements control.Sessions.
func (c *Core) Resume(ctx context.Context, id string, by event.Actor) (control.Session, error) {
	return changed(ctx, c, by, id, "runtime.resume", argument("session", id), func() (control.Session, error) {
		return c.resume(ctx, id, by)
	})
}

// CloseSession implements control.Sessions.
func (c *Core) CloseSession(ctx context.Context, id string, by event.Actor) (control.Session, error) {
	return changed(ctx, c, by, id, "runtime.close", argument("session", id), func() (control.Session, error) {
		return c.closeSession(ctx, id, by)
	})
}

// ResetNamespace implements control.Sessions.
func (c *Core) ResetNamespace(ctx context.Context, id string, by event.Actor) (control.Session, error) {
	return changed(ctx, c, by, id, "runtime.reset", argument("session", id), func() (control.Session, error) {
		return c.resetNamespace(ctx, id, by)
	})
}

// changed does what is admitted and owes its audit row: an interrupt must work while
// the store does not.
func changed[T any](ctx context.Context, c *Core, by event.Actor, session, verb string, arg request.Item, do func() (T, error)) (T, error) {
	a, err := c.admit(ctx, by, session, "", verb, arg)
	if err != nil {
		var none T
		return none, err
	}
	v, err := do()
	if err != nil {
		a.Failed(err)
		return v, err
	}
	c.auditor.owe(a.Row)
	return v, nil
}
