package host

import (
	"context"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/packs/evidence"
	"github.com/reeve-run/reeve/internal/packs/workspace"
)

var _ evidence.Source = desk{}

// maxEvidence is how much of an artifact is read for its excerpt.
const maxEvidence = 16 << 20

// Event implements evidence.Source.
func (d desk) Event(ctx context.Context, id int64) (evidence.Answer, error) {
	page, err := d.core.store.ByID(ctx, id-1, 1)
	if err != nil {
		return evidence.Answer{}, err
	}
	if len(page) == 0 || page[0].ID != id {
		return evidence.Answer{}, fault.New(fault.NotFound, "find event", itoa(id), "there is none of this id")
	}
	e := page[0]
	return evidence.Answer{Kind: e.Kind, Digest: e.Digest.String(), AtMS: e.AtMS, Size: int64(len(e.Payload)), Excerpt: string(e.Payload)}, nil
}

// Effect implements evidence.Source: an act, or something said or held.
func (d desk) Effect(ctx context.Context, id string) (evidence.Answer, error) {
	for _, kind := range []string{recordAct, recordHeld} {
		r, found, err := d.core.findRecord(ctx, kind, id)
		if err != nil {
			return evidence.Answer{}, err
		}
		if !found {
			continue
		}
		a := evidence.Answer{Kind: kind + " " + r.State, Size: int64(len(r.Body)), Excerpt: string(r.Body)}
		if kind == recordAct {
			detail, err := acts(d).Show(ctx, id)
			if err != nil {
				return a, err
			}
			a.Digest, a.AtMS = detail.Digest, detail.StartedAtMS
			return a, nil
		}
		row, err := readHeld(r)
		a.AtMS = row.AtMS
		return a, err
	}
	return evidence.Answer{}, fault.New(fault.NotFound, "find effect", id, "there is none of this id")
}

// Artifact implements evidence.Source.
func (d desk) Artifact(_ context.Context, sum string) (evidence.Answer, error) {
	b, err := d.core.artifacts.ReadAll(sum, maxEvidence)
	if err != nil {
		return evidence.Answer{}, err
	}
	return evidence.Answer{Kind: "artifact", Digest: sum, Size: int64(len(b)), Excerpt: string(b)}, nil
}

// contents is the artifact store as the workspace pack uses it.
type contents struct{ core *Core }

var _ workspace.Artifacts = contents{}

// PutBytes implements workspace.Artifacts.
func (k contents) PutBytes(b []byte) (string, error) {
	ref, err := k.core.artifacts.PutBytes(b)
	return ref.SHA256, err
}

// ReadAll implements workspace.Artifacts.
func (k contents) ReadAll(sum string, max int64) ([]byte, error) {
	return k.core.artifacts.ReadAll(sum, max)
}

// workspaceOptions are what the workspace pack gets of this core.
func (c *Core) workspaceOptions() workspace.Options {
	return workspace.Options{
		Artifacts: contents{c}, Acts: acts{c}, Env: c.env, Shim: c.shim,
		Discipline: func(session string) (string, bool) {
			w := c.work(session)
			return w.Discipline, w.Authorized
		},
	}
}
