package configid_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/configid"
)

func build(t *testing.T, set func(i *configid.Identity)) (id string, p configid.Print) {
	t.Helper()
	i := sample(t)
	set(&i)
	id, err := i.ID()
	if err != nil {
		t.Fatal(err)
	}
	p, err = i.Print()
	if err != nil {
		t.Fatal(err)
	}
	return id, p
}

func sample(t *testing.T) configid.Identity {
	t.Helper()
	var i configid.Identity
	i.Set("packs", "work", "kg")
	i.Truth("read_only", false)
	i.Text("gate", "sha256:1")
	i.AtLeast("embedders", "small")
	if err := i.Path("store", "/data/./x/../reeve.db"); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestIdentityIsTheDigestOfCanonicalJSON(t *testing.T) {
	t.Attr("requirement", "VD-131 VD-133")
	t.Parallel()
	i := sample(t)
	text, err := i.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"embedders":["small"],"gate":"sha256:1","packs":["kg","work"],"read_only":false,"store":"/data/reeve.db"}`
	if string(text) != want {
		t.Errorf("canonical form %s, want %s", text, want)
	}
	id, _ := build(t, func(*configid.Identity) {})
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(id) {
		t.Errorf("id %q", id)
	}
	for name, set := range map[string]func(*configid.Identity){
		"order of packs":     func(i *configid.Identity) { i.Set("packs", "kg", "work", "kg") },
		"spelling of a path": func(i *configid.Identity) { _ = i.Path("store", "/data//reeve.db") },
	} {
		if other, _ := build(t, set); other != id {
			t.Errorf("%s changes the id", name)
		}
	}
	if err := i.Path("store", "reeve.db"); !fault.HasCode(err, fault.InvalidRequest) {
		t.Errorf("a relative path: %v", err)
	}
}

// A value that looks like structure stays a value.
func TestValuesCannotImitateFields(t *testing.T) {
	t.Attr("requirement", "VD-131")
	t.Parallel()
	plain, _ := build(t, func(i *configid.Identity) { i.Text("zone", "UTC"); i.Text("gate", "a") })
	for _, forged := range []string{`a","zone":"UTC`, `a;zone=UTC`, "a\x00zone"} {
		other, _ := build(t, func(i *configid.Identity) { i.Text("gate", forged) })
		if other == plain {
			t.Errorf("%q passes for another field", forged)
		}
	}
}

func TestDiffNamesEveryFieldAndNoValue(t *testing.T) {
	t.Attr("requirement", "VD-132 VD-133 VD-128")
	t.Parallel()
	_, core := build(t, func(i *configid.Identity) { i.AtLeast("embedders", "small", "large") })
	for name, c := range map[string]struct {
		set  func(*configid.Identity)
		want []string
	}{
		"the core has more embedders": {func(*configid.Identity) {}, nil},
		"no embedders":                {func(i *configid.Identity) { i.AtLeast("embedders") }, nil},
		"another embedder":            {func(i *configid.Identity) { i.AtLeast("embedders", "small", "other") }, []string{"embedders"}},
		"fewer packs":                 {func(i *configid.Identity) { i.Set("packs", "kg") }, []string{"packs"}},
		"a snapshot":                  {func(i *configid.Identity) { i.Truth("read_only", true) }, []string{"read_only"}},
		"a field more":                {func(i *configid.Identity) { i.Text("zone", "UTC") }, []string{"zone"}},
		"several": {func(i *configid.Identity) {
			i.Text("gate", "sha256:2")
			i.Set("packs")
			_ = i.Path("store", "/elsewhere/secret.db")
		}, []string{"gate", "packs", "store"}},
		"a set where members were": {func(i *configid.Identity) { i.Set("embedders", "small") }, []string{"embedders"}},
	} {
		_, client := build(t, c.set)
		text, err := json.Marshal(client)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "secret") || strings.Contains(string(text), "small") {
			t.Errorf("%s: a value travels: %s", name, text)
		}
		var back configid.Print
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, configid.Diff(back, core)); d != "" {
			t.Errorf("%s: fields (-want +got):\n%s", name, d)
		}
	}
	_, lacking := build(t, func(i *configid.Identity) { *i = configid.Identity{} })
	if got := configid.Diff(core, lacking); len(got) != 5 {
		t.Errorf("an empty identity differs in %v", got)
	}
}

// Equal identities have equal ids and no difference; unequal ones differ in both.
func TestIDAndDiffAgree(t *testing.T) {
	t.Attr("requirement", "VD-132")
	t.Parallel()
	names := rapid.SampledFrom([]string{"packs", "gate", "store", "zone"})
	fields := rapid.MapOf(names, rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		of := func(m map[string]string) (string, configid.Print) {
			var i configid.Identity
			for name, v := range m {
				i.Text(name, strings.ToValidUTF8(v, "?"))
			}
			id, err := i.ID()
			if err != nil {
				t.Fatal(err)
			}
			p, err := i.Print()
			if err != nil {
				t.Fatal(err)
			}
			return id, p
		}
		a, b := fields.Draw(t, "a"), fields.Draw(t, "b")
		idA, printA := of(a)
		idB, printB := of(b)
		if (idA == idB) != (len(configid.Diff(printA, printB)) == 0) {
			t.Fatalf("ids equal is %v, differing fields %v", idA == idB, configid.Diff(printA, printB))
		}
	})
}

func TestPrintRefusesWhatIsNoPrint(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`[]`, `{"a":1}`, `{"a":[1]}`, `{"a":null`, `{"a":{}}`} {
		var p configid.Print
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s was read as %v", text, p)
		}
	}
}
