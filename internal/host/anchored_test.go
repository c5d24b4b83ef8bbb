package host_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/host"
)

// D17: a core does not go on with a journal that lacks what a note has signed, and
// does so when the operator has put the notes away.
func TestStartRefusesAJournalShorterThanSigned(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(t *testing.T, dir string)
		want  fault.Code
	}{
		"gone":    {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "reeve.db")) }, fault.Truncated},
		"emptied": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "reeve.db"), nil) }, fault.Truncated},
		"older":   {func(t *testing.T, dir string) { rename(t, dir+"/reeve.db.old", dir+"/reeve.db") }, fault.Truncated},
		"another, longer one": {func(t *testing.T, dir string) {
			r := newRig(t)
			if err := os.MkdirAll(r.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			copyFile(t, dir+"/host.json", r.dir+"/host.json") // the same streams
			c := r.open(t)
			for range 5 {
				r.run(t, c, "s", "1")
			}
			closeCore(t, c)
			rename(t, r.dir+"/reeve.db", dir+"/reeve.db")
		}, fault.Altered},
		"older, and the last note spoiled": {func(t *testing.T, dir string) {
			rename(t, dir+"/reeve.db.old", dir+"/reeve.db")
			notes, err := filepath.Glob(dir + "/anchors/*.note")
			if err != nil || len(notes) != 2 {
				t.Fatal(notes, err)
			}
			write(t, notes[1], []byte("no note\n"))
		}, fault.Truncated},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.config.Limits.StopGrace = 0
			c := r.open(t)
			r.run(t, c, "s", "1")
			closeCore(t, c)
			copyFile(t, r.dir+"/reeve.db", r.dir+"/reeve.db.old")
			c = r.open(t)
			r.run(t, c, "s", "2")
			for range 2 {
				if _, err := c.Anchor(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			closeCore(t, c)
			c = r.open(t) // further than signed is right
			closeCore(t, c)

			tt.spoil(t, r.dir)
			_, before := os.Stat(r.dir + "/reeve.db")
			o := host.Options{Dir: r.dir, Config: r.config, Log: slog.New(slog.DiscardHandler)}
			_, err := host.Open(t.Context(), o)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != tt.want || !strings.Contains(err.Error(), "reeve.db") {
				t.Fatalf("Open = %v, want %s", err, tt.want)
			}
			if _, after := os.Stat(r.dir + "/reeve.db"); errors.Is(before, fs.ErrNotExist) != errors.Is(after, fs.ErrNotExist) {
				t.Errorf("the file: before %v, after %v", before, after)
			}
			verdict := tt.want
			if strings.Contains(name, "spoiled") {
				verdict = fault.Altered // of the note, which is the graver
			}
			if r, err := host.VerifyDir(t.Context(), r.dir); err != nil || r.Code != string(verdict) {
				t.Errorf("verify: %+v, %v", r, err)
			}
			_, accept, found := strings.Cut(f.Next, "as it is, ")
			if out, err := exec.Command("/bin/sh", "-c", accept).CombinedOutput(); !found || err != nil {
				t.Fatalf("%q: %v\n%s", f.Next, err, out)
			}
			c = r.open(t)
			closeCore(t, c)
		})
	}
}

func closeCore(t *testing.T, c *host.Core) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, b)
}
