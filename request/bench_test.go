package request_test

import (
	"strings"
	"testing"

	"github.com/reeve-run/reeve/request"
)

const realistic = `workspace.run(argv=["go","test","./..."], timeout_ms=30000, namespace="lab:alpha", dry_run=false)`

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"trivial", "stats()"},
		{"realistic", realistic},
		{"batch10", "[" + strings.Repeat(realistic+",", 9) + realistic + "]"},
		{"chain5", strings.Repeat(`get(id="a") | `, 4) + `link(source_id=$prev.id, target_id="t", relation="extends")`},
		{"json3", `[{"tool":"a","args":{"x":1}},{"tool":"b","args":{"y":"two"}},{"tool":"c","args":{"z":[3]}}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if _, err := request.Parse(c.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
