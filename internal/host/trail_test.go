package host_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
	"github.com/reeve-run/reeve/journal"
)

// auditIDs asks audit.query and gives the event ids of its rows.
func auditIDs(t *testing.T, c *host.Core, args string) []int64 {
	t.Helper()
	e := ask(t, c, "s", t.TempDir(), "audit.query("+args+")")
	var got struct {
		Items []struct {
			EventID int64  `json:"event_id"`
			Verb    string `json:"verb"`
		} `json:"items"`
	}
	if e.Status != "success" {
		t.Fatalf("%s: %+v", args, e)
	}
	if err := json.Unmarshal(e.Results[0].Result, &got); err != nil {
		t.Fatal(err)
	}
	ids := []int64{}
	for _, r := range got.Items {
		ids = append(ids, r.EventID)
	}
	return ids
}

// The audit rows are told from the latest back, in order, or from a place on; of
// a long trail only what is asked for is read.
func TestAuditIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	r, u := newRig(t), newUnruly()
	counting := &counted{unruly: u, read: map[string]int{}}
	r.store = func() journal.Store { return counting }
	c := r.open(t)
	for range 300 {
		ask(t, c, "s", r.workspace, "stats()")
	}
	var ids []int64
	var stream string
	for h, err := range journal.AllHeads(t.Context(), u) {
		if err != nil {
			t.Fatal(err)
		}
		if h.Stream[:6] == "audit/" {
			stream = h.Stream
		}
	}
	for e, err := range journal.Stream(t.Context(), u, stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if len(ids) != 300 {
		t.Fatalf("%d rows, want 300", len(ids))
	}
	for args, want := range map[string][]int64{
		`verb="stats"`:                                  ids[250:],
		`verb="stats", limit=3`:                         ids[297:],
		`verb="stats", limit=500`:                       ids,
		fmt.Sprintf(`limit=2, after=%d`, ids[0]):        ids[1:3],
		fmt.Sprintf(`verb="stats", after=%d`, ids[299]): {},
		`verb="stats", actor="operator:nobody"`:         {},
	} {
		if got := auditIDs(t, c, args); !slices.Equal(got, want) {
			t.Errorf("audit.query(%s) gives %v, want %v", args, got, want)
		}
	}
	counting.mu.Lock()
	counting.read = map[string]int{}
	counting.mu.Unlock()
	auditIDs(t, c, "limit=1")
	counting.mu.Lock()
	defer counting.mu.Unlock()
	if n := counting.read[stream]; n == 0 || n > 100 {
		t.Errorf("%d rows were read for the latest one", n)
	}
}

// An act is shown with what was recorded of it, wherever in the stream it lies, and
// of acts done later nothing is mixed in.
func TestAnActIsShownWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(t)
	dir := t.TempDir()
	var acts []string
	for i := range 5 {
		ask(t, c, "s", dir, fmt.Sprintf(`workspace.write(path="f%d", content="%d")`, i, i))
		for range 20 {
			r.run(t, c, "s", "1")
		}
	}
	var listed struct {
		Items []struct {
			Act string `json:"act"`
		} `json:"items"`
	}
	if err := json.Unmarshal(ask(t, c, "s", dir, `act.list()`).Results[0].Result, &listed); err != nil || len(listed.Items) != 5 {
		t.Fatalf("%+v, %v", listed, err)
	}
	for _, it := range listed.Items {
		acts = append(acts, it.Act)
	}
	slices.Reverse(acts) // the latest is listed first
	digests := map[int64]string{}
	finished := control.EventQuery{Session: "s", Kinds: []string{string(event.ActFinished)}, Max: 10}
	if err := c.Events(t.Context(), finished, func(e control.EventRow) error { digests[e.ID] = e.Digest; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, id := range acts {
		var shown struct {
			Act      string `json:"act"`
			Intended int64  `json:"intended_event"`
			Finished int64  `json:"finished_event"`
			Digest   string `json:"digest"`
			Changes  []struct {
				Path string `json:"path"`
			} `json:"changes"`
		}
		e := ask(t, c, "s", dir, `act.show(id="`+id+`")`)
		if err := json.Unmarshal(e.Results[0].Result, &shown); err != nil {
			t.Fatalf("%s: %+v, %v", id, e, err)
		}
		want := fmt.Sprintf("f%d", i)
		if shown.Act != id || shown.Intended == 0 || shown.Finished <= shown.Intended || len(shown.Changes) != 1 || shown.Changes[0].Path != want {
			t.Errorf("act %d: %+v, want a change of %s", i, shown, want)
		}
		if shown.Digest == "" || shown.Digest != digests[shown.Finished] {
			t.Errorf("act %d: digest %s, want that of event %d, %s", i, shown.Digest, shown.Finished, digests[shown.Finished])
		}
	}
}
