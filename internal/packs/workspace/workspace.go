// Package workspace is the verbs that read and change the files of a session's
// workspace and run programs in it.
//
// Invariants: no path leads out of the workspace, also not through a link; a file is
// replaced whole or not at all; what a change destroys is kept as an artifact before
// it is destroyed, so that the change can be shown and undone; a program that was
// started ends with everything below it. The package knows neither journal nor gate.
package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// Limits, in bytes unless named otherwise.
const (
	MaxFile   = 16 << 20  // of a file that is read whole or changed
	MaxRead   = 256 << 10 // of one read
	MaxDiff   = 64 << 10  // of a diff in a result
	MaxList   = 2000      // entries of a list
	MaxMatch  = 500       // matches of a search
	MaxFiles  = 100       // files of one patch
	MaxArgs   = 256       // arguments of a program
	MaxArg    = 32 << 10  // of one argument
	MaxOutput = 1_000_000 // of a program's output together
)

// Artifacts keep content by its hash.
type Artifacts interface {
	PutBytes(b []byte) (sha256 string, err error)
	ReadAll(sha256 string, max int64) ([]byte, error)
}

// Acts know what an earlier act changed.
type Acts interface {
	// Files are the changes of an act in the workspace; one of another is refused.
	Files(ctx context.Context, workspace, act string) ([]event.FileChange, error)
}

// Options are what the pack needs.
type Options struct {
	Artifacts Artifacts
	Acts      Acts
	Env       []string // that programs start with, before it is scrubbed
	// Shim is the command line of the parent that programs get (package shim), which
	// ends all they started also when this process is killed. Empty for none.
	Shim []string
	// Discipline tells what the work plane demands and grants in a session.
	Discipline func(session string) (discipline string, authorized bool)
}

// Pack is the pack.
func Pack(o Options) verbs.Pack {
	return verbs.Pack{
		Table: verbs.Table{Name: "workspace", Verbs: specs()},
		New:   func() (verbs.Handler, error) { return &handler{Options: o}, nil },
	}
}

type handler struct {
	Options
	locks sync.Map // *sync.Mutex by workspace: changes of one are made one after the other
}

// alone holds off other changes of the workspace until the function it returns is
// called. Programs and editors know no such lock: against them a change compares the
// file once more just before it replaces it.
func (h *handler) alone(dir string) func() {
	v, _ := h.locks.LoadOrStore(dir, &sync.Mutex{})
	mu := v.(*sync.Mutex) //nolint:forcetypeassert // nothing else is stored
	mu.Lock()
	return mu.Unlock
}

// Handle implements verbs.Handler.
func (h *handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	if call.Scene.Workspace == "" {
		return verbs.Reply{}, fault.New(fault.InvalidRequest, "open workspace", call.Scene.Session, "the call is in no session that has a workspace").
			WithNext("name a session")
	}
	root, err := os.OpenRoot(call.Scene.Workspace)
	if err != nil {
		return verbs.Reply{}, untouched(fault.Wrap(err, fault.Unavailable, "open workspace", call.Scene.Workspace))
	}
	defer func() { _ = root.Close() }() // it was only read through
	w := &tree{root: root, dir: call.Scene.Workspace, keep: h.Artifacts}
	switch call.Verb.Name {
	case "workspace.info":
		return h.info(ctx, w, call)
	case "workspace.read":
		return w.read(call)
	case "workspace.list":
		return w.list(ctx, call)
	case "workspace.search":
		return w.search(ctx, call)
	case "workspace.run":
		return h.run(ctx, w, call)
	case "workspace.undo":
		defer h.alone(w.dir)()
		return h.undo(ctx, w, call)
	default:
		defer h.alone(w.dir)()
		return w.change(call)
	}
}

// Facts implements verbs.Judge: paths relative to the workspace with links resolved
// as far as they exist.
func (h *handler) Facts(ctx context.Context, call *verbs.Call) (verbs.Facts, error) {
	f := verbs.Facts{DryRun: call.True("dry_run")}
	switch call.Verb.Name {
	case "workspace.run":
		f.Argv = texts(call, "argv")
		f.Path = resolved(call.Scene.Workspace, call.Text("cwd"))
		return f, nil
	case "workspace.move":
		f.Paths = []string{resolved(call.Scene.Workspace, call.Text("from")), resolved(call.Scene.Workspace, call.Text("to"))}
		return f, nil
	case "workspace.apply_patch":
		patches, err := parsePatch(call.Text("patch"))
		if err != nil {
			return f, err
		}
		for _, p := range patches {
			for _, name := range []string{p.from, p.to} {
				if name != "" {
					f.Paths = append(f.Paths, resolved(call.Scene.Workspace, name))
				}
			}
		}
		f.Bytes = int64(len(call.Text("patch")))
		return f, nil
	case "workspace.undo":
		changes, err := h.Acts.Files(ctx, call.Scene.Workspace, call.Text("act"))
		if err != nil {
			return f, err
		}
		for _, c := range changes {
			f.Paths = append(f.Paths, resolved(call.Scene.Workspace, c.Path))
		}
		return f, nil
	}
	f.Path = resolved(call.Scene.Workspace, call.Text("path"))
	f.Bytes = int64(len(call.Text("content")) + len(call.Text("new")))
	return f, nil
}

// untouched proves of an error that came before any effect that there was none:
// also one whose code alone would leave that open. What proves more stays as it is.
func untouched(err error) error {
	var proven *verbs.Settled
	if err == nil || errors.As(err, &proven) {
		return err
	}
	return &verbs.Settled{Err: err, Disposition: request.NotCommitted}
}

func texts(call *verbs.Call, name string) []string {
	v, _ := call.Arg(name)
	all := make([]string, 0, v.Len())
	for _, it := range v.Items() {
		s, _ := it.Value.Text()
		all = append(all, s)
	}
	return all
}

// resolved is a path as a policy sees it: relative to dir with slashes, links
// followed, "../…" or absolute when it leads outside.
func resolved(dir, name string) string {
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, name)
	}
	full = follow(filepath.Clean(full))
	rel, err := filepath.Rel(follow(dir), full)
	if err != nil {
		return full
	}
	return filepath.ToSlash(rel)
}

// maxLinks is how many links a path may lead through, as the kernel has it.
const maxLinks = 40

// follow is an absolute path without the links it leads through, as the kernel would
// follow them, also where a link leads to what does not exist yet.
func follow(full string) string {
	at, rest, links := "/", strings.Split(full, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing at all
			at = next
			continue
		}
		if links++; links > maxLinks {
			return filepath.Join(next, filepath.Join(rest...))
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at
}
