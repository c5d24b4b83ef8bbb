package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/wire"
)

// Commit of this build; set by the linker where the build may not ask git itself.
var Commit = ""

// about is the answer of version.
type about struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty: built without version control information
	Go       string `json:"go"`
	Platform string `json:"platform"`
	SQLite   string `json:"sqlite"`
	Protocol string `json:"protocol"` // of workers
	Control  string `json:"control"`  // of the core's socket
	MCP      string `json:"mcp"`
}

// commit is what this binary was made from: a commit, or the version of the module
// when it came as one. Empty when the build was not told.
func commit() string {
	if Commit != "" {
		return Commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if rev == "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return rev + dirty
}

// orUnstamped says for people what an empty commit means.
func orUnstamped(commit string) string {
	if commit == "" {
		return "not known, built without version control information"
	}
	return commit
}

func (a *app) cmdVersion() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this binary and its parts",
		Example: `  reeve version
  reeve version --json
  reeve version --fields version`,
	}
	return a.does(c, func(context.Context, []string) answer {
		v := about{
			Version: control.Version, Commit: commit(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
			SQLite: a.programs.About["sqlite"], MCP: a.programs.About["mcp"],
			Protocol: strconv.Itoa(wire.Version), Control: strconv.Itoa(control.Protocol),
		}
		return answer{kind: "version", data: v, text: func(p printer) {
			p.pairs("reeve", v.Version, "commit", orUnstamped(v.Commit), "go", v.Go, "platform", v.Platform, "sqlite", v.SQLite,
				"worker protocol", v.Protocol, "control protocol", v.Control, "mcp", v.MCP)
		}}
	})
}

// shells are those that completion has scripts for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func script(root *cobra.Command, shell string) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(&b, true)
	case "zsh":
		err = root.GenZshCompletion(&b)
	case "fish":
		err = root.GenFishCompletion(&b, true)
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(&b)
	default:
		return nil, fault.New(fault.Usage, "make completion", shell, "no such shell; there is bash, zsh, fish and powershell")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "make completion", shell)
	}
	return b.Bytes(), nil
}

// completionScript is the answer of completion.
type completionScript struct {
	Shell   string `json:"shell"`
	Path    string `json:"path"` // where it is, or would be
	Written bool   `json:"written"`
	Script  string `json:"script"`
}

func (a *app) cmdCompletion() *cobra.Command {
	c := &cobra.Command{
		Use:   "completion <shell>",
		Short: "Print the completion script of a shell",
		Long: `Print the script that lets a shell complete commands, flags and the ids of live cells
and sessions. completion install writes it to where the shell looks.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve completion bash > ~/.local/share/bash-completion/completions/reeve
  reeve completion zsh > "${fpath[1]}/_reeve"
  reeve completion install fish --yes`,
		ValidArgs: shells,
	}
	c.AddCommand(a.cmdCompletionInstall())
	return a.does(c, func(_ context.Context, args []string) answer {
		s, err := script(c.Root(), args[0])
		if err != nil {
			return failed(err)
		}
		return answer{kind: "completion", data: completionScript{Shell: args[0], Path: a.completionPath(args[0]), Script: string(s)},
			text: func(p printer) { _, _ = p.w.Write(s) }}
	})
}

// completionPath is where a shell looks for a user's scripts, empty when it has no
// such place.
func (a *app) completionPath(shell string) string {
	data, config, home := a.io.Env("XDG_DATA_HOME"), a.io.Env("XDG_CONFIG_HOME"), a.io.Env("HOME")
	if data == "" {
		data = filepath.Join(home, ".local", "share")
	}
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	switch shell {
	case "bash":
		return filepath.Join(data, "bash-completion", "completions", "reeve")
	case "zsh":
		return filepath.Join(data, "zsh", "site-functions", "_reeve")
	case "fish":
		return filepath.Join(config, "fish", "completions", "reeve.fish")
	}
	return ""
}

func (a *app) cmdCompletionInstall() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "install <shell>",
		Short: "Show where the script would go, and write it with --yes",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve completion install bash         only says where
  reeve completion install bash --yes   writes it
  reeve completion install zsh --yes --json`,
		ValidArgs: shells,
	}
	c.Flags().BoolVar(&yes, "yes", false, "write it")
	return a.does(c, func(_ context.Context, args []string) answer {
		s, err := script(c.Root(), args[0])
		if err != nil {
			return failed(err)
		}
		did := completionScript{Shell: args[0], Path: a.completionPath(args[0]), Script: string(s)}
		if did.Path == "" {
			return failed(fault.New(fault.Usage, "install completion", args[0], "the shell has no directory for it").
				WithNext("add the output of reeve completion %s to its profile", args[0]))
		}
		old, err := os.ReadFile(did.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed(fault.Wrap(err, fault.Unavailable, "install completion", did.Path))
		}
		same := slices.Equal(old, s)
		if yes && !same {
			if err := durable.MkdirAll(filepath.Dir(did.Path), 0o755); err != nil {
				return failed(err)
			}
			if err := durable.WriteFile(did.Path, s, 0o644); err != nil {
				return failed(err)
			}
			did.Written = true
		}
		return answer{kind: "completion", data: did, text: func(p printer) {
			switch {
			case did.Written:
				p.line("wrote %s; start a new shell to use it", did.Path)
			case same:
				p.line("%s is up to date", did.Path)
			default:
				p.line("would write %s to %s; do it with --yes", bytesText(int64(len(s))), did.Path)
			}
			if args[0] == "zsh" && !same {
				a.note("fpath must have %s before compinit runs", filepath.Dir(did.Path))
			}
		}}
	})
}
