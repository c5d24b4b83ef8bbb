// Package cli is the command line: it reads arguments, calls the control API, and
// prints what came back for a person or, with --json, for a program.
//
// Invariants: with --json or --jsonl standard output holds nothing but JSON, for
// success and failure alike, and standard error stays near silent; the exit status
// follows from the fault code by one table; standard input is read only when it was
// asked for; no command but the listed ones starts a core. The package does not
// know how a core works and never ends the process itself.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/control"
)

// Stdio is the process as a command sees it.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	InTTY    bool
	OutTTY   bool
	ErrTTY   bool
	Env      func(string) string
	WorkDir  string // absolute
	Width    int    // of the terminal, 0 when it is not known
}

// Signal is the cause with which a context ends because of a signal.
type Signal struct{ Number syscall.Signal }

func (s Signal) Error() string { return s.Number.String() }

// Programs are the parts that main puts behind commands because the command line
// may not import them. A nil member is a command that this build does not have.
type Programs struct {
	// Core is the life of a core, which ends with ctx or on request. It refuses with
	// fault.Conflict when another core holds the data directory.
	Core func(ctx context.Context, dir string, settings map[string]string, log io.Writer) error
	// MCP serves one client on standard input and output until it hangs up.
	MCP     func(ctx context.Context, o MCPOptions) error
	Install func(ctx context.Context, o InstallOptions) (Installed, error)
	Demo    func(ctx context.Context, o DemoOptions) (DemoReport, error)
	// Verify and Usage read a data directory that no core has open.
	Verify func(ctx context.Context, dir string) (control.VerifyReport, error)
	Usage  func(ctx context.Context, dir string) (control.Usage, error)
	// Policies are those of a data directory, or the shipped one.
	Policies func(dir string) ([]gate.Source, error)
	Probes   []Probe           // of doctor, beside its own
	About    map[string]string // for version: component, version
}

// MCPOptions are what reeve mcp was told.
type MCPOptions struct {
	Dir       string // data directory
	Workspace string
	Session   string // empty: one of its own
	HTTP      string // address to listen on; empty: standard input and output
	Expose    bool   // the address may be one that other machines reach
	Hosts     []string
	Debug     bool
}

// InstallOptions are what reeve mcp install was told.
type InstallOptions struct {
	Client    string
	Scope     string // user | project
	Workspace string
	Dir       string                          // data directory, empty when it is the default
	Write     bool                            // false: only the difference
	Confirm   func(diff string) (bool, error) // asked before writing; nil: write
	Getenv    func(string) string
}

// Installed is what was changed, or would be.
type Installed struct {
	Client  string `json:"client"`
	Path    string `json:"path"`
	Diff    string `json:"diff"` // empty when nothing has to change
	Written bool   `json:"written"`
	Next    string `json:"next"`
}

// DemoOptions are what reeve demo was told.
type DemoOptions struct {
	Keep bool
	Out  io.Writer // the story, for people
}

// DemoReport is what the demo proved.
type DemoReport struct {
	Dir      string               `json:"dir"` // empty unless kept
	Steps    []DemoStep           `json:"steps"`
	Timeline []DemoMoment         `json:"timeline"`
	Verify   control.VerifyReport `json:"verify"`
}

