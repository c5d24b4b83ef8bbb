package cli

import (
	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/internal/control"
)

// For tests of what has no face of its own.
var (
	Visible  = visible
	Inert    = inert
	Clip     = clip
	Span     = span
	Bytes    = bytesText
	CopyText = copyInert
)

// Tree is the whole command tree.
func Tree(s Stdio, p Programs) *cobra.Command {
	return (&app{io: s, programs: p}).root()
}

// Watch shows a cell that says what steps are, each after its pause, and returns
// what then stands on standard error.
func Watch(s Stdio, quiet bool, steps func(step func(control.CellProgress))) {
	l := newLive(&app{io: s, set: settings{quiet: quiet}})
	steps(l.step)
	l.end()
}
