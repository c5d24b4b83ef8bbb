package verbs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

func verb(name string, params ...verbs.Param) verbs.Spec {
	return verbs.Spec{
		Name: name, Description: "Does " + name + ".", Visibility: verbs.Public,
		Category: verbs.Assertive, Effect: verbs.Read, Params: params,
	}
}

func internal(s verbs.Spec) verbs.Spec {
	s.Visibility = verbs.Internal
	return s
}

func pack(name string, specs ...verbs.Spec) verbs.Pack {
	return verbs.Pack{Table: verbs.Table{Name: name, Verbs: specs}}
}

func with(p verbs.Pack, change func(*verbs.Table)) verbs.Pack {
	change(&p.Table)
	return p
}

func build(t testing.TB, packs ...verbs.Pack) *verbs.Registry {
	t.Helper()
	r, err := verbs.Build(verbs.Config{Packs: packs})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each configuration has the error of its row and, where it can, errors of all later
// rows too, so that the order shows.
func TestBootErrors(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-086 VD-088 VD-089 VD-205")
	requires := func(names ...string) func(*verbs.Table) {
		return func(tb *verbs.Table) { tb.Requires = names }
	}
	notes := func(tb *verbs.Table) { tb.NoteKinds = []string{"memo"} }
	sub := func(name string) func(*verbs.Table) {
		return func(tb *verbs.Table) {
			tb.SubTypes = []verbs.SubType{{Kind: "concept", Name: name, Aliases: []string{"alias"}}}
		}
	}
	envelope := pack("e", verb("e.v", verbs.Param{Name: "presentation", Type: verbs.Text, Description: "d"}))
	lonely := with(pack("lonely"), requires("gone", "lost"))
	ring := []verbs.Pack{with(pack("x"), requires("y")), with(pack("y"), requires("z")), with(pack("z"), requires("y"))}
	twice := []verbs.Pack{pack("a", verb("a.v")), pack("b", verb("a.v"))}
	bad := verb("a.v")
	bad.Effect = ""
	query := verb("a.v")
	query.Query, query.Effect = true, verbs.Workspace
	for _, c := range []struct {
		kind     verbs.BootKind
		config   verbs.Config
		subjects []string
	}{
		{verbs.PackRedeclared, verbs.Config{Packs: []verbs.Pack{pack("a"), envelope, pack("a"), lonely}}, []string{"a", "0", "2"}},
		{verbs.MountCollision, verbs.Config{Packs: []verbs.Pack{envelope, lonely}, Mounts: []string{"e"}}, []string{"e", "e.v"}},
		{verbs.ReservedEnvelopeParam, verbs.Config{Packs: []verbs.Pack{{Table: verbs.Table{Name: "e", Verbs: []verbs.Spec{internal(envelope.Verbs[0])}}}, lonely}}, []string{"e", "e.v", "presentation"}},
		{verbs.MissingPacks, verbs.Config{Packs: append([]verbs.Pack{lonely}, ring...)}, []string{"gone", "lost"}},
		{verbs.CircularPacks, verbs.Config{Packs: append(ring, twice...)}, []string{"y", "z", "y"}},
		{verbs.NoteKindCollision, verbs.Config{Packs: append([]verbs.Pack{with(pack("n"), notes), with(pack("m"), notes)}, twice...)}, []string{"memo", "n", "m"}},
		{verbs.VerbCollision, verbs.Config{Packs: twice, Disabled: map[string][]string{"a": {"nope"}}}, []string{"a.v", "a", "b"}},
		{verbs.VerbCollision, verbs.Config{Packs: []verbs.Pack{pack("a", internal(verb("a.v"))), pack("b", internal(verb("a.v")))}}, []string{"a.v", "a", "b"}},
		{verbs.SubTypeCollision, verbs.Config{Packs: []verbs.Pack{with(pack("a"), sub("p")), with(pack("b"), sub("q"))}}, []string{"alias", "a", "b"}},
		{verbs.SubTypeIsNoteKind, verbs.Config{Packs: []verbs.Pack{with(pack("a"), sub("memo")), with(pack("b"), notes)}}, []string{"memo", "a", "b"}},
		{verbs.MalformedConsumer, verbs.Config{Packs: []verbs.Pack{with(pack("a"), func(tb *verbs.Table) { tb.ConsumerKinds = []string{"no name"} })}}, []string{"no name", "a"}},
		{verbs.UnknownDisabled, verbs.Config{Packs: []verbs.Pack{pack("a", internal(bad))}, Disabled: map[string][]string{"a": {"a.v"}}}, []string{"a", "a.v"}},
		{verbs.MalformedTable, verbs.Config{Packs: []verbs.Pack{pack("a", bad)}}, []string{"a", "a.v"}},
		{verbs.MalformedTable, verbs.Config{Packs: []verbs.Pack{pack("a", query)}}, []string{"a", "a.v"}},
		{verbs.MalformedTable, verbs.Config{Packs: []verbs.Pack{pack("a", verb("v"))}}, []string{"a", "v"}},
		{verbs.MalformedTable, verbs.Config{Packs: []verbs.Pack{pack("a", verb("a.v", verbs.Param{Name: "x", Type: "date", Description: "d"}))}}, []string{"a", "a.v"}},
	} {
		_, err := verbs.Build(c.config)
		var e *verbs.BootError
		if !errors.As(err, &e) || e.Kind != c.kind {
			t.Errorf("got %v, want %s", err, c.kind)
			continue
		}
		if diff := cmp.Diff(c.subjects, e.Subjects); diff != "" {
			t.Errorf("%s: %s", c.kind, diff)
		}
	}
}

func TestOrderAndMerge(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-089 VD-096")
	kinds := func(tb *verbs.Table) { tb.EntityKinds = []string{"person", "concept"} }
	a := with(pack("a"), func(tb *verbs.Table) { tb.Requires = []string{"c"}; kinds(tb) })
	activated := 0
	a.New = func() (verbs.Handler, error) { activated++; return nil, nil }
	r := build(t, a, with(pack("b"), kinds), pack("c"))
	var order []string
	for _, p := range r.Packs() {
		order = append(order, p.Name)
	}
	if diff := cmp.Diff([]string{"b", "c", "a"}, order); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"concept", "person"}, r.EntityKinds()); diff != "" {
		t.Error(diff)
	}
	if activated != 0 {
		t.Error("building activated a pack")
	}
}

