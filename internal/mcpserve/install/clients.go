package install

import "path/filepath"

// Claude Code reads .mcp.json at the root of a project, after asking its user, and
// mcpServers in its own state file for every project.
func claudePath(o Options) (string, error) {
	if o.Scope == "project" {
		return filepath.Join(o.Workspace, ".mcp.json"), nil
	}
	dir, err := home(o, "CLAUDE_CONFIG_DIR")
	return filepath.Join(dir, ".claude.json"), err
}

func editClaude(doc []byte, e entry) ([]byte, error) {
	return editJSON(doc, e, member{"type", "stdio"})
}

func claudeNext(o Options) string {
	if o.Scope == "project" {
		return "start claude in " + o.Workspace + " and allow the server reeve when it asks; /mcp lists it"
	}
	return "start claude anew; /mcp lists reeve"
}

// Codex reads its own config.toml, and one in .codex of projects that it trusts.
func codexPath(o Options) (string, error) {
	if o.Scope == "project" {
		return filepath.Join(o.Workspace, ".codex", "config.toml"), nil
	}
	dir, err := home(o, "CODEX_HOME", ".codex")
	return filepath.Join(dir, "config.toml"), err
}

func codexNext(o Options) string {
	if o.Scope == "project" {
		return "start codex anew in " + o.Workspace + "; it reads the file only in a project that it trusts; /mcp lists reeve"
	}
	return "start codex anew; /mcp lists reeve"
}

// Pi has no MCP of its own. The extension pi-mcp-adapter reads these files.
func piPath(o Options) (string, error) {
	if o.Scope == "project" {
		return filepath.Join(o.Workspace, ".pi", "mcp.json"), nil
	}
	dir, err := home(o, "PI_CODING_AGENT_DIR", ".pi", "agent")
	return filepath.Join(dir, "mcp.json"), err
}

func editPi(doc []byte, e entry) ([]byte, error) { return editJSON(doc, e) }

func piNext(Options) string {
	return "Pi itself speaks no MCP: pi install npm:pi-mcp-adapter, then start pi anew; /mcp lists reeve"
}
