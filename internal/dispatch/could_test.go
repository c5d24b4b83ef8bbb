package dispatch_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// witness is a ledger, and a pack, that tell whether anything was asked of them.
type witness struct{ rows, written, ran int }

func (w *witness) Recall(context.Context, string, event.Asked) (dispatch.Receipt, bool, error) {
	return dispatch.Receipt{}, false, nil
}

func (w *witness) Intend(context.Context, verbs.Scene, event.ActIntendedV1) error {
	w.written++
	return nil
}

func (w *witness) Conclude(context.Context, verbs.Scene, dispatch.Conclusion) error {
	w.written++
	return nil
}

func (w *witness) Owe(event.AuditDispatchV1) <-chan error {
	w.rows++
	done := make(chan error, 1)
	done <- nil
	return done
}

func (w *witness) Handle(context.Context, *verbs.Call) (verbs.Reply, error) {
	w.ran++
	return verbs.Answer(map[string]bool{"done": true})
}

// pack has a verb that looks, one that changes and one that is internal.
func (w *witness) pack() verbs.Pack {
	spec := func(name string, e verbs.Effect, v verbs.Visibility) verbs.Spec {
		return verbs.Spec{
			Name: name, Description: "Does it.", Visibility: v, Category: verbs.Directive, Effect: e,
			Params: []verbs.Param{{Name: "path", Type: verbs.Text, Required: true, Description: "Where.", Fact: verbs.FactPath, FreeText: true}},
		}
	}
	return verbs.Pack{
		Table: verbs.Table{Name: "p", Verbs: []verbs.Spec{
			spec("p.look", verbs.Read, verbs.Public), spec("p.change", verbs.Workspace, verbs.Public), spec("p.inner", verbs.Read, verbs.Internal),
		}},
		New: func() (verbs.Handler, error) { return w, nil },
	}
}

const couldPolicy = `
@id("all") @reason("everything") permit (principal, action, resource);
@id("ask") @reason("ask first") @hold("it is asked for")
permit (principal, action, resource) when { context.args.path like "held*" };
@id("git") @reason("not below .git") @remedy("elsewhere")
forbid (principal, action, resource) when { context.args.in_git };
@id("broken") @reason("breaks") forbid (principal, action, resource) when { context.args.path == "broken" && principal.nothing == 1 };
`

