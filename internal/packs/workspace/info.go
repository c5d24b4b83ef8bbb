package workspace

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/reeve-run/reeve/verbs"
)

// vcsTime bounds what version control is asked.
const vcsTime = 5 * time.Second

type vcs struct {
	Kind      string `json:"kind"` // git | none | unknown
	Head      string `json:"head"`
	Branch    string `json:"branch"`
	Dirty     bool   `json:"dirty"`
	Changed   int    `json:"changed"`
	Untracked int    `json:"untracked"`
}

// info answers workspace.info (CP-061).
func (h *handler) info(ctx context.Context, w *tree, call *verbs.Call) (verbs.Reply, error) {
	discipline, authorized := "off", false
	if h.Discipline != nil {
		discipline, authorized = h.Discipline(call.Scene.Session)
	}
	free := discipline != "enforced" || authorized
	return verbs.Answer(map[string]any{
		"root": w.dir, "vcs": h.vcs(ctx, w.dir), "discipline": discipline,
		"scope": nil, "may": map[string]bool{"run": free, "write": free},
		"limits": map[string]int64{
			"file_bytes": MaxFile, "read_bytes": MaxRead, "output_bytes": MaxOutput, "timeout_ms": maxRunTime.Milliseconds(),
			"list_entries": MaxList, "matches": MaxMatch, "patch_files": MaxFiles,
		},
	})
}

func (h *handler) vcs(ctx context.Context, dir string) vcs {
	git, err := exec.LookPath("git")
	if err != nil {
		return vcs{Kind: "unknown"}
	}
	ctx, cancel := context.WithTimeout(ctx, vcsTime)
	defer cancel()
	// Optional locks off: looking must not write. fsmonitor and hooks off: the
	// repository's own settings must not run programs.
	cmd := exec.CommandContext(ctx, git, "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		"-C", dir, "status", "--porcelain=v2", "--branch")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return vcs{Kind: "none"}
	}
	v := vcs{Kind: "git"}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "# branch.oid "):
			v.Head = line[len("# branch.oid "):]
		case strings.HasPrefix(line, "# branch.head "):
			v.Branch = line[len("# branch.head "):]
		case strings.HasPrefix(line, "? "):
			v.Untracked++
		case line != "" && line[0] != '#':
			v.Changed++
		}
	}
	v.Dirty = v.Changed+v.Untracked > 0
	return v
}
