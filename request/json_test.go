package request_test

import (
	"errors"
	"testing"

	"github.com/reeve-run/reeve/request"
)

// Where the JSON form is stricter than it is inherited (docs/deviations.md).
func TestStrictJSONForm(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-022 VD-028 VD-037")
	for text, code := range map[string]request.Code{
		`{"tool":"a","extra":1}`:                        request.InvalidJSON,
		`{"tool":"a","tool":"b"}`:                       request.InvalidJSON,
		`{"tool":""}`:                                   request.InvalidIdentifier,
		`{"tool":"a b"}`:                                request.InvalidIdentifier,
		`{"tool":"a."}`:                                 request.InvalidIdentifier,
		`{"tool":"a.b.c"}`:                              request.UnsupportedNesting,
		`{"tool":"a","args":{"x":1,"x":2}}`:             request.DuplicateArg,
		`[{"tool":"a","args":{"x":1,"x":2}}]`:           request.DuplicateArg,
		"{\"tool\":\"a\",\f\"args\":{}}":                request.InvalidJSON,
		`{"tool":"a","args":{"x":1e999}}`:               request.InvalidJSON,
		"v(x=\"\xff\")":                                 request.UnexpectedChar,
		`v(x="$prev.")|b(presentation=1)`:               request.ReservedEnvelopeArg,
		`a() | b(x="$prev[18446744073709551616]", x=1)`: request.DuplicateArg,
	} {
		_, err := request.Parse(text)
		var e *request.ParseError
		if !errors.As(err, &e) || e.Code != code || e.Offset < 0 {
			t.Errorf("%s: got %v, want %s with a place", text, err, code)
		}
	}
	for _, text := range []string{`{"tool":"a","args":{"x":{"k":1,"k":2}}}`, `[{"tool":"a","args":{"x":{"k":1,"k":2}}}]`} {
		r := mustParse(t, text)
		if got := string(r.Ops[0].Args[0].Value.AppendJSON(nil)); got != `{"k":2}` {
			t.Errorf("%s: got %s, want the last", text, got)
		}
	}
	if v := result(t, `{"k":1,"k":2}`); string(v.AppendJSON(nil)) != `{"k":2}` {
		t.Errorf("a result keeps both: %s", v.AppendJSON(nil))
	}
}
