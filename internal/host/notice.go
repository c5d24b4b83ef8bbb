package host

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/session"
	"github.com/reeve-run/reeve/worker"
)

// Kinds of notice.
const (
	noticeLost        = "namespace_lost"
	noticeStopped     = "namespace_stopped"
	noticeReset       = "namespace_reset"
	noticeTimeout     = "timeout"
	noticeInterrupted = "interrupted"
	noticeRaw         = "unattributed_output"
)

// shownNames is how many names a notice's text lists; all are in its members.
const shownNames = 20

// lossNotice tells of a namespace that is gone. generation is the one that has
// followed it, empty when none has.
func lossNotice(l *session.Loss, generation string) *control.Notice {
	n := &control.Notice{
		Kind: noticeLost, Generation: generation, Previous: l.Generation, Cause: &l.Cause,
		Names: append([]string{}, l.Names.Known...), NamesMore: l.Names.More,
	}
	var b strings.Builder
	if l.How == session.EndedStopped {
		n.Kind = noticeStopped
		if isReset(l) {
			n.Kind = noticeReset
		}
		fmt.Fprintf(&b, "The namespace of %s is gone: %s.", l.Generation, l.Cause.Text)
	} else {
		fmt.Fprintf(&b, "The namespace of %s was lost: %s.", l.Generation, l.Cause.Text)
	}
	b.WriteString(" " + heldNames(l))
	switch {
	case generation == "":
		b.WriteString(" The next cell starts in an empty namespace.")
	case l.Names.Len() == 0:
		fmt.Fprintf(&b, " This cell ran in %s.", generation)
	default:
		fmt.Fprintf(&b, " This cell ran in %s, which started empty; run again what defines the names you need.", generation)
	}
	n.Text = b.String()
	return n
}

// resetText begins the cause of a stop that makes room for a fresh namespace.
const resetText = "a fresh namespace was requested"

func isReset(l *session.Loss) bool { return strings.HasPrefix(l.Cause.Text, resetText) }

func heldNames(l *session.Loss) string {
	text := "It held no names."
	if l.Names.Len() > 0 {
		shown := l.Names.Known[:min(len(l.Names.Known), shownNames)]
		text = "It held " + strings.Join(shown, ", ")
		if more := l.Names.Len() - len(shown); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		text += "."
	}
	if l.Partial {
		text += " What the cell that was running had bound is not known."
	}
	return text
}

// stopReason says why a running cell was asked to stop.
type stopReason struct {
	kind string // noticeTimeout | noticeInterrupted
	text string // "timeout of 1s was reached"
}

// stopNotice tells how a cell was stopped and what it cost. loss is set when the
// namespace went with it.
func stopNotice(why stopReason, cell string, rung worker.Rung, bound string, loss *session.Loss, generation string) *control.Notice {
	n := &control.Notice{Kind: why.kind, Generation: generation, Previous: generation, Names: []string{}}
	var b strings.Builder
	b.WriteString(why.text + "; ")
	switch rung {
	case "":
		b.WriteString("the cell ended before it had to be stopped.")
	case worker.RungCancel:
		b.WriteString("the cell stopped when asked.")
	case worker.RungSignal:
		b.WriteString("the cell stopped at SIGINT.")
	default:
		fmt.Fprintf(&b, "the cell did not stop when asked nor at SIGINT, so its worker was ended (%s; the ladder takes at most %s).", rung, bound)
	}
	if loss == nil {
		b.WriteString(" The namespace is kept.")
	} else {
		n.Generation, n.Previous, n.Cause = "", loss.Generation, &loss.Cause
		n.Names, n.NamesMore = append(n.Names, loss.Names.Known...), loss.Names.More
		fmt.Fprintf(&b, " The namespace of %s went with it. %s The next cell starts in an empty one.", loss.Generation, heldNames(loss))
	}
	fmt.Fprintf(&b, " Its output so far can be read with the handle %s.", cell)
	n.Text = b.String()
	return n
}

// shownRaw is how much of a raw stream's end a notice shows: enough to know what
// printed, and no place to read output from.
const shownRaw = 400

// unattributed tells of what has come through the worker's raw streams and no
// answer has told yet: it is in no cell's output, because what a child process
// prints does not say whose it is.
func (l *lane) unattributed() *control.Notice {
	now, stdout, stderr := l.worker.Raw(l.rawTold)
	outBytes, errBytes := now.Stdout-l.rawTold.Stdout, now.Stderr-l.rawTold.Stderr
	l.rawTold = now
	if outBytes+errBytes == 0 {
		return nil
	}
	var parts []string
	part := func(name string, bytes int64, t event.Tail) {
		if bytes > 0 {
			parts = append(parts, fmt.Sprintf("%d bytes to its %s, which end with %q", bytes, name, last(t.Text, shownRaw)))
		}
	}
	part("stdout", outBytes, stdout)
	part("stderr", errBytes, stderr)
	return &control.Notice{
		Kind: noticeRaw, Generation: l.state.Generation, Previous: l.state.Generation, Names: []string{},
		Text: "The worker or a process it started wrote outside the cell's output: " + strings.Join(parts, ", and ") +
			". To have what a process prints in the output, capture and print it: " +
			"print(subprocess.run([...], capture_output=True, text=True).stdout).",
	}
}

// last is the longest end of s of at most n bytes that begins between characters.
func last(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// also is one notice that says both; the first gives the kind.
func also(n, second *control.Notice) *control.Notice {
	switch {
	case n == nil:
		return second
	case second != nil:
		n.Text += " " + second.Text
	}
	return n
}

// actorText names an actor for a sentence.
func actorText(a event.Actor) string {
	switch {
	case a.Name == "" && a.Kind == "":
		return "somebody"
	case a.Name == "":
		return "the " + a.Kind
	default:
		return a.Kind + " " + a.Name
	}
}
