package work_test

import (
	"strings"
	"testing"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/work"
)

func TestEnvelopeVectors(t *testing.T) {
	t.Parallel()
	for _, c := range vectorLines(t, "envelopes.jsonl") {
		t.Run(text(t, c, "name"), func(t *testing.T) {
			expect := member(t, c, "expect")
			accepted := text(t, expect, "envelope") == "accepted"
			t.Attr("requirement", cites(t, expect, accepted))
			t.Parallel()
			raw := []byte(text(t, c, "text"))
			e := work.Parse(raw)
			if !accepted {
				refusal := e.Refusal()
				if refusal == nil || string(refusal.Code) != text(t, expect, "code") {
					t.Fatalf("refusal %v, want %s", refusal, text(t, expect, "code"))
				}
				if got, want := identity(e.Observed()), string(form(t, member(t, expect, "observedIdentity"))); got != want {
					t.Errorf("observed %s, want %s", got, want)
				}
				return
			}
			checkEnvelope(t, e, expect)
			// Stored text is the canonical one, and reads the same.
			if again := work.Parse([]byte(e.Text())); again.Refusal() != nil || again.Text() != e.Text() {
				t.Errorf("the canonical text reads otherwise: %v", again.Refusal())
			}
		})
	}
}

func checkEnvelope(t *testing.T, e *work.Entry, expect canon.Value) {
	t.Helper()
	if e.Refusal() != nil {
		t.Fatal(e.Refusal())
	}
	if string(e.Digest) != text(t, expect, "eventSha256") {
		t.Errorf("digest %s", e.Digest)
	}
	if got := canon.Hash([]byte(e.Text())); got != text(t, expect, "canonicalSha256") || len(e.Text()) != number(t, expect, "canonicalUtf8Bytes") {
		t.Errorf("canonical text of %d bytes hashes to %s", len(e.Text()), got)
	}
	p, refusal := e.Payload()
	if text(t, expect, "payload") == "accepted" {
		if refusal != nil || p == nil || string(e.Kind) != text(t, expect, "kind") {
			t.Errorf("payload %T of %s refused: %v", p, e.Kind, refusal)
		}
		return
	}
	if refusal == nil || p != nil || string(refusal.Code) != text(t, expect, "payloadCode") {
		t.Errorf("payload %T, refusal %v, want %s", p, refusal, text(t, expect, "payloadCode"))
	}
}

// cites is what a case shows: of an envelope its own rules, of a payload those of its
// kind.
func cites(t *testing.T, expect canon.Value, accepted bool) string {
	t.Helper()
	if accepted {
		return "DV-034 DV-080 DV-082 DV-083 DV-400"
	}
	if text(t, expect, "code") == "unsupported-protocol" {
		return "DV-084 DV-155"
	}
	return "DV-081 DV-155"
}

