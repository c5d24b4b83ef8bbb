package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Outcome is how a test ended.
type Outcome int

// Outcomes. When a test ran several times the greatest counts.
const (
	Unfinished Outcome = iota // started, and the run ended without its end
	Passed
	Skipped
	Failed
)

// Test names a test or subtest of a package.
type Test struct {
	Package string
	Name    string
}

func (t Test) String() string { return t.Package + "." + t.Name }

// Run is what a stream of go test -json showed.
type Run struct {
	Cited    map[string][]Test // by requirement number, sorted
	Outcomes map[Test]Outcome
	Failures []string // packages and tests that failed, sorted
}

// line is the part of a test2json event that is read here.
type line struct {
	Action  string
	Package string
	Test    string
	Key     string
	Value   string
}

// attribute is the key under which tests cite requirements.
const attribute = "requirement"

// ReadRun reads the output of go test -json. Lines that are no JSON object (what
// the go command says on its own) are passed over.
func ReadRun(r io.Reader, module string) (*Run, error) {
	run := &Run{Cited: map[string][]Test{}, Outcomes: map[Test]Outcome{}}
	failed := map[string]bool{}
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		raw, err := in.ReadBytes('\n')
		if len(raw) > 0 && raw[0] == '{' {
			var l line
			if err := json.Unmarshal(raw, &l); err != nil {
				return nil, fmt.Errorf("read test run: %w in %.80q", err, bytes.TrimSpace(raw))
			}
			l.Package = strings.TrimPrefix(strings.TrimPrefix(l.Package, module), "/")
			run.take(l, failed)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read test run: %w", err)
		}
	}
	for _, tests := range run.Cited {
		slices.SortFunc(tests, func(a, b Test) int { return strings.Compare(a.String(), b.String()) })
	}
	run.Failures = slices.Sorted(maps.Keys(failed))
	return run, nil
}

func (run *Run) take(l line, failed map[string]bool) {
	test := Test{l.Package, l.Test}
	if l.Test == "" {
		if l.Action == "fail" || l.Action == "build-fail" {
			failed[l.Package] = true
		}
		return
	}
	switch l.Action {
	case "run":
		run.Outcomes[test] = max(run.Outcomes[test], Unfinished)
	case "pass":
		run.Outcomes[test] = max(run.Outcomes[test], Passed)
	case "skip":
		run.Outcomes[test] = max(run.Outcomes[test], Skipped)
	case "fail":
		run.Outcomes[test] = Failed
		failed[test.String()] = true
	case "attr":
		if l.Key != attribute {
			return
		}
		for _, n := range strings.Fields(strings.ReplaceAll(l.Value, ",", " ")) {
			if !slices.Contains(run.Cited[n], test) {
				run.Cited[n] = append(run.Cited[n], test)
			}
		}
	}
}

// Unlisted is every cited number that the list lacks, with one test that cites it.
func (run *Run) Unlisted(l *List) []string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(run.Cited)) {
		if !l.Has(n) {
			out = append(out, fmt.Sprintf("%s, cited by %s", n, run.Cited[n][0]))
		}
	}
	return out
}

// outcome of a citing test is the worst of its own and its subtests': a part that
// was skipped or never ended shows nothing.
func (run *Run) outcome(t Test) Outcome {
	seen := map[Outcome]bool{run.Outcomes[t]: true}
	for other, o := range run.Outcomes {
		if other.Package == t.Package && strings.HasPrefix(other.Name, t.Name+"/") {
			seen[o] = true
		}
	}
	for _, o := range []Outcome{Failed, Unfinished, Skipped} {
		if seen[o] {
			return o
		}
	}
	return Passed
}

// Skips is every test that was skipped, sorted.
func (run *Run) Skips() []string {
	var out []string
	for t, o := range run.Outcomes {
		if o == Skipped {
			out = append(out, t.String())
		}
	}
	slices.Sort(out)
	return out
}
