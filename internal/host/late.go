package host

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/wire"
)

// lateWait is how long late output is collected before it is recorded, so that a
// thread that prints word by word does not cost a commit a word.
const lateWait = 200 * time.Millisecond

// lateUse is what a cell has used of its 8 KiB of late output.
type lateUse struct {
	bytes   int64
	dropped int64 // not yet recorded as dropped
}

// fileLate records what cells printed after their end (CP-143). It waits for more
// unless now is set, and then says for how long.
func (l *lane) fileLate(now bool) (time.Duration, bool) {
	if l.sink == nil {
		return 0, false
	}
	if !now {
		if !l.sink.hasLate() {
			l.lateFrom = time.Time{}
			return 0, false
		}
		if l.lateFrom.IsZero() {
			l.lateFrom = time.Now()
		}
		if left := lateWait - time.Since(l.lateFrom); left > 0 {
			return left, true
		}
	}
	l.lateFrom = time.Time{}
	for _, t := range l.sink.takeLate() {
		l.recordLate(t)
	}
	if now {
		for cell, use := range l.lateUsed {
			if use.dropped > 0 {
				l.settleLate(event.CellLateOutputV1{Cell: cell, Stream: "stdout", Dropped: use.dropped})
			}
		}
	}
	return 0, false
}

func (l *lane) recordLate(t lateText) {
	use := l.lateUsed[t.cell]
	text := head(t.text, int(wire.LateBytes-use.bytes))
	use.bytes += int64(len(text))
	use.dropped += int64(len(t.text)-len(text)) + t.dropped
	if text != "" {
		l.settleLate(event.CellLateOutputV1{Cell: t.cell, Stream: t.stream, Text: valid(text), Dropped: use.dropped})
		use.dropped = 0
	}
	l.lateUsed[t.cell] = use
}

// settleLate records late output and notes in the cell's record where it is.
func (l *lane) settleLate(late event.CellLateOutputV1) {
	st := step{events: []event.Payload{late}}
	ctx, cancel := context.WithTimeout(l.core.hard, outcomeWait)
	defer cancel()
	rows, err := l.core.store.Find(ctx, journal.Query{Kind: recordCell, KeyPrefix: late.Cell, Max: 1})
	if err == nil && len(rows) == 1 {
		var row cellRow
		if row, err = readCell(rows[0]); err == nil {
			row.LateSeqs = append(row.LateSeqs, l.state.Seq+1)
			rows[0].Body, err = json.Marshal(row)
			st.put = rows
		}
	}
	if err != nil {
		l.core.log.Warn("late output is not noted with its cell", "cell", late.Cell, "cause", err)
		st.put = nil
	}
	l.settle(st)
}

func (s *sink) hasLate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.late) > 0
}
