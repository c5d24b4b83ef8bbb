package archtest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// banned is a text that no file may hold. Parts are joined at start, so that this
// file does not hold them itself.
type banned struct {
	pattern *regexp.Regexp
	except  []string // paths
	why     string
}

func pattern(parts ...string) *regexp.Regexp {
	return regexp.MustCompile("(?m)" + strings.Join(parts, ""))
}

var bannedTexts = []banned{
	{
		pattern: pattern(`\.\./sha`, `red\b`),
		except:  []string{".ci/run"}, // it looks beside the clone for a bigger set of vectors
		why:     "points outside the project",
	},
	{
		pattern: pattern(`(^|[^\w.$~/-])/(ro`, `ot|work/(ma`, `in|w`, `t|sha`, `red))\b`),
		why:     "a path of one machine",
	},
	{
		pattern: pattern(`(^|[\s"'(=])/(ho`, `me|Users)/[a-z]`),
		why:     "somebody's home directory",
	},
	{
		pattern: pattern(`(?i)\b(sub-?ag`, `ents?|issues sh`, `ow|co-authored`, `-by|helper [A-H]\b|(this|the|your|my) bri`, `ef\b|issue'?s? te`, `xt)`),
		why:     "how work is organised has no place in the product",
	},
	{
		pattern: pattern(`\b(TO`, `DO|FIX`, `ME|XX`, `X)\b`),
		why:     "say in the tracker what is to be done, not in the source",
	},
	{
		pattern: pattern(`-----BEGIN [A-Z ]*PRIV`, `ATE KEY`, `|\bghp_[A-Za-z0-9]{20}|\bsk-[A-Za-z0-9]{32}|\bAKIA[A-Z0-9]{12}`),
		why:     "looks like a secret",
	},
}

// verbatim are files that are not ours to word.
var verbatim = []string{"LICENSE", "go.sum", "vectors/developer-v8", "vectors/verb-dispatch"}

// Texts checks every file for what must not be committed.
func Texts(files []File) []Finding {
	var found []Finding
	for _, f := range files {
		if underAny(f.Path, verbatim) {
			continue
		}
		for _, b := range bannedTexts {
			if slices.Contains(b.except, f.Path) {
				continue
			}
			for _, hit := range b.pattern.FindAllIndex(f.Text, -1) {
				line := 1 + bytes.Count(f.Text[:hit[0]], []byte("\n"))
				found = append(found, Finding{f.Path, line, string(bytes.TrimSpace(f.Text[hit[0]:hit[1]])) + ": " + b.why})
			}
		}
	}
	return found
}
