package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

func rowsFor(t *testing.T, c *host.Core, q control.EventQuery) []control.EventRow {
	t.Helper()
	var rows []control.EventRow
	if err := c.Events(t.Context(), q, func(e control.EventRow) error { rows = append(rows, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

func kindsOf(rows []control.EventRow) []string {
	var all []string
	for _, e := range rows {
		all = append(all, e.Kind)
	}
	return all
}

func TestEventsAreSelected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "a", "1")
	r.run(t, c, "b", "needle = 1/0")
	r.run(t, c, "a", "2")
	all := rowsFor(t, c, control.EventQuery{Not: []string{"audit.dispatch"}})
	if len(all) != 10 || all[0].ID >= all[1].ID || all[0].Digest == "" || all[0].Stream != "session/a" {
		t.Fatalf("all: %+v", all)
	}
	for name, q := range map[string]struct {
		query control.EventQuery
		want  []string
	}{
		"session":   {control.EventQuery{Session: "b"}, []string{"session.opened", "kernel.reset", "cell.started", "cell.completed"}},
		"stream":    {control.EventQuery{Stream: "session/b", AfterID: all[5].ID}, []string{"cell.started", "cell.completed"}},
		"kinds":     {control.EventQuery{Kinds: []string{"kernel.reset"}}, []string{"kernel.reset", "kernel.reset"}},
		"not kinds": {control.EventQuery{Session: "b", Not: []string{"cell.started", "cell.completed"}}, []string{"session.opened", "kernel.reset"}},
		"failed":    {control.EventQuery{Failed: true}, []string{"cell.completed"}},
		"text":      {control.EventQuery{Grep: "needle", Kinds: []string{"cell.started"}}, []string{"cell.started"}},
		"after":     {control.EventQuery{AfterID: all[8].ID, Not: []string{"audit.dispatch"}}, []string{"cell.completed"}},
		"first":     {control.EventQuery{Max: 2}, []string{"session.opened", "kernel.reset"}},
		"since":     {control.EventQuery{Since: time.Now().Add(time.Hour)}, nil},
		"tail":      {control.EventQuery{Max: 3, Tail: true}, []string{"cell.started", "audit.dispatch", "cell.completed"}},
		"tail of b": {control.EventQuery{Session: "b", Max: 1, Tail: true}, []string{"cell.completed"}},
		"rare tail": {control.EventQuery{Kinds: []string{"session.opened"}, Max: 1, Tail: true}, []string{"session.opened"}},
		"long tail": {control.EventQuery{Session: "b", Max: 100, Tail: true, AfterID: all[5].ID}, []string{"cell.started", "cell.completed"}},
		"no tail":   {control.EventQuery{Session: "nobody", Tail: true}, nil},
		"no stream": {control.EventQuery{Session: "nobody"}, nil},
	} {
		if got := kindsOf(rowsFor(t, c, q.query)); !slices.Equal(got, q.want) {
			t.Errorf("%s: got %v, want %v", name, got, q.want)
		}
	}
	if err := c.Events(t.Context(), control.EventQuery{Session: "a", Stream: "session/b"}, nil); fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("two streams: %v", err)
	}
	enough := errors.New("enough")
	if err := c.Events(t.Context(), control.EventQuery{}, func(control.EventRow) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a reader that stops: %v", err)
	}
}

// A tail that is followed goes on where it ended, with nothing twice.
func TestATailIsFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	for range 20 {
		r.run(t, c, "s", "1")
	}
	ctx, stop := context.WithCancel(t.Context())
	var seqs []int64
	err := c.Events(ctx, control.EventQuery{Session: "s", Tail: true, Max: 2, Follow: true}, func(e control.EventRow) error {
		if seqs = append(seqs, e.Seq); len(seqs) == 2 {
			r.run(t, c, "s", "1")
		}
		if len(seqs) == 4 {
			stop()
		}
		return nil
	})
	if err != nil || !slices.Equal(seqs, []int64{41, 42, 43, 44}) {
		t.Errorf("followed %v, %v", seqs, err)
	}
}

// A follower that does not read slows nobody, and misses nothing when it goes on.
func TestAStuckFollowerSlowsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "1")
	ctx, stop := context.WithCancel(t.Context())
	goOn, ended := make(chan struct{}), make(chan error, 1)
	stuck := make(chan struct{})
	var seen []control.EventRow
	go func() {
		ended <- c.Events(ctx, control.EventQuery{Session: "s", Follow: true}, func(e control.EventRow) error {
			if len(seen) == 0 {
				close(stuck)
				<-goOn
			}
			if seen = append(seen, e); len(seen) == 404 {
				stop()
			}
			return nil
		})
	}()
	<-stuck
	for range 200 {
		r.run(t, c, "s", "x = 1")
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for i, e := range seen {
		if e.Seq != int64(i)+1 {
			t.Fatalf("row %d is event %d", i, e.Seq)
		}
	}
}

