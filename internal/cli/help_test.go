package cli_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/cli"
)

func tree() *cobra.Command {
	return cli.Tree(cli.Stdio{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }, WorkDir: "/"}, cli.Programs{})
}

func walk(c *cobra.Command, f func(c *cobra.Command)) {
	f(c)
	for _, s := range c.Commands() {
		walk(s, f)
	}
}

func TestCommandsOfTheContract(t *testing.T) {
	t.Parallel()
	var got []string
	walk(tree(), func(c *cobra.Command) {
		if c.IsAvailableCommand() && !c.HasAvailableSubCommands() {
			got = append(got, strings.TrimPrefix(c.CommandPath(), "reeve "))
		}
	})
	want := []string{
		"act list", "act settle", "act show", "act undo", "anchor", "can", "cell interrupt", "cell list", "cell output", "cell run", "cell show",
		"completion install", "demo", "doctor", "down", "du", "events", "held approve", "held deny", "held list", "held show", "init", "mcp install",
		"ns list", "ns names", "ns reset", "pack list", "pack search", "pack show", "policy diff", "policy explain", "policy show", "policy test", "ps", "receipt list", "receipt show", "request", "session close", "session list", "session resume", "session show",
		"status", "up", "verify", "version",
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("commands (-want +got):\n%s", d)
	}
}

// A letter stands for one flag in all commands, and a session is always -s.
func TestLettersMeanOneFlag(t *testing.T) {
	t.Parallel()
	long := map[string]string{}
	walk(tree(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "session" && f.Shorthand != "s" {
				t.Errorf("%s: --session has the letter %q", c.CommandPath(), f.Shorthand)
			}
			if f.Shorthand == "" {
				return
			}
			if was, ok := long[f.Shorthand]; ok && was != f.Name {
				t.Errorf("%s: -%s is --%s, elsewhere --%s", c.CommandPath(), f.Shorthand, f.Name, was)
			}
			long[f.Shorthand] = f.Name
		})
	})
}

// Every example is a line that the command it stands under, or another, would accept.
func TestExamplesWork(t *testing.T) {
	t.Parallel()
	walk(tree(), func(c *cobra.Command) {
		if !c.Runnable() {
			return
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short is %q, want a phrase without a full stop", c.CommandPath(), c.Short)
		}
		lines := strings.Split(strings.TrimRight(c.Example, "\n"), "\n")
		if len(lines) < 3 {
			t.Errorf("%s has %d examples, want at least 3", c.CommandPath(), len(lines))
		}
		for _, l := range lines {
			if err := accepts(l); err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), strings.TrimSpace(l), err)
			}
		}
	})
}

// accepts parses the reeve commands of one line of shell against a fresh tree.
func accepts(line string) error {
	line, _, _ = strings.Cut(line, "   ") // a remark
	for _, part := range strings.FieldsFunc(line, func(r rune) bool { return r == '|' && !strings.Contains(line, "'") }) {
		i := strings.Index(part, "reeve ")
		if i < 0 {
			continue
		}
		args := words(part[i+len("reeve "):])
		c, rest, err := tree().Find(args)
		if err != nil {
			return err
		}
		if err := c.ParseFlags(rest); err != nil {
			return err
		}
		if err := c.ValidateArgs(c.Flags().Args()); err != nil {
			return err
		}
	}
	return nil
}

// words splits like a shell as far as the examples need it.
func words(s string) []string {
	var out []string
	var quote rune
	word, any := "", false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, any = r, true
		case quote == 0 && strings.ContainsRune(">;&)", r):
			if any {
				out = append(out, strings.TrimRight(word, "2"))
			}
			return slices.DeleteFunc(out, func(s string) bool { return s == "" })
		case quote == 0 && r == ' ':
			if any {
				out = append(out, word)
			}
			word, any = "", false
		default:
			word, any = word+string(r), true
		}
	}
	if any {
		out = append(out, word)
	}
	return out
}

func TestFlagsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	walk(tree(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no text", c.CommandPath(), f.Name)
			}
		})
	})
}

// What a child process prints is easily taken for the cell's: the help says what is
// needed to see it.
func TestCellRunSaysHowToSeeAChildsOutput(t *testing.T) {
	t.Parallel()
	status, out, _ := shell{dir: t.TempDir()}.run(t.Context(), "cell", "run", "--help")
	if status != 0 || !strings.Contains(out, "child process") || !strings.Contains(out, "capture_output=True, text=True") {
		t.Errorf("status %d, help:\n%s", status, out)
	}
}

func TestExitCodePageNamesEveryCode(t *testing.T) {
	t.Parallel()
	sh := shell{dir: t.TempDir()}
	_, out, _ := sh.run(t.Context(), "help", "exit-codes")
	for _, c := range fault.Codes() {
		if !strings.Contains(out, string(c)) {
			t.Errorf("help exit-codes has no %s", c)
		}
	}
}

func TestMisspelledHelp(t *testing.T) {
	t.Parallel()
	sh := shell{dir: t.TempDir()}
	if status, out, err := sh.run(t.Context(), "help", "exit-code"); status != fault.ExitUsage || out != "" || err == "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, out, err)
	}
}
