package cli

import (
	"context"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

func (a *app) cmdSession() *cobra.Command {
	return group(&cobra.Command{
		Use:   "session",
		Short: "Sessions: each has a namespace, a queue and a stream of events",
		Long: `A session is where cells run one after another in one namespace. The command line
uses the session of the working directory unless --session names another; each MCP
connection has its own.`,
		Example: `  reeve session list
  reeve session show
  reeve session close old-session`,
	}, a.cmdSessionList(), a.cmdSessionShow(), a.cmdSessionResume(), a.cmdSessionClose())
}

func (a *app) cmdSessionList() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List sessions with state, reason and age",
		Example: `  reeve session list
  reeve session list --json --fields session,state,reason
  reeve session list --jsonl --jq .session`,
	}
	completeFields(c, members(reflect.TypeFor[control.Session]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		all, err := c.ListSessions(ctx)
		return answer{kind: "sessions", data: all, rows: true, err: err, text: func(p printer) { sessionTable(p, all) }}
	}))
}

func sessionTable(p printer, all []control.Session) {
	rows := make([][]string, len(all))
	for i, s := range all {
		rows[i] = []string{s.Session, s.State, p.when(s.SinceMS), s.Generation, fmt.Sprint(s.Cells), fmt.Sprint(s.Names), s.Workspace, s.Reason}
	}
	p.table("no sessions yet; reeve cell run 'print(1+1)' makes one",
		[]string{"SESSION", "STATE", "SINCE", "GENERATION", "CELLS", "NAMES", "WORKSPACE", "REASON"}, rows)
}

// sessionAnswer is one session.
func sessionAnswer(s control.Session, err error) answer {
	return answer{kind: "session", data: s, err: err, ids: map[string]string{"session": s.Session}, text: func(p printer) { showSession(p, s) }}
}

func showSession(p printer, s control.Session) {
	queue := ""
	if s.Queue > 0 {
		queue = count(int64(s.Queue), "cell waits", "cells wait")
	}
	p.pairs(
		"session", s.Session,
		"state", s.State,
		"reason", s.Reason,
		"since", p.when(s.SinceMS),
		"workspace", s.Workspace,
		"generation", s.Generation,
		"python", s.Python,
		"cells", fmt.Sprint(s.Cells),
		"queue", queue,
		"names", fmt.Sprint(s.Names),
		"opened", p.when(s.OpenedAtMS)+" by "+s.OpenedBy.Kind+" "+s.OpenedBy.Name,
		"last", p.when(s.LastAtMS),
		"events", fmt.Sprint(s.Head),
		"restarts left", fmt.Sprint(s.RestartsLeft),
	)
}

func (a *app) cmdSessionShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show [session]",
		Short: "Show one session",
		Args:  cobra.MaximumNArgs(1),
		Example: `  reeve session show              the working directory's
  reeve session show mcp-work     by a unique beginning
  reeve session show --json --jq .data.generation`,
		ValidArgsFunction: first(a.completeSessions()),
	}
	completeFields(c, members(reflect.TypeFor[control.Session]()))
	return a.does(c, a.onSession(func(ctx context.Context, c *control.Client, id string) answer {
		return sessionAnswer(c.Session(ctx, id))
	}))
}

// onSession runs f with the session that args name or the working directory's.
func (a *app) onSession(f func(ctx context.Context, c *control.Client, id string) answer) func(context.Context, []string) answer {
	return a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		name := ""
		if len(args) > 0 {
			if name = args[0]; name == "" {
				return failed(fault.New(fault.Usage, "read arguments", "session", "an empty name is no session").
					WithNext("name a session: reeve session list"))
			}
		}
		id, err := a.session(ctx, c, name)
		if err != nil {
			return failed(err)
		}
		return f(ctx, c, id)
	})
}

type change func(ctx context.Context, id string, by event.Actor) (control.Session, error)

// changes makes c a command that changes a session and says done about it.
func (a *app) changes(c *cobra.Command, which func(control.Service) change, done string) *cobra.Command {
	c.ValidArgsFunction = first(a.completeSessions())
	completeFields(c, members(reflect.TypeFor[control.Session]()))
	return a.does(c, a.onSession(func(ctx context.Context, s *control.Client, id string) answer {
		now, err := which(s)(ctx, id, a.actor())
		ans := sessionAnswer(now, err)
		if err == nil {
			ans.text = func(p printer) { p.line("session %s: %s", now.Session, done) }
		} else {
			ans.data, ans.text = nil, nil
		}
		return ans
	}))
}

func (a *app) cmdSessionResume() *cobra.Command {
	return a.changes(&cobra.Command{
		Use:   "resume [session]",
		Short: "Start a session's worker now, also after it gave up restarting",
		Args:  cobra.MaximumNArgs(1),
		Example: `  reeve session resume            the working directory's
  reeve session resume mcp-work   by a unique beginning
  reeve session resume --json --fields session,generation`,
	}, func(s control.Service) change { return s.Resume }, "its worker runs")
}

func (a *app) cmdSessionClose() *cobra.Command {
	return a.changes(&cobra.Command{
		Use:   "close <session>",
		Short: "End a session for ever: its worker stops, its record stays",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve session close old-session
  reeve session close mcp-work-3k2j
  reeve session close old-session --json`,
	}, func(s control.Service) change { return s.CloseSession }, "closed")
}
