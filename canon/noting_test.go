package canon_test

import (
	"testing"

	"github.com/reeve-run/reeve/canon"
)

func TestParseNoting(t *testing.T) {
	t.Attr("requirement", "DV-002 DV-401")
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: false, `{"a":1,"b":1}`: false, `{"b":1,"a":1}`: false, `[{"a":1},{"a":1}]`: false, `{"a":{"a":1}}`: false,
		`{"a":1,"a":1}`: true, `{"b":1,"a":1,"b":2}`: true, `[0,{"x":{"a":1,"\u0061":2}}]`: true, `{"x":{"y":1,"y":1},"z":1}`: true,
		`{"\ud800":1,"\ud801":1}`: false,
	} {
		v, repeated, err := canon.ParseNoting([]byte(text))
		if err != nil || repeated != want {
			t.Errorf("%s: repeated %t, %v", text, repeated, err)
		}
		plain, err := canon.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		a, errA := v.Hash()
		b, errB := plain.Hash()
		if a != b || errA != nil || errB != nil {
			t.Errorf("%s: the two parsers differ", text)
		}
	}
}

func TestCut(t *testing.T) {
	t.Attr("requirement", "DV-155")
	t.Parallel()
	const lone, clef = "\xed\xa0\x80", "\U0001d11e"
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"éèà", 2, "éè"}, {lone + "a", 1, lone}, {clef + "a", 2, clef}, {"a" + clef, 2, "a\xed\xa0\xb4"}, {clef, 0, ""},
	} {
		if got := canon.Cut(c.s, c.most); got != c.want || canon.Units(got) > c.most {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}
