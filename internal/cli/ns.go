package cli

import (
	"context"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/internal/control"
)

func (a *app) cmdNS() *cobra.Command {
	return group(&cobra.Command{
		Use:   "ns",
		Short: "Namespaces: the names that a session's worker holds",
		Example: `  reeve ns list
  reeve ns names
  reeve ns reset`,
	}, a.cmdNSList(), a.cmdNSNames(), a.cmdNSReset())
}

func (a *app) cmdNSList() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the namespace of every session",
		Example: `  reeve ns list
  reeve ns list --json --jq '.data[] | select(.live)'
  reeve ns list --fields session,generation`,
	}
	completeFields(c, members(reflect.TypeFor[control.Namespace]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		all, err := c.ListNamespaces(ctx)
		return answer{kind: "namespaces", data: all, rows: true, err: err, text: func(p printer) {
			rows := make([][]string, len(all))
			for i, n := range all {
				state := "gone"
				if n.Live {
					state = "live"
				}
				rows[i] = []string{n.Session, n.Generation, state, fmt.Sprint(len(n.Names))}
			}
			p.table("no namespaces yet", []string{"SESSION", "GENERATION", "STATE", "NAMES"}, rows)
		}}
	}))
}

func (a *app) cmdNSNames() *cobra.Command {
	c := &cobra.Command{
		Use:   "names [session]",
		Short: "List the names in a session's namespace",
		Args:  cobra.MaximumNArgs(1),
		Example: `  reeve ns names                  the working directory's
  reeve ns names mcp-work         by a unique beginning
  reeve ns names --json --jq .data.names`,
		ValidArgsFunction: first(a.completeSessions()),
	}
	completeFields(c, members(reflect.TypeFor[control.Namespace]()))
	return a.does(c, a.onSession(func(ctx context.Context, c *control.Client, id string) answer {
		n, err := c.Namespace(ctx, id)
		if err != nil {
			return failed(err)
		}
		if !n.Live {
			a.note("session %s has no live worker; these names existed in %s", id, n.Generation)
		}
		return answer{kind: "namespace", data: n, ids: map[string]string{"session": n.Session}, text: func(p printer) {
			for _, name := range n.Names {
				p.line("%s", visible(name))
			}
			if len(n.Names) == 0 && p.tty {
				p.line("the namespace of %s is empty", id)
			}
		}}
	}))
}

func (a *app) cmdNSReset() *cobra.Command {
	return a.changes(&cobra.Command{
		Use:   "reset [session]",
		Short: "Start a session over in an empty namespace",
		Long: `Stop the session's worker and start another, with an empty namespace. The record of
what was there stays, and the next cell is told.`,
		Args: cobra.MaximumNArgs(1),
		Example: `  reeve ns reset                  the working directory's
  reeve ns reset mcp-work         by a unique beginning
  reeve ns reset --json --fields session,generation`,
	}, func(s control.Service) change { return s.ResetNamespace }, "starts over in an empty namespace")
}
