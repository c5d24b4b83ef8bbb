package request_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/request"
)

type packs map[string]string

func (p packs) PackOf(verb string) (string, bool) { pack, ok := p[verb]; return pack, ok }

func TestPlan(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-046 VD-065")
	got, err := json.Marshal(request.MakePlan(`[a(x=1) | kg.b(y=[$prev.id, 2], z="$prev[0]"), c()]`, packs{"a": "core", "kg.b": "kg"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"parsed":true,"mode":"parallel","stage_count":3,"stages":[` +
		`{"index":0,"verb":"a","pack":"core","known":true,"args":{"x":1},"prev_refs":[],"unit_index":0},` +
		`{"index":1,"verb":"kg.b","pack":"kg","known":true,"args":{"y":["$prev.id",2],"z":"$prev[0]"},"prev_refs":[{"arg":"y","ref":"$prev.id"},{"arg":"z","ref":"$prev[0]"}],"unit_index":0},` +
		`{"index":2,"verb":"c","pack":null,"known":false,"args":{},"prev_refs":[],"unit_index":1}],` +
		`"units":[{"start":0,"end":2},{"start":2,"end":3}],"limits":{"max_ops":100,"max_depth":64,"max_input_len":1048576}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Fatal(diff)
	}
	failed := request.MakePlan("a(\n  b=)", nil)
	if e := failed.Error; failed.Parsed || e == nil || e.Code != request.InvalidValue || *e.Offset != 7 || e.Line != 2 || e.Column != 5 || e.Excerpt != "  b=)\n    ^" {
		t.Fatalf("%+v", failed.Error)
	}
}

type keys map[string][]string

func (k keys) WriteKeys(op *request.Op) []string { return k[op.Tool] }

func TestConflicts(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-062 VD-063")
	declared := keys{
		"a": {"entity:1"}, "b": {"entity:1"}, "c": {"entity:2"}, "both": {"entity:1", "entity:2"},
		"plain": {"entity:0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"}, "caps": {"entity:urn:UUID:0190A1B2C3D47E5F8A9B0C1D2E3F4A5B"},
	}
	for _, c := range []struct {
		text string
		want []int
	}{
		{"[a(), b(), c()]", []int{0, 1}},
		{"[a(), c(), free()]", nil},
		{"a() | b() | a()", nil},
		{"[a() | b(), c()]", nil},
		{"[free() | a(), c() | b(), free()]", []int{0, 2}},
		{"[a(), b(), both(), c()]", []int{0, 1, 2, 3}},
		{"[plain(), caps()]", []int{0, 1}},
	} {
		r := mustParse(t, c.text)
		var got []int
		for _, conflict := range request.Conflicts(r, declared) {
			got = append(got, conflict.Op)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

func TestAssemble(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-051 VD-053 VD-070 VD-071 VD-072 VD-073 VD-074 VD-075 VD-076")
	r := mustParse(t, "[a() | b() | c(), d()]")
	remark := request.Advisory{Code: "x", Severity: "warning", Component: "c", Reason: "r", Message: "m"}
	answer := request.Assemble(r, []request.Outcome{
		{Done: true, Result: request.OfInt(1), Advisories: []request.Advisory{remark, remark}, Siblings: []request.Item{{Name: "usage", Value: request.OfInt(2)}}},
		{Failure: &request.Failure{Kind: "k", Message: "no", Disposition: "perhaps"}},
	})
	got, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"results":[` +
		`{"ok":true,"tool":"a","op_index":0,"unit_index":0,"step_index":0,"result":1,"advisories":[{"code":"x","severity":"warning","component":"c","reason":"r","message":"m"}],"usage":2},` +
		`{"ok":false,"tool":"b","op_index":1,"unit_index":0,"step_index":1,"domain_disposition":"unknown","error":{"kind":"k","message":"no","domain_disposition":"unknown"}},` +
		`{"ok":false,"tool":"c","op_index":2,"unit_index":0,"step_index":2,"aborted":true,"domain_disposition":"not_committed","message":"not evaluated: operation 1 (b) before it failed"},` +
		`{"ok":false,"tool":"d","op_index":3,"unit_index":1,"step_index":0,"domain_disposition":"unknown","error":{"kind":"runtime_error","message":"no outcome of the operation is known","domain_disposition":"unknown"}}],` +
		`"summary":{"total":4,"succeeded":1,"failed":2,"aborted":1},"status":"partial"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Fatal(diff)
	}
}

// Whatever became of the operations, the answer has one entry each, in order, its
// sums are right, and each entry that is no success has a disposition.
func TestAssembleProperties(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-051 VD-053 VD-070 VD-073 VD-074")
	rapid.Check(t, func(t *rapid.T) {
		r := &request.Request{Mode: request.Parallel}
		for range rapid.IntRange(1, 6).Draw(t, "units") {
			start := len(r.Ops)
			for range rapid.IntRange(1, 4).Draw(t, "steps") {
				r.Ops = append(r.Ops, request.Op{Tool: "v"})
			}
			r.Units = append(r.Units, request.Unit{Start: start, End: len(r.Ops)})
		}
		outcomes := make([]request.Outcome, rapid.IntRange(0, len(r.Ops)).Draw(t, "known"))
		for i := range outcomes {
			switch rapid.IntRange(0, 2).Draw(t, "outcome") {
			case 0:
				outcomes[i].Done = true
			case 1:
				outcomes[i].Failure = &request.Failure{Disposition: rapid.SampledFrom([]request.Disposition{"", "committed", "not_committed", "bad"}).Draw(t, "disposition")}
			}
		}
		a := request.Assemble(r, outcomes)
		if len(a.Results) != len(r.Ops) || a.Summary.Total != len(r.Ops) || a.Summary.Succeeded+a.Summary.Failed+a.Summary.Aborted != len(r.Ops) {
			t.Fatalf("%d operations, %+v", len(r.Ops), a.Summary)
		}
		for i, e := range a.Results {
			if e.Index != i || !e.OK && e.Disposition != request.Committed && e.Disposition != request.NotCommitted && e.Disposition != request.Undetermined {
				t.Fatalf("entry %d: %+v", i, e)
			}
			if e.Aborted && !failedBefore(r, a, i) {
				t.Fatalf("entry %d is aborted though nothing before it in its unit failed", i)
			}
		}
		if (a.Status == request.Success) != (a.Summary.Succeeded == len(r.Ops)) {
			t.Fatalf("%s with %+v", a.Status, a.Summary)
		}
	})
}

func failedBefore(r *request.Request, a request.Answer, i int) bool {
	for j := r.Units[r.UnitOf(i)].Start; j < i; j++ {
		if a.Results[j].Error != nil {
			return true
		}
	}
	return false
}

func TestIsErrorAndWithdraw(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-007 VD-058")
	r := mustParse(t, "[a(), b()]")
	remark := []request.Advisory{{Code: "x"}}
	a := request.Assemble(r, []request.Outcome{{Done: true, Advisories: remark}, {Done: true}})
	if a.IsError() || a.Status != request.Success {
		t.Fatalf("%+v", a)
	}
	a.Withdraw(0, 9, 8, true)
	e := a.Results[0]
	if a.IsError() || a.Status != request.Partial || a.Summary.Failed != 1 || e.Disposition != request.Committed || e.Error.Kind != request.KindFrameBudget || len(e.Advisories) != 1 {
		t.Fatalf("%+v", a)
	}
	a.Withdraw(1, 9, 8, false)
	if !a.IsError() || a.Results[1].Disposition != request.NotCommitted {
		t.Fatalf("%+v", a)
	}
}

func TestPresent(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-081 VD-082 VD-084 VD-207")
	in := `{"id":"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b","peer":"0190a1b2-c3ff-7e5f-8a9b-0c1d2e3f4a5b","other":"5190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",` +
		`"thread_id":"5190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b","strict":"5190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",` +
		`"created_at":"2026-01-02T00:30:00.5Z","updated_at":"2025-01-02T03:04:05+01:00","deleted_at":null,"gone":null,"empty":"","list":[],"parent_id":null,` +
		`"properties":{"note":"","none":null},"score":0.123456,"score_breakdown":{"x":123456},"weight":0.123456,"rows":[{"salience":1e-9,"a":{}}]}`
	want := `{"id":"0190a1b2c3d","peer":"0190a1b2c3f","other":"5190a1b2",` +
		`"thread_id":"5190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b","strict":"5190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",` +
		`"created_at":"29m ago","updated_at":"2025-01-02T02:04Z","deleted_at":null,"parent_id":null,` +
		`"properties":{"note":""},"score":0.123,"score_breakdown":{"x":123000},"weight":0.123456,"rows":[{"salience":1e-09}]}`
	p := request.Presenter{
		Now:      time.Date(2026, 1, 2, 1, 0, 0, 0, time.UTC),
		Unique:   func(string) bool { return true },
		FullOnly: func(name string) bool { return name == "strict" },
	}
	v := result(t, in)
	p.Collect(*v)
	if diff := cmp.Diff(want, string(p.Present(*v).AppendJSON(nil))); diff != "" {
		t.Fatal(diff)
	}
	crowded := request.Presenter{Now: p.Now, Unique: func(prefix string) bool { return len(prefix) > 12 }}
	crowded.Collect(*v)
	if got := string(crowded.Present(*v).AppendJSON(nil)); !strings.Contains(got, `"other":"5190a1b2c3d47"`) {
		t.Errorf("the store holds others: %s", got)
	}
	blind := request.Presenter{Now: p.Now}
	if got := string(blind.Present(*v).AppendJSON(nil)); !strings.Contains(got, `"id":"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"`) {
		t.Errorf("nobody said what is unique: %s", got)
	}
}
