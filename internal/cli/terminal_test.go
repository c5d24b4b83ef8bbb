package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/cli"
	"github.com/reeve-run/reeve/internal/control"
)

func someSessions() *core {
	now := time.Now().Add(-90 * time.Second).UnixMilli()
	return &core{sessions: []control.Session{
		{Session: "alpha", State: "idle", Reason: "it waits for a cell", SinceMS: now, Workspace: "/w"},
		{Session: "b", State: "stopped", Reason: "\x1b[2Jgone", SinceMS: now, Workspace: "/w"},
	}}
}

func TestTablesForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	sh := serve(t, someSessions())
	_, out, _ := sh.run(t.Context(), "session", "list")
	for l := range strings.Lines(out) {
		if strings.Count(l, "\t") != 7 || strings.Contains(l, "\x1b") || strings.Contains(l, "SESSION") {
			t.Errorf("piped line %q, want 8 bare columns and no head", l)
		}
	}
	sh.tty = true
	_, out, _ = sh.run(t.Context(), "session", "list")
	lines := strings.Split(out, "\n")
	if !strings.HasPrefix(lines[0], "\x1b[2mSESSION") || !strings.HasPrefix(lines[1], "alpha    idle     1m3") || strings.Contains(lines[2], "\x1b") {
		t.Errorf("on a terminal:\n%s", out)
	}
	for _, l := range lines {
		if n := len([]rune(strings.NewReplacer("\x1b[2m", "", "\x1b[0m", "").Replace(l))); n > 80 {
			t.Errorf("line of %d columns on a terminal of 80: %q", n, l)
		}
	}
	sh.env = map[string]string{"NO_COLOR": "1"}
	if _, out, _ = sh.run(t.Context(), "session", "list"); strings.Contains(out, "\x1b") {
		t.Errorf("colour in spite of NO_COLOR: %q", out)
	}
}

func TestEmptyViewSaysWhy(t *testing.T) {
	t.Parallel()
	sh := serve(t, &core{events: func(context.Context, control.EventQuery, func(control.EventRow) error) error { return nil }})
	sh.tty = true
	_, out, _ := sh.run(t.Context(), "events", "--kind", "cell.started,kernel.lost", "--failed", "--grep", "x")
	if out != "no events with --kind cell.started,kernel.lost, --grep x, --failed\n" {
		t.Errorf("empty view: %q", out)
	}
	if _, out, _ = sh.run(t.Context(), "session", "list"); !strings.Contains(out, "reeve cell run") {
		t.Errorf("empty list: %q, want how to fill it", out)
	}
}

func TestEventQueryOfFlags(t *testing.T) {
	t.Parallel()
	var got control.EventQuery
	sh := serve(t, &core{events: func(_ context.Context, q control.EventQuery, _ func(control.EventRow) error) error {
		got = q
		return nil
	}})
	sh.run(t.Context(), "events")
	if !got.Tail || got.Max != 50 || got.Follow {
		t.Errorf("plain: %+v, want the last 50", got)
	}
	sh.run(t.Context(), "events", "--after", "7", "--since", "2031-02-03T04:05:06Z", "--session", ".", "--max", "3")
	if got.Tail || got.AfterID != 7 || got.Max != 3 || got.Since.Unix() != 1927857906 || got.Session != cli.DefaultSession("/work/some project") {
		t.Errorf("with --after: %+v, want the next 3", got)
	}
}

func TestInstallAsksBeforeItWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tty         bool
		in          string
		args        []string
		asks, write bool
	}{
		"yes at the terminal":    {true, "y\n", nil, true, true},
		"enter at the terminal":  {true, "\n", nil, true, false},
		"end of input":           {true, "", nil, true, false},
		"--yes":                  {false, "", []string{"--yes"}, false, true},
		"no terminal":            {false, "y\n", nil, false, false},
		"--no-input":             {true, "y\n", []string{"--no-input"}, false, false},
		"--print":                {true, "y\n", []string{"--print"}, false, false},
		"a program that listens": {true, "y\n", []string{"--json"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, wrote := false, false
			sh := shell{dir: t.TempDir(), tty: c.tty, in: c.in}
			sh.programs.Install = func(_ context.Context, o cli.InstallOptions) (cli.Installed, error) {
				r := cli.Installed{Client: o.Client, Path: "/p", Diff: "+reeve\n"}
				if o.Write && o.Confirm != nil {
					asked = true
					yes, err := o.Confirm(r.Diff)
					r.Written = yes
					wrote = yes
					return r, err
				}
				r.Written, wrote = o.Write, o.Write
				return r, nil
			}
			status, out, err := sh.run(t.Context(), append([]string{"mcp", "install", "claude"}, c.args...)...)
			if status != 0 || asked != c.asks || wrote != c.write {
				t.Errorf("status %d, asked %t, wrote %t; want 0, %t, %t\n%s%s", status, asked, wrote, c.asks, c.write, out, err)
			}
			if !c.write && !strings.Contains(out+err, "+reeve") {
				t.Errorf("the difference was not shown:\n%s%s", out, err)
			}
		})
	}
}

