package event_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
)

// generators make an arbitrary payload of each kind.
var generators = map[event.Kind]func(*rapid.T) event.Payload{
	event.SessionOpened:   of[event.SessionOpenedV1],
	event.SessionClosed:   of[event.SessionClosedV1],
	event.KernelReset:     of[event.KernelResetV1],
	event.KernelLost:      of[event.KernelLostV1],
	event.KernelStopped:   of[event.KernelStoppedV1],
	event.CellStarted:     of[event.CellStartedV1],
	event.CellCompleted:   of[event.CellCompletedV2],
	event.CellLateOutput:  of[event.CellLateOutputV1],
	event.ActIntended:     of[event.ActIntendedV1],
	event.ActFinished:     of[event.ActFinishedV1],
	event.ActUnknown:      of[event.ActUnknownV1],
	event.ActSettled:      of[event.ActSettledV1],
	event.ActHeld:         of[event.ActHeldV1],
	event.ActApproved:     of[event.ActApprovedV1],
	event.ActDenied:       of[event.ActDeniedV1],
	event.SendHeld:        of[event.SendHeldV1],
	event.SendConfirmed:   of[event.SendConfirmedV1],
	event.SendApproved:    of[event.SendApprovedV1],
	event.SendDenied:      of[event.SendDeniedV1],
	event.OperatorMessage: of[event.OperatorMessageV1],
	event.InputReceived:   of[event.InputReceivedV1],
	event.AuditDispatch:   of[event.AuditDispatchV1],
	event.ConfigLocked:    of[event.ConfigLockedV1],
}

func of[P event.Payload](t *rapid.T) event.Payload { return rapid.Make[P]().Draw(t, "payload") }

func TestEveryShapeHasAGeneratorAndAVersion(t *testing.T) {
	t.Parallel()
	seen := map[event.Kind]bool{}
	for _, s := range event.Shapes() {
		seen[s.Kind] = true
		if generators[s.Kind] == nil {
			t.Errorf("%s has no generator: its encoding is not tested", s.Kind)
		}
		if event.Current(s.Kind) == 0 {
			t.Errorf("%s has no version to be written with", s.Kind)
		}
	}
	for kind := range generators {
		if !seen[kind] {
			t.Errorf("%s cannot be decoded", kind)
		}
	}
}

func TestWhatIsEncodedDecodesToItself(t *testing.T) {
	t.Parallel()
	for kind, generate := range generators {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := generate(t)
				version, b, err := event.Encode(p)
				if err != nil {
					t.Fatal(err)
				}
				if p.Kind() != kind || version != event.Current(kind) {
					t.Fatalf("encoded as %s %d, want %s %d", p.Kind(), version, kind, event.Current(kind))
				}
				back, err := event.Decode(kind, version, b)
				if err != nil {
					t.Fatalf("%v\n%s", err, b)
				}
				if diff := cmp.Diff(p, back, cmpopts.EquateEmpty()); diff != "" {
					t.Fatal(diff)
				}
				_, again, err := event.Encode(back)
				if err != nil || !bytes.Equal(b, again) {
					t.Fatalf("second encoding differs (%v):\n%s\n%s", err, b, again)
				}
			})
		})
	}
}

const closed = `{"by":{"kind":"operator","name":"ada","surface":"cli"},"reason":"done"}`

func TestDecodingIsStrict(t *testing.T) {
	t.Parallel()
	if _, err := event.Decode(event.SessionClosed, 1, []byte(closed)); err != nil {
		t.Fatalf("the sound one: %v", err)
	}
	for name, text := range map[string]string{
		"unknown member":        strings.Replace(closed, `"reason"`, `"more":1,"reason"`, 1),
		"unknown member inside": strings.Replace(closed, `"surface"`, `"x":null,"surface"`, 1),
		"duplicate member":      strings.Replace(closed, `"reason"`, `"reason":"x","reason"`, 1),
		"duplicate inside":      strings.Replace(closed, `"name"`, `"name":"x","name"`, 1),
		"case variant":          strings.Replace(closed, `"reason"`, `"Reason"`, 1),
		"missing member":        strings.Replace(closed, `,"reason":"done"`, ``, 1),
		"missing inside":        strings.Replace(closed, `"name":"ada",`, ``, 1),
		"null for an object":    `{"by":null,"reason":"done"}`,
		"null for a text":       strings.Replace(closed, `"done"`, `null`, 1),
		"wrong type":            strings.Replace(closed, `"done"`, `7`, 1),
		"invalid UTF-8":         strings.Replace(closed, `done`, "d\xffne", 1),
		"lone surrogate":        strings.Replace(closed, `done`, `\ud83d`, 1),
		"trailing value":        closed + `{}`,
		"not an object":         `[]`,
		"empty":                 ``,
		"cut":                   closed[:len(closed)-1],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := event.Decode(event.SessionClosed, 1, []byte(text))
			if fault.CodeOf(err) != fault.InvalidRequest {
				t.Errorf("got %+v, %v; want it refused", p, err)
			}
		})
	}
}

func TestUnknownKindsAndVersionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []event.Shape{{event.SessionClosed, 0}, {event.SessionClosed, 2}, {"session.renamed", 1}, {"", 1}} {
		if _, err := event.Decode(s.Kind, s.Version, []byte(closed)); fault.CodeOf(err) != fault.InvalidRequest {
			t.Errorf("%s %d: %v; want it refused", s.Kind, s.Version, err)
		}
	}
}

func TestTextThatCouldNotBeReadBackIsRefused(t *testing.T) {
	t.Parallel()
	_, _, err := event.Encode(event.SessionClosedV1{Reason: "\xff"})
	if fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("got %v", err)
	}
}

// Every member of an object within an event is checked, not only the outer ones:
// each member of a filled event is taken away in turn.
func TestEveryMissingMemberIsNoticed(t *testing.T) {
	t.Parallel()
	code := 7
	sum := "s"
	cause := &event.Cause{Kind: event.CauseExit, Code: &code, Text: "x"}
	p := event.CellCompletedV2{
		Cause: cause, Output: []event.Output{{}, {Stream: "stdout"}}, Error: &sum,
		Artifacts: []event.Artifact{{}}, Spool: &event.Spool{}, NamesAdded: []string{"a"},
	}
	_, b, err := event.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	cuts := without(string(b))
	if len(cuts) < 30 {
		t.Fatalf("only %d members found in %s", len(cuts), b)
	}
	for _, text := range cuts {
		if _, err := event.Decode(event.CellCompleted, 2, []byte(text)); err == nil {
			t.Errorf("accepted %s", text)
		}
	}
}

// What an earlier version wrote reads as today's struct, with what it could not say
// empty.
func TestAnEarlierCompletionIsLifted(t *testing.T) {
	t.Parallel()
	want := event.CellCompletedV2{Cell: "c", Status: event.CellOK, NamesAdded: []string{"a"}}
	_, b, err := event.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	earlier := strings.Replace(string(b), `"effects":[],`, "", 1)
	got, err := event.Decode(event.CellCompleted, 1, []byte(earlier))
	if diff := cmp.Diff(event.Payload(want), got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if p, err := event.Decode(event.CellCompleted, 1, b); err == nil {
		t.Errorf("version 1 with a member of version 2 was read as %+v", p)
	}
}