// D3, W28: the records beside the events say what the events say, after many
// cells, a lost worker, and a restart.
func TestRecordsAreTheFold(t *testing.T) {
	t.Parallel()
	r, u, c := unrulyRig(t)
	for i := range 150 {
		r.run(t, c, "s", "n"+itoa(i%7)+" = 1")
	}
	r.run(t, c, "s", "import os\nos._exit(1)")
	r.run(t, c, "s", "print('\\ud83d')\nn1")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	state := checkFold(t, u, "s")
	if state.Cells != 153 || state.Phase != "stopped" {
		t.Errorf("state %+v", state)
	}
	c = r.open(t)
	row, err := c.Session(t.Context(), "s")
	if err != nil || row.Cells != 153 || row.Head != state.Seq {
		t.Errorf("after a restart: %+v, %v", row, err)
	}
}

// D17: what was altered, what was cut off, and what could not be checked are three
// answers.
func TestVerifyTellsAlteredFromTruncated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	r.run(t, c, "s", "1")
	fresh, err := c.Verify(t.Context())
	if err != nil || fresh.Code != "" || fresh.Events != 5 || len(fresh.Warnings) != 1 {
		t.Errorf("without anchors: %+v, %v", fresh, err)
	}
	a, err := c.Anchor(t.Context())
	if err != nil || a.Events != 5 || a.Streams != 2 || a.Key == "" {
		t.Errorf("anchor %+v, %v", a, err)
	}
	sound, err := c.Verify(t.Context())
	if err != nil || sound.Code != "" || sound.Anchors == 0 || len(sound.Warnings) != 0 {
		t.Errorf("with anchors: %+v, %v", sound, err)
	}
	if _, err := host.VerifyDir(t.Context(), r.dir); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("beside a core: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := host.VerifyDir(t.Context(), r.dir); err != nil || got.Code != "" || got.Events != 6 {
		t.Errorf("offline: %+v, %v", got, err)
	}
	if u, err := host.UsageDir(t.Context(), r.dir); err != nil || u.Events != 6 || u.DatabaseBytes == 0 {
		t.Errorf("offline usage: %+v, %v", u, err)
	}
	sql(t, r.dir, `DROP TRIGGER events_are_not_deleted; DELETE FROM events WHERE seq > 3`)
	if got, err := host.VerifyDir(t.Context(), r.dir); err != nil || got.Code != string(fault.Truncated) || got.Stream != "session/s" {
		t.Errorf("cut off: %+v, %v", got, err)
	}
	sql(t, r.dir, `DROP TRIGGER events_are_not_updated; UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'ada', 'eve') AS BLOB) WHERE seq = 1`)
	if got, err := host.VerifyDir(t.Context(), r.dir); err != nil || got.Code != string(fault.Altered) || got.Seq != 1 {
		t.Errorf("altered: %+v, %v", got, err)
	}
}

// Code and output kept as artifacts are as much a part of the record as events.
func TestVerifyChecksArtifacts(t *testing.T) {
	t.Parallel()
	for _, damage := range []struct {
		name string
		do   func(path string) error
	}{
		{"altered", func(path string) error {
			if err := os.Chmod(path, 0o600); err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("!"), 5)
			return errors.Join(err, f.Close())
		}},
		{"missing", os.Remove},
	} {
		for _, kind := range []string{"cell.started", "cell.completed"} {
			t.Run(damage.name+" of "+kind, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				c := r.open(t)
				res := r.run(t, c, "s", "#"+strings.Repeat("c", 20000)+"\nprint('k'*300000)")
				if got, err := c.Verify(t.Context()); err != nil || got.Code != "" || got.Artifacts != 2 {
					t.Fatalf("undamaged: %+v, %v", got, err)
				}
				row := rowsFor(t, c, control.EventQuery{Session: "s", Kinds: []string{kind}})[0]
				sum := res.Spool.SHA256
				if kind == "cell.started" {
					var p event.CellStartedV1
					if err := json.Unmarshal(row.Payload, &p); err != nil {
						t.Fatal(err)
					}
					sum = p.CodeSHA256
				}
				if err := damage.do(filepath.Join(r.dir, "artifacts", sum[:2], sum[2:])); err != nil {
					t.Fatal(err)
				}
				online, err := c.Verify(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				offline, err := host.VerifyDir(t.Context(), r.dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, got := range []control.VerifyReport{online, offline} {
					if got.Code != string(fault.Altered) || got.Stream != row.Stream || got.Seq != row.Seq ||
						!strings.Contains(got.Text, sum) || got.Artifacts != 2 {
						t.Errorf("want %s event %d: %+v", row.Stream, row.Seq, got)
					}
				}
			})
		}
	}
}

func sql(t *testing.T, dir, script string) {
	t.Helper()
	conn, err := sqlite.OpenConn(dir+"/reeve.db", sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteScript(conn, script, nil); err != nil {
		t.Fatal(err)
	}
}