// DemoMoment is one event of the demo's session in words.
type DemoMoment struct {
	ID   int64  `json:"id"`
	Seq  int64  `json:"seq"`
	AtMS int64  `json:"at_ms"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// DemoStep is one claim of the demo and whether it held.
type DemoStep struct {
	Name      string `json:"name"`
	OK        bool   `json:"ok"`
	Text      string `json:"text"`
	ElapsedMS int64  `json:"elapsed_ms"`
}

// app is one run of the command line.
type app struct {
	io       Stdio
	programs Programs
	started  time.Time
	args     []string
	set      settings
	code     int // exit status of the command that ran
	ran      bool
}

// settings are the global flags.
type settings struct {
	json    bool
	jsonl   bool
	fields  []string
	jq      string
	quiet   bool
	verbose bool
	color   string
	noInput bool
	timeout time.Duration
	dir     string
}

// Run runs one command line and returns the process's exit status. The cause of
// ctx, when a signal ended it, is a Signal.
func Run(ctx context.Context, args []string, stdio Stdio, programs Programs) int {
	a := &app{io: stdio, programs: programs, started: time.Now(), args: args}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return a.code
	}
	// Commands report their own errors; what comes back is about the arguments.
	if !a.ran {
		a.set.json, a.set.jsonl = a.set.json || a.given("--json"), a.set.jsonl || a.given("--jsonl")
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		e = fault.New(fault.Usage, "read arguments", "", "%s", strings.TrimSpace(err.Error()))
	}
	if e.Next == "" {
		e.Next = "see " + a.helpFor(root)
	}
	return a.finish(ctx, answer{err: e})
}

// given looks for a flag in arguments that could not be parsed.
func (a *app) given(flag string) bool {
	for _, s := range a.args {
		if s == "--" {
			return false
		}
		if s == flag {
			return true
		}
	}
	return false
}

// helpFor names the help of the command that the arguments reach.
func (a *app) helpFor(root *cobra.Command) string {
	c, _, err := root.Find(a.args)
	if err != nil || c == nil {
		c = root
	}
	return c.CommandPath() + " --help"
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "reeve",
		Short: "Run an agent's code in a durable Python workbench and keep account of it",
		Long: `reeve stands between an AI agent and a machine. Code runs in supervised Python
workbenches that live on between commands; everything that happened is in a
hash-chained journal.`,
		Example: `  reeve cell run 'x = 6*7'        run code in this directory's session
  reeve cell run x                the same namespace: prints 42
  reeve mcp install claude        let Claude Code use it`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	group(root)
	f := root.PersistentFlags()
	f.BoolVar(&a.set.json, "json", false, "print one JSON envelope")
	f.BoolVar(&a.set.jsonl, "jsonl", false, "print JSON values, one a line, as they come")
	f.StringSliceVar(&a.set.fields, "fields", nil, "print only these members of the data (comma separated)")
	f.StringVar(&a.set.jq, "jq", "", "print what this jq expression makes of the JSON")
	f.BoolVarP(&a.set.quiet, "quiet", "q", false, "no notes and no progress on standard error")
	f.BoolVarP(&a.set.verbose, "verbose", "v", false, "say more on standard error")
	f.StringVar(&a.set.color, "color", "auto", "auto, always or never")
	f.BoolVar(&a.set.noInput, "no-input", false, "never ask; fail instead")
	f.DurationVar(&a.set.timeout, "timeout", 0, "how long the command, or the cell, may take (0: no limit)")
	f.StringVar(&a.set.dir, "dir", "", "data directory (default $REEVE_HOME, $XDG_DATA_HOME/reeve or ~/.local/share/reeve)")
	f.BoolP("help", "h", false, "-h for short help, --help for all of it")
	root.SetHelpFunc(a.help)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fault.New(fault.Usage, "read arguments", "", "%s", err).WithNext("see %s --help", c.CommandPath())
	})
	for _, c := range []*cobra.Command{
		a.cmdInit(), a.cmdUp(), a.cmdDown(), a.cmdStatus(), a.cmdPS(), a.cmdDoctor(), a.cmdVersion(), a.cmdCompletion(),
		a.cmdCell(), a.cmdSession(), a.cmdNS(), a.cmdEvents(), a.cmdVerify(), a.cmdAnchor(), a.cmdDU(),
		a.cmdRequest(), a.cmdPack(), a.cmdHeld(), a.cmdAct(), a.cmdReceipt(), a.cmdCan(), a.cmdPolicy(),
		a.cmdMCP(), a.cmdDemo(), a.cmdCore(),
	} {
		root.AddCommand(c)
	}
	a.completeFlag(root, "fields", completeFieldList)
	a.completeFlag(root, "color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	root.SetHelpCommand(a.cmdHelp())
	for _, t := range topics {
		root.AddCommand(t.command())
	}
	return root
}

// does makes c run f: f gives an answer, which is printed and becomes the exit
// status.
func (a *app) does(c *cobra.Command, f func(ctx context.Context, args []string) answer) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.check(c, args); err != nil {
			return err
		}
		a.ran = true
		a.code = a.finish(c.Context(), f(c.Context(), args))
		return nil
	}
	if c.Args == nil {
		c.Args = cobra.NoArgs
	}
	return c
}

// check refuses combinations of global flags that cannot be meant.
func (a *app) check(c *cobra.Command, _ []string) error {
	if f := c.Flags().Lookup("session"); f != nil && f.Changed && f.Value.String() == "" {
		return fault.New(fault.Usage, "read arguments", "--session", "an empty name is no session").
			WithNext("name a session, or leave --session out")
	}
	if a.set.json && a.set.jsonl {
		return fault.New(fault.Usage, "read arguments", "--json", "--json and --jsonl exclude each other")
	}
	switch a.set.color {
	case "auto", "always", "never":
	default:
		return fault.New(fault.Usage, "read arguments", "--color "+a.set.color, "it is auto, always or never")
	}
	if a.set.timeout < 0 {
		return fault.New(fault.Usage, "read arguments", "--timeout "+a.set.timeout.String(), "a timeout is not negative")
	}
	return a.checkJQ()
}

// actor is who acts through this command line.
func (a *app) actor() event.Actor {
	name := a.io.Env("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return event.Actor{Kind: "operator", Name: name, Surface: "cli"}
}

// bounded applies --timeout to a whole command.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.set.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, a.set.timeout, fmt.Errorf("--timeout %s was reached", a.set.timeout))
}
