package worker

import (
	"fmt"
	"time"

	"github.com/reeve-run/reeve/event"
)

// Death is one end of a generation, as the restart policy sees it. Start failures
// are deaths that lived for no time.
type Death struct {
	Cause event.CauseKind
	Lived time.Duration // from spawn to end
}

// Policy bounds restarts (W9).
type Policy struct {
	Quick time.Duration // a life shorter than this is a quick death
	Max   int           // this many quick deaths in a row stop the session
	Base  time.Duration // wait before the second quick death's restart; doubles
	Cap   time.Duration // longest wait
}

// DefaultPolicy gives up after five lives of under ten seconds each, within about
// half a minute of trying.
func DefaultPolicy() Policy {
	return Policy{Quick: 10 * time.Second, Max: 5, Base: 250 * time.Millisecond, Cap: 5 * time.Second}
}

// Decision is what to do about a session without a worker.
type Decision struct {
	GiveUp bool
	Wait   time.Duration // before the next start; zero is at once
	Reason string        // why it gives up or waits, one line for people
}

// Decide says whether a generation follows the given deaths (oldest first). Ends
// that somebody asked for neither count nor end a run of quick deaths; a long life
// ends it. A person who asks for a fresh namespace starts a new history.
func Decide(p Policy, deaths []Death) Decision {
	run := 0
	var last event.CauseKind
	for i := len(deaths) - 1; i >= 0; i-- {
		d := deaths[i]
		if wished(d.Cause) {
			continue
		}
		if d.Lived >= p.Quick {
			break
		}
		if run == 0 {
			last = d.Cause
		}
		run++
	}
	switch {
	case run >= p.Max:
		return Decision{GiveUp: true, Reason: fmt.Sprintf(
			"%d workers in a row ended within %s of their start, the last by %s", run, p.Quick, last)}
	case run <= 1:
		return Decision{}
	default:
		wait := p.Cap
		if shift := run - 2; shift < 16 {
			wait = min(p.Cap, p.Base<<shift)
		}
		return Decision{Wait: wait, Reason: fmt.Sprintf(
			"%d workers in a row ended within %s of their start", run, p.Quick)}
	}
}

// wished reports whether an end of this kind was somebody's wish, or the core's
// own end, and says nothing about the worker's health.
func wished(k event.CauseKind) bool {
	switch k {
	case event.CauseShutdown, event.CauseInterrupt, event.CauseCoreRestart:
		return true
	default:
		return false
	}
}
