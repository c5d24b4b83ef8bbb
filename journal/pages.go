package journal

import (
	"context"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

// Stream walks one stream from the event after sequence after to its end, page by
// page. The walk ends with the first error.
func Stream(ctx context.Context, s Store, stream string, after int64) iter.Seq2[Stored, error] {
	return pages(func(last *Stored) ([]Stored, error) {
		if last != nil {
			after = last.Seq
		}
		return s.Events(ctx, stream, after, 0)
	})
}

// backWindow is how many events a walk from the end reads at once: few, since it
// holds them.
const backWindow = 64

// Backward walks one stream from its end to its start. It costs what is seen of it,
// and does not see what is appended meanwhile.
func Backward(ctx context.Context, s Store, stream string) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		end, err := End(ctx, s, stream)
		for to := end.Seq; to > 0 && err == nil; {
			from := max(0, to-backWindow)
			var window []Stored
			if window, err = between(ctx, s, stream, from, to); err != nil {
				break
			}
			for _, e := range slices.Backward(window) {
				if !yield(e, nil) {
					return
				}
			}
			to = from
		}
		if err != nil {
			yield(Stored{}, err)
		}
	}
}

// between reads the events after from up to to, which are there.
func between(ctx context.Context, s Store, stream string, from, to int64) ([]Stored, error) {
	var all []Stored
	for from < to {
		page, err := s.Events(ctx, stream, from, int(to-from))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return nil, fault.New(fault.Altered, "read events", stream, "event %d is missing", from+1).WithNext("run reeve verify")
		}
		all = append(all, page...)
		from = page[len(page)-1].Seq
	}
	return all, nil
}

// End is the head of one stream; Seq is 0 when there is no such stream.
func End(ctx context.Context, s Store, stream string) (Head, error) {
	if stream == "" {
		return Head{}, nil
	}
	// Pages go by name: what begins like the stream but for its last character stands
	// between.
	_, last := utf8.DecodeLastRuneInString(stream)
	for after := stream[:len(stream)-last]; ; {
		page, err := s.Heads(ctx, after, 0)
		if err != nil || len(page) == 0 {
			return Head{}, err
		}
		for _, h := range page {
			if h.Stream >= stream {
				if h.Stream != stream {
					h = Head{}
				}
				return h, nil
			}
		}
		after = page[len(page)-1].Stream
	}
}

// All walks the events of all streams by store-wide id.
func All(ctx context.Context, s Store, after int64) iter.Seq2[Stored, error] {
	return pages(func(last *Stored) ([]Stored, error) {
		if last != nil {
			after = last.ID
		}
		return s.ByID(ctx, after, 0)
	})
}

// Records walks what q selects; q.Max is the size of a page.
func Records(ctx context.Context, s Store, q Query) iter.Seq2[Record, error] {
	return pages(func(last *Record) ([]Record, error) {
		switch {
		case last == nil:
		case q.Kind == "":
			q.After = RecordKey(last.Kind, last.Key)
		default:
			q.After = last.Key
		}
		return s.Find(ctx, q)
	})
}

// AllHeads walks the heads of all streams by name.
func AllHeads(ctx context.Context, s Store) iter.Seq2[Head, error] {
	after := ""
	return pages(func(last *Head) ([]Head, error) {
		if last != nil {
			after = last.Stream
		}
		return s.Heads(ctx, after, 0)
	})
}

// pages calls next with the last row of the page before, until a page is empty.
func pages[T any](next func(last *T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last *T
		for {
			page, err := next(last)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
			}
			last = &page[len(page)-1]
		}
	}
}
