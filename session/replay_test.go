package session_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/session"
)

var update = flag.Bool("update", false, "write the folds of testdata/*.jsonl anew")

// line is a stored event as the recorded streams hold it.
type line struct {
	Kind    event.Kind      `json:"kind"`
	Version int             `json:"version"`
	AtMS    int64           `json:"at_ms"`
	Payload json.RawMessage `json:"payload"`
}

// Recorded streams stay readable for ever, and those that must be refused stay
// refused at the same event.
func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) < 6 {
		t.Fatalf("only %d recorded streams (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			t.Parallel()
			state, refused := replay(t, file)
			if must := strings.HasPrefix(filepath.Base(file), "refused-"); must != (refused != "") {
				t.Fatalf("refused with %q, by its name it should be %t", refused, must)
			}
			got, err := json.MarshalIndent(struct {
				Refused string        `json:"refused"`
				State   session.State `json:"state"`
			}{refused, state}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := strings.TrimSuffix(file, ".jsonl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the fold has changed; if a new rule is meant, give it a number first\n%s", diff)
			}
		})
	}
}

func replay(t *testing.T, file string) (s session.State, refused string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for seq := int64(1); lines.Scan(); seq++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("line %d: %v", seq, err)
		}
		p, err := event.Decode(l.Kind, l.Version, l.Payload)
		if err != nil {
			// The JSON package draws one of two wordings per process, on purpose.
			return s, strings.ReplaceAll(err.Error(), "json: unable to ", "json: cannot ")
		}
		if s, err = session.Apply(s, session.Recorded{Seq: seq, AtMS: l.AtMS, Payload: p}); err != nil {
			return s, err.Error()
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return s, ""
}
