// Package evidence resolves references to what the journal holds.
//
// Invariant: every reference is answered in its place; one that is malformed or leads
// nowhere is an answer with a reason, never a failed call (CP-065).
package evidence

import (
	"context"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/verbs"
)

const (
	// MaxRefs bounds one call.
	MaxRefs = 64
	// maxExcerpt bounds an excerpt, in bytes.
	maxExcerpt = 2048
)

// Answer is what a reference leads to. Reason is empty when it was found.
type Answer struct {
	Ref     string `json:"ref"`
	Found   bool   `json:"found"`
	Kind    string `json:"kind"` // of the event, the act or the content
	Digest  string `json:"digest"`
	AtMS    int64  `json:"at_ms"`
	Size    int64  `json:"size"` // of the whole, in bytes
	Excerpt string `json:"excerpt"`
	Reason  string `json:"reason"`
}

// Source looks references up. A fault.NotFound means that there is none.
type Source interface {
	Event(ctx context.Context, id int64) (Answer, error)
	Effect(ctx context.Context, id string) (Answer, error)
	Artifact(ctx context.Context, sha256 string) (Answer, error)
}

// Pack is the pack over a source.
func Pack(s Source) verbs.Pack {
	return verbs.Pack{
		Table: verbs.Table{Name: "evidence", Verbs: []verbs.Spec{{
			Name: "evidence.resolve", Description: "Looks up references: event:<n>, effect:<id>, artifact:<sha256>, scope:<id>#<seq>.",
			Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Query: true,
			Params: []verbs.Param{{Name: "refs", Type: verbs.Texts, Required: true, Description: "1 to 64 references."}},
		}}},
		New: func() (verbs.Handler, error) { return handler{s}, nil },
	}
}

type handler struct{ source Source }

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	v, _ := call.Arg("refs")
	if v.Len() == 0 || v.Len() > MaxRefs {
		return verbs.Reply{}, fault.New(fault.LimitExceeded, "resolve", "refs", "%d references were given; 1 to %d are taken", v.Len(), MaxRefs)
	}
	answers := make([]Answer, 0, v.Len())
	for _, it := range v.Items() {
		ref, _ := it.Value.Text()
		a, err := h.resolve(ctx, ref)
		switch {
		case fault.HasCode(err, fault.NotFound), fault.HasCode(err, fault.InvalidRequest), fault.HasCode(err, fault.Ambiguous):
			a = Answer{Reason: err.Error()}
		case err != nil:
			return verbs.Reply{}, err
		default:
			a.Found, a.Excerpt = true, excerpt(a.Excerpt)
		}
		a.Ref = ref
		answers = append(answers, a)
	}
	return verbs.Answer(map[string]any{"items": answers, "count": len(answers)})
}

func (h handler) resolve(ctx context.Context, ref string) (Answer, error) {
	kind, rest, ok := strings.Cut(ref, ":")
	if !ok || rest == "" {
		return Answer{}, malformed(ref)
	}
	switch kind {
	case "event":
		id, err := strconv.ParseInt(rest, 10, 64)
		if err != nil || id < 1 || id > 1<<53-1 || strconv.FormatInt(id, 10) != rest {
			return Answer{}, malformed(ref)
		}
		return h.source.Event(ctx, id)
	case "effect":
		return h.source.Effect(ctx, rest)
	case "artifact":
		if len(rest) != 64 || strings.Trim(rest, "0123456789abcdef") != "" {
			return Answer{}, malformed(ref)
		}
		return h.source.Artifact(ctx, rest)
	case "scope":
		return Answer{}, fault.New(fault.NotFound, "resolve", ref, "no work scope has been opened in this store")
	}
	return Answer{}, malformed(ref)
}

func malformed(ref string) error {
	return fault.New(fault.InvalidRequest, "resolve", ref, "it is none of event:<n>, effect:<id>, artifact:<sha256>, scope:<id>#<seq>")
}

func excerpt(s string) string {
	if len(s) <= maxExcerpt {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:maxExcerpt], "") + "…"
}
