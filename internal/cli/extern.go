package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
)

func (a *app) cmdMCP() *cobra.Command {
	var o MCPOptions
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an MCP client on standard input and output, or many over HTTP",
		Long: `Speak the Model Context Protocol on standard input and output, for clients such as
Claude Code and Codex, which start this themselves: see reeve mcp install. The front
end outlives the core and starts it again when needed. Each connection has a session
of its own unless --session or a call names one. Standard output carries the protocol
and nothing else.

With --http it serves clients at http://<address>/mcp instead, until it is stopped.
They must present the token that lies in the data directory as mcp.token.`,
		Example: `  reeve mcp install claude        let Claude Code start it
  reeve mcp --session shared      one namespace for all clients that say so
  reeve mcp -v 2>mcp.log          with a log
  reeve mcp --http 127.0.0.1:7333   for clients that speak HTTP`,
	}
	c.Flags().StringVar(&o.HTTP, "http", "", "listen on this address (host:port; port 0 for any) instead of standard input")
	c.Flags().BoolVar(&o.Expose, "expose", false, "allow an address that other machines can reach")
	c.Flags().StringSliceVar(&o.Hosts, "host", nil, "a further name under which clients reach the address")
	c.Flags().StringVarP(&o.Session, "session", "s", "", "session of calls that name none (default: a fresh one; . for the working directory's)")
	c.AddCommand(a.cmdMCPInstall())
	return a.does(c, func(ctx context.Context, _ []string) answer {
		if a.programs.MCP == nil {
			return failed(missing("mcp"))
		}
		dir, err := a.dataDir()
		if err != nil {
			return failed(err)
		}
		if o.HTTP == "" && (o.Expose || len(o.Hosts) > 0) {
			return failed(fault.New(fault.Usage, "read arguments", "mcp", "--expose and --host say more about --http, which is missing"))
		}
		if o.Session == "." {
			o.Session = DefaultSession(a.io.WorkDir)
		}
		// From here on standard output is the protocol's.
		a.set.json, a.set.jsonl, a.set.jq = false, false, ""
		o.Dir, o.Workspace, o.Debug = dir, a.io.WorkDir, a.set.verbose
		return failed(a.programs.MCP(ctx, o))
	})
}

func (a *app) cmdMCPInstall() *cobra.Command {
	var yes, print bool
	var scope string
	c := &cobra.Command{
		Use:   "install <client>",
		Short: "Add reeve to a client's configuration: shows the difference, then writes",
		Long: `Show how the configuration of claude, codex or pi would change so that it starts reeve,
ask, and write. Everything else in the file is kept. Without a terminal nothing is
written unless --yes is given.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve mcp install claude        ask before writing
  reeve mcp install codex --yes
  reeve mcp install claude --scope project --print`,
		ValidArgs: []string{"claude", "codex", "pi"},
	}
	c.Flags().BoolVar(&yes, "yes", false, "write without asking")
	c.Flags().BoolVar(&print, "print", false, "only show the difference")
	c.Flags().StringVar(&scope, "scope", "user", "user or project")
	return a.does(c, func(ctx context.Context, args []string) answer {
		if a.programs.Install == nil {
			return failed(missing("mcp install"))
		}
		if scope != "user" && scope != "project" {
			return failed(fault.New(fault.Usage, "read arguments", "--scope "+scope, "it is user or project"))
		}
		if yes && print {
			return failed(fault.New(fault.Usage, "read arguments", "--print", "--yes and --print exclude each other"))
		}
		o := InstallOptions{Client: args[0], Scope: scope, Workspace: a.io.WorkDir, Dir: a.set.dir, Write: !print, Getenv: a.io.Env}
		asked := false
		if !yes && !print {
			o.Write = a.mayAsk()
			o.Confirm = func(diff string) (bool, error) {
				asked = true
				fmt.Fprint(a.io.Err, inert(diff))
				return a.confirm("write this?")
			}
		}
		did, err := a.programs.Install(ctx, o)
		return answer{kind: "installed", data: did, err: err, text: func(p printer) {
			switch {
			case err != nil:
				return
			case did.Diff == "":
				p.line("%s is set up already in %s", did.Client, did.Path)
			case did.Written:
				p.line("wrote %s", did.Path)
			default:
				if !asked {
					_, _ = io.WriteString(p.w, inert(did.Diff))
				}
				a.note("nothing was written to %s; --yes writes it", did.Path)
			}
			if did.Next != "" && did.Written {
				p.line("%s", visible(did.Next))
			}
		}}
	})
}

// mayAsk reports whether there is a person to ask.
func (a *app) mayAsk() bool { return a.io.InTTY && a.io.ErrTTY && !a.set.noInput && !a.machine() }

// confirm asks a question on the terminal; only a clear yes is one.
func (a *app) confirm(question string) (bool, error) {
	fmt.Fprintf(a.io.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(a.io.In).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, fault.Wrap(err, fault.Usage, "read answer", "")
	}
	said := strings.ToLower(strings.TrimSpace(line))
	return said == "y" || said == "yes", nil
}

func (a *app) cmdDemo() *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See an agent mend a bug through reeve, end to end, in under a minute",
		Long: `Unpack a small project with a failing test, let a scripted agent find and mend the
bug through the real MCP server, kill a worker on the way, and verify the journal at
the end. Needs no key and no network, and leaves nothing behind. The status is 0 only
when every step was as claimed.`,
		Example: `  reeve demo
  reeve demo --keep               leave the project and the journal for looking at
  reeve demo --json --jq '.data.steps[].name'`,
	}
	c.Flags().BoolVar(&keep, "keep", false, "keep the directory and say where it is")
	return a.does(c, func(ctx context.Context, _ []string) answer {
		if a.programs.Demo == nil {
			return failed(missing("demo"))
		}
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		out := a.io.Out
		if a.machine() || a.set.quiet {
			out = io.Discard
		}
		r, err := a.programs.Demo(ctx, DemoOptions{Keep: keep, Out: out})
		return answer{kind: "demo", data: r, err: err}
	})
}
