package session_test

import (
	"testing"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/session"
)

func TestAnActStandsOpenUntilItsOutcome(t *testing.T) {
	t.Parallel()
	s := in(t, session.Ready)
	s = apply(t, s, event.ActIntendedV1{Act: "a", Verb: "workspace.write"}, event.ActIntendedV1{Act: "b"})
	before := s
	if _, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, Payload: event.ActIntendedV1{Act: "a"}}); err == nil {
		t.Error("an act was intended twice")
	}
	if _, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, Payload: event.ActSettledV1{Act: "a"}}); err == nil {
		t.Error("an act that runs was settled")
	}
	s = apply(t, s, event.ActFinishedV1{Act: "a"})
	if len(s.Acts) != 1 || s.Acts[0].Act != "b" || len(before.Acts) != 2 {
		t.Fatalf("after the outcome of a: %v, before it: %v", s.Acts, before.Acts)
	}
	s = apply(t, s, event.KernelStoppedV1{Generation: s.Generation})
	if _, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, Payload: event.SessionClosedV1{}}); err == nil {
		t.Error("a session was closed while an act ran")
	}
	s = apply(t, s, event.ActUnknownV1{Act: "b"})
	if _, err := session.Apply(s, session.Recorded{Seq: s.Seq + 1, Payload: event.ActFinishedV1{Act: "b"}}); err == nil {
		t.Error("an unknown act got an outcome without being settled")
	}
	s = apply(t, s, event.SessionClosedV1{}, event.ActSettledV1{Act: "b", Disposition: event.Committed})
	if len(s.Acts) != 0 {
		t.Errorf("settled acts stay open: %v", s.Acts)
	}
}
