package host_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/session"
)

// snapshot copies what the store holds now into a store of its own, as the disk of
// a core that is killed here.
func (u *unruly) snapshot() *unruly {
	copied := newUnruly()
	var b journal.Batch
	for h, err := range journal.AllHeads(bg, u.Memory) {
		must(err)
		a := journal.Append{Stream: h.Stream}
		for e, err := range journal.Stream(bg, u.Memory, h.Stream, 0) {
			must(err)
			a.Events = append(a.Events, e.Event)
		}
		b.Append = append(b.Append, a)
	}
	for r, err := range journal.Records(bg, u.Memory, journal.Query{}) {
		must(err)
		r.Rev = 0
		b.Put = append(b.Put, r)
	}
	b.ID = "copy"
	_, err := copied.Memory.Commit(bg, b)
	must(err)
	return copied
}

// row is what a cell's record must say by the stream.
type row struct {
	State                      string
	StartedSeq, CompletedSeq   int64
	LateSeqs                   []int64
	Execution, Generation, Who string
}

// checkFold folds the session's stream from its start and compares what the store
// keeps beside it, the session's record and its cells', with what the stream says.
// It returns the state.
func checkFold(t *testing.T, s journal.Store, id string) session.State {
	t.Helper()
	var whole, half session.State
	want := map[string]row{}
	snap := snapshotOf(t, s, id)
	for _, e := range mustEvents(t, s, id) {
		p, err := event.Decode(event.Kind(e.Kind), e.Version, e.Payload)
		if err == nil {
			whole, err = session.Apply(whole, session.Recorded{Seq: e.Seq, AtMS: e.AtMS, Payload: p})
		}
		if err != nil {
			t.Fatal(err)
		}
		if whole.Seq == snap.Seq {
			half = whole
		}
		switch p := p.(type) {
		case event.CellStartedV1:
			want[p.Cell] = row{State: "running", StartedSeq: e.Seq, Execution: p.Execution, Generation: p.Generation, Who: p.By.Name}
		case event.CellCompletedV2:
			r := want[p.Cell]
			if r.CompletedSeq != 0 {
				t.Errorf("cell %s completed twice", p.Cell)
			}
			r.State, r.CompletedSeq = string(p.Status), e.Seq
			want[p.Cell] = r
		case event.CellLateOutputV1:
			r := want[p.Cell]
			r.LateSeqs = append(r.LateSeqs, e.Seq)
			want[p.Cell] = r
		}
	}
	if diff := cmp.Diff(half, snap, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the session's record is not the fold up to event %d: %s", snap.Seq, diff)
	}
	if whole.Live() != snap.Live() {
		t.Errorf("the session's record says live %t, its stream %t", snap.Live(), whole.Live())
	}
	if diff := cmp.Diff(want, rowsOf(t, s, id), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the cells' records are not the fold: %s", diff)
	}
	return whole
}

func snapshotOf(t *testing.T, s journal.Store, id string) session.State {
	t.Helper()
	rows, err := s.Find(bg, journal.Query{Kind: "session", KeyPrefix: id, Session: id})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d session records, %v", len(rows), err)
	}
	var body struct {
		State session.State `json:"state"`
	}
	if err := json.Unmarshal(rows[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body.State
}

func rowsOf(t *testing.T, s journal.Store, id string) map[string]row {
	t.Helper()
	got := map[string]row{}
	for r, err := range journal.Records(bg, s, journal.Query{Kind: "cell", Session: id}) {
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Execution    string      `json:"execution"`
			Generation   string      `json:"generation"`
			StartedSeq   int64       `json:"started_seq"`
			CompletedSeq int64       `json:"completed_seq"`
			LateSeqs     []int64     `json:"late_seqs"`
			By           event.Actor `json:"by"`
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		got[r.Key] = row{r.State, body.StartedSeq, body.CompletedSeq, body.LateSeqs, body.Execution, body.Generation, body.By.Name}
	}
	return got
}
