package demo

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
)

// needs says what is missing before anything is started.
func (d *demo) needs(ctx context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fault.Wrap(err, fault.Unavailable, "demo", "git").WithNext("install git and run the demo again")
	}
	// What the core of the demo will read too.
	c, err := config.Load(config.SystemSources(d.data))
	if err != nil {
		return err
	}
	python := c.Worker.Python
	const next = "install Python 3.11 or newer, or name one in REEVE_WORKER_PYTHON"
	out, err := exec.CommandContext(ctx, python, "-I", "-c", "import sys; print(sys.version_info >= (3, 11), sys.version.split()[0])").Output()
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "demo", python).WithNext(next)
	}
	if ok, version, _ := strings.Cut(strings.TrimSpace(string(out)), " "); ok != "True" {
		return fault.New(fault.Unavailable, "demo", python, "it is Python %s", version).WithNext(next)
	}
	return nil
}

// unpack makes a git repository of the embedded project.
func (d *demo) unpack(ctx context.Context) (string, error) {
	files := 0
	err := fs.WalkDir(project, "project", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("project", path)
		if err != nil {
			return err
		}
		to := filepath.Join(d.repo, rel)
		if e.IsDir() {
			if e.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return os.MkdirAll(to, 0o700)
		}
		b, err := project.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		return os.WriteFile(to, b, 0o600)
	})
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"add", "--all"},
		{"commit", "--quiet", "--no-gpg-sign", "--message", "Read the Range header"},
	} {
		if _, err := d.git(ctx, args...); err != nil {
			return "", err
		}
	}
	commit, err := d.git(ctx, "rev-parse", "--short", "HEAD")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d files, commit %s in a new git repository", files, commit), nil
}

// git runs git in the repository, whatever the user has configured.
func (d *demo) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = d.repo
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=demo", "GIT_AUTHOR_EMAIL=demo@reeve.invalid",
		"GIT_COMMITTER_NAME=demo", "GIT_COMMITTER_EMAIL=demo@reeve.invalid")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
