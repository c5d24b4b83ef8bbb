// Command testreport reads the output of go test -json and prints what a person
// wants to see of it: what failed, with its output, what was skipped and why, the
// slowest packages, and last how many tests passed and failed.
//
// A test that started and never ended, and a package that failed without a failing
// test, count as failures.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Elapsed    float64
	Output     string
}

type result struct {
	name    string
	state   string // run, pass, fail, skip
	elapsed float64
	output  strings.Builder
}

type report struct {
	tests    map[string]*result
	packages map[string]*result
	builds   map[string]*result
	order    []*result
}

func main() {
	r := report{tests: map[string]*result{}, packages: map[string]*result{}, builds: map[string]*result{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if failed := r.print(os.Stdout); failed > 0 {
		os.Exit(1)
	}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		raw, err := lines.ReadBytes('\n')
		if len(raw) > 0 && raw[0] == '{' {
			var e event
			if err := json.Unmarshal(raw, &e); err != nil {
				return fmt.Errorf("%w in %.80q", err, raw)
			}
			r.take(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) get(in map[string]*result, name string) *result {
	res := in[name]
	if res == nil {
		res = &result{name: name, state: "run"}
		in[name] = res
		r.order = append(r.order, res)
	}
	return res
}

func (r *report) take(e event) {
	var res *result
	switch {
	case strings.HasPrefix(e.Action, "build-"):
		res = r.get(r.builds, "build of "+e.ImportPath)
	case e.Test != "":
		res = r.get(r.tests, e.Package+" "+e.Test)
	case e.Package != "":
		res = r.get(r.packages, "package "+e.Package)
	default:
		return
	}
	switch e.Action {
	case "output", "build-output":
		res.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		res.state, res.elapsed = e.Action, e.Elapsed
	case "build-fail":
		res.state = "fail"
	}
}

// slowest is how many packages are listed with their time.
const slowest = 8

func (r *report) print(out io.Writer) (failed int) {
	var passed, skipped int
	under := map[string]bool{} // packages with a failing test
	for _, res := range r.order {
		if _, isTest := r.tests[res.name]; !isTest {
			continue
		}
		switch res.state {
		case "pass":
			passed++
		case "skip":
			skipped++
			fmt.Fprintf(out, "--- SKIP %s\n%s", res.name, indent(res.output.String()))
		default:
			failed++
			pkg, _, _ := strings.Cut(res.name, " ")
			pkg = "package " + pkg
			fmt.Fprintf(out, "--- FAIL %s (%s)\n%s", res.name, res.state, indent(res.output.String()))
			if whole := r.packages[pkg]; res.state == "run" && !under[pkg] && whole != nil {
				fmt.Fprint(out, indent(whole.output.String())) // a panic is the package's output
			}
			under[pkg] = true
		}
	}
	for _, res := range r.order {
		_, isPackage := r.packages[res.name]
		_, isBuild := r.builds[res.name]
		if res.state == "fail" && (isBuild || isPackage && !under[res.name]) {
			failed++
			fmt.Fprintf(out, "--- FAIL %s\n%s", res.name, indent(res.output.String()))
		}
	}
	r.printSlowest(out)
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return failed
}

func (r *report) printSlowest(out io.Writer) {
	var packages []*result
	for _, res := range r.packages {
		packages = append(packages, res)
	}
	slices.SortFunc(packages, func(a, b *result) int {
		if a.elapsed != b.elapsed {
			return int(1000 * (b.elapsed - a.elapsed))
		}
		return strings.Compare(a.name, b.name)
	})
	for _, res := range packages[:min(slowest, len(packages))] {
		fmt.Fprintf(out, "%8.1fs %s\n", res.elapsed, res.name)
	}
}

// indent drops the framing lines of go test and sets the rest apart.
func indent(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(l); trimmed == "" || strings.HasPrefix(trimmed, "=== ") {
			continue
		}
		b.WriteString("    " + l)
	}
	return b.String()
}
