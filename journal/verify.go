package journal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// Finding is one thing that verification found. Code is fault.Altered,
// fault.Truncated or, for what could not be checked, fault.Unavailable.
type Finding struct {
	Code   fault.Code
	Stream string // empty: the whole store
	Seq    int64  // 0: none in particular
	Text   string
}

// Report is the outcome of a verification.
type Report struct {
	Streams  int64
	Events   int64
	Anchored int64     // points in signed heads that were compared and stood
	Findings []Finding // the worst first; at most MaxFindings
	Total    int64     // findings in all
}

// MaxFindings bounds a report: a damaged file may differ in every row.
const MaxFindings = 100

// Code is the verdict: empty when all is good, else that of the worst finding.
// Altered outweighs truncated, and both outweigh what could not be checked.
func (r *Report) Code() fault.Code {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Code
}

var gravity = map[fault.Code]int{fault.Altered: 3, fault.Truncated: 2, fault.Unavailable: 1}

// point is a place where a stream is known to have had a digest.
type point struct {
	seq    int64
	digest Digest
	signed bool // by an anchor; else it is the store's own head
}

type tail struct {
	seq    int64
	digest Digest
	points []point // to come, by sequence
	broken bool    // reported once; what follows cannot be judged
}

// Verifier checks events as they pass. Each stream must come in order of its
// sequence; streams may be mixed. It keeps one entry per stream and no event.
type Verifier struct {
	chain   *Chain
	tails   map[string]*tail
	last    *tail // of the stream seen last: runs of one stream are common
	stream  string
	report  Report
	minimum int64 // events that the fullest anchor counted
}

// NewVerifier returns a Verifier that expects nothing yet.
func NewVerifier() *Verifier {
	return &Verifier{chain: NewChain(), tails: map[string]*tail{}}
}

// Expect says that the heads were the store's before the events are read: each
// stream must reach at least so far, and have this digest there. Call it before
// Event.
func (v *Verifier) Expect(heads ...Head) {
	for _, h := range heads {
		v.expect(h, false)
	}
}

// ExpectAnchor is Expect for signed heads.
func (v *Verifier) ExpectAnchor(a Anchor) {
	for _, h := range a.Heads {
		v.expect(h, true)
	}
	v.minimum = max(v.minimum, a.Events)
}

func (v *Verifier) expect(h Head, signed bool) {
	t := v.tail(h.Stream)
	at, _ := slices.BinarySearchFunc(t.points, h.Seq, func(p point, seq int64) int { return int(p.seq - seq) })
	t.points = slices.Insert(t.points, at, point{h.Seq, h.Digest, signed})
}

func (v *Verifier) tail(stream string) *tail {
	if v.last != nil && v.stream == stream {
		return v.last
	}
	t, ok := v.tails[stream]
	if !ok {
		t = &tail{}
		v.tails[stream] = t
	}
	v.last, v.stream = t, stream
	return t
}

// Event checks one event. The event is not kept.
func (v *Verifier) Event(e *Stored) {
	v.report.Events++
	t := v.tail(e.Stream)
	if t.broken {
		return
	}
	switch {
	case e.Seq != t.seq+1:
		v.broken(t, e, fmt.Sprintf("event %d is followed by %d", t.seq, e.Seq))
	case e.Prev != t.digest:
		v.broken(t, e, "it does not follow the event before it")
	case v.chain.Link(t.digest, e.Stream, e.Seq, &e.Event) != e.Digest:
		v.broken(t, e, "its content is not what its digest says")
	default:
		t.seq, t.digest = e.Seq, e.Digest
		v.pass(t, e.Stream)
	}
}

// pass compares the points that the stream has reached.
func (v *Verifier) pass(t *tail, stream string) {
	for len(t.points) > 0 && t.points[0].seq <= t.seq {
		p := t.points[0]
		t.points = t.points[1:]
		switch {
		case p.digest != t.digest && p.signed:
			v.find(fault.Altered, stream, t.seq, "it is not the event that was signed")
		case p.digest != t.digest:
			v.find(fault.Altered, stream, t.seq, "it is not the event that the stream's head names")
		case p.signed:
			v.report.Anchored++
		}
	}
}

func (v *Verifier) broken(t *tail, e *Stored, text string) {
	t.broken, t.points = true, nil
	v.find(fault.Altered, e.Stream, e.Seq, text)
}

// Unchecked notes what could not be looked at.
func (v *Verifier) Unchecked(stream string, err error) {
	code := fault.Unavailable
	if fault.HasCode(err, fault.Altered) {
		code = fault.Altered // unreadable because it is damaged
	}
	v.find(code, stream, 0, err.Error())
}

