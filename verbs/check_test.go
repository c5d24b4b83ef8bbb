package verbs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

var everyType = []verbs.Param{
	{Name: "s", Type: verbs.Text, Description: "A string.", Required: true},
	{Name: "color", Type: verbs.Text, Description: "A choice.", Enum: []string{"red", "blue"}},
	{Name: "colors", Type: verbs.Texts, Description: "Choices.", Enum: []string{"red", "blue"}},
	{Name: "i", Type: verbs.Integer, Description: "An integer.", Nullable: true},
	{Name: "n", Type: verbs.Float, Description: "A number."},
	{Name: "b", Type: verbs.Boolean, Description: "A boolean."},
	{Name: "o", Type: verbs.Struct, Description: "An object."},
	{Name: "ss", Type: verbs.Texts, Description: "Strings.", Aliases: []string{"strings"}},
	{Name: "os", Type: verbs.Records, Description: "Objects."},
	{Name: "l", Type: verbs.List, Description: "Anything in a list."},
	{Name: "any", Type: verbs.Any, Description: "Anything."},
	{Name: "id", Type: verbs.Text, Description: "A record.", Identifier: verbs.FullScoped},
}

func everything(t testing.TB) (*verbs.Registry, *verbs.Verb) {
	t.Helper()
	r := build(t, pack("p", verb("p.all", everyType...), internal(verb("p.inner"))))
	v, _ := r.Lookup("p.all")
	return r, v
}

func check(t testing.TB, v *verbs.Verb, args string) ([]request.Item, error) {
	t.Helper()
	r, err := request.Parse("v(" + args + ")")
	if err != nil {
		t.Fatal(err)
	}
	return v.Check(r.Ops[0].Args)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-115")
	_, v := everything(t)
	for _, args := range []string{
		`s="x"`, `s="x", i=123456789012345678901234567890`, `s="x", i=null`, `s="x", n=1.5`, `s="x", color="red"`, `s="x", colors=["red","blue"]`,
		`s="x", o={"a":1}, ss=["a"], os=[{}], l=[1,"a"], any=null, b=false`, `s="x", namespace="lab", help=false`, `s="x", strings=[]`,
	} {
		got, err := check(t, v, args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		for _, a := range got {
			if a.Name == "namespace" || a.Name == "help" || a.Name == "strings" {
				t.Errorf("%s: %s reaches the handler", args, a.Name)
			}
		}
	}
	for args, says := range map[string]string{
		``:                            `needs argument "s"`,
		`s=1`:                         `must be a string, not number`,
		`s=null`:                      `must be a string, not null`,
		`s="x", i=1.0`:                `must be an integer`,
		`s="x", n="1"`:                `must be a number`,
		`s="x", color="green"`:        `one of red, blue`,
		`s="x", colors=["red","sky"]`: `"sky"`,
		`s="x", ss=["a",1]`:           `must be an array of string`,
		`s="x", os=[1]`:               `must be an array of object`,
		`s="x", colour="red"`:         `no argument "colour"`,
		`s="x", ss=[], strings=[]`:    `two names`,
		`s="x", help=1`:               `boolean true`,
		`s="x", id="0190a1b2"`:        `complete UUID`,
	} {
		_, err := check(t, v, args)
		if fault.CodeOf(err) != fault.InvalidRequest || !strings.HasPrefix(err.Error(), "invalid input: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", args, err, says)
		}
	}
}

// Help and check are one table: what help lists is accepted, whatever else is refused.
func TestHelpAndCheckAgree(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-112 VD-114 VD-115")
	r, v := everything(t)
	text, err := r.Describe("p.all")
	if err != nil {
		t.Fatal(err)
	}
	var help struct {
		Params []struct {
			Name, Type string
			Required   bool
		}
		Schema struct {
			Properties map[string]any
			Required   []string
			Additional *bool `json:"additionalProperties"`
		} `json:"input_schema"`
	}
	if err := json.Unmarshal(text.AppendJSON(nil), &help); err != nil {
		t.Fatal(err)
	}
	if help.Schema.Additional == nil || *help.Schema.Additional || len(help.Params) != len(everyType) || len(help.Schema.Properties) != len(everyType) {
		t.Fatalf("%+v", help)
	}
	listed := map[string]string{}
	for _, p := range help.Params {
		listed[p.Name] = p.Type
	}
	samples := map[string]string{
		"string": `"red"`, "integer": `1`, "number": `1`, "boolean": `true`, "object": `{}`,
		"array of string": `["red"]`, "array of object": `[{}]`, "array": `[]`, "any": `1`,
	}
	for name, typ := range listed {
		args := name + "=" + samples[typ]
		if name == "id" {
			args = `id="` + id + `"`
		}
		if name != "s" {
			args = `s="x", ` + args
		}
		if _, err := check(t, v, args); err != nil {
			t.Errorf("help lists %s but %v", name, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z_]{1,6}`).Draw(t, "name")
		if listed[name] != "" || name == "help" || name == "strings" {
			return
		}
		_, err := v.Check([]request.Item{{Name: "s", Value: request.OfString("x")}, {Name: name, Value: request.OfInt(1)}})
		if fault.CodeOf(err) != fault.InvalidRequest {
			t.Fatalf("%s is accepted", name)
		}
	})
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-112 VD-113 VD-210")
	r, _ := everything(t)
	names := func(verb string) (out []string) {
		v, err := r.Describe(verb)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range v.Items() {
			out = append(out, m.Name)
		}
		return out
	}
	public := []string{"verb", "pack", "description", "category", "identifier_resolution", "params", "input_schema"}
	if diff := cmp.Diff(public, names("p.all")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(append(public, "visibility", "callable_via_mcp", "note"), names("p.inner")); diff != "" {
		t.Error(diff)
	}
	inner, err := r.Describe("p.inner")
	if err != nil {
		t.Fatal(err)
	}
	callable, ok := inner.Member("callable_via_mcp")
	if b, is := callable.Bool(); !ok || !is || b {
		t.Error("an internal verb claims to be callable")
	}
	all, err := r.Describe("p.all")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(all.AppendJSON(nil)); !strings.Contains(got, "A record. Takes a complete UUID only") || !strings.Contains(got, `"resolution_modes":{`) {
		t.Errorf("identifiers are not explained: %s", got)
	}
	if !r.FullOnly("id") || r.FullOnly("s") {
		t.Error("FullOnly does not follow the modes")
	}
}
