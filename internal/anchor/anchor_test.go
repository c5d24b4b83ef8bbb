package anchor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/anchor"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/journaltest"
)

func at(n int) time.Time { return time.UnixMilli(1_700_000_000_000 + int64(n)) }

// filled holds n events in each of the streams a and b.
func filled(t *testing.T, n int) *journaltest.Memory {
	t.Helper()
	m := journaltest.NewMemory(nil)
	for i := range n {
		for _, stream := range []string{"a", "b"} {
			_, err := m.Commit(t.Context(), journal.Batch{ID: fmt.Sprint(i), Append: []journal.Append{{
				Stream: stream, Head: int64(i), Events: []journal.Event{{Kind: "k", Version: 1, Payload: fmt.Append(nil, i)}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

func take(t *testing.T, d anchor.Dir, s journal.Store, n int) anchor.Taken {
	t.Helper()
	taken, err := d.Take(t.Context(), s, at(n))
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func TestTakeAndVerify(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "anchors")
	d := anchor.In(dir)
	long := filled(t, 5)
	taken := take(t, d, long, 0)
	if taken.Events != 10 || taken.Streams != 2 || !strings.HasPrefix(taken.Key, anchor.KeyName+"+") {
		t.Errorf("taken = %+v", taken)
	}
	if again := take(t, d, long, 1); again.Key != taken.Key {
		t.Errorf("second note has key %s, the first %s", again.Key, taken.Key)
	}
	if _, err := d.Take(t.Context(), long, at(1)); !fault.HasCode(err, fault.Conflict) {
		t.Errorf("two notes of one millisecond: %v", err)
	}
	for _, key := range []string{"", taken.Key} {
		if r := d.Verify(t.Context(), long, key); r.Code() != "" || r.Anchored != 4 {
			t.Errorf("verify: %+v", r)
		}
		if r := d.Verify(t.Context(), filled(t, 6), key); r.Code() != "" {
			t.Errorf("verify of a longer store: %+v", r)
		}
		for events, want := range map[int]fault.Code{4: fault.Truncated, 0: fault.Truncated} {
			if r := d.Verify(t.Context(), filled(t, events), key); r.Code() != want {
				t.Errorf("verify of a store cut to %d: %+v", events, r)
			}
		}
	}
	info, err := os.Stat(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("signing key has mode %v", info.Mode().Perm())
	}
}

func TestTamperedNotes(t *testing.T) {
	t.Parallel()
	_, strange, err := note.GenerateKey(bytes.NewReader(make([]byte, 64)), anchor.KeyName)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(suffix, from, to string) func(*testing.T, string, anchor.Taken) string {
		return func(t *testing.T, _ string, taken anchor.Taken) string {
			t.Helper()
			path := strings.TrimSuffix(taken.Path, ".note") + suffix
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(b), from) {
				t.Fatalf("no %q in %s", from, b)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(b), from, to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			return ""
		}
	}
	for _, c := range []struct {
		name   string
		tamper func(t *testing.T, dir string, taken anchor.Taken) (key string)
		code   fault.Code
	}{
		{"text", rewrite(".note", "events 10", "events 8"), fault.Altered},
		{"list", rewrite(".heads", "5 ", "4 "), fault.Altered},
		{"signature", rewrite(".note", "— ", "- "), fault.Altered},
		{"list gone", func(t *testing.T, _ string, taken anchor.Taken) string {
			t.Helper()
			if err := os.Remove(strings.TrimSuffix(taken.Path, ".note") + ".heads"); err != nil {
				t.Fatal(err)
			}
			return ""
		}, fault.Unavailable},
		{"another key", func(*testing.T, string, anchor.Taken) string { return strange }, fault.Unavailable},
		{"no key", func(*testing.T, string, anchor.Taken) string { return "nonsense" }, fault.Unavailable},
		{"key file gone", func(t *testing.T, dir string, _ anchor.Taken) string {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "key.pub")); err != nil {
				t.Fatal(err)
			}
			return ""
		}, fault.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := anchor.In(dir)
			s := filled(t, 5)
			key := c.tamper(t, dir, take(t, d, s, 0))
			if r := d.Verify(t.Context(), s, key); r.Code() != c.code {
				t.Errorf("verdict %q, want %q: %+v", r.Code(), c.code, r)
			}
		})
	}
}

func TestLostKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := anchor.In(dir)
	s := filled(t, 1)
	take(t, d, s, 0)
	if err := os.Remove(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Take(t.Context(), s, at(1)); !fault.HasCode(err, fault.Altered) {
		t.Errorf("note with a lost key: %v", err)
	}
}

func TestNoAnchorsIsNoProblem(t *testing.T) {
	t.Parallel()
	if r := anchor.In(filepath.Join(t.TempDir(), "none")).Verify(t.Context(), filled(t, 1), ""); r.Code() != "" {
		t.Errorf("verify without anchors: %+v", r)
	}
}
