package journal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

// Check refuses a batch that no engine may take: it is the first thing every
// engine does with one.
func (b *Batch) Check() error {
	if err := b.checkShape(); err != nil {
		return err
	}
	items, size := len(b.If)+len(b.Put)+len(b.Deliver), 0
	identified := len(b.Put) > 0
	streams := make(map[string]bool, len(b.Append))
	for i := range b.Append {
		a := &b.Append[i]
		if streams[a.Stream] {
			return invalid(b, "stream %q is appended to twice", a.Stream)
		}
		streams[a.Stream] = true
		n, err := a.check(b)
		if err != nil {
			return err
		}
		items += len(a.Events)
		size += n
		identified = identified || a.Head != AnyHead
	}
	if !identified {
		return invalid(b, "every append is at any head and no record is put: sent again it would apply again")
	}
	n, err := b.checkRecords()
	if err != nil {
		return err
	}
	size += n
	if n, err = b.checkInputs(); err != nil {
		return err
	}
	size += n
	if size > MaxBatch {
		return limit(b, "holds %d bytes, more than %d", size, MaxBatch)
	}
	if items > MaxItems {
		return limit(b, "holds %d items, more than %d", items, MaxItems)
	}
	return nil
}

func (b *Batch) checkShape() error {
	if len(b.ID) == 0 || len(b.ID) > MaxBatchID || !printable(b.ID) {
		return fault.New(fault.InvalidRequest, "commit batch", "", "batch id must be 1 to %d bytes of printable text", MaxBatchID)
	}
	if len(b.Append) == 0 {
		return invalid(b, "no event: nothing may change without a trace")
	}
	if l := b.Lease; l != nil && (!name(l.Session) || !name(l.Host) || l.Epoch < 1) {
		return invalid(b, "lease names no session, host and epoch")
	}
	for _, c := range b.If {
		if err := c.check(b); err != nil {
			return err
		}
	}
	return nil
}

func (c Cond) check(b *Batch) error {
	switch c.Kind {
	case HeadIs, InboxIs:
		if !name(c.Key) || c.N < 0 {
			return invalid(b, "condition on %q with %d", c.Key, c.N)
		}
	case RevIs, Absent:
		kind, key, ok := SplitKey(c.Key)
		if !ok || !name(kind) || !name(key) || c.N < 0 {
			return invalid(b, "condition on record %q, want \"kind/key\"", c.Key)
		}
	default:
		return invalid(b, "condition of unknown kind %d", c.Kind)
	}
	return nil
}

// check returns the bytes of the payloads.
func (a *Append) check(b *Batch) (int, error) {
	switch {
	case !name(a.Stream):
		return 0, invalid(b, "stream name must be 1 to %d bytes of printable text", MaxName)
	case a.Head < AnyHead || a.Head > MaxID-int64(len(a.Events)):
		return 0, invalid(b, "head %d of %q", a.Head, a.Stream)
	case len(a.Events) == 0:
		return 0, invalid(b, "append to %q holds no event", a.Stream)
	}
	size := 0
	for i := range a.Events {
		e := &a.Events[i]
		switch {
		case !name(e.Kind):
			return 0, invalid(b, "event %d for %q has no printable kind", i, a.Stream)
		case e.Version < 1 || e.Version > 1<<31-1:
			return 0, invalid(b, "event %d for %q has version %d", i, a.Stream, e.Version)
		case e.AtMS < 0 || e.AtMS > MaxID:
			return 0, invalid(b, "event %d for %q has time %d", i, a.Stream, e.AtMS)
		case len(e.Payload) > MaxPayload:
			return 0, limit(b, "event %d for %q holds %d bytes, more than %d", i, a.Stream, len(e.Payload), MaxPayload)
		case len(e.Causes) > MaxCauses:
			return 0, limit(b, "event %d for %q names %d causes, more than %d", i, a.Stream, len(e.Causes), MaxCauses)
		}
		for _, c := range e.Causes {
			if !name(c.Stream) || c.Seq < 1 || c.Seq > MaxID {
				return 0, invalid(b, "event %d for %q has cause %q %d", i, a.Stream, c.Stream, c.Seq)
			}
		}
		size += len(e.Payload)
	}
	return size, nil
}

