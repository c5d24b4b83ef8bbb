package journal

import (
	"context"
	"iter"
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
