package evidence_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/artifact"
	"github.com/reeve-run/reeve/internal/packs/evidence"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// source holds event 7, act_1 and the artifacts of a real store.
type source struct {
	artifacts *artifact.Store
	broken    error
}

func (s source) Event(_ context.Context, id int64) (evidence.Answer, error) {
	if s.broken != nil {
		return evidence.Answer{}, s.broken
	}
	if id != 7 {
		return evidence.Answer{}, fault.New(fault.NotFound, "find event", strconv.FormatInt(id, 10), "there is none of this id")
	}
	return evidence.Answer{Kind: "cell.started", Digest: "d7", AtMS: 70, Size: 3, Excerpt: "{7}"}, nil
}

func (s source) Effect(_ context.Context, id string) (evidence.Answer, error) {
	if id != "act_1" {
		return evidence.Answer{}, fault.New(fault.Ambiguous, "find act", id, "two begin so")
	}
	return evidence.Answer{Kind: "act done", Digest: "d1", AtMS: 10}, nil
}

func (s source) Artifact(_ context.Context, sum string) (evidence.Answer, error) {
	b, err := s.artifacts.ReadAll(sum, 1<<20)
	if err != nil {
		return evidence.Answer{}, err
	}
	return evidence.Answer{Kind: "artifact", Digest: sum, Size: int64(len(b)), Excerpt: string(b)}, nil
}

func resolve(t *testing.T, s source, refs ...string) ([]evidence.Answer, error) {
	t.Helper()
	pack := evidence.Pack(s)
	registry, err := verbs.Build(verbs.Config{Packs: []verbs.Pack{pack}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := pack.New()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"refs": append([]string{}, refs...)})
	if err != nil {
		t.Fatal(err)
	}
	value, err := request.ParseResult(text)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := registry.Lookup("evidence.resolve")
	args, err := v.Check(value.Items())
	if err != nil {
		t.Fatal(err)
	}
	reply, err := handler.Handle(t.Context(), &verbs.Call{Verb: v, Args: args})
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []evidence.Answer `json:"items"`
		Count int               `json:"count"`
	}
	if err := json.Unmarshal(reply.Value.AppendJSON(nil), &out); err != nil {
		t.Fatal(err)
	}
	if out.Count != len(out.Items) {
		t.Errorf("count %d of %d items", out.Count, len(out.Items))
	}
	return out.Items, nil
}

func opened(t *testing.T) source {
	t.Helper()
	store, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return source{artifacts: store}
}

// Each reference is answered in its place, a bad one with a reason.
func TestReferencesAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-065")
	s := opened(t)
	long, err := s.artifacts.PutBytes([]byte("x" + strings.Repeat("ü", 5000)))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		ref   string
		found bool
	}{
		{"event:8", false},
		{"event:7", true},
		{"nonsense", false},
		{"", false},
		{"event:07", false},
		{"event:-7", false},
		{"event:9007199254740992", false},
		{"event:x", false},
		{"effect:act_1", true},
		{"effect:act", false},
		{"effect:", false},
		{"artifact:" + long.SHA256, true},
		{"artifact:" + strings.Repeat("0", 64), false},
		{"artifact:" + strings.ToUpper(long.SHA256), false},
		{"artifact:../../etc/passwd", false},
		{"scope:s1#3", false},
		{"event:7", true},
	}
	refs := make([]string, len(cases))
	for i, c := range cases {
		refs[i] = c.ref
	}
	answers, err := resolve(t, s, refs...)
	if err != nil || len(answers) != len(cases) {
		t.Fatalf("%d answers to %d references: %v", len(answers), len(cases), err)
	}
	for i, c := range cases {
		a := answers[i]
		if a.Ref != c.ref || a.Found != c.found || (a.Reason == "") != c.found {
			t.Errorf("%q: %+v", c.ref, a)
		}
	}
	if a := answers[1]; a.Kind != "cell.started" || a.Digest != "d7" || a.AtMS != 70 || a.Excerpt != "{7}" {
		t.Errorf("an event: %+v", a)
	}
	if a := answers[11]; a.Size != 10001 || len(a.Excerpt) > 2048+len("…") || len(a.Excerpt) < 2000 || !utf8.ValidString(a.Excerpt) || !strings.HasSuffix(a.Excerpt, "ü…") {
		t.Errorf("a long artifact: %d bytes, excerpt of %d that ends %q", a.Size, len(a.Excerpt), a.Excerpt[max(0, len(a.Excerpt)-8):])
	}
}

func TestTheNumberOfReferencesIsBounded(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-065")
	s := opened(t)
	refs := make([]string, evidence.MaxRefs+1)
	for i := range refs {
		refs[i] = "event:7"
	}
	if answers, err := resolve(t, s, refs[:evidence.MaxRefs]...); err != nil || len(answers) != evidence.MaxRefs {
		t.Errorf("%d answers, %v", len(answers), err)
	}
	for _, some := range [][]string{refs, {}} {
		if _, err := resolve(t, s, some...); fault.CodeOf(err) != fault.LimitExceeded {
			t.Errorf("%d references: %v", len(some), err)
		}
	}
}

// A source that fails is a failed call, not an answer that nothing was found.
func TestAFailingSourceIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := opened(t)
	s.broken = fault.New(fault.Unavailable, "read store", "", "the disk is gone")
	if answers, err := resolve(t, s, "event:7"); !errors.Is(err, s.broken) {
		t.Errorf("%v, %v", answers, err)
	}
}