// identity writes an identity as the vectors do.
func identity(o work.Identity) string {
	var members []canon.Item
	add := func(name string, s *string) {
		if s != nil {
			members = append(members, canon.Item{Name: name, Value: canon.OfString(*s)})
		}
	}
	add("protocolVersion", o.Protocol)
	add("eventId", o.Event)
	add("workScopeId", o.Scope)
	add("eventSha256", o.Digest)
	b, err := canon.OfObject(members...).Append(nil)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// payloadRequirements is where each kind's shape is stated.
var payloadRequirements = map[work.Kind]string{
	work.ScopeOpened: "DV-110", work.ScopeClosed: "DV-111 DV-053", work.ChangeAuthorized: "DV-112 DV-049",
	work.LandingRecorded: "DV-113 DV-050 DV-051 DV-052", work.FrameOpened: "DV-114 DV-090 DV-091", work.FrameReplaced: "DV-115 DV-090",
	work.SnapshotOpened: "DV-116 DV-092 DV-093", work.PageAccounted: "DV-117 DV-035 DV-094 DV-095 DV-096", work.CoverageCompleted: "DV-118",
	work.BasisCreated: "DV-119 DV-097", work.AssignmentReady: "DV-120 DV-033 DV-098", work.InvocationStarted: "DV-121",
	work.InvocationSettled: "DV-122 DV-099 DV-100", work.SupportObserved: "DV-123", work.ContributionAdmitted: "DV-124 DV-101",
	work.BlockerResolved: "DV-125", work.ObligationDischarged: "DV-126", work.FrameConcluded: "DV-127 DV-102",
}

// The payload cases again by kind, so that each kind's shape is shown by its own.
func TestPayloadVectors(t *testing.T) {
	t.Parallel()
	byKind := map[work.Kind][]canon.Value{}
	for _, c := range vectorLines(t, "envelopes.jsonl") {
		if text(t, member(t, c, "expect"), "envelope") == "accepted" {
			kind := work.Kind(text(t, parsed(t, []byte(text(t, c, "text"))), "kind"))
			byKind[kind] = append(byKind[kind], c)
		}
	}
	for kind, about := range payloadRequirements {
		t.Run(string(kind), func(t *testing.T) {
			t.Attr("requirement", about+" DV-026")
			t.Parallel()
			accepted, refused := 0, 0
			for _, c := range byKind[kind] {
				checkEnvelope(t, work.Parse([]byte(text(t, c, "text"))), member(t, c, "expect"))
				if text(t, member(t, c, "expect"), "payload") == "accepted" {
					accepted++
				} else {
					refused++
				}
			}
			if accepted == 0 || refused == 0 {
				t.Errorf("%d accepted and %d refused cases: both are needed", accepted, refused)
			}
		})
	}
}

// A member named twice and a number that is not a safe integer pass under the reference
// rules, which see the last value and the rounded one.
func TestEnvelopeSpelling(t *testing.T) {
	t.Attr("requirement", "DV-002 DV-024 DV-083")
	t.Parallel()
	plain := text(t, vectorLines(t, "envelopes.jsonl")[0], "text")
	want := work.Parse([]byte(plain))
	if want.Refusal() != nil {
		t.Fatal(want.Refusal())
	}
	for name, spelled := range map[string]string{
		"member twice": strings.Replace(plain, `"kind":`, `"kind":"nothing","kind":`, 1),
		"white space":  strings.ReplaceAll(plain, `,"`, ",\n\t\""),
		"escapes":      strings.Replace(plain, "work-scope-opened", `work-\u0073cope-opened`, 1),
		"5.0":          strings.Replace(plain, `"scopeSequence":0`, `"scopeSequence":0.0e1`, 1),
	} {
		got := work.Parse([]byte(spelled))
		if spelled == plain || got.Refusal() != nil || got.Text() != want.Text() {
			t.Errorf("%s: %v", name, got.Refusal())
		}
	}
	for _, no := range []string{"", "{", "nul", "null", "[]", "3", `"x"`, plain + "x", "\xff" + plain} {
		if e := work.Parse([]byte(no)); e.Refusal() == nil || e.Refusal().Code != work.InvalidEnvelope {
			t.Errorf("%.20q: %v", no, e.Refusal())
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	for _, c := range vectorLines(f, "envelopes.jsonl") {
		f.Add([]byte(text(f, c, "text")))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := work.Parse(raw)
		if e.Refusal() != nil {
			return
		}
		if err := canon.Verify([]byte(e.Text())); err != nil {
			t.Fatal(err)
		}
		again := work.Parse([]byte(e.Text()))
		if again.Refusal() != nil || again.Text() != e.Text() || again.Digest != e.Digest {
			t.Fatalf("the canonical text reads otherwise: %v", again.Refusal())
		}
		p, refusal := again.Payload()
		if (p == nil) == (refusal == nil) {
			t.Fatalf("payload %T with refusal %v", p, refusal)
		}
	})
}
