package request_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/request"
)

// pieces from which texts are glued that look like requests and mostly are none.
var pieces = []string{
	"a", "pack.verb", "stats()", "(", ")", "[", "]", "{", "}", ",", "|", "=", ":", ".", "$prev", "$prev.id", "$prev[0]", "$",
	`"`, `\`, `"x"`, `"\u0000"`, `"\ud800"`, "1", "-", "1e999", "null", "True", " ", "\n", "\t", "\x00", "\xff", "é", "😀", "\u00a0",
	`{"tool":"a","args":{}}`, `"tool"`, `"args"`, "presentation=1", "x=", "x=1", "a(x=$prev.y) | b(z=1)", strings.Repeat("[", 70), strings.Repeat(`{"k":`, 70),
}

// No text panics, and every refusal has a code and a place inside the text.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-020 VD-041 VD-045 VD-046")
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "parts")
		for n := range parts {
			text := strings.Join(parts[:n+1], "")
			r, err := request.Parse(text)
			var e *request.ParseError
			switch {
			case err == nil && (len(r.Ops) == 0 || len(r.Ops) > request.MaxOps):
				t.Fatalf("%q gives %d operations", text, len(r.Ops))
			case err != nil && (!errors.As(err, &e) || e.Code == "" || e.Offset > len(text)):
				t.Fatalf("%q: %#v", text, err)
			}
		}
	})
}

// A text as long as allowed of nothing but one byte or opener is refused at once, not
// after the stack is full.
func TestHostileDepth(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-041")
	for _, c := range []struct{ prefix, unit string }{
		{"v(x=", "["}, {"v(x=", `{"k":`}, {"v(x=f", "["}, {"", `{"k":`}, {"[{", "["}, {`v(x="$prev`, "[0]"}, {`v(x=$prev`, ".a"}, {`v(x="`, `\`}, {"a", "."}, {"[", "["},
	} {
		text := c.prefix + strings.Repeat(c.unit, (request.MaxBytes-len(c.prefix))/len(c.unit))
		if _, err := request.Parse(text); err == nil {
			t.Errorf("%s… is accepted", c.prefix+c.unit)
		}
	}
}

func TestDigitsSurvive(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-025")
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,60})(\.[0-9]{1,30})?`).Draw(t, "number")
		for _, text := range []string{"v(x=" + number + ")", `{"tool":"v","args":{"x":` + number + `}}`} {
			r, err := request.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.Ops[0].Args[0].Value.AppendJSON(nil)); got != number {
				t.Fatalf("%s became %s", number, got)
			}
		}
	})
}

// A string of any text comes back as it was, through either form.
func TestStringsSurvive(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-026 VD-032")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		if strings.HasPrefix(s, "$prev") || strings.HasPrefix(s, `\`) {
			return
		}
		quoted := string(request.OfString(s).AppendJSON(nil))
		for _, text := range []string{"v(x=" + quoted + ")", `{"tool":"v","args":{"x":` + quoted + `}}`} {
			r, err := request.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := r.Ops[0].Args[0].Value.Text(); !ok || got != s {
				t.Fatalf("%q became %q", s, got)
			}
		}
	})
}
