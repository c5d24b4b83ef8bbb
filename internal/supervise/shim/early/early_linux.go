// Package early makes the binary that imports it a shim when it is asked to be one,
// before the packages that the rest of the binary needs are initialised.
//
// Invariant: without the command it does nothing at all. It must import nothing but
// package shim: Go initialises a package as soon as what it imports is, and only
// that makes this one early. A main that has no such package calls shim.Main first
// and pays for everything it links.
package early

import (
	"os"

	"github.com/reeve-run/reeve/internal/supervise/shim"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == shim.Command {
		os.Exit(shim.Main(os.Args[2:]))
	}
}
