package gate

import (
	"slices"
	"time"

	"github.com/reeve-run/reeve/fault"
)

// maxRate bounds the acts one limit remembers.
const maxRate = 10_000

// Limiter enforces rate_limit obligations: at most Max acts of one principal under
// one rule in any window that ends now. The caller gives the time and serialises
// calls; times that go back are treated as the latest one seen, so that a clock that
// jumps back does not forget acts.
type Limiter struct {
	taken map[limitKey][]int64 // Unix milliseconds, ascending
	last  int64
}

type limitKey struct {
	rule  string
	actor Actor
}

// Take counts one act against every rate limit of d, or against none: a refusal
// names the rule and when the act would pass.
func (l *Limiter) Take(d Decision, by Actor, nowMS int64) error {
	nowMS = max(nowMS, l.last)
	l.last = nowMS
	if l.taken == nil {
		l.taken = map[limitKey][]int64{}
	}
	for _, o := range d.Obligations {
		if o.Kind != ObligeRateLimit {
			continue
		}
		k := limitKey{o.Rule, by}
		window := o.WindowSecs * 1000
		l.taken[k] = l.drop(k, nowMS-window)
		if n := int64(len(l.taken[k])); n >= o.Max {
			free := l.taken[k][n-o.Max] + window - nowMS
			return fault.New(fault.Denied, "run verb", "", "rule %q allows %d in %s and %d were done", o.Rule, o.Max, time.Duration(window)*time.Millisecond, n).
				WithNext("try again in %s", time.Duration(free)*time.Millisecond).Retryable()
		}
	}
	for _, o := range d.Obligations {
		if o.Kind == ObligeRateLimit {
			k := limitKey{o.Rule, by}
			l.taken[k] = append(l.taken[k], nowMS)
		}
	}
	return nil
}

// drop forgets what lies at or before limit.
func (l *Limiter) drop(k limitKey, limit int64) []int64 {
	times := l.taken[k]
	i, found := slices.BinarySearch(times, limit)
	if found {
		for i < len(times) && times[i] <= limit {
			i++
		}
	}
	if i == len(times) {
		delete(l.taken, k)
		return nil
	}
	return slices.Clone(times[i:])
}
