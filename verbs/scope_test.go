package verbs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

const (
	id     = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
	digits = "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b"
)

func TestReadIdentifier(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-121 VD-122 VD-123")
	for s, want := range map[string]verbs.Identifier{
		id: {verbs.Complete, id}, strings.ToUpper(id): {verbs.Complete, id}, digits: {verbs.Complete, id}, "{" + id + "}": {verbs.Complete, id},
		"URN:uuid:" + id: {verbs.Complete, id}, digits[:8]: {verbs.Prefix, digits[:8]}, strings.ToUpper(digits[:31]): {verbs.Prefix, digits[:31]},
		digits[:7]: {verbs.Name, digits[:7]}, id[:9]: {verbs.Name, id[:9]}, "Ring attention": {verbs.Name, "Ring attention"},
		digits + "0": {verbs.Name, digits + "0"}, id[:35] + "g": {verbs.Name, id[:35] + "g"}, "": {verbs.Name, ""},
		strings.Replace(id, "-", "0", 1): {verbs.Name, strings.Replace(id, "-", "0", 1)},
	} {
		if got := verbs.ReadIdentifier(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

// Every spelling of every UUID comes back as one; every prefix long enough is a prefix.
func TestIdentifierProperties(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-121 VD-122 VD-123")
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "digits")
		canonical := d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:]
		for _, s := range []string{d, canonical, "{" + canonical + "}", "urn:uuid:" + canonical, strings.ToUpper(canonical)} {
			if got := verbs.ReadIdentifier(s); got != (verbs.Identifier{Form: verbs.Complete, Text: canonical}) {
				t.Fatalf("%s: %v", s, got)
			}
		}
		if n := rapid.IntRange(8, 31).Draw(t, "length"); verbs.ReadIdentifier(d[:n]).Form != verbs.Prefix {
			t.Fatalf("%s is no prefix", d[:n])
		}
	})
}

func TestHandlesAndModes(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-125 VD-129 VD-208")
	if got := verbs.ReadHandle("act", "act_"+digits); got.Form != verbs.Complete || got.Text != id {
		t.Errorf("%v", got)
	}
	if got := verbs.ReadHandle("act", "act_"+digits[:9]); got.Form != verbs.Prefix {
		t.Errorf("%v", got)
	}
	for _, s := range []string{"ses_" + digits, digits, "act_" + id, "act_" + digits[:7]} {
		if got := verbs.ReadHandle("act", s); got.Form != verbs.Name {
			t.Errorf("%s: %v", s, got)
		}
	}
	if _, err := verbs.FullUnscoped.Admit("id", digits[:8]); fault.CodeOf(err) != fault.InvalidRequest || !strings.Contains(err.Error(), "another record") {
		t.Errorf("a prefix for a full id: %v", err)
	}
	if got, err := verbs.FullScoped.Admit("id", digits); err != nil || got.Text != id {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := verbs.Unscoped.Admit("id", digits[:8]); err != nil || got.Form != verbs.Prefix {
		t.Errorf("%v, %v", got, err)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-122")
	if got, err := verbs.Choose("0190a1b2", []string{id}, 1); err != nil || got != id {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := verbs.Choose("0190a1b2", nil, 0); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	_, err := verbs.Choose("0190a1b2", []string{id, "b"}, 7)
	if fault.CodeOf(err) != fault.Ambiguous || !strings.HasPrefix(err.Error(), `ambiguous prefix "0190a1b2": matches 7`) || !strings.Contains(err.Error(), id) {
		t.Errorf("%v", err)
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-100 VD-116")
	for _, s := range []string{"local", "research:x", "a.b-c_D:9", strings.Repeat("x", 256)} {
		if err := verbs.CheckNamespace(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"", "a:", ":a", "a::b", "a b", "é", "a/b", "a@", strings.Repeat("x", 257)} {
		if err := verbs.CheckNamespace(s); fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%q: %v", s, err)
		}
	}
	if !verbs.Below("research:x", "research") || verbs.Below("researchx", "research") || verbs.Below("research", "research") {
		t.Error("Below")
	}
	for args, ok := range map[string]bool{
		`namespace="lab"`: true, ``: true, `namespace="a b"`: false, `namespace=null`: false, `namespace=1`: false,
		`namespace=true`: false, `namespace=[]`: false, `namespace={}`: false,
	} {
		r, err := request.Parse("v(" + args + ")")
		if err != nil {
			t.Fatal(err)
		}
		if _, explicit, err := verbs.ResolveNamespace(&r.Ops[0]); (err == nil) != ok || explicit != (args != "") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestMint(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-117 VD-118 VD-119 VD-119a")
	who := verbs.Identity{Actor: verbs.NewActor("session", "s-1"), Visible: []string{"lab", "b ad", "lab", "local"}, Default: "gated", RequestID: 7, Process: "p"}
	tok, skipped := verbs.Mint(who, "", false)
	if diff := cmp.Diff([]string{"local", "lab", "s-1"}, tok.Reads()); diff != "" {
		t.Error(diff)
	}
	if tok.Namespace() != "local" || tok.GateNamespace() != "gated" || tok.Explicit() || tok.RequestID() != 7 || tok.Process() != "p" || len(skipped) != 1 {
		t.Errorf("%+v, skipped %v", tok, skipped)
	}
	tok, _ = verbs.Mint(who, "other", true)
	if diff := cmp.Diff([]string{"other"}, tok.Reads()); diff != "" || tok.Namespace() != "other" || tok.GateNamespace() != "other" {
		t.Errorf("an explicit namespace is widened: %+v", tok)
	}
	if n := who.Nested(); n.RequestID != 0 || n.Actor != who.Actor || who.RequestID != 7 {
		t.Errorf("%+v", n)
	}
	for _, a := range []verbs.Actor{verbs.NewActor("session", "  "), verbs.NewActor("", "x"), {}} {
		tok, _ := verbs.Mint(verbs.Identity{Actor: a}, "", false)
		if got := tok.Actor(); got != (verbs.Actor{Kind: "anonymous", ID: "local"}) || len(tok.Reads()) != 1 {
			t.Errorf("%+v: %+v", a, got)
		}
	}
	if a := verbs.NewActor("session", " s "); a.ID != " s " {
		t.Errorf("the id is trimmed: %q", a.ID)
	}
}
