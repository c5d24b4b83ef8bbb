package mcpserve

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// recent is how many cells status lists.
const recent = 8

type statusArgs struct {
	Cell    string `json:"cell"`
	Offset  *int64 `json:"offset"`
	Limit   *int64 `json:"limit"`
	Session string `json:"session"`
}

type statusBody struct {
	Core    coreBody         `json:"core"`
	Session *control.Session `json:"session"`
	Cell    *cellBody        `json:"cell"`
	Cells   []control.Cell   `json:"cells"`
	Output  *outputBody      `json:"output"`
	Fault   *faultBody       `json:"fault"`
}

// coreBody says whether the core can be reached and, if not, why. Reachable is null
// when there was no need to try.
type coreBody struct {
	Reachable *bool           `json:"reachable"`
	Status    *control.Status `json:"status"`
	Fault     *faultBody      `json:"fault"`
}

// cellBody is a cell without its output, which is read in ranges: what it printed
// and then the displayed value.
type cellBody struct {
	Cell        string          `json:"cell"`
	Session     string          `json:"session"`
	Generation  string          `json:"generation"`
	Status      string          `json:"status"`
	Notice      *control.Notice `json:"notice"`
	StartedAtMS int64           `json:"started_at_ms"`
	ElapsedMS   int64           `json:"elapsed_ms"`
	BytesTotal  int64           `json:"bytes_total"`
	Error       *string         `json:"error"`
	Late        string          `json:"late"`
	Code        string          `json:"code"`
}

func (s *Server) status(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in statusArgs
	if err := arguments(req.Params, &in); err != nil {
		return statusFault(statusBody{}, err), nil
	}
	if in.Cell == "" && (in.Offset != nil || in.Limit != nil) {
		return statusFault(statusBody{}, fault.New(fault.InvalidRequest, "read output", "", "offset and limit need a cell").
			WithNext("pass the handle as cell")), nil
	}
	if in.Cell != "" {
		return s.cellStatus(ctx, in), nil
	}
	session := in.Session
	if session == "" {
		session = s.session
	}
	return s.overview(ctx, session), nil
}

// overview answers also when there is no core: then it says why.
func (s *Server) overview(ctx context.Context, session string) *mcp.CallToolResult {
	b := statusBody{Cells: []control.Cell{}}
	err := s.core.read(ctx, func(ctx context.Context, svc control.Service) error {
		st, err := svc.Status(ctx)
		if err != nil {
			return err
		}
		b.Core = coreBody{Reachable: yes(true), Status: &st}
		if session == "" {
			return nil
		}
		found, err := svc.Session(ctx, session)
		switch {
		case fault.HasCode(err, fault.NotFound):
			return nil // it is made by the first execute
		case err != nil:
			return err
		}
		b.Session = &found
		cells, err := svc.ListCells(ctx, session, recent)
		if cells != nil {
			b.Cells = cells
		}
		return err
	})
	switch {
	case err != nil && b.Core.Status != nil:
		return statusFault(b, err)
	case err != nil:
		b.Core = coreBody{Reachable: yes(false), Fault: body(err)}
	}
	return structured(b, overviewText(b, session))
}

func overviewText(b statusBody, session string) string {
	var t strings.Builder
	if f := b.Core.Fault; f != nil {
		fmt.Fprintf(&t, "core: not reachable: %s: %s\n", f.Code, f.Message)
		if f.Next != "" {
			fmt.Fprintf(&t, "next: %s\n", f.Next)
		}
		return t.String()
	}
	c := b.Core.Status
	fmt.Fprintf(&t, "core: up, version %s, pid %d, %d running, %d queued, %d workers, %d events, store %s\n",
		c.Version, c.PID, c.Running, c.Queued, c.Workers, c.Events, c.Store.State)
	if c.LastRecovery != "" {
		fmt.Fprintf(&t, "last recovery: %s\n", c.LastRecovery)
	}
	if session == "" {
		return t.String()
	}
	if b.Session == nil {
		fmt.Fprintf(&t, "session %s: not opened yet; the first execute opens it\n", session)
		return t.String()
	}
	n := b.Session
	fmt.Fprintf(&t, "session %s: %s", n.Session, n.State)
	if n.Reason != "" {
		fmt.Fprintf(&t, " (%s)", n.Reason)
	}
	fmt.Fprintf(&t, ", generation %s, %d names, %d cells, %d queued, in %s\n", orNone(n.Generation), n.Names, n.Cells, n.Queue, n.Workspace)
	for _, c := range b.Cells {
		fmt.Fprintf(&t, "%s %s %s %d bytes: %s\n", c.Cell, c.Status, duration(c.ElapsedMS), c.BytesTotal, c.Code)
	}
	return t.String()
}

