package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/journaltest"
)

// tampered is a store whose rows can be changed behind its back.
type tampered struct {
	*journaltest.Memory
	events []journal.Stored
	heads  []journal.Head
	err    error // of the second page of events
}

func (s *tampered) ByID(_ context.Context, after int64, _ int) ([]journal.Stored, error) {
	if s.err != nil && after > 0 {
		return nil, s.err
	}
	i := slices.IndexFunc(s.events, func(e journal.Stored) bool { return e.ID > after })
	if i < 0 {
		return nil, nil
	}
	return s.events[i:min(i+3, len(s.events))], nil
}

func (s *tampered) Heads(_ context.Context, after string, _ int) ([]journal.Head, error) {
	i := slices.IndexFunc(s.heads, func(h journal.Head) bool { return h.Stream > after })
	if i < 0 {
		return nil, nil
	}
	return s.heads[i:], nil
}

func (s *tampered) cut(keep func(journal.Stored) bool) {
	s.events = slices.DeleteFunc(s.events, func(e journal.Stored) bool { return !keep(e) })
}

// rehead makes the heads agree with the events, as a careful forger would.
func (s *tampered) rehead() {
	ends := map[string]journal.Head{}
	for _, e := range s.events {
		ends[e.Stream] = journal.Head{Stream: e.Stream, Seq: e.Seq, ID: e.ID, Digest: e.Digest}
	}
	s.heads = slices.DeleteFunc(s.heads, func(h journal.Head) bool { _, ok := ends[h.Stream]; return !ok })
	for i, h := range s.heads {
		s.heads[i] = ends[h.Stream]
	}
}

// rechain makes the digests agree with the content, as a careful forger would.
func (s *tampered) rechain() {
	chain := journal.NewChain()
	last := map[string]journal.Digest{}
	for i := range s.events {
		e := &s.events[i]
		e.Prev = last[e.Stream]
		e.Digest = chain.Link(e.Prev, e.Stream, e.Seq, &e.Event)
		last[e.Stream] = e.Digest
	}
	s.rehead()
}

