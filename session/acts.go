package session

import (
	"slices"

	"github.com/reeve-run/reeve/event"
)

// beside reports whether an event of this kind may come in the phase without
// changing it: acts and sends go on beside cells, and what the operator says of
// them may come after the end.
func beside(p Phase, kind event.Kind) bool {
	switch kind {
	case event.ActSettled, event.ActApproved, event.ActDenied, event.SendApproved, event.SendDenied, event.InputReceived:
		return p != Unopened
	case event.ActIntended, event.ActFinished, event.ActUnknown, event.ActHeld, event.SendHeld, event.SendConfirmed:
		return p == Stopped || p == Ready || p == Running
	}
	return false
}

// busy says why the session cannot be closed: an act that runs would have nowhere
// to record its outcome. An unknown one may be settled afterwards.
func (s *State) busy() string {
	for _, a := range s.Acts {
		if !a.Unknown {
			return "act " + a.Act + " (" + a.Verb + ") has no outcome yet"
		}
	}
	return ""
}

func (s *State) act(id string) int {
	return slices.IndexFunc(s.Acts, func(a Act) bool { return a.Act == id })
}

func (s *State) intended(p event.ActIntendedV1, e Recorded) string {
	if s.act(p.Act) >= 0 {
		return "act " + p.Act + " stands open already"
	}
	s.Acts = append(slices.Clone(s.Acts), Act{Act: p.Act, Verb: p.Verb, Seq: e.Seq, AtMS: e.AtMS})
	return ""
}

// concluded removes an act: one that runs by its outcome, an unknown one by its
// settlement.
func (s *State) concluded(id string, unknown bool) string {
	i := s.act(id)
	if i < 0 || s.Acts[i].Unknown != unknown {
		return "act " + id + " is not open in that way"
	}
	s.Acts = slices.Delete(slices.Clone(s.Acts), i, i+1)
	return ""
}

func (s *State) unknown(id string) string {
	i := s.act(id)
	if i < 0 || s.Acts[i].Unknown {
		return "act " + id + " is not open in that way"
	}
	s.Acts = slices.Clone(s.Acts)
	s.Acts[i].Unknown = true
	return ""
}
