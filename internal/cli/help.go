package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
)

// group makes c a noun that only holds verbs: a verb that is missing or that it does
// not have is an error rather than help with status 0. reeve alone shows its help.
func group(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.AddCommand(verbs...)
	c.Args = cobra.ArbitraryArgs
	c.SuggestionsMinimumDistance = 2
	c.RunE = func(c *cobra.Command, args []string) error {
		next := "see " + c.CommandPath() + " --help"
		switch {
		case len(args) == 0 && !c.HasParent():
			return c.Help()
		case len(args) == 0:
			return fault.New(fault.Usage, "read arguments", c.CommandPath(), "a command is missing; there is %s", verbsOf(c)).WithNext("%s", next)
		}
		e := fault.New(fault.Usage, "read arguments", c.CommandPath()+" "+args[0], "no such command; there is %s", verbsOf(c)).WithNext("%s", next)
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			e.Next = "did you mean " + c.CommandPath() + " " + near[0] + "?"
		}
		return e
	}
	return c
}

func verbsOf(c *cobra.Command) string {
	var names []string
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			names = append(names, s.Name())
		}
	}
	return strings.Join(names, ", ")
}

// help prints the short form for -h and all of it for --help and help.
func (a *app) help(c *cobra.Command, args []string) {
	p := a.printer()
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	short := slices.Contains(args, "-h") && !slices.Contains(args, "--help")
	if short && c.Runnable() {
		about = c.Short + "."
	}
	p.line("%s", about)
	if !c.Runnable() {
		return // a topic is its text
	}
	head := func(s string) { p.line("\n%s", p.paint("1", s)) }
	if !c.HasAvailableSubCommands() {
		head("Usage")
		p.line("  %s", c.UseLine())
	} else {
		head("Commands")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				p.line("  %-12s %s", s.Name(), s.Short)
			}
		}
	}
	if flags := strings.TrimRight(c.LocalNonPersistentFlags().FlagUsages(), "\n"); flags != "" {
		head("Flags")
		p.line("%s", flags)
	}
	if short {
		p.line("\n%s --help shows examples and the global flags.", c.CommandPath())
		return
	}
	if c.Example != "" {
		head("Examples")
		p.line("%s", c.Example)
	}
	head("Global flags")
	p.line("%s", strings.TrimRight(c.Root().PersistentFlags().FlagUsages(), "\n"))
	p.line("\nMore: reeve help exit-codes, reeve help env, reeve help formats.")
}

// cmdHelp is cobra's help command with an error for what does not exist.
func (a *app) cmdHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command or topic]",
		Short: "Show the help of a command or a topic",
		Example: `  reeve help cell run
  reeve help exit-codes
  reeve help formats`,
		RunE: func(c *cobra.Command, args []string) error {
			found, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 && len(args) > 0 {
				return fault.New(fault.Usage, "show help", strings.Join(args, " "), "no such command or topic").WithNext("see reeve --help")
			}
			a.help(found, []string{"--help"})
			return nil
		},
	}
}

// topic is a page of help that belongs to no command.
type topic struct {
	name, short string
	text        func() string
}

func (t topic) command() *cobra.Command {
	return &cobra.Command{Use: t.name, Short: t.short, Long: t.text()}
}

var topics = []topic{
	{"exit-codes", "What the exit status says", exitCodes},
	{"env", "Environment variables that are read", func() string { return envText }},
	{"formats", "The JSON envelope and the other forms of output", func() string { return formatsText }},
}

var statusMeanings = []struct {
	status  int
	meaning string
}{
	{fault.ExitDone, "done"},
	{fault.ExitFailed, "failed: the cell raised, or an internal error"},
	{fault.ExitUsage, "wrong usage or bad configuration"},
	{fault.ExitNotFound, "not found"},
	{fault.ExitNoRight, "no right to talk to this core"},
	{fault.ExitConflict, "conflict: something moved in between"},
	{fault.ExitDenied, "denied by policy"},
	{fault.ExitHeld, "held: waits for the operator, nothing done yet"},
	{fault.ExitBudget, "time or budget reached; partial result and handle printed"},
	{fault.ExitFindings, "checked, and found something (verify, doctor, policy)"},
	{fault.ExitUnknown, "outcome unknown"},
	{fault.ExitUnavailable, "core or store not available (down, busy, full)"},
	{fault.ExitWorkerLost, "the worker was lost and its namespace with it"},
	{fault.ExitInterrupted, "interrupted"},
	{fault.ExitTerminated, "terminated"},
}

// exitCodes is made from the table that decides, so that it cannot differ.
func exitCodes() string {
	byStatus := map[int][]string{}
	for _, c := range fault.Codes() {
		byStatus[c.Exit()] = append(byStatus[c.Exit()], string(c))
	}
	var b strings.Builder
	b.WriteString("The exit status follows from error.code, by this table:\n")
	for _, m := range statusMeanings {
		fmt.Fprintf(&b, "\n  %3d  %s", m.status, m.meaning)
		if codes := byStatus[m.status]; len(codes) > 0 {
			fmt.Fprintf(&b, "\n       %s", strings.Join(codes, ", "))
		}
	}
	return b.String()
}

const envText = `Environment variables:

  REEVE_HOME        data directory, unless --dir names one
  XDG_DATA_HOME     where the default data directory lies (then reeve/ in it)
  XDG_CONFIG_HOME   where the user's config.toml lies (then reeve/ in it)
  REEVE_<SECTION>_<KEY>
                    a setting, for example REEVE_WORKER_PYTHON; read when a core starts
  NO_COLOR          no colour, whatever the terminal
  CLICOLOR_FORCE    colour also when the output is no terminal
  TERM              dumb: no colour and no moving progress line
  COLUMNS           width of tables, when the terminal does not say`

const formatsText = `Forms of output:

  on a terminal     tables with a head, relative times
  piped             the same rows separated by tabs, no head, no colour, RFC 3339 times
  --fields a,b      only these members; with --json as JSON, else separated by tabs
  --json            one envelope on standard output, for success and failure:
                    {"ok":bool,"kind":text,"data":…,"error":{"code","message","next",
                    "retryable"} or null,"meta":{"version","elapsed_ms","ids"}}
                    A cell that raised has both data and error. An empty list is [].
  --jsonl           lists and events: one element a line, without envelope; cell run:
                    progress as it comes, then the envelope. A failure is an envelope
                    in the last line.
  --jq expr         the JSON through a jq expression; texts are printed bare

Numbers of time end in _ms: milliseconds, or Unix milliseconds when they end in
_at_ms. Sizes are in bytes. Members may be added; none is removed or changes its
meaning within a major version. Standard error is for people.`
