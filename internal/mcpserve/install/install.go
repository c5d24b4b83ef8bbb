// Package install puts reeve into the configuration of an MCP client.
//
// Invariants: nothing is written that was not shown as a difference first; bytes
// that are not reeve's entry stay as they were; a file that does not parse, or
// would not parse afterwards, is refused; doing it twice changes nothing. The
// package does not know what the server offers.
package install

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
)

// Name is the server's name in every client.
const Name = "reeve"

// Options say what to install where.
type Options struct {
	Client    string // claude | codex | pi
	Scope     string // user | project; empty: user
	Workspace string // absolute; the project
	Dir       string // data directory, empty for the default one
	Exe       string // absolute path of this binary
	Write     bool   // false: only the difference
	// Confirm is asked with the difference before it is written; nil is a yes.
	Confirm func(diff string) (bool, error)
	Getenv  func(string) string
}

// Result is what was changed, or would be.
type Result struct {
	Client  string
	Path    string // of the file
	Diff    string // unified; empty when nothing has to change
	Written bool
	Next    string // what is left for the user to do
}

// entry is how a client starts reeve.
type entry struct {
	command string
	args    []string
}

// client is what is peculiar to one.
type client struct {
	path func(o Options) (string, error)
	edit func(doc []byte, e entry) ([]byte, error)
	next func(o Options) string
}

var clients = map[string]client{
	"claude": {path: claudePath, edit: editClaude, next: claudeNext},
	"codex":  {path: codexPath, edit: editCodex, next: codexNext},
	"pi":     {path: piPath, edit: editPi, next: piNext},
}

// Clients are the names that Run accepts.
func Clients() []string { return []string{"claude", "codex", "pi"} }

// Run shows and, when told to, makes the change.
func Run(ctx context.Context, o Options) (Result, error) {
	c, ok := clients[o.Client]
	if !ok {
		return Result{}, fault.New(fault.Usage, "install", o.Client, "no such client").
			WithNext("name one of %s", strings.Join(Clients(), ", "))
	}
	switch o.Scope {
	case "":
		o.Scope = "user"
	case "user", "project":
	default:
		return Result{}, fault.New(fault.Usage, "install", o.Scope, "no such scope").WithNext("name user or project")
	}
	e, err := entryFor(o)
	if err != nil {
		return Result{}, err
	}
	path, err := c.path(o)
	if err != nil {
		return Result{}, err
	}
	f, err := read(path)
	if err != nil {
		return Result{}, err
	}
	after, err := c.edit(f.data, e)
	if err != nil {
		return Result{}, fault.Wrap(err, fault.InvalidRequest, "install", path).
			WithNext("mend the file, or add by hand a server %s with command %q and arguments %q", Name, e.command, e.args)
	}
	res := Result{Client: o.Client, Path: path, Next: c.next(o)}
	if bytes.Equal(f.data, after) {
		return res, nil
	}
	res.Diff = string(diff.Diff(path, f.data, path, after))
	if !o.Write {
		return res, nil
	}
	if o.Confirm != nil {
		yes, err := o.Confirm(res.Diff)
		if err != nil || !yes {
			return res, err
		}
	}
	if err := ctx.Err(); err != nil {
		return res, fault.Wrap(err, fault.Cancelled, "install", path)
	}
	if err := f.replace(after); err != nil {
		return res, err
	}
	res.Written = true
	return res, nil
}

// file is a configuration file as it was read.
type file struct {
	path string // of the file itself, behind any symbolic links
	data []byte
	mode fs.FileMode
}

func read(path string) (file, error) {
	f := file{path: path, mode: 0o600}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		f.path = real
		var info fs.FileInfo
		if info, err = os.Stat(real); err == nil {
			f.mode = info.Mode().Perm()
			f.data, err = os.ReadFile(real)
		}
	}
	if err != nil {
		return f, fault.Wrap(err, fault.Unavailable, "read configuration", path)
	}
	return f, nil
}

// replace writes the file whole. Clients write their files while they run, so it
// is refused when the file is not any more what the difference was made from.
func (f file) replace(after []byte) error {
	now, err := read(f.path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now.data, f.data) {
		return fault.New(fault.Conflict, "write configuration", f.path, "it was changed meanwhile").
			WithNext("end the client and run the command again").Retryable()
	}
	if err := durable.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(f.path, after, f.mode)
}

// entryFor names the binary by its path, since clients are often started with
// another PATH. Only a file meant to be shared names it by PATH, when it is there.
func entryFor(o Options) (entry, error) {
	if o.Exe == "" || strings.Contains(o.Exe, string(filepath.Separator)+"go-build") {
		return entry{}, fault.New(fault.Usage, "install", o.Exe, "this binary is gone when the command ends").
			WithNext("go install ./cmd/reeve and run the installed reeve")
	}
	e := entry{command: o.Exe, args: []string{"mcp"}}
	if o.Scope == "project" && onPath(o) {
		e.command = Name
	}
	if o.Dir != "" {
		e.args = append(e.args, "--dir", o.Dir)
	}
	return e, nil
}

func onPath(o Options) bool {
	own, err := os.Stat(o.Exe)
	if err != nil {
		return false
	}
	for _, dir := range filepath.SplitList(o.Getenv("PATH")) {
		if found, err := os.Stat(filepath.Join(dir, Name)); err == nil {
			return os.SameFile(own, found)
		}
	}
	return false
}

// home is the user's home directory, or what variable names instead.
func home(o Options, variable string, under ...string) (string, error) {
	if dir := o.Getenv(variable); dir != "" {
		return dir, nil
	}
	h := o.Getenv("HOME")
	if h == "" {
		return "", fault.New(fault.Usage, "find configuration", o.Client, "HOME is not set").WithNext("set HOME or %s", variable)
	}
	return filepath.Join(append([]string{h}, under...)...), nil
}
