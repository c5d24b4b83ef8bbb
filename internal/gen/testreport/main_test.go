package main

import (
	"strings"
	"testing"
)

const stream = `go: some words of the go command
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"quiet\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood","Elapsed":0.1}
{"Action":"run","Package":"m/a","Test":"TestBad"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"m/a","Test":"TestBad","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"m/a","Test":"TestBad","Elapsed":0.1}
{"Action":"run","Package":"m/a","Test":"TestAway"}
{"Action":"output","Package":"m/a","Test":"TestAway","Output":"no unicorn\n"}
{"Action":"skip","Package":"m/a","Test":"TestAway","Elapsed":0}
{"Action":"fail","Package":"m/a","Elapsed":1}
{"Action":"run","Package":"m/b","Test":"TestHangs"}
{"Action":"output","Package":"m/b","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"m/b","Elapsed":9}
{"ImportPath":"m/c","Action":"build-output","Output":"c.go:1:1: no\n"}
{"ImportPath":"m/c","Action":"build-fail"}
{"Action":"fail","Package":"m/d","Elapsed":0}
`

func TestReportNamesEveryFailure(t *testing.T) {
	t.Parallel()
	r := report{tests: map[string]*result{}, packages: map[string]*result{}, builds: map[string]*result{}}
	if err := r.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if failed := r.print(&b); failed != 4 {
		t.Errorf("%d failures, want the test, the hanging one, the build and the package", failed)
	}
	out := b.String()
	for _, want := range []string{
		"--- FAIL m/a TestBad (fail)\n    got 1, want 2\n",
		"--- SKIP m/a TestAway\n    no unicorn\n",
		"--- FAIL m/b TestHangs (run)\n    panic: test timed out\n",
		"--- FAIL build of m/c\n    c.go:1:1: no\n",
		"--- FAIL package m/d\n",
		"     9.0s package m/b\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("report lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "quiet") {
		t.Error("report shows the output of a test that passed")
	}
	if !strings.HasSuffix(out, "\n1 passed, 4 failed, 1 skipped\n") {
		t.Errorf("last line is wrong:\n%s", out)
	}
}