// sample holds a 1…5 and b 1…3, interleaved, and the anchor taken after a 3, b 2.
func sample(t *testing.T) (*tampered, journal.Anchor) {
	t.Helper()
	m := journaltest.NewMemory(nil)
	var anchor journal.Anchor
	at := map[string]int64{}
	for i, stream := range []string{"a", "b", "a", "b", "a", "b", "a", "a"} {
		if i == 5 {
			var err error
			if anchor, err = journal.TakeAnchor(t.Context(), m, 1); err != nil {
				t.Fatal(err)
			}
		}
		_, err := m.Commit(t.Context(), journal.Batch{ID: fmt.Sprint(i), Append: []journal.Append{{
			Stream: stream, Head: at[stream], Events: []journal.Event{{Kind: "k", Version: 1, Payload: []byte{byte(i)}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		at[stream]++
	}
	s := &tampered{Memory: m}
	var err error
	if s.events, err = m.ByID(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	if s.heads, err = m.Heads(t.Context(), "", 0); err != nil {
		t.Fatal(err)
	}
	return s, anchor
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		tamper   func(*tampered)
		anchored bool
		code     fault.Code
		stream   string
		seq      int64
	}{
		{"untouched", func(*tampered) {}, false, "", "", 0},
		{"untouched, anchored", func(*tampered) {}, true, "", "", 0},
		{"payload", func(s *tampered) { s.events[2].Payload = []byte("forged") }, false, fault.Altered, "a", 2},
		{"time", func(s *tampered) { s.events[2].AtMS++ }, false, fault.Altered, "a", 2},
		{"kind", func(s *tampered) { s.events[1].Kind = "l" }, false, fault.Altered, "b", 1},
		{"causes", func(s *tampered) { s.events[1].Causes = []journal.Ref{{Stream: "a", Seq: 1}} }, false, fault.Altered, "b", 1},
		{"digest", func(s *tampered) { s.events[7].Digest[0]++ }, false, fault.Altered, "a", 5},
		{"prev", func(s *tampered) { s.events[4].Prev[0]++ }, false, fault.Altered, "a", 3},
		{"moved to another stream", func(s *tampered) { s.events[7].Stream, s.events[7].Seq = "b", 4 }, false, fault.Altered, "b", 4},
		{"swapped", func(s *tampered) { s.events[2], s.events[4] = s.events[4], s.events[2] }, false, fault.Altered, "a", 3},
		{"one in the middle gone", func(s *tampered) { s.cut(func(e journal.Stored) bool { return e.ID != 5 }) }, false, fault.Altered, "a", 4},
		{"content and digests, not heads", func(s *tampered) {
			heads := slices.Clone(s.heads)
			s.events[7].Payload = []byte("forged")
			s.rechain()
			s.heads = heads
		}, false, fault.Altered, "a", 5},
		{"added past the head", func(s *tampered) {
			e := journal.Stored{ID: 9, Stream: "a", Seq: 6, Event: journal.Event{Kind: "k", Version: 1}}
			s.events = append(s.events, e)
			heads := slices.Clone(s.heads)
			s.rechain()
			s.heads = heads
		}, false, fault.Altered, "a", 6},
		{"last one gone", func(s *tampered) { s.cut(func(e journal.Stored) bool { return e.ID != 8 }) }, false, fault.Truncated, "a", 4},
		{"stream gone, its head left", func(s *tampered) { s.cut(func(e journal.Stored) bool { return e.Stream != "b" }) }, false, fault.Truncated, "b", 0},
		{"all events gone, heads left", func(s *tampered) { s.events = nil }, false, fault.Truncated, "a", 0},

		// A forger who mends digests and heads is caught by what was signed only.
		{"mended content", func(s *tampered) { s.events[2].Payload = []byte("forged"); s.rechain() }, true, fault.Altered, "a", 3},
		{"mended content, no anchor", func(s *tampered) { s.events[2].Payload = []byte("forged"); s.rechain() }, false, "", "", 0},
		{"mended cut below the anchor", func(s *tampered) { s.cut(func(e journal.Stored) bool { return e.ID < 4 }); s.rehead() }, true, fault.Truncated, "a", 2},
		{"mended cut above the anchor", func(s *tampered) { s.cut(func(e journal.Stored) bool { return e.ID < 6 }); s.rehead() }, true, "", "", 0},
		{"stream and head gone", func(s *tampered) { s.cut(func(e journal.Stored) bool { return e.Stream != "b" }); s.rehead() }, true, fault.Truncated, "b", 0},
		{"whole log gone", func(s *tampered) { s.events = nil; s.rehead() }, true, fault.Truncated, "a", 0},
		{"whole log gone, no anchor", func(s *tampered) { s.events = nil; s.rehead() }, false, "", "", 0},

		{"unreadable", func(s *tampered) { s.err = errors.New("disk") }, false, fault.Unavailable, "", 0},
		{"unreadable, but altered before", func(s *tampered) { s.err = errors.New("disk"); s.events[0].AtMS++ }, true, fault.Altered, "a", 1},
		{"cut and altered", func(s *tampered) {
			s.events[1].AtMS++
			s.cut(func(e journal.Stored) bool { return e.ID != 8 })
		}, false, fault.Altered, "b", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, anchor := sample(t)
			c.tamper(s)
			var anchors []journal.Anchor
			if c.anchored {
				anchors = append(anchors, anchor)
			}
			r := journal.Verify(t.Context(), s, anchors)
			if r.Code() != c.code {
				t.Fatalf("verdict %q, want %q: %+v", r.Code(), c.code, r)
			}
			if c.code == "" {
				if r.Events != int64(len(s.events)) || r.Streams != int64(len(s.heads)) {
					t.Errorf("%d events in %d streams, want %d in %d", r.Events, r.Streams, len(s.events), len(s.heads))
				}
				return
			}
			if f := r.Findings[0]; f.Stream != c.stream || f.Seq != c.seq {
				t.Errorf("first finding %+v, want %q %d", f, c.stream, c.seq)
			}
		})
	}
}

func TestVerifyCountsAnchoredPoints(t *testing.T) {
	t.Parallel()
	s, anchor := sample(t)
	if r := journal.Verify(t.Context(), s, []journal.Anchor{anchor, anchor}); r.Anchored != 4 || r.Code() != "" {
		t.Errorf("report %+v, want 4 anchored points", r)
	}
}

func TestReportKeepsTheWorstOfMany(t *testing.T) {
	t.Parallel()
	v := journal.NewVerifier()
	for i := range 3 * journal.MaxFindings {
		v.Expect(journal.Head{Stream: fmt.Sprintf("s%03d", i), Seq: 1})
	}
	v.Event(&journal.Stored{Stream: "x", Seq: 2})
	v.Unchecked("", errors.New("disk"))
	r := v.End(nil)
	if r.Code() != fault.Altered || len(r.Findings) != journal.MaxFindings || r.Total != 3*journal.MaxFindings+2 {
		t.Errorf("verdict %q, %d findings of %d", r.Code(), len(r.Findings), r.Total)
	}
}

func TestAnchorText(t *testing.T) {
	t.Parallel()
	a := journal.Anchor{AtMS: 1_700_000_000_000, Events: 12, Heads: []journal.Head{
		{Stream: "name with spaces", Seq: 5, ID: 11, Digest: journal.Digest{1}},
		{Stream: "ü", Seq: 7, ID: 12, Digest: journal.Digest{2}},
	}}
	head, err := journal.ParseAnchorText(a.Text())
	if err != nil {
		t.Fatal(err)
	}
	got, err := journal.ParseAnchorList(head, a.List())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, got); diff != "" {
		t.Errorf("anchor (-want +got):\n%s", diff)
	}
	list := a.List()
	list[0]++
	if _, err := journal.ParseAnchorList(head, list); !fault.HasCode(err, fault.Altered) {
		t.Errorf("changed list: %v", err)
	}
	for _, text := range []string{"", "x", string(a.Text()) + "more\n", string(a.Text()[1:])} {
		if _, err := journal.ParseAnchorText([]byte(text)); !fault.HasCode(err, fault.Altered) {
			t.Errorf("text %q: %v", text, err)
		}
	}
}
