// Command events writes docs/events.md from the source of package event. It is run
// in the root of the repository.
package main

import (
	"fmt"
	"os"

	"github.com/reeve-run/reeve/internal/eventdoc"
)

func main() {
	page, err := eventdoc.Page("event")
	if err == nil {
		err = os.WriteFile("docs/events.md", page, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}
