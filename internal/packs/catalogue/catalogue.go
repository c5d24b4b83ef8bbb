// Package catalogue answers what can be asked for, who asks, and what there is.
package catalogue

import (
	"context"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/verbs"
)

// Source is what the catalogue tells of.
type Source interface {
	Registry() *verbs.Registry
	Stats(ctx context.Context) (map[string]int64, error)
	Build() map[string]string // version, protocol and the like
}

// Pack is the pack over a source. Its verbs are bare.
func Pack(s Source) verbs.Pack {
	read := func(name, does string, params ...verbs.Param) verbs.Spec {
		return verbs.Spec{
			Name: name, Description: does, Visibility: verbs.Public, Category: verbs.Assertive, Effect: verbs.Read, Query: true, Params: params,
		}
	}
	return verbs.Pack{
		Table: verbs.Table{Name: "catalogue", Bare: true, Verbs: []verbs.Spec{
			read("verbs", "Lists the verbs with what each does and can touch.",
				verbs.Param{Name: "pack", Type: verbs.Text, Description: "Only those of this pack."},
				verbs.Param{Name: "category", Type: verbs.Text, Enum: []string{"assertive", "directive", "commissive", "declaration"}, Description: "Only those of this category."},
				verbs.Param{Name: "grep", Type: verbs.Text, Description: "Only those whose name or description holds this text."}),
			read("whoami", "Tells who you are to reeve, in which session and namespace."),
			read("stats", "Counts what the store holds."),
		}},
		New: func() (verbs.Handler, error) { return handler{s}, nil },
	}
}

type handler struct{ source Source }

type entry struct {
	Verb        string `json:"verb"`
	Pack        string `json:"pack"`
	Category    string `json:"category"`
	Effect      string `json:"effect"`
	Description string `json:"description"`
}

// Handle implements verbs.Handler.
func (h handler) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	switch call.Verb.Name {
	case "verbs":
		return h.verbs(call)
	case "whoami":
		return h.whoami(call)
	default:
		counts, err := h.source.Stats(ctx)
		if err != nil {
			return verbs.Reply{}, err
		}
		return verbs.Answer(counts)
	}
}

func (h handler) verbs(call *verbs.Call) (verbs.Reply, error) {
	items := []entry{}
	for _, v := range h.source.Registry().Catalogue(call.Text("pack"), verbs.Category(call.Text("category"))) {
		if strings.Contains(v.Name, call.Text("grep")) || strings.Contains(v.Description, call.Text("grep")) {
			items = append(items, entry{v.Name, v.Pack, string(v.Category), string(v.Effect), v.Description})
		}
	}
	if len(items) == 0 && call.Text("pack") != "" {
		return verbs.Reply{}, fault.New(fault.NotFound, "list verbs", call.Text("pack"), "no such pack, or nothing in it matches").WithNext("verbs()")
	}
	return verbs.Answer(map[string]any{"items": items, "count": len(items)})
}

func (h handler) whoami(call *verbs.Call) (verbs.Reply, error) {
	t := call.Token
	return verbs.Answer(map[string]any{
		"actor":   map[string]string{"kind": t.Actor().Kind, "id": t.Actor().ID},
		"session": call.Scene.Session, "workspace": call.Scene.Workspace, "surface": call.Scene.By.Surface,
		"namespace": t.Namespace(), "reads": t.Reads(), "request_id": strconv.FormatUint(t.RequestID(), 10), "build": h.source.Build(),
	})
}
