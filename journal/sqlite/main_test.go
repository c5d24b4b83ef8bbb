package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/journal/sqlite"
)

// Environment of the test binary run again as a process that writes until it is
// killed.
const (
	childPath   = "JOURNAL_TEST_CHILD"
	childUnsafe = "JOURNAL_TEST_CHILD_UNSAFE"
	childPages  = "JOURNAL_TEST_CHILD_PAGES"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		if err := writeForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const childWriters = 4

// writeForever commits from some goroutines and prints a line for every answer:
// what it was, the stream and the sequence. A line goes out in one write after the
// answer, so every line that the parent reads was true.
func writeForever(path string) error {
	// A short log is folded into the file every few dozen commits, so that faults hit
	// checkpoints too.
	opt := sqlite.Options{Unsafe: os.Getenv(childUnsafe) != "", LogPages: 100}
	if pages := os.Getenv(childPages); pages != "" {
		n, err := strconv.ParseInt(pages, 10, 64)
		if err != nil {
			return err
		}
		opt.LogPages = n
	}
	s, err := sqlite.Open(context.Background(), path, opt)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, childWriters)
	for w := range childWriters {
		wg.Go(func() { errs[w] = writeStream(s, fmt.Sprintf("stream/%d", w)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func writeStream(s *sqlite.Store, stream string) error {
	head := int64(0)
	for e, err := range journal.Stream(context.Background(), s, stream, 0) {
		if err != nil {
			return err
		}
		head = e.Seq
	}
	for ; ; head += 2 {
		b := childBatch(stream, head)
		for {
			res, err := s.Commit(context.Background(), b)
			if err == nil && res.Replayed {
				fmt.Printf("replayed %s %d\n", stream, head)
			}
			if err == nil {
				break
			}
			fmt.Printf("%s %s %d\n", fault.CodeOf(err), stream, head)
			var e *fault.Error
			if !errors.As(err, &e) || !e.Retry {
				return err
			}
			time.Sleep(time.Millisecond) // the disk is not better for being asked at once
		}
		fmt.Printf("ack %s %d\n", stream, head+2)
	}
}

// childBatch is what a stream holds after head: two events and a record, all of
// which follow from the place.

func childBatch(stream string, head int64) journal.Batch {
	return journal.Batch{
		ID: fmt.Sprintf("%s.%d", stream, head),
		Append: []journal.Append{{Stream: stream, Head: head, Events: []journal.Event{
			{Kind: "test.started", Version: 1, Payload: fmt.Appendf(nil, "%s %d %0400d", stream, head, head)},
			{Kind: "test.ended", Version: 1, Payload: fmt.Appendf(nil, "%s %d", stream, head+1), Causes: []journal.Ref{{Stream: stream, Seq: head + 1}}},
		}}},
		Put: []journal.Record{{Kind: "done", Key: fmt.Sprintf("%s/%012d", stream, head), Session: stream, State: "ok"}},
	}
}
