package install_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/mcpserve/install"
)

const exe = "/opt/reeve/bin/reeve"

// place is a home and a project of their own.
func place(t *testing.T, client, scope string) install.Options {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	return install.Options{
		Client: client, Scope: scope, Workspace: filepath.Join(home, "project"), Exe: exe, Write: true,
		Getenv: func(k string) string { return env[k] },
	}
}

func run(t *testing.T, o install.Options) install.Result {
	t.Helper()
	r, err := install.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// edited installs into a file that holds before and returns what it holds then.
func edited(t *testing.T, o install.Options, before string) (string, install.Result) {
	t.Helper()
	dry := o
	dry.Write = false
	path := run(t, dry).Path
	if before != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, o)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again := run(t, o)
	if again.Diff != "" || again.Written {
		t.Errorf("the second time changes something:\n%s", again.Diff)
	}
	return string(b), r
}

func TestJSONFilesKeepEverythingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ client, before, after string }{
		"no file": {"claude", "", `{
  "mcpServers": {
    "reeve": {
      "type": "stdio",
      "command": "/opt/reeve/bin/reeve",
      "args": [
        "mcp"
      ]
    }
  }
}
`},
		"state file with tabs": {"claude", "{\n\t\"numStartups\": 12,\n\t\"big\": 12345678901234567890,\n\t\"mcpServers\": {},\n\t\"projects\": {\"/p\": {\"mcpServers\": {\"reeve\": {\"command\": \"x\"}}}}\n}",
			"{\n\t\"numStartups\": 12,\n\t\"big\": 12345678901234567890,\n\t\"mcpServers\": {\n\t\t\"reeve\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/opt/reeve/bin/reeve\",\n\t\t\t\"args\": [\n\t\t\t\t\"mcp\"\n\t\t\t]\n\t\t}\n\t},\n\t\"projects\": {\"/p\": {\"mcpServers\": {\"reeve\": {\"command\": \"x\"}}}}\n}"},
		"others and odd spacing": {"pi", `{
    "settings" : {"hostConfigDiscovery":"off" },
    "mcpServers": {
        "github": { "command":"gh-mcp",  "env": {"T": "\u00e9"} }
    }
}
`, `{
    "settings" : {"hostConfigDiscovery":"off" },
    "mcpServers": {
        "github": { "command":"gh-mcp",  "env": {"T": "\u00e9"} },
        "reeve": {
            "command": "/opt/reeve/bin/reeve",
            "args": [
                "mcp"
            ]
        }
    }
}
`},
		"one line": {"pi", `{"mcpServers":{"a":{"url":"http://x"}}}`,
			`{"mcpServers":{"a":{"url":"http://x"},"reeve":{"command":"/opt/reeve/bin/reeve","args":["mcp"]}}}`},
		"older entry with env": {"claude", `{
  "mcpServers": {
    "reeve": {"type": "stdio", "command": "/old/reeve", "args": ["mcp", "--dir", "/x"], "env": {"A": "b"}}
  }
}`, `{
  "mcpServers": {
    "reeve": {"type": "stdio", "command": "/opt/reeve/bin/reeve", "args": ["mcp"], "env": {"A": "b"}}
  }
}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, r := edited(t, place(t, c.client, "user"), c.before)
			var value any
			if err := json.Unmarshal([]byte(after), &value); err != nil {
				t.Error(err)
			}
			if name == "one line" {
				// Members of a new object come in no order that matters.
				var want any
				if err := json.Unmarshal([]byte(c.after), &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, value); diff != "" || strings.Contains(after, "\n") {
					t.Errorf("%s\n%s", after, diff)
				}
			} else if diff := cmp.Diff(c.after, after); diff != "" {
				t.Error(diff)
			}
			if !r.Written || !strings.Contains(r.Diff, "+") || r.Next == "" {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestCodexKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	const ours = "[mcp_servers.reeve]\ncommand = \"/opt/reeve/bin/reeve\"\nargs = [\"mcp\"]\ntool_timeout_sec = 3600\n"
	const config = `# my settings
model = "gpt-5"   # keep
notify = ["python3", "/x/notify.py"]

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env = { "TOKEN" = "t" }

[projects."/srv/me/x"]
trust_level = "trusted"
`
	for name, c := range map[string]struct{ before, after string }{
		"no file":       {"", ours},
		"others":        {config, config + "\n" + ours},
		"no last break": {"model = 'x'", "model = 'x'\n\n" + ours},
		"older entry": {
			"a = 1\n[mcp_servers.reeve] # mine\ncommand = \"/old\"\nargs = [\n  \"mcp\",\n  \"--dir\", \"/x\",\n]\nstartup_timeout_sec = 30\n\n[mcp_servers.reeve.env]\nK = \"v\"\n",
			"a = 1\n[mcp_servers.reeve] # mine\ncommand = \"/opt/reeve/bin/reeve\"\nargs = [\"mcp\"]\nstartup_timeout_sec = 30\n\n[mcp_servers.reeve.env]\nK = \"v\"\n",
		},
		"remarks on lines of ours": {
			"[mcp_servers.reeve]\n  command = '/old'  # [not \"this\"\n\targs=[ # why\n 'a]', # x ]\n] # keep\ntool_timeout_sec = 7 # mine\nenv = { K = \"v\" } # e\n",
			"[mcp_servers.reeve]\n  command = \"/opt/reeve/bin/reeve\"  # [not \"this\"\n\targs=[\"mcp\"] # keep\ntool_timeout_sec = 7 # mine\nenv = { K = \"v\" } # e\n",
		},
		"an entry without arguments": {
			"[mcp_servers.reeve] # mine\r\ncommand = \"\"\"/old\\\\\"\"\"\"\r\n\r\n[x]\r\ncommand = \"y\"",
			"[mcp_servers.reeve] # mine\r\nargs = [\"mcp\"]\r\ncommand = \"/opt/reeve/bin/reeve\"\r\n\r\n[x]\r\ncommand = \"y\"",
		},
		"what looks like an entry in a text": {
			"note = \"\"\"\n[mcp_servers.reeve]\ncommand = 1\n\"\"\"\n[mcp_servers.reeve]\ncommand = \"/old\"\nargs = []",
			"note = \"\"\"\n[mcp_servers.reeve]\ncommand = 1\n\"\"\"\n[mcp_servers.reeve]\ncommand = \"/opt/reeve/bin/reeve\"\nargs = [\"mcp\"]",
		},
		"the user's own timeout": {
			"[mcp_servers.reeve]\ncommand = \"/opt/reeve/bin/reeve\"\nargs = [\"mcp\"]\ntool_timeout_sec = 5\n",
			"[mcp_servers.reeve]\ncommand = \"/opt/reeve/bin/reeve\"\nargs = [\"mcp\"]\ntool_timeout_sec = 5\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, _ := edited(t, place(t, "codex", "user"), c.before)
			if diff := cmp.Diff(c.after, after); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilesThatCannotBeEditedAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ client, text string }{
		"json cut off":              {"claude", `{"mcpServers": {`},
		"json with a comment":       {"claude", "{\n// mine\n}"},
		"json with a name twice":    {"pi", `{"mcpServers": {}, "mcpServers": {}}`},
		"json that is a list":       {"pi", `[]`},
		"json servers are a list":   {"pi", `{"mcpServers": []}`},
		"json and something behind": {"pi", `{} x`},
		"toml cut off":              {"codex", "[mcp_servers"},
		"toml servers are a value":  {"codex", "mcp_servers = 3\n"},
		"toml inline":               {"codex", "mcp_servers = { docs = { command = \"x\" } }\n"},
		"toml entry inline":         {"codex", "[mcp_servers]\nreeve = { command = \"/old\", args = [] }\n"},
		"toml entry in dots":        {"codex", "mcp_servers.reeve.command = \"/old\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := place(t, c.client, "project")
			dry := o
			dry.Write = false
			path := run(t, dry).Path
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := install.Run(t.Context(), o)
			if fault.CodeOf(err) != fault.InvalidRequest || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v", err)
			}
			if b, _ := os.ReadFile(path); string(b) != c.text {
				t.Errorf("the file was changed to %q", b)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ client, scope, variable, value, want string }{
		{"claude", "user", "", "", "HOME/.claude.json"},
		{"claude", "user", "CLAUDE_CONFIG_DIR", "/c", "/c/.claude.json"},
		{"claude", "project", "", "", "HOME/project/.mcp.json"},
		{"codex", "", "", "", "HOME/.codex/config.toml"},
		{"codex", "user", "CODEX_HOME", "/c", "/c/config.toml"},
		{"codex", "project", "", "", "HOME/project/.codex/config.toml"},
		{"pi", "user", "", "", "HOME/.pi/agent/mcp.json"},
		{"pi", "user", "PI_CODING_AGENT_DIR", "/c", "/c/mcp.json"},
		{"pi", "project", "", "", "HOME/project/.pi/mcp.json"},
	} {
		o := place(t, c.client, c.scope)
		o.Write = false
		home := o.Getenv("HOME")
		inner := o.Getenv
		o.Getenv = func(k string) string {
			if k == c.variable {
				return c.value
			}
			return inner(k)
		}
		r := run(t, o)
		if want := strings.Replace(c.want, "HOME", home, 1); r.Path != want {
			t.Errorf("%s %s: %s, want %s", c.client, c.scope, r.Path, want)
		}
		if r.Written || r.Diff == "" {
			t.Errorf("dry run %+v", r)
		}
		if _, err := os.Stat(r.Path); err == nil {
			t.Errorf("%s was written by a dry run", r.Path)
		}
	}
}

func TestOnlyAConfirmedDifferenceIsWritten(t *testing.T) {
	t.Parallel()
	o := place(t, "claude", "user")
	asked := ""
	o.Confirm = func(diff string) (bool, error) { asked = diff; return false, nil }
	r := run(t, o)
	if r.Written || asked != r.Diff || !strings.Contains(asked, "+    \"reeve\"") {
		t.Errorf("%+v, asked %q", r, asked)
	}
	o.Confirm = func(string) (bool, error) { return true, nil }
	if r := run(t, o); !r.Written {
		t.Errorf("%+v", r)
	}
	// A client that writes its file between the question and the answer wins.
	o.Dir = "/elsewhere"
	o.Confirm = func(string) (bool, error) { return true, os.WriteFile(r.Path, []byte(`{"theirs": 1}`), 0o600) }
	if _, err := install.Run(t.Context(), o); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(r.Path); string(b) != `{"theirs": 1}` {
		t.Errorf("file %s", b)
	}
}

func TestLinkAndModeStay(t *testing.T) {
	t.Parallel()
	o := place(t, "codex", "user")
	dir := filepath.Join(o.Getenv("HOME"), ".codex")
	real := filepath.Join(t.TempDir(), "dotfiles.toml")
	if err := os.WriteFile(real, []byte("model = 'x'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(real, 0o640); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "config.toml")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	run(t, o)
	if to, err := os.Readlink(link); err != nil || to != real {
		t.Errorf("the link is %q, %v", to, err)
	}
	info, err := os.Stat(real)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestCommandIsOneThatIsStillThereLater(t *testing.T) {
	t.Parallel()
	o := place(t, "claude", "project")
	o.Exe = "/tmp/go-build123/b001/exe/reeve"
	if _, err := install.Run(t.Context(), o); fault.CodeOf(err) != fault.Usage {
		t.Errorf("error %v", err)
	}
	// In a file that others read too, the path of this machine says nothing to them.
	bin := t.TempDir()
	o.Exe = filepath.Join(bin, "reeve")
	if err := os.WriteFile(o.Exe, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if after, _ := edited(t, o, ""); !strings.Contains(after, `"command": "`+o.Exe+`"`) {
		t.Errorf("not on PATH: %s", after)
	}
	inner := o.Getenv
	o.Getenv = func(k string) string {
		if k == "PATH" {
			return "/nowhere" + string(filepath.ListSeparator) + bin
		}
		return inner(k)
	}
	o.Dir = "/data"
	if after, _ := edited(t, o, ""); !strings.Contains(after, `"command": "reeve"`) || !strings.Contains(after, `"/data"`) {
		t.Errorf("on PATH: %s", after)
	}
}

func TestWrongWords(t *testing.T) {
	t.Parallel()
	for _, o := range []install.Options{place(t, "emacs", "user"), place(t, "claude", "galaxy")} {
		if _, err := install.Run(t.Context(), o); fault.CodeOf(err) != fault.Usage {
			t.Errorf("error %v", err)
		}
	}
}

// Whatever the file holds and however it is laid out, only our entry changes.
func TestAnyJSONFileKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.IntRange(-9, 9), func(n int) any { return float64(n) }),
		rapid.Map(rapid.StringN(0, 8, -1), func(s string) any { return s }),
	)
	name := rapid.OneOf(rapid.SampledFrom([]string{"mcpServers", "reeve", "command", "args", "env", "type"}), rapid.StringN(0, 5, -1))
	inner := rapid.Map(rapid.MapOfN(name, leaf, 0, 4), func(m map[string]any) any { return m })
	servers := rapid.Map(rapid.MapOfN(name, inner, 0, 3), func(m map[string]any) any { return m })
	rapid.Check(t, func(t *rapid.T) {
		root := rapid.MapOfN(name, rapid.OneOf(leaf, inner), 0, 4).Draw(t, "root")
		if delete(root, "mcpServers"); rapid.Bool().Draw(t, "has servers") {
			root["mcpServers"] = servers.Draw(t, "servers")
		}
		var doc []byte
		var err error
		switch rapid.IntRange(0, 2).Draw(t, "layout") {
		case 0:
			doc, err = json.Marshal(root)
		case 1:
			doc, err = json.MarshalIndent(root, "", "\t")
		default:
			doc, err = json.MarshalIndent(root, " ", "   ")
		}
		if err != nil {
			t.Fatal(err)
		}
		after, err := install.EditClaude(doc, exe, []string{"mcp", "--dir", `/a "b"\c`})
		if err != nil {
			t.Fatal(err)
		}
		var got, want map[string]any
		if err := json.Unmarshal(after, &got); err != nil {
			t.Fatalf("%v in %s", err, after)
		}
		if err := json.Unmarshal(doc, &want); err != nil {
			t.Fatal(err)
		}
		if want["mcpServers"] == nil {
			want["mcpServers"] = map[string]any{}
		}
		list := want["mcpServers"].(map[string]any)
		if list["reeve"] == nil {
			list["reeve"] = map[string]any{}
		}
		ours := list["reeve"].(map[string]any)
		ours["type"], ours["command"], ours["args"] = "stdio", exe, []any{"mcp", "--dir", `/a "b"\c`}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("from %s\nto %s", doc, after)
		}
	})
}

func TestTOMLStringsMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir := "/" + rapid.String().Draw(t, "dir")
		after, err := install.EditCodex(nil, exe, []string{"mcp", "--dir", dir})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			MCP map[string]struct{ Args []string } `toml:"mcp_servers"`
		}
		if err := toml.Unmarshal(after, &got); err != nil || got.MCP["reeve"].Args[2] != dir {
			t.Fatalf("%v in %s", err, after)
		}
	})
}
