package work

import (
	"crypto/sha256"
	"encoding/hex"
)

// Preimages are put together on the stack when they fit, and most fit the smaller room.
const (
	small = 512
	usual = 2_048
)

// digestOf hashes the canonical text that the parts make together (DV-011).
func digestOf(parts ...string) Digest { return spell(sumOf(parts)) }

func digestOfBytes(text []byte) Digest { return spell(sha256.Sum256(text)) }

func spell(sum [sha256.Size]byte) Digest {
	var form [2 * sha256.Size]byte
	hex.Encode(form[:], sum[:])
	return Digest(form[:])
}

// hashes reports whether d is the digest of the parts.
func (d Digest) hashes(parts ...string) bool {
	sum := sumOf(parts)
	var form [2 * sha256.Size]byte
	hex.Encode(form[:], sum[:])
	return string(d) == string(form[:])
}

func sumOf(parts []string) [sha256.Size]byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n > small {
		return sumOfLarge(parts)
	}
	var room [small]byte
	return sha256.Sum256(join(room[:0], parts))
}

// sumOfLarge has its own frame, so that a small preimage does not clear the larger room.
//
//go:noinline
func sumOfLarge(parts []string) [sha256.Size]byte {
	var room [usual]byte
	return sha256.Sum256(join(room[:0], parts))
}

func join(b []byte, parts []string) []byte {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}