// End compares the heads as they are after the last event with what passed, and
// returns the report. A head may be further than the events: writing went on.
func (v *Verifier) End(heads []Head) Report {
	ends := make(map[string]Head, len(heads))
	for _, h := range heads {
		ends[h.Stream] = h
	}
	for stream, t := range v.tails {
		v.end(stream, t, ends[stream])
	}
	if v.report.Events < v.minimum {
		v.find(fault.Truncated, "", 0, fmt.Sprintf("%d events are stored, %d were signed", v.report.Events, v.minimum))
	}
	v.report.Streams = int64(len(v.tails))
	slices.SortStableFunc(v.report.Findings, compareFindings)
	return v.report
}

func (v *Verifier) end(stream string, t *tail, h Head) {
	if t.broken {
		return
	}
	if len(t.points) > 0 {
		p := t.points[len(t.points)-1]
		by := "the stream's head names"
		if p.signed {
			by = "was signed"
		}
		v.find(fault.Truncated, stream, t.seq, fmt.Sprintf("the stream ends at %d, %s %d", t.seq, by, p.seq))
		return
	}
	if t.seq > h.Seq || t.seq == h.Seq && t.digest != h.Digest {
		v.find(fault.Altered, stream, t.seq, fmt.Sprintf("the stream ends at %d, its head says %d", t.seq, h.Seq))
	}
}

func (v *Verifier) find(code fault.Code, stream string, seq int64, text string) {
	v.report.Total++
	if len(v.report.Findings) < MaxFindings {
		v.report.Findings = append(v.report.Findings, Finding{code, stream, seq, text})
		return
	}
	// A graver finding than the mildest one kept takes its place: the verdict must
	// not depend on the order.
	mildest := slices.MinFunc(v.report.Findings, func(a, b Finding) int { return gravity[a.Code] - gravity[b.Code] })
	if gravity[code] > gravity[mildest.Code] {
		v.report.Findings[slices.Index(v.report.Findings, mildest)] = Finding{code, stream, seq, text}
	}
}

func compareFindings(a, b Finding) int {
	if d := gravity[b.Code] - gravity[a.Code]; d != 0 {
		return d
	}
	if (a.Stream == "") != (b.Stream == "") {
		return strings.Compare(b.Stream, a.Stream) // a named stream says more
	}
	return cmp.Or(strings.Compare(a.Stream, b.Stream), cmp.Compare(a.Seq, b.Seq))
}

// Scanner is implemented by an engine that can walk its events without a copy of
// each, and read the next ones while these are seen. They come in the order of their
// ids, from the first after the id after on; see is called by the caller's goroutine
// and must not keep the event. No transaction is held longer than for a page.
type Scanner interface {
	Scan(ctx context.Context, after int64, see func(*Stored)) error
}

// Checker is implemented by an engine that can check how it keeps the events,
// besides the events themselves: what an index hides, a walk over the rows does not
// see. The error has code fault.Altered when something is damaged.
type Checker interface {
	CheckStructure(ctx context.Context) error
}

// Verify checks a whole store, page by page, against itself and the anchors. It
// may be written to meanwhile. What cannot be read is a finding, not an error; so
// are the problems met before, when the anchors were read.
func Verify(ctx context.Context, s Store, anchors []Anchor, problems ...error) Report {
	v := NewVerifier()
	for _, err := range problems {
		v.Unchecked("", err)
	}
	for _, a := range anchors {
		v.ExpectAnchor(a)
	}
	for h, err := range AllHeads(ctx, s) {
		if err != nil {
			v.Unchecked("", err)
			break
		}
		v.Expect(h)
	}
	if err := Scan(ctx, s, v.Event); err != nil {
		v.Unchecked("", err)
		return v.partial()
	}
	var heads []Head
	for h, err := range AllHeads(ctx, s) {
		if err != nil {
			v.Unchecked("", err)
			return v.partial()
		}
		heads = append(heads, h)
	}
	return v.End(heads)
}

// partial is the report of a walk that did not reach the end, so that a missing
// end proves nothing.
func (v *Verifier) partial() Report {
	v.report.Streams = int64(len(v.tails))
	slices.SortStableFunc(v.report.Findings, compareFindings)
	return v.report
}

// Scan shows see every event of a store, by id. The event is only lent: what is to
// stay must be copied.
func Scan(ctx context.Context, s Store, see func(*Stored)) error {
	if sc, ok := s.(Scanner); ok {
		return sc.Scan(ctx, 0, see)
	}
	for e, err := range All(ctx, s, 0) {
		if err != nil {
			return err
		}
		see(&e)
	}
	return nil
}