// What Could foretells is what the operation then meets, and foretelling it runs,
// records and counts nothing.
func TestCouldForetellsWhatDoAnswers(t *testing.T) {
	t.Attr("requirement", "VD-059 VD-097 VD-203 VD-204")
	t.Parallel()
	set, err := gate.Load([]gate.Source{{Name: "t.cedar", Text: []byte(couldPolicy)}})
	if err != nil {
		t.Fatal(err)
	}
	path := func(s string) []request.Item { return []request.Item{{Name: "path", Value: request.OfString(s)}} }
	in := func(namespace request.Value) []request.Item {
		return append([]request.Item{{Name: "namespace", Value: namespace}}, path("a")...)
	}
	for name, c := range map[string]struct {
		agent      bool
		discipline string
		tool       string
		args       []request.Item
		want       fault.Code // empty: it runs
		ruled      gate.Ruling
	}{
		"allowed":               {true, "off", "p.look", path("a"), "", gate.Allow},
		"held":                  {true, "off", "p.change", path("held/a"), fault.Held, gate.Allow},
		"forbidden":             {true, "off", "p.look", path(".git/x"), fault.Denied, gate.Deny},
		"broken rule":           {true, "off", "p.look", path("broken"), fault.GateUnavailable, gate.Error},
		"unknown verb":          {true, "off", "p.nothing", path("a"), fault.UnknownMethod, gate.Allow},
		"missing argument":      {true, "off", "p.look", nil, fault.InvalidRequest, gate.Allow},
		"internal, by an agent": {true, "off", "p.inner", path("a"), fault.Denied, ""},
		"internal, by operator": {false, "off", "p.inner", path("a"), "", gate.Allow},
		"undisciplined":         {true, "enforced", "p.change", path("a"), fault.Denied, gate.Allow},
		"secret":                {true, "off", "p.look", path("s3cret"), fault.SecretDetected, gate.Allow},
		"namespace of no kind":  {true, "off", "p.look", in(request.OfInt(1)), fault.InvalidRequest, ""},
		"another's namespace":   {true, "off", "p.change", in(request.OfString("lenient")), fault.InvalidRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			registry, err := verbs.Build(verbs.Config{Packs: []verbs.Pack{w.pack()}})
			if err != nil {
				t.Fatal(err)
			}
			d, err := dispatch.New(dispatch.Options{
				Registry: registry, Ledger: w, Log: slog.New(slog.DiscardHandler), Reads: dispatch.ReadsSync,
				Work:    func(string) gate.Work { return gate.Work{Discipline: c.discipline} },
				Secrets: func(text string) (string, string, bool) { return "test", "s3…", strings.Contains(text, "s3cret") },
			})
			if err != nil {
				t.Fatal(err)
			}
			d.SetPolicy(set, nil)
			caller := dispatch.Caller{
				Identity: verbs.Identity{Actor: verbs.NewActor("session", "main")}, By: event.Actor{Kind: "session", Name: "main", Surface: "worker"},
				Session: "main", Workspace: "/w", Agent: c.agent,
			}
			op := request.Op{Tool: c.tool, Args: c.args}
			p := d.Could(t.Context(), caller, &op)
			if *w != (witness{}) {
				t.Errorf("to foretell it something was done: %+v", *w)
			}
			if p.Decision.Ruling != c.ruled || told(p) != c.want {
				t.Errorf("foretold %q, %q, want %q, %q (%v)", p.Decision.Ruling, told(p), c.ruled, c.want, p.Refused)
			}
			_, err = d.Ask(t.Context(), caller, &op)
			if got := fault.CodeOf(err); got != c.want {
				t.Errorf("the operation met %q, want %q: %v", got, c.want, err)
			}
			if ran := c.want == ""; ran != (w.ran == 1) {
				t.Errorf("the pack ran %d times", w.ran)
			}
		})
	}
}

// told is the code of what a prospect foretells.
func told(p dispatch.Prospect) fault.Code {
	_, held := p.Decision.Hold()
	switch {
	case p.Refused != nil:
		return fault.CodeOf(p.Refused)
	case p.Decision.Ruling == gate.Deny:
		return fault.Denied
	case p.Decision.Ruling == gate.Error:
		return fault.GateUnavailable
	case held:
		return fault.Held
	}
	return ""
}

// A rate limit is told of and not used up.
func TestCouldTakesNothingFromARateLimit(t *testing.T) {
	t.Parallel()
	set, err := gate.Load([]gate.Source{{Name: "t.cedar", Text: []byte(`@id("once") @reason("once") @rate_limit("1/1h") permit (principal, action, resource);`)}})
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	registry, err := verbs.Build(verbs.Config{Packs: []verbs.Pack{w.pack()}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatch.New(dispatch.Options{Registry: registry, Ledger: w, Log: slog.New(slog.DiscardHandler), Reads: dispatch.ReadsSync})
	if err != nil {
		t.Fatal(err)
	}
	d.SetPolicy(set, nil)
	caller := dispatch.Caller{Identity: verbs.Identity{Actor: verbs.NewActor("session", "m")}, By: event.Actor{Kind: "session", Name: "m"}, Session: "m", Agent: true}
	op := request.Op{Tool: "p.look", Args: []request.Item{{Name: "path", Value: request.OfString("a")}}}
	for range 3 {
		if p := d.Could(t.Context(), caller, &op); p.Refused != nil || len(p.Decision.Obligations) != 1 {
			t.Fatalf("foretold %+v", p)
		}
	}
	if _, err := d.Ask(t.Context(), caller, &op); err != nil {
		t.Errorf("the first act: %v", err)
	}
	if _, err := d.Ask(t.Context(), caller, &op); fault.CodeOf(err) != fault.Denied {
		t.Errorf("the second act: %v, want it denied", err)
	}
}
