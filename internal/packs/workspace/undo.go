package workspace

import (
	"context"
	"io/fs"
	"slices"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/verbs"
)

// undo puts back what an act changed. It is an act of its own, which can be undone
// likewise.
func (h *handler) undo(ctx context.Context, w *tree, call *verbs.Call) (verbs.Reply, error) {
	const op = "undo act"
	id := call.Text("act")
	changes, err := h.Acts.Files(ctx, w.dir, id)
	if err != nil {
		return verbs.Reply{}, untouched(err)
	}
	if len(changes) == 0 {
		return verbs.Reply{}, fault.New(fault.Conflict, op, id, "it changed no files").WithNext("act.show(id=%q)", id)
	}
	var edits []edit
	for _, c := range slices.Backward(changes) {
		now, err := w.load(op, c.Path)
		if err != nil {
			return verbs.Reply{}, untouched(err)
		}
		if now.exists != (c.After != nil) || c.After != nil && now.sha != *c.After {
			return verbs.Reply{}, fault.New(fault.Conflict, op, c.Path, "it has changed since, so nothing was put back").
				WithNext("undo the later change first, or edit the file")
		}
		before, err := h.image(c)
		if err != nil {
			return verbs.Reply{}, untouched(err)
		}
		edits = append(edits, edit{c.Path, now, before})
	}
	return w.carryOut(call.Verb.Name, edits, call.True("dry_run"))
}

func (h *handler) image(c event.FileChange) (file, error) {
	if c.Before == nil {
		return file{}, nil
	}
	data, err := h.Artifacts.ReadAll(*c.Before, MaxFile)
	if err != nil {
		return file{}, err
	}
	return file{exists: true, data: data, mode: fs.FileMode(c.BeforeMode).Perm(), sha: *c.Before}, nil
}
