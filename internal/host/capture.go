package host

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/wire"
)

const (
	// maxPictures bounds the bytes of a cell's artifacts that wait in memory for the
	// end of the cell.
	maxPictures = 64 << 20
	// maxOrigins is for how many cells of a generation late output finds its cell.
	maxOrigins = 65_536
)

// sink receives what the worker of one generation sends beside its results, and
// files it under the cell it belongs to. It implements supervise.Sink.
type sink struct {
	lane *lane

	mu      sync.Mutex // guards what follows
	current *capture   // of the cell that runs
	origins map[string]string
	late    []lateText // since the lane last took it
	stray   int64      // bytes of which no origin is known
}

// lateText is what a cell printed after its end.
type lateText struct {
	cell, stream, text string
	dropped            int64 // bytes after text
}

// capture is what a running cell has sent so far.
type capture struct {
	execution string
	feed      func(stream, text string)
	output    []event.Output
	printed   int64 // bytes in output
	added     []string
	removed   []string
	parts     map[string]*picture
	pictures  []*picture
	pixels    int64 // bytes of all pictures
	refused   []string
}

// picture is an artifact that arrives in parts.
type picture struct {
	id, mime, sha256 string
	size             int64
	data             []byte
	whole            bool
}

func newSink(l *lane) *sink { return &sink{lane: l, origins: map[string]string{}} }

// begin directs what comes from now on to the cell.
func (s *sink) begin(execution, cell string, feed func(stream, text string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.origins) < maxOrigins {
		s.origins[execution] = cell
	}
	s.current = &capture{execution: execution, feed: feed, parts: map[string]*picture{}}
}

// end returns what the cell has sent; what comes later is late.
func (s *sink) end() *capture {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.current
	s.current = nil
	return c
}

// soFar is the output of the running cell.
func (s *sink) soFar(execution string) ([]event.Output, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.execution != execution {
		return nil, 0
	}
	return slices.Clone(s.current.output), s.current.printed
}

// Output implements supervise.Sink.
func (s *sink) Output(o wire.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.execution == o.ID {
		s.current.print(o.Stream, o.Text)
		return
	}
	cell, ok := s.origins[o.ID]
	if !ok {
		s.stray += int64(len(o.Text))
		return
	}
	s.addLate(lateText{cell: cell, stream: o.Stream, text: o.Text})
}

// addLate joins text to what waits. Of a thread that prints for ever only as much
// is kept as the record may take; the rest is counted.
func (s *sink) addLate(t lateText) {
	for i := range s.late {
		old := &s.late[i]
		if old.cell == t.cell && old.stream == t.stream {
			whole := old.text + t.text
			old.text = head(whole, 2*wire.LateBytes)
			old.dropped += int64(len(whole) - len(old.text))
			return
		}
	}
	s.late = append(s.late, t)
	s.lane.nudge()
}

// takeLate returns late output for the lane to record.
func (s *sink) takeLate() []lateText {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = nil
	return late
}

func (c *capture) print(stream, text string) {
	c.printed += int64(len(text))
	c.output = join(c.output, event.Output{Stream: stream, Text: text})
	c.feed(stream, text)
}

// Names implements supervise.Sink.
func (s *sink) Names(n wire.Names) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.execution != n.ID {
		return
	}
	s.current.added, s.current.removed = n.Added, n.Removed
}

// Artifact implements supervise.Sink.
func (s *sink) Artifact(a wire.Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.execution != a.ID {
		return
	}
	s.current.receive(a)
}

func (c *capture) receive(a wire.Artifact) {
	p := c.parts[a.ArtifactID]
	if p == nil {
		p = &picture{id: a.ArtifactID, mime: a.MIME, size: a.Size, sha256: a.SHA256}
		c.parts[a.ArtifactID] = p
		switch {
		case a.Size > wire.MaxArtifact:
			c.refuse(p, fmt.Sprintf("more than %d bytes", wire.MaxArtifact))
		case c.pixels+a.Size > maxPictures:
			c.refuse(p, fmt.Sprintf("with it the cell would have more than %d bytes of them", maxPictures))
		default:
			c.pixels += a.Size
			c.pictures = append(c.pictures, p)
		}
	}
	if p.whole || int64(len(p.data)+len(a.Data)) > p.size {
		return
	}
	p.data = append(p.data, a.Data...)
	p.whole = a.Last
}

// refuse drops a picture and says so where its reader looks. Its parts are taken
// for whole, so that none of them is kept.
func (c *capture) refuse(p *picture, why string) {
	p.whole = true
	c.refused = append(c.refused, fmt.Sprintf("reeve did not keep %s (%s, %d bytes): %s\n", p.id, p.mime, p.size, why))
}

func (c *capture) refuseSpool(err error) {
	c.refused = append(c.refused, fmt.Sprintf("reeve did not keep the output beyond this record: %v\n", err))
}

// keep stores the whole pictures and returns how the event names them.
func (c *capture) keep(put func([]byte) (string, error)) []event.Artifact {
	kept := []event.Artifact{}
	for _, p := range c.pictures {
		if !p.whole || int64(len(p.data)) != p.size {
			c.refused = append(c.refused, fmt.Sprintf("reeve did not keep %s (%s): %d of %d bytes arrived\n", p.id, p.mime, len(p.data), p.size))
			continue
		}
		sum, err := put(p.data)
		switch {
		case err != nil:
			c.refused = append(c.refused, fmt.Sprintf("reeve did not keep %s (%s): %v\n", p.id, p.mime, err))
		case sum != p.sha256:
			c.refused = append(c.refused, fmt.Sprintf("reeve did not keep %s (%s): its bytes do not have the digest it came with\n", p.id, p.mime))
		default:
			kept = append(kept, event.Artifact{SHA256: sum, MIME: p.mime, Size: p.size, ID: p.id})
		}
	}
	return kept
}

// join appends a record, or joins it to the last one of the same stream.
func join(to []event.Output, o event.Output) []event.Output {
	if o.Text == "" && o.Stream != "result" {
		return to
	}
	if n := len(to); n > 0 && to[n-1].Stream == o.Stream && o.Stream != "result" {
		to[n-1].Text += o.Text
		return to
	}
	return append(to, o)
}

// merge is the whole output of a cell: what came live, then what its completion
// held. With dropped bytes between the two the records stay apart, so that no
// line seems to be whole that is not.
func merge(live []event.Output, rest []wire.OutputRecord, truncated int64) (out []event.Output, over int64) {
	out = slices.Clone(live)
	for i, r := range rest {
		o := event.Output{Stream: r.Stream, Text: r.Text}
		if i == 0 && truncated > 0 && len(out) > 0 {
			out = append(out, o)
			continue
		}
		out = join(out, o)
	}
	return bound(out)
}

// bound holds what any worker may have sent to the limits of a record (CP-009).
// It cuts between characters and returns how many bytes it left out.
func bound(out []event.Output) ([]event.Output, int64) {
	var room, over int64 = wire.MaxOutputText, 0
	kept := []event.Output{}
	for _, o := range out {
		if len(kept) == wire.MaxOutputItems || room <= 0 {
			over += int64(len(o.Text))
			continue
		}
		text := head(o.Text, int(room))
		over += int64(len(o.Text) - len(text))
		room -= int64(len(text))
		kept = append(kept, event.Output{Stream: o.Stream, Text: text})
	}
	return kept, over
}

// head is the longest beginning of s of at most n bytes that ends between
// characters.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// valid is s with what is not UTF-8 replaced, so that it can be recorded.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
