package mcpserve

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/worker"
)

type interruptArgs struct {
	Cell    string `json:"cell"`
	Session string `json:"session"`
}

type interruptBody struct {
	Found         bool        `json:"found"`
	Text          string      `json:"text"`
	Cell          string      `json:"cell"`
	Rung          worker.Rung `json:"rung"`
	NamespaceKept bool        `json:"namespace_kept"`
	ElapsedMS     int64       `json:"elapsed_ms"`
	Fault         *faultBody  `json:"fault"`
}

func (s *Server) interrupt(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in interruptArgs
	if err := arguments(req.Params, &in); err != nil {
		return interruptFault(in.Cell, err), nil
	}
	target := in.Cell
	if target == "" {
		target = in.Session
	}
	if target == "" {
		target = s.session
	}
	if target == "" {
		return interruptFault("", noSession("interrupt")), nil
	}
	var report control.InterruptReport
	again := doubtful // a cell that has ended is only reported as such
	if in.Cell == "" {
		again = unsent // what runs in a session now may not be what ran then
	}
	err := s.core.try(ctx, again, func(ctx context.Context, svc control.Service) error {
		var err error
		report, err = svc.Interrupt(ctx, target, actor(req.Session))
		return err
	})
	switch {
	case in.Cell == "" && in.Session == "" && fault.HasCode(err, fault.NotFound):
		report = control.InterruptReport{Text: "nothing runs in session " + target + ": the first execute opens it"}
	case in.Cell == "" && fault.HasCode(err, fault.NotFound):
		return interruptFault("", fault.New(fault.NotFound, "find session", target, "there is none of this id").
			WithNext("use the session that a result of execute names")), nil
	case err != nil:
		return interruptFault(in.Cell, err), nil
	}
	return structured(interruptBody{
		Found: report.Found, Text: report.Text, Cell: report.Cell, Rung: report.Rung,
		NamespaceKept: report.NamespaceKept, ElapsedMS: report.ElapsedMS,
	}, report.Text), nil
}

func interruptFault(cell string, err error) *mcp.CallToolResult {
	f := body(err)
	res := structured(interruptBody{Text: f.Message, Cell: cell, Fault: f}, faultText("", cell, f))
	res.IsError = true
	return res
}
