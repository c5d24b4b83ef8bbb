// Command conformance writes docs/conformance.md from a test run and prints last
// how many requirements are met and open.
//
// Without -in it runs the tests itself. It fails when a number is cited that
// docs/requirements.txt does not list, when the run had failures, and with -check
// when the committed page says something else than the run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/reeve-run/reeve/internal/conformance"
)

const module = "github.com/reeve-run/reeve"

func main() {
	in := flag.String("in", "", "read this output of go test -json instead of running the tests (- is standard input)")
	check := flag.Bool("check", false, "compare with the committed page instead of writing it")
	flag.Parse()
	if err := run(*in, *check); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(in string, check bool) error {
	root, err := root()
	if err != nil {
		return err
	}
	list, err := readList(filepath.Join(root, "docs", "requirements.txt"))
	if err != nil {
		return err
	}
	tests, err := readRun(root, in)
	if err != nil {
		return err
	}
	deviations, err := os.ReadFile(filepath.Join(root, "docs", "deviations.md"))
	if err != nil {
		return err
	}
	findings := conformance.Judge(list, tests)
	page := conformance.Page(findings, string(deviations))
	err = errors.Join(problems(list, tests), settle(filepath.Join(root, "docs", "conformance.md"), page, check, tests))
	met, open := conformance.Count(findings)
	fmt.Printf("requirements: %d met, %d open\n", met, open)
	return err
}

// problems are what makes a run unfit to judge by.
func problems(list *conformance.List, tests *conformance.Run) error {
	var errs []error
	if len(tests.Outcomes) == 0 {
		errs = append(errs, errors.New("the run holds no test"))
	}
	for _, u := range tests.Unlisted(list) {
		errs = append(errs, fmt.Errorf("not in docs/requirements.txt: %s", u))
	}
	if n := len(tests.Failures); n > 0 {
		errs = append(errs, fmt.Errorf("%d failures in the run: %s", n, strings.Join(tests.Failures[:min(n, 5)], ", ")))
	}
	return errors.Join(errs...)
}

func settle(path, page string, check bool, tests *conformance.Run) error {
	if !check {
		return os.WriteFile(path, []byte(page), 0o644)
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if string(committed) == page {
		return nil
	}
	if skips := tests.Skips(); len(skips) > 0 {
		fmt.Fprintf(os.Stderr, "conformance: the page was not compared: %d tests were skipped here (%s)\n", len(skips), skips[0])
		return nil
	}
	return errors.New("docs/conformance.md is stale; refresh it: go run ./internal/gen/conformance")
}

func readList(path string) (*conformance.List, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return conformance.ReadList(f)
}

func readRun(root, in string) (*conformance.Run, error) {
	switch in {
	case "":
		return runTests(root)
	case "-":
		return conformance.ReadRun(os.Stdin, module)
	}
	f, err := os.Open(in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return conformance.ReadRun(f, module)
}

// runTests leaves the verdict on failing tests to the stream: the exit status of
// go test says only that there were some.
func runTests(root string) (*conformance.Run, error) {
	cmd := exec.Command("go", "test", "-json", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	tests, err := conformance.ReadRun(out, module)
	if err != nil {
		_, _ = io.Copy(io.Discard, out) // so that go test can end; the first error stands
	}
	var status *exec.ExitError
	if wait := cmd.Wait(); err == nil && wait != nil && !errors.As(wait, &status) {
		err = wait
	}
	return tests, err
}

func root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
