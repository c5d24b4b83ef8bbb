package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/reeve-run/reeve/fault"
)

// Domain begins what every digest is taken over, so that no other hash of reeve
// can be taken for one of these.
const Domain = "reeve journal event v1\x00"

// String is the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads 64 hexadecimal digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) {
		return Digest{}, fault.New(fault.InvalidRequest, "read digest", s, "want 64 hexadecimal digits")
	}
	copy(d[:], b)
	return d, nil
}

// Chain computes digests. It keeps its buffer: one Chain serves many events, from
// one goroutine.
type Chain struct {
	h   hash.Hash
	buf []byte
}

// NewChain returns a Chain.
func NewChain() *Chain { return &Chain{h: sha256.New()} }

// Link is the digest of e at (stream, seq) after an event with digest prev. The
// layout is specified in docs/format/journal.md: numbers are big-endian 64-bit,
// every text and byte string is preceded by its length, so no two different
// events have the same bytes.
func (c *Chain) Link(prev Digest, stream string, seq int64, e *Event) Digest {
	b := append(c.buf[:0], Domain...)
	b = append(b, prev[:]...)
	b = appendText(b, stream)
	b = binary.BigEndian.AppendUint64(b, uint64(seq))
	b = appendText(b, e.Kind)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Version))
	b = binary.BigEndian.AppendUint64(b, uint64(e.AtMS))
	b = AppendCauses(b, e.Causes)
	b = binary.BigEndian.AppendUint64(b, uint64(len(e.Payload)))
	c.buf = b
	c.h.Reset()
	c.h.Write(b)
	c.h.Write(e.Payload)
	var d Digest
	c.h.Sum(d[:0])
	return d
}

func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// AppendCauses appends the causes in the form that is hashed, which is also the
// form in which engines store them: the count, then each stream and sequence.
func AppendCauses(b []byte, causes []Ref) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(causes)))
	for _, c := range causes {
		b = appendText(b, c.Stream)
		b = binary.BigEndian.AppendUint64(b, uint64(c.Seq))
	}
	return b
}

// ParseCauses undoes AppendCauses. Empty bytes mean no causes.
func ParseCauses(b []byte) ([]Ref, error) {
	if len(b) == 0 {
		return nil, nil
	}
	bad := fault.New(fault.Altered, "read causes", "", "the stored bytes are not a list of causes")
	n, b, ok := cutNumber(b)
	if !ok || n > MaxCauses {
		return nil, bad
	}
	var causes []Ref
	for range n {
		var size, seq uint64
		if size, b, ok = cutNumber(b); !ok || size > uint64(len(b)) {
			return nil, bad
		}
		stream := string(b[:size])
		if seq, b, ok = cutNumber(b[size:]); !ok || seq > MaxID {
			return nil, bad
		}
		causes = append(causes, Ref{Stream: stream, Seq: int64(seq)})
	}
	if len(b) != 0 {
		return nil, bad
	}
	return causes, nil
}

func cutNumber(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) < 8 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(b), b[8:], true
}
