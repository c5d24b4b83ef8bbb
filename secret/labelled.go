package secret

import (
	"math"
	"strings"
)

// triggers are the words that call a value secret.
var triggers = []string{"password", "passwd", "secret", "credential", "credentials", "bearer", "apikey", "token", "key", "auth"}

// reach is how far before a value its label may stand, in bytes.
const reach = 40

const (
	minHex      = 32  // characters of a hexadecimal run
	minRandom   = 20  // characters of another run
	minBits     = 3.4 // entropy of such a run, in bits a character
	minLabelled = 8   // characters of a value that a password label assigns
)

// labelled finds a value that a word before it calls secret: a long random-looking
// run near such a word, or whatever a password is set to.
func labelled(text string, start, end int) (from, to int, ok bool) {
	value := strings.TrimRight(text[start:end], ".:/-")
	// A run may hold its label: key:value, key/value is not one.
	label := before(text, start)
	if i := strings.LastIndexByte(value, ':'); i > 0 && trigger(value[:i]) != "" {
		label, start, value = value[:i]+":", start+i+1, value[i+1:]
	}
	end = start + len(value)
	word := trigger(label)
	if word == "" || placeholder(value) {
		return 0, 0, false
	}
	assigned := assigns(label)
	switch {
	case strong(word) && direct(label, word) && literal(label, value):
		return start, end, true
	case !random(value):
		return 0, 0, false
	case path(value) && !assigned:
		return 0, 0, false
	case identifier(value) && !assigned, commit(label):
		return 0, 0, false
	}
	return start, end, true
}

// before is the text on the same line before a run, as far as a label reaches.
func before(text string, start int) string {
	low := max(0, start-reach)
	s := text[low:start]
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return s
}

// trigger is the last trigger word of a label, bounded as a word: apiKey, api_key and
// API-KEY hold key, monkey does not.
func trigger(label string) string {
	lower := strings.ToLower(label)
	best, at := "", -1
	for _, t := range triggers {
		for from := 0; ; {
			i := strings.Index(lower[from:], t)
			if i < 0 {
				break
			}
			i += from
			from = i + len(t)
			if bounded(label, i, i+len(t)) && i > at {
				best, at = t, i
			}
		}
	}
	return best
}

// bounded reports whether [i, j) is a word of its own in label: what stands before it
// is no letter, or it begins a hump; what follows is no lower-case letter but a plural.
func bounded(label string, i, j int) bool {
	letter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	lower := func(c byte) bool { return c >= 'a' && c <= 'z' }
	if i > 0 && letter(label[i-1]) && (!lower(label[i-1]) || lower(label[i])) {
		return false
	}
	if j < len(label) && label[j] == 's' {
		j++
	}
	return j == len(label) || !lower(label[j])
}

// strong are words whose assigned value is a secret even when it is short.
func strong(word string) bool { return word == "password" || word == "passwd" || word == "secret" }

// assigns reports whether the label ends in an assignment to what follows.
func assigns(label string) bool {
	s := strings.TrimRight(label, " \t\"'`")
	return strings.HasSuffix(s, "=") || strings.HasSuffix(s, ":") || strings.HasSuffix(s, "=>")
}

// direct reports whether a label assigns to the very name that holds the word, as
// db_password = and "clientSecret": do.
func direct(label, word string) bool {
	rest := label[strings.LastIndex(strings.ToLower(label), word)+len(word):]
	name := span(rest, wordDash)
	return assigns(label) && strings.Trim(rest[name:], " \t\"'`:=>") == ""
}

// literal reports whether a value is written out: quoted, or at least no plain name,
// as code has on the right of an assignment.
func literal(label, value string) bool {
	quoted := strings.TrimRight(label, "\"'`") != label
	return len(value) >= minLabelled && mixedClasses(value) >= 2 && !reference(value) && (quoted || hasDigit(value))
}

// commit reports whether the label marks the value as a commit's hash or a digest.
func commit(label string) bool {
	lower := strings.ToLower(label)
	for _, w := range []string{"commit", "sha256", "sha1", "sha512", "digest", "checksum", "integrity", "rev ", "revision"} {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

// reference is a value that names where a secret is kept, or code that fetches it.
func reference(value string) bool {
	lower := strings.ToLower(value)
	for _, p := range []string{"env:", "file:", "cmd:", "os.", "process.", "config.", "settings.", "self.", "this.", "args.", "http:", "https:"} {
		if strings.HasPrefix(lower, p) {
			return true
		}
	}
	return strings.Contains(value, "/") && path(value)
}

// placeholder is a value that stands for one.
func placeholder(value string) bool {
	lower := strings.ToLower(strings.Trim(value, "-_."))
	if monotone(lower) || strings.HasPrefix(lower, "your") || strings.HasPrefix(lower, "example") || strings.HasPrefix(lower, "changeme") {
		return true
	}
	switch lower {
	case "", "password", "passwd", "secret", "token", "pass", "none", "null", "true", "false", "string", "required", "optional", "hunter2":
		return true
	}
	return strings.Contains(lower, "placeholder") || strings.Contains(lower, "redacted") || strings.Contains(lower, "xxxx")
}

// path is a value of short words joined by slashes, as paths and URLs are.
func path(value string) bool {
	if strings.Count(value, "/") == 0 {
		return false
	}
	for part := range strings.SplitSeq(value, "/") {
		if len(part) >= minRandom && randomWord(part) {
			return false
		}
	}
	return true
}

// identifier is a UUID, a digest with its algorithm, or words joined by dots, dashes
// and underscores: names, not secrets.
func identifier(value string) bool {
	if uuid(value) || verifierKey(value) {
		return true
	}
	for _, p := range []string{"sha1-", "sha256-", "sha384-", "sha512-", "sha1:", "sha256:", "sha512:", "h1:"} {
		if strings.HasPrefix(value, p) {
			return true
		}
	}
	n := len(value)
	if (n == 32 || n == 40 || n == 64 || n == 96 || n == 128) && span(value, hexLower) == n {
		return true
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune("-_.:/@~+", r) }) {
		if len(part) >= 16 && randomWord(part) {
			return false
		}
	}
	return strings.ContainsAny(value, "-_.:/@")
}

// verifierKey is the public key of a signed note: name, eight digits, a key that
// begins with A.
func verifierKey(s string) bool {
	parts := strings.SplitN(s, "+", 3)
	return len(parts) == 3 && len(parts[1]) == 8 && span(parts[1], hexLower) == 8 && strings.HasPrefix(parts[2], "A")
}

func uuid(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') {
			return false
		} else if c := s[i] | 0x20; !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// random reports whether a run looks like one that a machine has drawn.
func random(value string) bool {
	if n := len(value); n >= minHex && span(strings.ToLower(value), hexLower) == n {
		return entropy(value) > 2.5
	}
	return len(value) >= minRandom && randomWord(value)
}

func randomWord(s string) bool { return mixedClasses(s) >= 2 && hasDigit(s) && entropy(s) >= minBits }

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// mixedClasses is how many of lower case, upper case, digits and signs s has.
func mixedClasses(s string) int {
	var lower, up, digit, sign int
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			lower = 1
		case c >= 'A' && c <= 'Z':
			up = 1
		case c >= '0' && c <= '9':
			digit = 1
		default:
			sign = 1
		}
	}
	return lower + up + digit + sign
}

// entropy is Shannon's, in bits a byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	var bits float64
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
