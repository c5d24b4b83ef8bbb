package request_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/request"
)

func mustParse(t testing.TB, text string) *request.Request {
	t.Helper()
	r, err := request.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func result(t testing.TB, text string) *request.Value {
	t.Helper()
	v, err := request.ParseResult([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

func TestResolve(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-025 VD-028 VD-030 VD-054 VD-055")
	const prev = `{"id":"r1","n":12345678901234567890123,"items":[{"name":"a"},{"name":"b"}],"none":null}`
	for _, c := range []struct {
		name, arg, prev, want string
		reason                request.Reason
		says                  []string
	}{
		{name: "member", arg: `$prev.id`, prev: prev, want: `"r1"`},
		{name: "digits stay", arg: `$prev.n`, prev: prev, want: `12345678901234567890123`},
		{name: "element", arg: `$prev.items[1].name`, prev: prev, want: `"b"`},
		{name: "null", arg: `$prev.none`, prev: prev, want: `null`},
		{name: "part that is an object", arg: `$prev.items[0]`, prev: prev, want: `{"name":"a"}`},
		{name: "bare scalar", arg: `$prev`, prev: `7`, want: `7`},
		{name: "bare in a literal", arg: `[$prev]`, prev: `{"a":[1]}`, want: `[{"a":[1]}]`},
		{name: "last of two names", arg: `{"k":1,"k":$prev.id}`, prev: prev, want: `{"k":"r1"}`},
		{name: "bare object", arg: `$prev`, prev: prev, reason: request.BareAmbiguous, says: []string{`"x"`, "id, items, n, none"}},
		{name: "bare array", arg: `$prev`, prev: `[1,2]`, reason: request.BareAmbiguous, says: []string{"2 elements"}},
		{name: "no member", arg: `[1,{"k":$prev.nope}]`, prev: prev, reason: request.PathNotFound, says: []string{`x[1].k`, "$prev.nope", "id, items, n, none", "just before"}},
		{name: "no element", arg: `$prev.items[2]`, prev: prev, reason: request.PathNotFound, says: []string{"2 elements"}},
		{name: "member of an array", arg: `$prev.items.name`, prev: prev, reason: request.PathWrongType, says: []string{"array", "object"}},
		{name: "element of a string", arg: `$prev.id[0]`, prev: prev, reason: request.PathWrongType, says: []string{"string", "array"}},
		{name: "too long", arg: `$prev` + strings.Repeat(".a", 65), prev: prev, reason: request.PathUnsupported},
		{name: "nothing before", arg: `$prev.id`, reason: request.NoPrecedingOp},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			op := mustParse(t, `a() | b(x=`+c.arg+`)`).Ops[1]
			var before *request.Value
			if c.prev != "" {
				before = result(t, c.prev)
			}
			got, err := request.Resolve(op.Args, before)
			if c.reason == "" {
				if err != nil || string(got[0].Value.AppendJSON(nil)) != c.want || got[0].Value.Dynamic() {
					t.Fatalf("got %v, %v, want %s", got, err, c.want)
				}
				return
			}
			var e *request.SubstitutionError
			if !errors.As(err, &e) || e.Reason != c.reason || e.Argument != "x" {
				t.Fatalf("got %v, want %s", err, c.reason)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q lacks %q", err, s)
				}
			}
		})
	}
}

func TestResultDepth(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-056")
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := request.ParseResult(nested(64)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{65, 1 << 20} {
		_, err := request.ParseResult(nested(n))
		var e *request.ParseError
		if !errors.As(err, &e) || e.Code != request.NestingTooDeep {
			t.Fatalf("%d deep: %v", n, err)
		}
	}
}

func TestDecoded(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-043")
	long := request.OfString(strings.Repeat("x", request.MaxBytes))
	r, err := request.Decoded([]request.Op{{Tool: "a", Args: []request.Item{{Name: "x", Value: long}}}})
	if err != nil || r.Mode != request.Single || len(r.Ops) != 1 {
		t.Fatalf("a long value: %v", err)
	}
	for code, ops := range map[request.Code][]request.Op{
		request.Empty:               {},
		request.TooManyOps:          make101(),
		request.PrevInJSON:          {{Tool: "a", Args: []request.Item{{Name: "x", Value: request.OfString("$prev.id")}}}},
		request.ReservedEnvelopeArg: {{Tool: "a", Args: []request.Item{{Name: "presentation", Value: request.OfBool(true)}}}},
		request.InvalidIdentifier:   {{Tool: "a b"}},
	} {
		_, err := request.Decoded(ops)
		var e *request.ParseError
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
}

func make101() []request.Op {
	ops := make([]request.Op, 101)
	for i := range ops {
		ops[i].Tool = "a"
	}
	return ops
}
