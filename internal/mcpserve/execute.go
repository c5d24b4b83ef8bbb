package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

type executeArgs struct {
	Code      *string `json:"code"`
	Session   string  `json:"session"`
	TimeoutMS int64   `json:"timeout_ms"`
}

func (s *Server) execute(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in executeArgs
	if err := arguments(req.Params, &in); err != nil {
		return executeFault(control.CellResult{}, notRun, err), nil
	}
	switch {
	case in.Code == nil:
		return executeFault(control.CellResult{}, notRun,
			fault.New(fault.InvalidRequest, "execute", "code", "the argument is missing").WithNext("pass the Python source as code")), nil
	case in.TimeoutMS < 0:
		return executeFault(control.CellResult{}, notRun,
			fault.New(fault.InvalidRequest, "execute", "timeout_ms", "must not be negative")), nil
	}
	r := control.ExecuteRequest{
		Session: in.Session, Code: *in.Code, TimeoutMS: in.TimeoutMS,
		Workspace: s.opt.Workspace, By: actor(req.Session),
	}
	if r.Session == "" {
		r.Session = s.session
	}
	if r.Session == "" {
		return executeFault(control.CellResult{}, notRun, noSession("execute")), nil
	}
	res, svc, err := s.run(ctx, req, r)
	if err != nil {
		res.Session = r.Session
		return executeFault(res, disposition(err, res.Cell), err), nil
	}
	return s.executeResult(ctx, svc, res), nil
}

// run sends the cell once. A core that is not there is looked for before anything
// is sent; after that the cell is never sent again, and what became of it is read
// from the record.
func (s *Server) run(ctx context.Context, req *mcp.CallToolRequest, r control.ExecuteRequest) (control.CellResult, control.Service, error) {
	until := time.Now().Add(reachFor)
	for {
		look, cancel := context.WithDeadline(ctx, until)
		svc, err := s.core.get(look)
		cancel()
		c := newCall()
		if err == nil {
			var res control.CellResult
			if res, err = s.watch(ctx, req, svc, r, c); err == nil {
				return res, svc, nil
			}
			if gone(err) {
				s.core.lost(svc)
			}
		}
		if cell := c.handle(); cell != "" {
			switch {
			case gone(err):
				return s.settle(ctx, cell, err)
			case c.started():
				return control.CellResult{Cell: cell}, svc, err
			default:
				return control.CellResult{}, svc, err
			}
		}
		if !unsent(err) || time.Now().After(until) {
			return control.CellResult{}, svc, err
		}
		select {
		case <-ctx.Done():
			return control.CellResult{}, svc, fault.Wrap(ctx.Err(), fault.Cancelled, "execute", r.Session)
		case <-time.After(reachEvery):
		}
	}
}

// watch runs one Execute: it reports progress while the cell runs and turns the
// end of ctx into an interrupt, whose outcome it still waits for.
func (s *Server) watch(ctx context.Context, req *mcp.CallToolRequest, svc control.Service, r control.ExecuteRequest, c *call) (control.CellResult, error) {
	// Not ctx: when that ends the cell is interrupted by its handle and the answer
	// tells how; cutting the connection would lose it.
	exec, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	type outcome struct {
		res control.CellResult
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if v := recover(); v != nil {
				s.panicked("execute", v)
				o = outcome{err: fault.New(fault.Internal, "execute", r.Session, "panic in reeve: %v", v)}
			}
			done <- o
		}()
		o.res, o.err = svc.Execute(exec, r, c.see)
	}()

	report := s.reporter(ctx, req)
	tick := time.NewTicker(s.opt.Progress)
	defer tick.Stop()
	cancelled := ctx.Done()
	var over <-chan time.Time
	if r.TimeoutMS > 0 {
		// The core ends the cell at its time; this is for a core that has stopped.
		over = time.After(time.Duration(r.TimeoutMS)*time.Millisecond + s.bound)
	}
	abandoned := false
	for {
		select {
		case o := <-done:
			if abandoned && o.err != nil {
				o.err = fault.Wrap(o.err, fault.Unknown, "execute", r.Session).WithNext("ask status for session %s: the call was cancelled before its cell had a handle", r.Session)
			}
			return o.res, o.err
		case <-tick.C:
			report(c)
		case <-c.queued:
			report(c)
		case <-cancelled:
			cancelled = nil
			over = time.After(s.bound)
			if c.handle() == "" {
				abandoned = true
				abandon() // nothing to name: the core interrupts a cell whose caller has gone
				continue
			}
			go s.stop(context.WithoutCancel(ctx), svc, c.handle(), r.By)
		case <-over:
			abandon()
			code, ask := fault.Timeout, "cell "+c.handle()
			if !c.started() {
				code = fault.Unknown // it may still come to run
			}
			if c.handle() == "" {
				ask = "session " + r.Session
			}
			return control.CellResult{}, fault.New(code, "execute", c.handle(),
				"the core has not told how it ended within %s of when it was due", s.bound).WithNext("ask status for %s", ask)
		}
	}
}

