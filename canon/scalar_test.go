package canon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/canon"
)

func TestText(t *testing.T) {
	t.Attr("requirement", "DV-020")
	t.Parallel()
	blanks := "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
	for _, r := range blanks {
		for _, s := range []string{string(r), string(r) + "a", "a" + string(r)} {
			if canon.IsText(s, canon.MaxText) || canon.Trim(s) == s {
				t.Errorf("%q is no text", s)
			}
		}
		if s := "a" + string(r) + "b"; !canon.IsText(s, canon.MaxText) || canon.Trim(string(r)+s+string(r)) != s {
			t.Errorf("%q is a text", s)
		}
	}
	for _, s := range []string{"a", "\u0085", "\u0085a\u0085", "\u200b", "\u180e", "\x00", "\x1f", "\xed\xa0\x80", strings.Repeat("é", 4000), strings.Repeat("\U0001f600", 2000)} {
		if !canon.IsText(s, canon.MaxText) {
			t.Errorf("%.20q… is a text", s)
		}
	}
	for _, s := range []string{"", strings.Repeat("a", 4001), strings.Repeat("\U0001f600", 2000) + "a"} {
		if canon.IsText(s, canon.MaxText) {
			t.Errorf("%.20q… is no text", s)
		}
	}
}

func TestIdentifier(t *testing.T) {
	t.Attr("requirement", "DV-021")
	t.Parallel()
	for s, want := range map[string]bool{
		"a": true, "Z": true, "event:1": true, "a.b_c:d/e-f9": true, "a" + strings.Repeat("-", 159): true,
		"": false, "1a": false, "_a": false, ":a": false, "a b": false, "a\n": false, "é": false, "aé": false, "a@": false, "a[": false, "a`": false, "a{": false,
		"a" + strings.Repeat("-", 160): false,
	} {
		if got := canon.IsIdentifier(s); got != want {
			t.Errorf("IsIdentifier(%q) = %t", s, got)
		}
	}
}

func TestDigest(t *testing.T) {
	t.Attr("requirement", "DV-022")
	t.Parallel()
	sum := canon.Hash([]byte("null"))
	for s, want := range map[string]bool{
		sum: true, strings.ToUpper(sum): false, sum[1:]: false, sum + "0": false, sum[1:] + "g": false, sum[1:] + "/": false, sum[1:] + ":": false, sum[1:] + "`": false, "": false,
	} {
		if got := canon.IsDigest(s); got != want {
			t.Errorf("IsDigest(%q) = %t", s, got)
		}
	}
}

func TestTimestamp(t *testing.T) {
	t.Attr("requirement", "DV-023")
	t.Parallel()
	for s, want := range map[string]bool{
		"2024-02-29T00:00:00.000Z": true, "2000-02-29T23:59:59.999Z": true, "0000-01-01T00:00:00.000Z": true, "0000-02-29T00:00:00.000Z": true, "9999-12-31T23:59:59.999Z": true,
		"2023-02-29T00:00:00.000Z": false, "1900-02-29T00:00:00.000Z": false, "2024-00-01T00:00:00.000Z": false, "2024-13-01T00:00:00.000Z": false, "2024-01-00T00:00:00.000Z": false,
		"2024-04-31T00:00:00.000Z": false, "2024-01-32T00:00:00.000Z": false, "2024-01-01T24:00:00.000Z": false, "2024-01-01T00:60:00.000Z": false, "2024-01-01T00:00:60.000Z": false,
		"+002024-01-01T00:00:00.000Z": false, "2024-01-01T00:00:00Z": false, "2024-01-01T00:00:00.00Z": false, "2024-01-01T00:00:00.0000Z": false, "2024-01-01 00:00:00.000Z": false,
		"2024-01-01T00:00:00.000z": false, "2024-01-01T00:00:00.000+": false, "2024-01-01t00:00:00.000Z": false, "2024-1--01T00:00:00.000Z": false, "２024-01-01T00:00:00.0Z": false, "": false,
	} {
		if got := canon.IsTimestamp(s); got != want {
			t.Errorf("IsTimestamp(%q) = %t", s, got)
		}
	}
}

// The calendar is that of package time.
func TestTimestampCalendar(t *testing.T) {
	t.Attr("requirement", "DV-023")
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := func(label string, most int) int { return rapid.IntRange(0, most).Draw(t, label) }
		s := fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", n("year", 9999), n("month", 13), n("day", 32), n("hour", 24), n("minute", 60), n("second", 60), n("milli", 999))
		at, err := time.Parse("2006-01-02T15:04:05.000Z", s)
		want := err == nil && at.Format("2006-01-02T15:04:05.000Z") == s
		if got := canon.IsTimestamp(s); got != want {
			t.Fatalf("IsTimestamp(%q) = %t, package time says %t", s, got, want)
		}
	})
}

func TestIntegers(t *testing.T) {
	t.Attr("requirement", "DV-024 DV-025")
	t.Parallel()
	for text, want := range map[string]struct{ safe, loose bool }{
		"0": {true, true}, "-0": {true, true}, "5.0": {true, true}, "5e0": {true, true}, "50e-1": {true, true}, "-5": {true, true},
		"9007199254740991": {true, true}, "-9007199254740991": {true, true}, "9007199254740992": {false, true}, "9007199254740993": {false, true}, "1e300": {false, true},
		"0.5": {false, false}, "1e-9": {false, false}, "1e999": {false, false}, "true": {false, false}, `"1"`: {false, false}, "null": {false, false}, "[1]": {false, false},
	} {
		v, err := canon.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, safe := v.Integer()
		_, loose := v.Loose()
		if safe != want.safe || loose != want.loose {
			t.Errorf("%s: safe %t, loose %t; want %+v", text, safe, loose, want)
		}
	}
	v, err := canon.Parse([]byte("-0"))
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := v.Integer(); n != 0 || !ok {
		t.Errorf("-0 is %d, %t", n, ok)
	}
}
