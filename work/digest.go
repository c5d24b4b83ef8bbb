package work

import (
	"crypto/sha256"
	"encoding/hex"
)

// usual holds nearly every preimage, so that hashing one allocates nothing.
const usual = 2_048

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
	var room [usual]byte
	b := room[:0]
	for _, p := range parts {
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}
