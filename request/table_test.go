package request_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/request"
)

func rendered(t *testing.T, text string, f request.Format) string {
	t.Helper()
	v, err := request.ParseResult([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := request.Render(v, f)
	if s, ok := out.Text(); ok && out.Kind() != v.Kind() {
		return s
	}
	return string(out.AppendJSON(nil))
}

func TestRender(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-002")
	const records = `[{"id":"a","n":1},{"n":null,"note":"x | y","id":"12"},{"more":{"k":[1]}}]`
	const rows = "id | n | note | more\na | 1 |  | \n\"12\" | null | \"x \\u007c y\" | \n |  |  | {\"k\":[1]}\n"
	for _, c := range []struct {
		text   string
		format request.Format
		want   string
	}{
		{records, request.FormatJSON, records},
		{records, request.FormatAuto, rows},
		{records, request.FormatTable, rows},
		{`{"items":[{"a":true}],"has_more":false}`, request.FormatAuto, "has_more: false\na\ntrue\n"},
		{`{"id":"x","text":"two\nlines","tags":[],"at":null}`, request.FormatAuto, "id: x\ntext: \"two\\nlines\"\ntags: []\nat: null\n"},
		{`{"id":"x","n":"true"}`, request.FormatTable, "id | n\nx | \"true\"\n"},
		{`[1,"a"]`, request.FormatAuto, `[1,"a"]`},
		{`[1,"a"]`, request.FormatTable, "value\n1\na\n"},
		{`[]`, request.FormatAuto, `[]`},
		{`{}`, request.FormatAuto, `{}`},
		{`7`, request.FormatAuto, `7`},
		{`7`, request.FormatTable, "value\n7\n"},
	} {
		if d := cmp.Diff(c.want, rendered(t, c.text, c.format)); d != "" {
			t.Errorf("%s as %s (-want +got):\n%s", c.text, c.format, d)
		}
	}
}

func TestRenderIsBounded(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-002")
	rows := make([]string, 500)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"c%d":%d}`, i, i)
	}
	got := rendered(t, "["+strings.Join(rows, ",")+"]", request.FormatTable)
	if head, _, _ := strings.Cut(got, "\n"); strings.Count(head, "|") != 64 || !strings.HasSuffix(head, "…") {
		t.Errorf("head is %s", head)
	}
	if !strings.Contains(got, `{"c499":499}`) {
		t.Error("a member beyond the columns is lost")
	}
	if len(got) > 500*300 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestRenderKeepsCellsApart(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-002")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`["\[{ |:]?(null|true|1e5|a)?[ :|\n]?`)).Draw(t, "text")
		record := request.OfObject(request.Item{Name: "k", Value: request.OfString(text)})
		out, _ := request.Render(record, request.FormatTable).Text()
		lines := strings.Split(out, "\n")
		if len(lines) != 3 || strings.Contains(lines[1], "|") {
			t.Fatalf("%q is not one cell of one line: %q", text, out)
		}
		for _, other := range []request.Value{{}, request.OfBool(true), request.OfInt(1), request.OfArray(), request.OfObject()} {
			o, _ := request.Render(request.OfObject(request.Item{Name: "k", Value: other}), request.FormatTable).Text()
			if o == out {
				t.Fatalf("%q cannot be told from a %s", text, other.Kind())
			}
		}
		if lines[1] != text && !strings.HasPrefix(lines[1], `"`) {
			t.Fatalf("%q is written as %q", text, lines[1])
		}
	})
}

func TestFormatOf(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-002 VD-003")
	o := request.Options{Format: "auto", FormatPerOp: []string{"", "table"}}
	if o.FormatOf(0) != request.FormatAuto || o.FormatOf(1) != request.FormatTable || o.FormatOf(2) != request.FormatAuto || (request.Options{}).FormatOf(0) != request.FormatJSON {
		t.Error("the wrong format is chosen")
	}
}
