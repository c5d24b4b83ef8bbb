// Package conformance says which numbered requirements this repository meets, by
// what a test run showed.
//
// Invariants: a requirement is met only when every test that cites it ran and
// passed and none of them, nor a part of them, was skipped; a number that is cited
// but not listed is an error; the page holds nothing that differs between two runs
// with the same outcome. The package must not know what a requirement means.
package conformance

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Requirement is one line of the list.
type Requirement struct {
	Number  string
	Title   string
	Open    string // why it is open when no test cites it
	Partial string // why it is open although tests cite it
}

var number = regexp.MustCompile(`^[A-Z]{2}-[0-9]{3}[a-z]?$`)

// List is the requirements in the order of their file.
type List struct {
	All   []Requirement
	index map[string]int
}

// Has reports whether the number is listed.
func (l *List) Has(n string) bool {
	_, ok := l.index[n]
	return ok
}

// ReadList reads docs/requirements.txt, whose head describes the form.
func ReadList(r io.Reader) (*List, error) {
	l := &List{index: map[string]int{}}
	var later []func() error
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		first, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		at := func(format string, args ...any) error {
			return fmt.Errorf("requirements line %d: %s", n, fmt.Sprintf(format, args...))
		}
		switch {
		case rest == "":
			return nil, at("no text after %q", first)
		case first == "open" || first == "partial":
			span, reason, ok := strings.Cut(rest, " ")
			if !ok {
				return nil, at("no reason")
			}
			later = append(later, func() error {
				if err := l.reason(span, strings.TrimSpace(reason), first == "partial"); err != nil {
					return at("%v", err)
				}
				return nil
			})
		case !number.MatchString(first):
			return nil, at("%q is no number", first)
		case l.Has(first):
			return nil, at("%s is listed twice", first)
		default:
			l.index[first] = len(l.All)
			l.All = append(l.All, Requirement{Number: first, Title: rest})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read requirements: %w", err)
	}
	for _, apply := range later {
		if err := apply(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// reason applies an open or partial line to its numbers.
func (l *List) reason(span, reason string, partial bool) error {
	first, last, ranged := strings.Cut(span, "..")
	if !ranged {
		last = first
	}
	from, okFrom := l.index[first]
	to, okTo := l.index[last]
	if !okFrom || !okTo || to < from {
		return fmt.Errorf("%q is no range of listed numbers", span)
	}
	for i := from; i <= to; i++ {
		req := &l.All[i]
		if partial {
			req.Partial = reason
			continue
		}
		if req.Open != "" {
			return fmt.Errorf("%s has two reasons", req.Number)
		}
		req.Open = reason
	}
	return nil
}