// stop interrupts a cell whose client has cancelled its call. A failure shows in
// the answer of the call itself, which then ends by its own bound.
func (s *Server) stop(ctx context.Context, svc control.Service, cell string, by event.Actor) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked("interrupt", v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.bound)
	defer cancel()
	if _, err := svc.Interrupt(ctx, cell, by); err != nil {
		s.opt.Log.Warn("interrupt cancelled call", "cell", cell, "error", err)
	}
}

// reporter returns a function that sends one progress message for a call. Without
// a token there is nothing to send it under.
func (s *Server) reporter(ctx context.Context, req *mcp.CallToolRequest) func(*call) {
	token := req.Params.GetProgressToken()
	switch token.(type) {
	case string, float64, int, int64:
	default:
		return func(*call) {}
	}
	ctx = context.WithoutCancel(ctx) // a cancelled call is still going on until its cell has ended
	last := 0.0
	return func(c *call) {
		at, message := c.progress()
		if at <= last {
			at = last + 0.001 // the value must rise with every message
		}
		last = at
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: at, Message: message,
		})
		if err != nil {
			s.opt.Log.Debug("notify progress", "error", err)
		}
	}
}

// settle tells what became of a cell whose core went away while it ran. The next
// core closes what the last one left open before it answers anybody.
func (s *Server) settle(ctx context.Context, cell string, cause error) (control.CellResult, control.Service, error) {
	ctx = context.WithoutCancel(ctx)
	var found control.CellResult
	var from control.Service
	err := s.core.read(ctx, func(ctx context.Context, svc control.Service) error {
		d, err := svc.Cell(ctx, cell)
		if err != nil {
			return err
		}
		found, from = d.Result, svc
		if found.Status == "running" || found.Status == "queued" {
			return fault.New(fault.Unavailable, "look up cell", cell, "it is still %s", found.Status).Retryable()
		}
		return nil
	})
	switch {
	case err == nil:
		if found.Notice == nil {
			found.Notice = &control.Notice{
				Kind: "core_lost", Generation: found.Generation, Cause: found.Cause,
				Text: fmt.Sprintf("The core went away while this cell ran. The record says %q. It was not run again; run it again only if that does no harm.", found.Status),
			}
		}
		return found, from, nil
	case fault.HasCode(err, fault.NotFound):
		return control.CellResult{}, nil, fault.Wrap(cause, fault.Unavailable, "execute", cell).
			WithNext("call execute again: the core went away before the cell was started, and nothing of it ran").Retryable()
	default:
		return control.CellResult{Cell: cell}, nil, fault.Wrap(errors.Join(cause, err), fault.Unknown, "execute", cell).
			WithNext("ask status for cell %s before running it again: it may have run in part", cell)
	}
}
