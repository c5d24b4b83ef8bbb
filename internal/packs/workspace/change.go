package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// edit is one file before and after.
type edit struct {
	path   string
	before file
	after  file
}

// change answers the verbs that change files: it plans all, keeps what would be lost,
// then does all or puts back what it did.
func (w *tree) change(call *verbs.Call) (verbs.Reply, error) {
	edits, err := w.plan(call)
	if err != nil {
		return verbs.Reply{}, untouched(err)
	}
	return w.carryOut(call.Verb.Name, edits, call.True("dry_run"))
}

func (w *tree) plan(call *verbs.Call) ([]edit, error) {
	op := strings.TrimPrefix(call.Verb.Name, "workspace.")
	switch op {
	case "apply_patch":
		return w.planPatch(call.Text("patch"))
	case "move":
		return w.planMove(op, call)
	}
	name, err := w.place(op, call.Text("path"), op == "remove")
	if err != nil {
		return nil, err
	}
	f, err := w.load(op, name)
	if err != nil {
		return nil, err
	}
	if err := expect(op, name, f, call); err != nil {
		return nil, err
	}
	after := file{exists: true, mode: f.mode}
	switch op {
	case "write":
		after.data = []byte(call.Text("content"))
	case "edit":
		after.data, err = replaced(name, f, call)
	case "remove":
		if after = (file{}); !f.exists {
			err = missing(op, name)
		}
	}
	if err != nil {
		return nil, err
	}
	return []edit{{name, f, after}}, nil
}

func missing(op, name string) error {
	return fault.New(fault.NotFound, op, name, "there is no such file").WithNext("workspace.list shows what is there")
}

// expect compares the file with the digest that the caller has seen.
func expect(op, name string, f file, call *verbs.Call) error {
	v, given := call.Arg("expected_sha256")
	want, _ := v.Text()
	if !given || want == f.sha {
		return nil
	}
	now := "its digest is " + f.sha
	if !f.exists {
		now = "it does not exist"
	}
	return fault.New(fault.Conflict, op, name, "%s, not what was expected", now).WithNext("read it again and decide anew")
}

func replaced(name string, f file, call *verbs.Call) ([]byte, error) {
	const op = "edit"
	if !f.exists {
		return nil, missing(op, name)
	}
	old, want := call.Text("old"), call.Int("count", 1)
	if old == "" {
		return nil, fault.New(fault.InvalidRequest, op, "old", "it is empty").WithNext("use workspace.write for a new file")
	}
	if n := int64(strings.Count(string(f.data), old)); n != want {
		return nil, fault.New(fault.Conflict, op, name, "the old text stands there %d times, not %d", n, want).
			WithNext("give more of the text around it, or the right count")
	}
	return []byte(strings.ReplaceAll(string(f.data), old, call.Text("new"))), nil
}

func (w *tree) planMove(op string, call *verbs.Call) ([]edit, error) {
	from, err := w.place(op, call.Text("from"), true)
	if err != nil {
		return nil, err
	}
	to, err := w.place(op, call.Text("to"), true)
	if err != nil {
		return nil, err
	}
	f, err := w.load(op, from)
	if err != nil {
		return nil, err
	}
	if !f.exists {
		return nil, missing(op, from)
	}
	if err := expect(op, from, f, call); err != nil {
		return nil, err
	}
	if _, err := w.root.Lstat(to); err == nil {
		return nil, fault.New(fault.Conflict, op, to, "something is there already").WithNext("remove it first, or choose another path")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, faultOf(err, op, to)
	}
	return []edit{{to, file{}, f}, {from, f, file{}}}, nil
}

// carryOut does the edits. When one fails those before it are taken back; when that
// fails too the answer says which files have really changed.
func (w *tree) carryOut(verb string, edits []edit, dry bool) (verbs.Reply, error) {
	for i := range edits {
		if len(edits[i].after.data) > MaxFile {
			return verbs.Reply{}, untouched(fault.New(fault.LimitExceeded, "write", edits[i].path, "it would have %d bytes, more than %d", len(edits[i].after.data), MaxFile))
		}
		if edits[i].after.exists {
			edits[i].after.sha = digest(edits[i].after.data)
		}
	}
	if dry {
		return w.answer(edits, nil, true)
	}
	changes, err := w.kept(edits)
	if err != nil {
		return verbs.Reply{}, untouched(err)
	}
	for i := range edits {
		done, err := w.apply(&edits[i])
		changes[i].AfterMode = int64(edits[i].after.mode.Perm())
		if err != nil {
			n := i
			if done {
				n++
			}
			return verbs.Reply{}, w.takeBack(verb, edits[:n], changes[:n], err)
		}
	}
	reply, err := w.answer(edits, changes, false)
	if err != nil {
		return verbs.Reply{}, &verbs.Settled{Err: err, Disposition: request.Committed, Changes: verbs.Changes{Files: changes}}
	}
	return reply, nil
}

