package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

func linked(t *testing.T, r *rig, links map[string]string) {
	t.Helper()
	for link, to := range links {
		if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
}

// What a policy sees of a path is where the change takes place, however many links
// lead there and whether or not the file exists yet.
func TestThePathThatIsRuledOnIsThePathThatIsChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.MkdirAll(filepath.Join(r.dir, ".git/hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	linked(t, r, map[string]string{"g": ".git/hooks", "d": "g/new", "dd": "./d", "up": "g/../config", "abs": filepath.Join(r.dir, ".git/abs")})
	for name, want := range map[string]string{
		"d": ".git/hooks/new", "dd": ".git/hooks/new", "up": ".git/config", "abs": ".git/abs", "g/x": ".git/hooks/x", "plain": "plain",
	} {
		v, _ := r.registry.Lookup("workspace.write")
		call := &verbs.Call{Verb: v, Args: []request.Item{{Name: "path", Value: request.OfString(name)}}, Scene: verbs.Scene{Workspace: r.dir}}
		f, err := r.handler.(verbs.Judge).Facts(t.Context(), call)
		if err != nil || f.Path != want {
			t.Errorf("%s is ruled on as %q, %v; want %q", name, f.Path, err, want)
		}
		_, act := r.must(t, "write", `{"path":`+quoted(name)+`,"content":"x"}`)
		if files := r.ledger.files[act]; len(files) != 1 || files[0].Path != want {
			t.Errorf("%s is changed as %+v; want %q", name, files, want)
		}
	}
}

// An undone write through a link leaves the link, and nothing where it leads.
func TestUndoThroughALink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(t, "write", `{"path":"there","content":"1"}`)
	linked(t, r, map[string]string{"to": "there", "nowhere": "not/yet"})
	before := snapshot(t, r.dir)
	var done []string
	for _, name := range []string{"to", "nowhere", "to"} {
		_, act := r.must(t, "write", `{"path":"`+name+`","content":"`+name+`"}`)
		done = append([]string{act}, done...)
	}
	for _, act := range done {
		r.must(t, "undo", `{"act":"`+act+`"}`)
	}
	if diff := cmp.Diff(before, snapshot(t, r.dir)); diff != "" {
		t.Error(diff)
	}
	for verb, args := range map[string]string{
		"remove": `{"path":"to"}`, "move": `{"from":"to","to":"else"}`,
		"apply_patch": `{"patch":"--- a/to\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\\ No newline at end of file\n"}`,
	} {
		r.refused(t, verb, args, fault.InvalidRequest)
	}
	if diff := cmp.Diff(before, snapshot(t, r.dir)); diff != "" {
		t.Error(diff)
	}
}

// A refusal before anything was done says so, whatever its code.
func TestARefusalProvesThatNothingWasDone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	linked(t, r, map[string]string{"loop": "loop"})
	for verb, args := range map[string]string{
		"write": `{"path":"loop","content":"x"}`, "edit": `{"path":"gone","old":"a","new":"b"}`,
		"run": `{"argv":["./nothing"]}`, "remove": `{"path":"gone"}`, "move": `{"from":"gone","to":"b"}`,
	} {
		if _, _, err := r.do(t.Context(), verb, args); err == nil || verbs.DispositionOf(err, verbs.Workspace) != request.NotCommitted {
			t.Errorf("%s: %v is %s", verb, err, verbs.DispositionOf(err, verbs.Workspace))
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	_, _, err := r.do(t.Context(), "write", `{"path":"a","content":"x"}`)
	var settled *verbs.Settled
	if fault.CodeOf(err) != fault.Unavailable || !errors.As(err, &settled) || settled.Disposition != request.NotCommitted {
		t.Errorf("without a root: %v", err)
	}
}

// An undo is ruled on by the files that it would change.
func TestUndoIsRuledOnByItsFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, act := r.must(t, "write", `{"path":".git/config","content":"x"}`)
	v, _ := r.registry.Lookup("workspace.undo")
	call := &verbs.Call{Verb: v, Args: []request.Item{{Name: "act", Value: request.OfString(act)}}, Scene: verbs.Scene{Workspace: r.dir}}
	f, err := r.handler.(verbs.Judge).Facts(t.Context(), call)
	if err != nil || len(f.Paths) != 1 || f.Paths[0] != ".git/config" {
		t.Errorf("%v, %v", f, err)
	}
}
