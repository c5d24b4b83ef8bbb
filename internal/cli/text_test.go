package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/internal/cli"
)

func TestDefaultSession(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"/srv/ann/Proj_1.x": "Proj_1.x-",
		"/srv/ann/a b/ü":    "_-",
		"/":                 "_-",
	} {
		got := cli.DefaultSession(dir)
		if !strings.HasPrefix(got, want) || len(got) != len(want)+6 {
			t.Errorf("DefaultSession(%q) = %q, want %q and 6 digits", dir, got, want)
		}
	}
	if cli.DefaultSession("/a/work") == cli.DefaultSession("/b/work") {
		t.Error("two directories of one name share a session")
	}
	if n := len(cli.DefaultSession("/" + strings.Repeat("x", 500))); n > 128 {
		t.Errorf("a session id of %d bytes is over what the wire takes", n)
	}
}

func TestNothingSteersATerminal(t *testing.T) {
	t.Parallel()
	if got := cli.Visible("a\x1b[2Jb\nc\u202ed\x00"); got != `a\x1b[2Jb ⏎ c\x202ed\x00` {
		t.Errorf("Visible = %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for _, out := range []string{cli.Visible(s), strings.ReplaceAll(cli.Inert(s), "\n", "")} {
			for _, r := range out {
				if unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%q lets %q through", out, r)
				}
			}
		}
	})
}

// However the bytes arrive, the text that comes out is the same and nothing is lost.
func TestInertCopyInPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(1, 2000).Draw(t, "times"))
		var out bytes.Buffer
		n, err := cli.CopyText(&out, iotest.OneByteReader(strings.NewReader(s)))
		if err != nil || n != int64(len(s)) || out.String() != cli.Inert(s) {
			t.Fatalf("%d of %d bytes, %v: %q became %q", n, len(s), err, s, out.String())
		}
	})
	var out bytes.Buffer
	if n, err := cli.CopyText(&out, strings.NewReader("a\xffb\xe2\x82")); err != nil || n != 5 || !utf8.ValidString(out.String()) {
		t.Errorf("%d, %v, %q: bytes that are no text", n, err, out.String())
	}
}

func TestQuantities(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0ms", 999 * time.Millisecond: "999ms", 1500 * time.Millisecond: "1.5s",
		59 * time.Second: "59s", 61 * time.Second: "1m01s", 3700 * time.Second: "1h01m", 72 * time.Hour: "3d",
	} {
		if got := cli.Span(d); got != want {
			t.Errorf("Span(%s) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 40: "5.0 TiB", 7 << 60: "7168.0 PiB"} {
		if got := cli.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
	if got := cli.Clip("äöüß", 3); got != "äö…" {
		t.Errorf("Clip = %q", got)
	}
}