// kept puts every before-image and after-image away, before anything is changed.
func (w *tree) kept(edits []edit) ([]event.FileChange, error) {
	changes := make([]event.FileChange, len(edits))
	for i, e := range edits {
		c := event.FileChange{Path: e.path, BeforeMode: int64(e.before.mode.Perm())}
		for _, side := range []struct {
			f  file
			to **string
		}{{e.before, &c.Before}, {e.after, &c.After}} {
			if !side.f.exists {
				continue
			}
			sha, err := w.keep.PutBytes(side.f.data)
			if err != nil {
				return nil, fault.Wrap(err, fault.CodeOf(err), "keep", e.path)
			}
			*side.to = &sha
		}
		changes[i] = c
	}
	return changes, nil
}

func (w *tree) takeBack(verb string, done []edit, changes []event.FileChange, cause error) error {
	for i := len(done) - 1; i >= 0; i-- {
		back := edit{done[i].path, done[i].after, done[i].before}
		if _, err := w.apply(&back); err != nil {
			f := fault.Wrap(errors.Join(cause, err), fault.Internal, verb, done[i].path)
			f.Message = fmt.Sprintf("it failed half way and %d files could not be put back", i+1)
			f.Next = "look at the files; act.show tells their earlier content"
			return &verbs.Settled{Err: f, Disposition: request.Undetermined, Changes: verbs.Changes{Files: changes[:i+1]}}
		}
	}
	return &verbs.Settled{Err: cause, Disposition: request.NotCommitted}
}

// apply replaces one file by another in one step, when it still is what it was. It
// is done also when only making it last has failed.
func (w *tree) apply(e *edit) (done bool, err error) {
	const op = "change"
	if info, err := w.root.Lstat(e.path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return false, fault.New(fault.Conflict, op, e.path, "a link has taken its place").WithNext("workspace.list(path=%q)", path.Dir(e.path))
	}
	now, err := w.load(op, e.path)
	if err != nil {
		return false, err
	}
	if now.exists != e.before.exists || now.sha != e.before.sha {
		return false, fault.New(fault.Conflict, op, e.path, "it was changed meanwhile").WithNext("read it again and decide anew")
	}
	if !e.after.exists {
		if err := w.root.Remove(e.path); err != nil {
			return false, faultOf(err, op, e.path)
		}
		return true, w.sync(path.Dir(e.path))
	}
	if dir := path.Dir(e.path); dir != "." && !e.before.exists {
		if err := w.root.MkdirAll(dir, 0o777); err != nil {
			return false, faultOf(err, op, dir)
		}
	}
	return w.replace(op, e)
}

func (w *tree) replace(op string, e *edit) (done bool, err error) {
	temp := path.Join(path.Dir(e.path), ".reeve-"+rand.Text()[:12])
	mode := e.after.mode
	if mode == 0 {
		mode = 0o666 // less what the umask takes
	}
	f, err := w.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return false, faultOf(err, op, e.path)
	}
	_, err = f.Write(e.after.data)
	if err == nil && e.after.mode != 0 {
		err = f.Chmod(e.after.mode)
	}
	if err == nil {
		err = f.Sync()
	}
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err == nil {
		err = w.put(temp, e)
	}
	if err != nil {
		return false, faultOf(errors.Join(err, ignoreMissing(w.root.Remove(temp))), op, e.path)
	}
	e.after.mode = info.Mode().Perm()
	return true, w.sync(path.Dir(e.path))
}

// put gives the finished file its name. A new one never takes the place of what
// somebody else has made meanwhile, where the file system can promise that.
func (w *tree) put(temp string, e *edit) error {
	if !e.before.exists {
		switch err := w.root.Link(temp, e.path); {
		case err == nil:
			return w.root.Remove(temp)
		case errors.Is(err, fs.ErrExist):
			return err
		} // no hard links here
	}
	return w.root.Rename(temp, e.path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sync makes a change of a directory last.
func (w *tree) sync(dir string) error {
	d, err := w.root.Open(dir)
	if err != nil {
		return faultOf(err, "change", dir)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return faultOf(err, "change", dir)
	}
	return nil
}

// changed is a file of an answer. Digests are null where there is no file.
type changed struct {
	Path   string  `json:"path"`
	Before *string `json:"before_sha256"`
	After  *string `json:"after_sha256"`
	Size   int     `json:"size"`
}

func (w *tree) answer(edits []edit, changes []event.FileChange, dry bool) (verbs.Reply, error) {
	files, diff := make([]changed, len(edits)), strings.Builder{}
	for i, e := range edits {
		files[i] = changed{e.path, sumOf(e.before), sumOf(e.after), len(e.after.data)}
		diff.WriteString(diffOf(e))
	}
	text := diff.String()
	out := map[string]any{"files": files, "diff": cut(text, MaxDiff), "diff_truncated": len(text) > MaxDiff, "dry_run": dry}
	reply, err := verbs.Answer(out)
	reply.Changes.Files = changes
	return reply, err
}

func sumOf(f file) *string {
	if !f.exists {
		return nil
	}
	return &f.sha
}

// diffOf is the unified diff of an edit; of a binary file it says only that.
func diffOf(e edit) string {
	from, to := "a/"+e.path, "b/"+e.path
	if !e.before.exists {
		from = "/dev/null"
	}
	if !e.after.exists {
		to = "/dev/null"
	}
	if binary(e.before.data) || binary(e.after.data) {
		return fmt.Sprintf("Binary files %s and %s differ\n", from, to)
	}
	return udiff.Unified(from, to, string(e.before.data), string(e.after.data))
}
