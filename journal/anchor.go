package journal

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// Anchor is where all streams ended at one time, to be signed and kept away from
// the store: a chain alone cannot show that its end was cut off.
type Anchor struct {
	AtMS   int64 // Unix milliseconds
	Events int64 // sum of the sequences of Heads
	Heads  []Head
}

// anchorTitle is the first line of the signed text.
const anchorTitle = "reeve journal heads v1"

// TakeAnchor reads the heads of all streams.
func TakeAnchor(ctx context.Context, s Store, atMS int64) (Anchor, error) {
	a := Anchor{AtMS: atMS}
	for h, err := range AllHeads(ctx, s) {
		if err != nil {
			return Anchor{}, err
		}
		a.Heads = append(a.Heads, h)
		a.Events += h.Seq
	}
	return a, nil
}

// Hold looks at the places that were signed and at nothing between them. The error
// says why s is not the store that was: fault.Truncated when a stream ends before
// its place, fault.Altered when another event is there. Nil proves less than Verify.
func (a *Anchor) Hold(ctx context.Context, s Store) error {
	const op = "compare with signed heads"
	ends := map[string]Head{}
	for h, err := range AllHeads(ctx, s) {
		if err != nil {
			return err
		}
		ends[h.Stream] = h
	}
	for _, was := range a.Heads {
		is := ends[was.Stream]
		if is.Seq < was.Seq {
			return fault.New(fault.Truncated, op, was.Stream, "the stream ends at event %d, %d was signed", is.Seq, was.Seq)
		}
		if is.Seq > was.Seq {
			there, err := s.Events(ctx, was.Stream, was.Seq-1, 1)
			if err != nil {
				return err
			}
			if len(there) == 1 && there[0].Seq == was.Seq {
				is.Digest = there[0].Digest
			} else {
				is.Digest = Digest{}
			}
		}
		if is.Digest != was.Digest {
			return fault.New(fault.Altered, op, was.Stream, "event %d is not the one that was signed", was.Seq)
		}
	}
	return nil
}

// List is the heads as text, one line each. The stream's name comes last, since it
// may hold spaces.
func (a *Anchor) List() []byte {
	var b strings.Builder
	for _, h := range a.Heads {
		fmt.Fprintf(&b, "%d %s %d %s\n", h.Seq, h.Digest, h.ID, h.Stream)
	}
	return []byte(b.String())
}

// Text is what is signed: small whatever the number of streams, because it holds
// the digest of List and not the list.
func (a *Anchor) Text() []byte {
	return fmt.Appendf(nil, "%s\nat %d\nevents %d\nstreams %d\nheads %s\n",
		anchorTitle, a.AtMS, a.Events, len(a.Heads), Digest(sha256.Sum256(a.List())))
}

// AnchorHead is what a signed text alone tells.
type AnchorHead struct {
	AtMS    int64
	Events  int64
	Streams int64
	List    Digest
}

// ParseAnchorText reads what Text wrote, and nothing else.
func ParseAnchorText(text []byte) (AnchorHead, error) {
	var h AnchorHead
	var list string
	n, err := fmt.Sscanf(string(text), anchorTitle+"\nat %d\nevents %d\nstreams %d\nheads %s\n", &h.AtMS, &h.Events, &h.Streams, &list)
	if err == nil && n == 4 {
		h.List, err = ParseDigest(list)
	}
	again := fmt.Sprintf("%s\nat %d\nevents %d\nstreams %d\nheads %s\n", anchorTitle, h.AtMS, h.Events, h.Streams, h.List)
	if err != nil || again != string(text) {
		return AnchorHead{}, fault.New(fault.Altered, "read anchor", "", "the signed text is not a statement of journal heads")
	}
	return h, nil
}

// ParseAnchorList reads what List wrote and holds it against the signed text.
func ParseAnchorList(h AnchorHead, list []byte) (Anchor, error) {
	if Digest(sha256.Sum256(list)) != h.List {
		return Anchor{}, fault.New(fault.Altered, "read anchor", "", "the list of heads is not the one that was signed")
	}
	a := Anchor{AtMS: h.AtMS}
	for line := range strings.Lines(string(list)) {
		head, err := parseHead(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return Anchor{}, err
		}
		a.Heads = append(a.Heads, head)
		a.Events += head.Seq
	}
	if a.Events != h.Events || int64(len(a.Heads)) != h.Streams {
		return Anchor{}, fault.New(fault.Altered, "read anchor", "", "the list has %d streams and %d events, the signed text %d and %d",
			len(a.Heads), a.Events, h.Streams, h.Events)
	}
	return a, nil
}

func parseHead(line string) (Head, error) {
	parts := strings.SplitN(line, " ", 4)
	if len(parts) != 4 || !name(parts[3]) {
		return Head{}, fault.New(fault.Altered, "read anchor", line, "want sequence, digest, id and stream")
	}
	seq, seqErr := strconv.ParseInt(parts[0], 10, 64)
	digest, digestErr := ParseDigest(parts[1])
	id, idErr := strconv.ParseInt(parts[2], 10, 64)
	if seqErr != nil || digestErr != nil || idErr != nil || seq < 1 || id < 1 {
		return Head{}, fault.New(fault.Altered, "read anchor", line, "want sequence, digest, id and stream")
	}
	return Head{Stream: parts[3], Seq: seq, ID: id, Digest: digest}, nil
}
