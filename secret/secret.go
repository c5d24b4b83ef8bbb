// Package secret finds secrets in text: keys, tokens and passwords that must not be
// written where others read.
//
// Invariants: a scan is linear in the text; a finding never carries more of a secret
// than its first six characters; in doubt, where a label or an assignment says that
// the value is secret, it is one. Plain identifiers, digests and prose pass.
//
// The rules are two layers (VD-171). The first knows the shapes that issuers give
// their keys. The second looks at long random-looking runs, but only next to a word
// that calls them secret. The package reads nothing and keeps nothing.
package secret

import (
	"fmt"
	"strings"
)

// Finding is a secret in a text: the bytes [Start, End).
type Finding struct {
	Detector string
	Start    int
	End      int
	Excerpt  string // first six characters and the length
}

// maxFindings bounds what one scan reports: one is enough to refuse.
const maxFindings = 100

// Scan finds the secrets in a text, in order and without overlap.
func Scan(text string) []Finding {
	var found []Finding
	for at := 0; at < len(text) && len(found) < maxFindings; {
		start := next(text, at)
		if start < 0 {
			break
		}
		end := runEnd(text, start)
		if block, stop, ok := pem(text, start); ok {
			found = append(found, finding("pem_private_key", text, block, stop))
			at = stop
			continue
		}
		if detector, from, to, ok := known(text, start, end); ok {
			found = append(found, finding(detector, text, from, to))
			at = max(to, end)
			continue
		}
		if from, to, ok := labelled(text, start, end); ok {
			found = append(found, finding("labelled_value", text, from, to))
		}
		at = end
	}
	return found
}

// First is the first secret in a text.
func First(text string) (detector, excerpt string, found bool) {
	if all := Scan(text); len(all) > 0 {
		return all[0].Detector, all[0].Excerpt, true
	}
	return "", "", false
}

// Mask is text with every secret replaced by its excerpt, for logs and reasons.
func Mask(text string) string {
	found := Scan(text)
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(text[at:f.Start])
		b.WriteString("[" + f.Excerpt + "]")
		at = f.End
	}
	b.WriteString(text[at:])
	return b.String()
}

func finding(detector, text string, start, end int) Finding {
	shown := text[start:min(start+6, end)]
	return Finding{Detector: detector, Start: start, End: end, Excerpt: fmt.Sprintf("%s… (%d characters)", shown, end-start)}
}

// next is where the next run begins: bytes that keys are made of. Everything else,
// all that is not ASCII included, separates runs.
func next(text string, at int) int {
	for ; at < len(text); at++ {
		if inRun[text[at]] {
			return at
		}
	}
	return -1
}

func runEnd(text string, at int) int {
	for at < len(text) && inRun[text[at]] {
		at++
	}
	return at
}

// inRun are the bytes of keys, of base64 in both alphabets, and of the dots and
// colons that join parts of keys.
var inRun = func() (set [256]bool) {
	for c := range 256 {
		set[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-.+/:@~", byte(c)) >= 0
	}
	return set
}()