func (s *Server) cellStatus(ctx context.Context, in statusArgs) *mcp.CallToolResult {
	offset, limit := int64(0), int64(rangeDefault)
	if in.Offset != nil {
		offset = *in.Offset
	}
	if in.Limit != nil {
		limit = *in.Limit
	}
	if offset < 0 || limit < 0 || limit > rangeMax {
		return statusFault(statusBody{}, fault.New(fault.InvalidRequest, "read output", in.Cell,
			"offset must be 0 or more and limit between 0 and %d", rangeMax))
	}
	b := statusBody{Cells: []control.Cell{}}
	err := s.core.read(ctx, func(ctx context.Context, svc control.Service) error {
		d, err := svc.Cell(ctx, in.Cell)
		b.Core.Reachable = yes(!gone(err) && ctx.Err() == nil)
		if err != nil {
			return err
		}
		r := d.Result
		b.Cell = &cellBody{
			Cell: r.Cell, Session: r.Session, Generation: r.Generation, Status: r.Status, Notice: r.Notice,
			StartedAtMS: r.StartedAtMS, ElapsedMS: r.ElapsedMS, BytesTotal: r.BytesTotal, Error: r.Error,
			Late: d.Late, Code: clip(d.Code, 2000),
		}
		got, err := readRange(ctx, svc, r.Cell, offset, limit)
		if err != nil {
			return err
		}
		b.Output = got.body()
		return nil
	})
	if err != nil {
		if b.Core.Reachable == nil || !*b.Core.Reachable {
			b.Core = coreBody{Reachable: yes(false), Fault: body(err)}
		}
		return statusFault(b, err)
	}
	return structured(b, cellStatusText(b))
}

func cellStatusText(b statusBody) string {
	var t strings.Builder
	c, o := b.Cell, b.Output
	fmt.Fprintf(&t, "[cell %s, session %s, generation %s: %s after %s]\n", c.Cell, c.Session, c.Generation, c.Status, duration(c.ElapsedMS))
	if c.Notice != nil {
		fmt.Fprintf(&t, "[notice: %s]\n", c.Notice.Text)
	}
	fmt.Fprintf(&t, "[output bytes %d to %d of %d", o.Offset, o.Offset+o.Bytes, o.Total)
	if o.Gap != nil {
		fmt.Fprintf(&t, "; bytes %d to %d were not kept", o.Gap.From, o.Gap.To)
	}
	if o.Next != nil {
		fmt.Fprintf(&t, "; go on with offset=%d", *o.Next)
	}
	t.WriteString("]\n")
	t.WriteString(o.Text)
	if o.Text != "" && !strings.HasSuffix(o.Text, "\n") {
		t.WriteByte('\n')
	}
	if c.Error != nil {
		fmt.Fprintf(&t, "[error]\n%s\n", strings.TrimRight(*c.Error, "\n"))
	}
	if c.Late != "" {
		fmt.Fprintf(&t, "[printed after the cell had ended]\n%s\n", strings.TrimRight(c.Late, "\n"))
	}
	return t.String()
}

func statusFault(b statusBody, err error) *mcp.CallToolResult {
	if b.Cells == nil {
		b.Cells = []control.Cell{}
	}
	b.Fault = body(err)
	cell := ""
	if b.Cell != nil {
		cell = b.Cell.Cell
	}
	res := structured(b, faultText("", cell, b.Fault))
	res.IsError = true
	return res
}

func duration(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
