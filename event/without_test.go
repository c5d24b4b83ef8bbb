package event_test

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// without returns text once for each member of an object in it, with just that
// member taken away.
func without(text string) []string {
	var out []string
	dec := jsontext.NewDecoder(strings.NewReader(text))
	for {
		kind, n := dec.StackIndex(dec.StackDepth())
		if _, err := dec.ReadToken(); err != nil {
			return out
		}
		isName := kind == '{' && n%2 == 0 && dec.StackDepth() > 0
		after, length := dec.StackIndex(dec.StackDepth())
		if !isName || after != '{' || length%2 == 0 {
			continue
		}
		end := int(dec.InputOffset())
		start := strings.LastIndexAny(text[:end-2], `{,`)
		value := jsontext.NewDecoder(strings.NewReader(text[end+1:]))
		if err := value.SkipValue(); err != nil {
			return nil
		}
		stop := end + 1 + int(value.InputOffset())
		if text[start] == '{' {
			start++
			if text[stop] == ',' {
				stop++
			}
		}
		out = append(out, text[:start]+text[stop:])
	}
}