// A completion gives up on a core that does not answer; it never waits for one.
func TestCompletionDoesNotWait(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	sh := serve(t, &slow{release: release})
	defer close(release)
	status, out, _ := sh.run(t.Context(), "__complete", "session", "show", "")
	if status != 0 || strings.Contains(out, "alpha") {
		t.Errorf("status %d, %q", status, out)
	}
}

// slow answers a list when it is released.
type slow struct {
	core
	release chan struct{}
}

func (s *slow) ListSessions(ctx context.Context) ([]control.Session, error) {
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return someSessions().sessions, nil
}

func TestPartsThatABuildLacks(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"mcp"}, {"mcp", "install", "claude"}, {"demo"}, {"core"}, {"verify"}, {"du"}} {
		sh := shell{dir: t.TempDir()}
		if status, _, err := sh.run(t.Context(), args...); status != fault.ExitUnavailable || err == "" {
			t.Errorf("reeve %v: status %d, %q", args, status, err)
		}
	}
}

func TestDataDirectory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"flag":              {map[string]string{"REEVE_HOME": "/r"}, []string{"--dir", "/d"}, "/d"},
		"relative flag":     {nil, []string{"--dir", "x"}, "/work/some project/x"},
		"REEVE_HOME":        {map[string]string{"REEVE_HOME": "/r", "XDG_DATA_HOME": "/x"}, nil, "/r"},
		"XDG_DATA_HOME":     {map[string]string{"REEVE_HOME": "", "XDG_DATA_HOME": "/x"}, nil, "/x/reeve"},
		"relative XDG home": {map[string]string{"REEVE_HOME": "", "XDG_DATA_HOME": "x", "HOME": "/h"}, nil, "/h/.local/share/reeve"},
		"HOME":              {map[string]string{"REEVE_HOME": "", "HOME": "/h"}, nil, "/h/.local/share/reeve"},
		"nothing":           {map[string]string{"REEVE_HOME": "", "HOME": ""}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			sh := shell{env: c.env}
			sh.programs.MCP = func(_ context.Context, o cli.MCPOptions) error { got = o.Dir; return nil }
			status, _, _ := sh.run(t.Context(), append([]string{"mcp"}, c.args...)...)
			if got != c.want || (status == 0) != (c.want != "") {
				t.Errorf("data directory %q with status %d, want %q", got, status, c.want)
			}
		})
	}
}

// A command that a text names must reach the same data directory.
func TestNextStepKeepsTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/it's here"
	quoted := "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	sh := shell{dir: "/nowhere"}
	_, _, err := sh.run(t.Context(), "status", "--dir", dir)
	if want := "next: reeve --dir " + quoted + " up\n"; !strings.HasSuffix(err, want) {
		t.Errorf("stderr %q, want it to end with %q", err, want)
	}
	_, out, _ := sh.run(t.Context(), "status", "--dir", dir, "--json")
	if got, want := envelope(t, out).Error.Next, "reeve --dir "+quoted+" up"; got != want {
		t.Errorf("next is %q, want %q", got, want)
	}
	sh.dir = dir // by REEVE_HOME, which the next command has as well
	if _, _, err = sh.run(t.Context(), "status"); !strings.HasSuffix(err, "next: reeve up\n") {
		t.Errorf("stderr %q", err)
	}
}

func TestVerboseTellsOfTheCore(t *testing.T) {
	t.Parallel()
	sh := serve(t, someSessions())
	if _, out, err := sh.run(t.Context(), "session", "list", "-v", "--json"); !strings.Contains(err, "answers, version "+control.Version) || !envelope(t, out).OK {
		t.Errorf("stdout %q\nstderr %q", out, err)
	}
}
