package canon_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/fault"
)

// wtf8 spells UTF-16 units as the package's strings do.
func wtf8(units []uint16) string {
	var b strings.Builder
	for i := 0; i < len(units); i++ {
		u := rune(units[i])
		if i+1 < len(units) {
			if r := utf16.DecodeRune(u, rune(units[i+1])); r != '\ufffd' {
				b.WriteRune(r)
				i++
				continue
			}
		}
		if utf16.IsSurrogate(u) {
			b.Write([]byte{0xed, byte(0x80 | u>>6&0x3f), byte(0x80 | u&0x3f)})
			continue
		}
		b.WriteRune(u)
	}
	return b.String()
}

// units draws sequences in which surrogates, their neighbours and escapes are common.
func units() *rapid.Generator[[]uint16] {
	unit := rapid.OneOf(
		rapid.SampledFrom([]uint16{0, 9, 0x1f, '"', '\\', '/', 0x7f, 0xd7ff, 0xd800, 0xd834, 0xdbff, 0xdc00, 0xdd1e, 0xdfff, 0xe000, 0xfeff, 0xffff}),
		rapid.Uint16(), rapid.Uint16Range('a', 'c'))
	return rapid.SliceOfN(unit, 0, 6)
}

func values(depth int) *rapid.Generator[canon.Value] {
	return rapid.Custom(func(t *rapid.T) canon.Value {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return canon.Value{}
		case 1:
			return canon.OfBool(rapid.Bool().Draw(t, "bool"))
		case 2:
			return canon.OfNumber(rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64(), func(n int64) float64 { return float64(n) })).Draw(t, "number"))
		case 3:
			return canon.OfString(wtf8(units().Draw(t, "string")))
		case 4:
			return canon.OfArray(rapid.SliceOfN(values(depth-1), 0, 4).Draw(t, "array")...)
		default:
			var members []canon.Item
			for range rapid.IntRange(0, 20).Draw(t, "members") {
				members = append(members, canon.Item{Name: wtf8(units().Draw(t, "name")), Value: values(depth-1).Draw(t, "value")})
			}
			return canon.OfObject(members...)
		}
	})
}

// The form is a fixed point: it parses to what it says, verifies, and is its own form.
func TestCanonicalFormIsAFixedPoint(t *testing.T) {
	t.Attr("requirement", "DV-004 DV-005 DV-006 DV-007")
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		form, err := v.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := canon.Verify(form); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		back, err := canon.Parse(form)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		again, err := back.Append(nil)
		if err != nil || string(again) != string(form) {
			t.Fatalf("%s became %s, %v", form, again, err)
		}
		names := []string{}
		for name := range back.Members() {
			names = append(names, name)
			want, _ := v.Member(name)
			got, _ := back.Member(name)
			if d := cmp.Diff(want, got, cmp.Comparer(same)); d != "" {
				t.Fatal(d)
			}
		}
		if !slices.IsSortedFunc(names, canon.Compare) || back.Len() != v.Len() {
			t.Fatalf("members %q of %d", names, v.Len())
		}
	})
}

func same(a, b canon.Value) bool {
	x, err := a.Append(nil)
	y, err2 := b.Append(nil)
	return err == nil && err2 == nil && string(x) == string(y)
}

// Order and length are those of the units, of which Go's own conversion knows too.
func TestUnits(t *testing.T) {
	t.Attr("requirement", "DV-007 DV-020 DV-027")
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := units().Draw(t, "a"), units().Draw(t, "b")
		if got, want := canon.Compare(wtf8(a), wtf8(b)), slices.Compare(a, b); got != want {
			t.Fatalf("Compare(%04x, %04x) = %d, want %d", a, b, got, want)
		}
		if got := canon.Units(wtf8(a)); got != len(a) {
			t.Fatalf("Units(%04x) = %d, want %d", a, got, len(a))
		}
	})
}