func (b *Batch) checkRecords() (int, error) {
	size := 0
	seen := make(map[[2]string]bool, len(b.Put))
	for i := range b.Put {
		r := &b.Put[i]
		id := [2]string{r.Kind, r.Key}
		switch {
		case !name(r.Kind) || strings.Contains(r.Kind, "/") || !name(r.Key):
			return 0, invalid(b, "record %q %q: kind and key must be printable, kind without a slash", r.Kind, r.Key)
		case seen[id]:
			return 0, invalid(b, "record %q is put twice", RecordKey(r.Kind, r.Key))
		case r.Session != "" && !name(r.Session), r.State != "" && !name(r.State):
			return 0, invalid(b, "record %q has an unprintable session or state", RecordKey(r.Kind, r.Key))
		case r.Rev < 0 || r.Rev >= MaxID || r.DueMS < 0 || r.DueMS > MaxID:
			return 0, invalid(b, "record %q has revision %d, due %d", RecordKey(r.Kind, r.Key), r.Rev, r.DueMS)
		case len(r.Body) > MaxPayload:
			return 0, limit(b, "record %q holds %d bytes, more than %d", RecordKey(r.Kind, r.Key), len(r.Body), MaxPayload)
		}
		seen[id] = true
		size += len(r.Body)
	}
	return size, nil
}

func (b *Batch) checkInputs() (int, error) {
	size := 0
	seen := make(map[[2]string]bool, len(b.Deliver))
	for i := range b.Deliver {
		in := &b.Deliver[i]
		id := [2]string{in.To, in.ID}
		switch {
		case !name(in.To) || !name(in.ID):
			return 0, invalid(b, "input %q to %q: both must be printable", in.ID, in.To)
		case seen[id]:
			return 0, invalid(b, "input %q to %q is delivered twice", in.ID, in.To)
		case len(in.Body) > MaxPayload:
			return 0, limit(b, "input %q holds %d bytes, more than %d", in.ID, len(in.Body), MaxPayload)
		}
		seen[id] = true
		size += len(in.Body)
	}
	return size, nil
}

// RecordKey is how a Cond and a ConflictError name a record.
func RecordKey(kind, key string) string { return kind + "/" + key }

// SplitKey undoes RecordKey. A kind holds no slash; a key may.
func SplitKey(s string) (kind, key string, ok bool) { return strings.Cut(s, "/") }

// Check refuses a query that cannot be paged.
func (q Query) Check() error {
	if q.Kind != "" || q.After == "" {
		return nil
	}
	if _, _, ok := SplitKey(q.After); !ok {
		return fault.New(fault.InvalidRequest, "find records", q.After, "a query over all kinds continues after \"kind/key\"")
	}
	return nil
}

// Page is the number of rows a page may hold when max rows are asked for.
func Page(max int) int {
	if max <= 0 || max > MaxPage {
		return MaxPage
	}
	return max
}

// CheckName refuses a stream, session or host name that no engine may take.
func CheckName(op, s string) error {
	if name(s) {
		return nil
	}
	return fault.New(fault.InvalidRequest, op, s, "a name must be 1 to %d bytes of printable text", MaxName)
}

func name(s string) bool { return len(s) > 0 && len(s) <= MaxName && printable(s) }

// printable holds for UTF-8 without control and line-separating characters, so
// that a name can stand in a line of text (anchors, logs) and nothing else begins.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return false
		}
	}
	return true
}

func invalid(b *Batch, format string, args ...any) error {
	return fault.New(fault.InvalidRequest, "commit batch", b.ID, format, args...)
}

func limit(b *Batch, format string, args ...any) error {
	return fault.New(fault.LimitExceeded, "commit batch", b.ID, format, args...).
		WithNext("store the bytes as an artifact and name it in the event")
}
