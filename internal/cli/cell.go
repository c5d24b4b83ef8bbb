package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

func (a *app) cmdCell() *cobra.Command {
	return group(&cobra.Command{
		Use:   "cell",
		Short: "Cells: pieces of code that ran, with their output",
		Example: `  reeve cell run 'import os; print(os.getcwd())'
  reeve cell list
  reeve cell output cell_0abc`,
	}, a.cmdCellRun(), a.cmdCellList(), a.cmdCellShow(), a.cmdCellInterrupt(), a.cmdCellOutput())
}

func (a *app) cmdCellList() *cobra.Command {
	var session string
	var max int
	c := &cobra.Command{
		Use:   "list",
		Short: "List cells, the latest first",
		Example: `  reeve cell list                 of all sessions
  reeve cell list -s . --max 5    of the working directory's
  reeve cell list --json --jq '.data[] | select(.status=="error") | .cell'`,
	}
	c.Flags().StringVarP(&session, "session", "s", "", "only of this session (. for the working directory's)")
	c.Flags().IntVar(&max, "max", 50, "how many at most")
	a.completeFlag(c, "session", a.completeSessions())
	completeFields(c, members(reflect.TypeFor[control.Cell]()))
	c.PreRunE = func(*cobra.Command, []string) error {
		if max < 1 {
			return fault.New(fault.Usage, "read arguments", fmt.Sprintf("--max %d", max), "at least 1")
		}
		return nil
	}
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		id, err := a.sessionFilter(ctx, c, session)
		if err != nil {
			return failed(err)
		}
		all, err := c.ListCells(ctx, id, max)
		return answer{kind: "cells", data: all, rows: true, err: err, text: func(p printer) {
			rows := make([][]string, len(all))
			for i, x := range all {
				rows[i] = []string{x.Cell, x.Status, p.when(x.StartedAtMS), millis(x.ElapsedMS), bytesText(x.BytesTotal), x.Session, x.Code}
			}
			empty := "no cells yet; reeve cell run 'print(1+1)' makes one"
			if id != "" {
				empty = "no cells in session " + id
			}
			p.table(empty, []string{"CELL", "STATUS", "STARTED", "ELAPSED", "OUTPUT", "SESSION", "CODE"}, rows)
		}}
	}))
}

// sessionFilter is the session that a list is limited to: none, the working
// directory's for a dot, or one by a unique beginning.
func (a *app) sessionFilter(ctx context.Context, c control.Service, name string) (string, error) {
	switch name {
	case "":
		return "", nil
	case ".":
		return DefaultSession(a.io.WorkDir), nil
	}
	return a.wholeSession(ctx, c, name)
}

// completeFlag sets the completion of a flag that was just defined.
func (a *app) completeFlag(c *cobra.Command, flag string, f completer) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is missing or has one already: wrong in this file
	}
}

func (a *app) cmdCellShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show <cell>",
		Short: "Show one cell whole: code, output, error",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve cell show cell_0abc
  reeve cell show cell_0abc --json --jq .data.result.status
  reeve cell show cell_0 --fields code`,
		ValidArgsFunction: first(a.completeCells()),
	}
	completeFields(c, members(reflect.TypeFor[control.CellDetail]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		d, err := c.Cell(ctx, args[0])
		if err != nil {
			return failed(err)
		}
		return answer{kind: "cell", data: d, ids: cellIDs(d.Result), text: func(p printer) { showCell(p, d) }}
	}))
}

func cellIDs(r control.CellResult) map[string]string {
	ids := map[string]string{}
	for k, v := range map[string]string{"cell": r.Cell, "session": r.Session, "generation": r.Generation, "execution": r.Execution} {
		if v != "" {
			ids[k] = v
		}
	}
	return ids
}

func showCell(p printer, d control.CellDetail) {
	r := d.Result
	cause, notice, cpu := "", "", ""
	if r.Cause != nil {
		cause = r.Cause.Text
	}
	if r.Notice != nil {
		notice = r.Notice.Text
	}
	if r.CPUMS != nil {
		cpu = millis(*r.CPUMS)
	}
	p.pairs(
		"cell", r.Cell,
		"session", r.Session,
		"generation", r.Generation,
		"execution", r.Execution,
		"status", r.Status,
		"cause", cause,
		"notice", notice,
		"started", p.when(r.StartedAtMS)+" by "+d.By.Kind+" "+d.By.Name,
		"elapsed", millis(r.ElapsedMS),
		"waited", millis(r.QueuedMS),
		"cpu", cpu,
		"output", bytesText(r.BytesTotal),
	)
	part := func(name, text string) {
		if text == "" {
			return
		}
		p.line("\n%s", p.paint(dim, "--- "+name))
		p.line("%s", strings.TrimRight(inert(text), "\n"))
	}
	part("code", d.Code)
	for _, o := range r.Output {
		part(o.Stream, o.Text)
	}
	if r.TruncatedBytes > 0 {
		p.line("\n%s", p.paint(dim, "--- cut by reeve: "+cutText(r)))
	}
	if r.Error != nil {
		part("error", *r.Error)
	}
	part("late output", d.Late)
	for _, f := range r.Artifacts {
		p.line("\n%s", p.paint(dim, fmt.Sprintf("--- artifact %s, %s, %s", f.SHA256, f.MIME, bytesText(f.Size))))
	}
}

// cutText says how much of the output is shown and how to read the rest.
func cutText(r control.CellResult) string {
	return fmt.Sprintf("%d of %d bytes are not shown; read them with reeve cell output %s", r.TruncatedBytes, r.BytesTotal, r.Cell)
}

func (a *app) cmdCellInterrupt() *cobra.Command {
	c := &cobra.Command{
		Use:   "interrupt <cell or session>",
		Short: "Stop a running cell, gently first",
		Long: `Stop a cell that runs or waits, or the running cell of a session. The ladder goes
from asking the code to killing the worker; the answer says how far it had to go and
whether the namespace is still there.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve cell interrupt cell_0abc
  reeve cell interrupt .          what runs in the working directory's session
  reeve cell interrupt cell_0abc --json --jq .data.namespace_kept`,
		ValidArgsFunction: first(a.completeCells()),
	}
	completeFields(c, members(reflect.TypeFor[control.InterruptReport]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		target := args[0]
		if target == "." {
			target = DefaultSession(a.io.WorkDir)
		}
		r, err := c.Interrupt(ctx, target, a.actor())
		if err != nil {
			return failed(err)
		}
		if !r.Found {
			err = fault.New(fault.NotFound, "interrupt", target, "nothing of this name runs or waits").WithNext("reeve cell list")
		}
		return answer{kind: "interrupt", data: r, err: err, ids: map[string]string{"cell": r.Cell}, text: func(p printer) {
			if r.Found {
				p.line("%s", inert(r.Text))
			}
		}}
	}))
}