// A member's place is that of its first mention, its value that of its last.
func TestParseKeepsOrder(t *testing.T) {
	t.Attr("requirement", "DV-002")
	t.Parallel()
	v, err := canon.Parse([]byte(`{"z":1,"a":2,"z":3,"__proto__":4}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name, value := range v.Members() {
		form, err := value.Append([]byte(name + "="))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(form))
	}
	if d := cmp.Diff([]string{"z=3", "a=2", "__proto__=4"}, got); d != "" {
		t.Error(d)
	}
}

func TestDepth(t *testing.T) {
	t.Attr("requirement", "DV-009")
	t.Parallel()
	for _, open := range []string{"[", `{"a":`} {
		shut := map[string]string{"[": "]", `{"a":`: "}"}[open]
		nested := func(n int) []byte { return []byte(strings.Repeat(open, n) + "0" + strings.Repeat(shut, n)) }
		if form, err := canon.Canonicalize(nil, nested(canon.MaxDepth)); err != nil || string(form) != string(nested(canon.MaxDepth)) {
			t.Errorf("at the limit: %v", err)
		}
		for _, n := range []int{canon.MaxDepth + 1, 12_000, 1_000_000} {
			if _, err := canon.Parse(nested(n)); !fault.HasCode(err, fault.LimitExceeded) {
				t.Errorf("Parse at %d: %v", n, err)
			}
			if err := canon.Verify(nested(n)); !fault.HasCode(err, fault.LimitExceeded) {
				t.Errorf("Verify at %d: %v", n, err)
			}
		}
	}
	v := canon.OfArray()
	for range canon.MaxDepth {
		v = canon.OfArray(v)
	}
	if _, err := v.Append(nil); !fault.HasCode(err, fault.LimitExceeded) {
		t.Errorf("Append: %v", err)
	}
}

func TestNoCanonicalForm(t *testing.T) {
	t.Attr("requirement", "DV-003 DV-006")
	t.Parallel()
	for name, v := range map[string]canon.Value{
		"infinite":     canon.OfNumber(math.Inf(1)),
		"not a number": canon.OfNumber(math.NaN()),
		"broken text":  canon.OfString("a\xff"),
		"broken name":  canon.OfObject(canon.Item{Name: "\xed\xa0"}),
		"inside":       canon.OfArray(canon.OfObject(canon.Item{Name: "a", Value: canon.OfNumber(math.Inf(-1))})),
	} {
		got, err := v.Append([]byte("kept"))
		if !errors.Is(err, canon.ErrUnsupported) || string(got) != "kept" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	pair := canon.OfString("\xed\xa0\xb4" + "\xed\xb4\x9e") // two strings joined
	if got, err := pair.Append(nil); err != nil || string(got) != "\"\U0001d11e\"" {
		t.Errorf("joined halves: %q, %v", got, err)
	}
}

func TestVisit(t *testing.T) {
	t.Attr("requirement", "DV-007 DV-011")
	t.Parallel()
	var got []string
	note := func(name, value []byte) { got = append(got, string(name)+"="+string(value)) }
	err := canon.Visit([]byte(`{"a":[{"x":1},{"y":2}],"b":{"c":{"d":3}},"c":"}\"","\ud800":-1.5}`), note)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`a=[{"x":1},{"y":2}]`, `b={"c":{"d":3}}`, `c="}\""`, `\ud800=-1.5`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = nil
	for _, other := range []string{`[{"a":1}]`, `{}`, `1`} {
		if err := canon.Visit([]byte(other), note); err != nil || got != nil {
			t.Errorf("%s: %q, %v", other, got, err)
		}
	}
}

// FuzzCanonicalize compares with jsontext wherever that agrees on what JSON is, and
// elsewhere holds the package to its own contract.
func FuzzCanonicalize(f *testing.F) {
	for _, v := range vectors(f) {
		if len(v.input) < 2048 {
			f.Add([]byte(v.input))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		form, err := canon.Canonicalize(nil, text)
		strict := jsontext.Value(slices.Clone(text))
		if err != nil {
			if _, ok := err.(*fault.Error); !ok {
				t.Fatalf("not a fault: %v", err)
			}
			if strict.IsValid() && !errors.Is(err, canon.ErrUnsupported) && !fault.HasCode(err, fault.LimitExceeded) {
				t.Fatalf("refused, though JSON: %v", err)
			}
			return
		}
		if strict.IsValid() {
			if err := strict.Canonicalize(); err != nil {
				t.Fatal(err)
			}
			if string(strict) != string(form) {
				t.Fatalf("form %s, want %s", form, strict)
			}
		}
		if err := canon.Verify(form); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if (canon.Verify(text) == nil) != (string(text) == string(form)) {
			t.Fatalf("Verify(%s) = %v, form %s", text, canon.Verify(text), form)
		}
	})
}
