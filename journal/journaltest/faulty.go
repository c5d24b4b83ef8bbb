package journaltest

import (
	"context"
	"sync"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
)

// Failure is a way in which a commit goes wrong.
type Failure int

// The failures. The zero Failure is none.
const (
	None        Failure = iota
	LostBefore          // fault.Unknown; nothing was written
	LostAfter           // fault.Unknown; it was written
	Full                // fault.StoreFull; nothing was written
	Unreachable         // fault.Unavailable; nothing was written
)

// Faulty is a store whose commits fail as told. Reads pass through.
type Faulty struct {
	journal.Store
	mu    sync.Mutex
	next  []Failure
	calls int
}

// NewFaulty wraps s; nothing fails until Fail is called.
func NewFaulty(s journal.Store) *Faulty { return &Faulty{Store: s} }

// Fail sets what happens to the next commits, in order. After them commits pass.
func (f *Faulty) Fail(next ...Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = next
}

// Calls counts the commits so far, failed ones too.
func (f *Faulty) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *Faulty) take() Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if len(f.next) == 0 {
		return None
	}
	now := f.next[0]
	f.next = f.next[1:]
	return now
}

// Commit implements journal.Store.
func (f *Faulty) Commit(ctx context.Context, b journal.Batch) (journal.Result, error) {
	switch f.take() {
	case LostBefore:
		return journal.Result{}, lostAnswer(b.ID)
	case LostAfter:
		if _, err := f.Store.Commit(ctx, b); err != nil {
			return journal.Result{}, err
		}
		return journal.Result{}, lostAnswer(b.ID)
	case Full:
		return journal.Result{}, fault.New(fault.StoreFull, "commit batch", b.ID, "no space (injected)").Retryable()
	case Unreachable:
		return journal.Result{}, fault.New(fault.Unavailable, "commit batch", b.ID, "unreachable (injected)").Retryable()
	default:
		return f.Store.Commit(ctx, b)
	}
}

func lostAnswer(id string) error {
	return fault.New(fault.Unknown, "commit batch", id, "the answer was lost (injected)").
		WithNext("send the batch with the same id again").Retryable()
}