type echo struct{}

func (echo) Handle(_ context.Context, c *verbs.Call) (verbs.Reply, error) {
	return verbs.Reply{Value: request.OfString(c.Verb.Name)}, nil
}

func TestOpen(t *testing.T) {
	t.Parallel()
	good, bad := pack("a", verb("a.v")), pack("b")
	good.New = func() (verbs.Handler, error) { return echo{}, nil }
	bad.New = func() (verbs.Handler, error) { return nil, fault.New(fault.Unavailable, "open store", "", "gone") }
	opened, err := build(t, good, bad).Open()
	if fault.CodeOf(err) != fault.Unavailable || len(opened) != 1 {
		t.Fatalf("%v, %v", opened, err)
	}
	r := build(t, good)
	v, _ := r.Lookup("a.v")
	if out, err := opened["a"].Handle(t.Context(), &verbs.Call{Verb: v}); err != nil || string(out.Value.AppendJSON(nil)) != `"a.v"` {
		t.Fatalf("%v, %v", out, err)
	}
}

func TestDisabledIsUnknown(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-090 VD-204")
	v := verb("a.gone")
	v.Aliases = []string{"a.away"}
	r, err := verbs.Build(verbs.Config{Packs: []verbs.Pack{pack("a", v, verb("a.here"), internal(verb("a.inner")))}, Disabled: map[string][]string{"a": {"a.gone"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.gone", "a.away", "a.never"} {
		if _, ok := r.Lookup(name); ok {
			t.Errorf("%s is found", name)
		}
		_, err := r.Describe(name)
		if fault.CodeOf(err) != fault.UnknownMethod || !strings.HasPrefix(err.Error(), "unknown verb") || strings.Contains(err.Error(), "inner") || !strings.HasSuffix(err.Error(), "available: a.here") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var hint *fault.Error
	if errors.As(r.UnknownVerb("a.hree"), &hint); !strings.Contains(hint.Next, "a.here(help=true)") {
		t.Errorf("no suggestion: %+v", hint)
	}
}

func TestAliasAndCatalogue(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-059 VD-087")
	v := verb("a.one")
	v.Aliases, v.Category = []string{"uno"}, verbs.Directive
	r := build(t, pack("b", verb("b.two")), pack("a", v, internal(verb("a.inner"))))
	if got, ok := r.Lookup("uno"); !ok || got.Name != "a.one" || got.Pack != "a" {
		t.Errorf("%+v", got)
	}
	names := func(pack string, c verbs.Category) (out []string) {
		for _, v := range r.Catalogue(pack, c) {
			out = append(out, v.Name)
		}
		return out
	}
	if diff := cmp.Diff([][]string{{"a.one", "b.two"}, {"b.two"}, {"a.one"}}, [][]string{names("", ""), names("b", ""), names("", verbs.Directive)}); diff != "" {
		t.Error(diff)
	}
	if _, known := r.PackOf("a.inner"); known {
		t.Error("a plan knows an internal verb")
	}
	if inner, ok := r.Lookup("a.inner"); !ok || inner.Visibility != verbs.Internal {
		t.Error("dispatch does not find an internal verb")
	}
}
