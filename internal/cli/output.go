package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// answer is what a command found: data for programs, text for people, and possibly
// an error beside them (a cell that raised has both).
type answer struct {
	kind string
	data any
	rows bool // data is a slice, printed one element a line with --jsonl
	ids  map[string]string
	text func(p printer)
	err  error
	// streamed: what there was has been printed as it came; only an error is left.
	streamed bool
}

func failed(err error) answer { return answer{err: err} }

// finish prints an answer and returns the exit status.
func (a *app) finish(ctx context.Context, ans answer) int {
	ans.err = a.named(ctx, ans.err)
	var err error
	switch {
	case ans.streamed && ans.err == nil:
	case a.machine():
		err = a.printJSON(ans)
	case len(a.set.fields) > 0 && ans.data != nil:
		err = a.printFields(ans)
	case ans.text != nil:
		ans.text(a.printer())
	}
	if err != nil {
		a.report(err)
		return exitStatus(ctx, err)
	}
	// A follower that was told to stop did what it was for. What --jq makes of a
	// failure may say nothing.
	told := ans.streamed && fault.CodeOf(ans.err) == fault.Cancelled
	if ans.err != nil && !told && (!a.machine() || a.set.jq != "") {
		a.tell(ans.err)
	}
	return exitStatus(ctx, ans.err)
}

// exitStatus is the code's, told apart for the two signals that end a command.
func exitStatus(ctx context.Context, err error) int {
	var s Signal
	if fault.CodeOf(err) == fault.Cancelled && errors.As(context.Cause(ctx), &s) && s.Number == syscall.SIGTERM {
		return fault.ExitTerminated
	}
	return fault.CodeOf(err).Exit()
}

// named turns an error that only says that a context ended into one that says why.
func (a *app) named(ctx context.Context, err error) error {
	if err == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *fault.Error
	if errors.As(err, &e) {
		return err
	}
	return fault.Wrap(context.Cause(ctx), fault.Cancelled, "run command", "")
}

// report is for an answer that could not be printed as asked.
func (a *app) report(err error) {
	if a.machine() && a.set.jq == "" {
		e := control.Failure(err)
		e.Meta = a.meta(nil)
		if a.printEnvelope(e) == nil {
			return
		}
	}
	a.tell(err)
}

// tell says to a person what happened, why, and what now, on standard error.
func (a *app) tell(err error) {
	fmt.Fprintf(a.io.Err, "reeve: %s\n", inert(err.Error()))
	var e *fault.Error
	if errors.As(err, &e) && e.Next != "" {
		fmt.Fprintf(a.io.Err, "next: %s\n", visible(a.here(e.Next)))
	}
}

// machine reports whether standard output is for a program.
func (a *app) machine() bool { return a.set.json || a.set.jsonl || a.set.jq != "" }

// note says something beside the answer, on standard error, in one line.
func (a *app) note(format string, args ...any) {
	if a.set.quiet || a.machine() {
		return
	}
	fmt.Fprintf(a.io.Err, "note: %s\n", visible(a.here(fmt.Sprintf(format, args...))))
}

// trace says with --verbose what goes on behind the command.
func (a *app) trace(format string, args ...any) {
	if a.set.verbose {
		fmt.Fprintf(a.io.Err, "%s  %s\n", span(time.Since(a.started)), visible(fmt.Sprintf(format, args...)))
	}
}

// ownCommand finds commands that a text tells a person to run.
var ownCommand = regexp.MustCompile(`\breeve (act|anchor|can|cell|doctor|down|du|events|held|init|ns|pack|policy|ps|receipt|request|session|status|up|verify)\b`)

// here makes the commands in a text work as written: with the data directory that
// this one was given.
func (a *app) here(text string) string {
	if a.set.dir == "" {
		return text
	}
	dir := a.set.dir
	if strings.ContainsFunc(dir, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-", r)
	}) {
		dir = "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return ownCommand.ReplaceAllStringFunc(text, func(s string) string {
		return "reeve --dir " + dir + strings.TrimPrefix(s, "reeve")
	})
}

func (a *app) printJSON(ans answer) error {
	if ans.err == nil && ans.data == nil {
		ans.data = struct{}{}
	}
	e := control.Envelope{Kind: "error"}
	if ans.err != nil {
		e = control.Failure(ans.err)
	}
	if ans.data != nil {
		ok, err := control.Success(ans.kind, ans.data)
		if err != nil {
			return err
		}
		e.OK, e.Kind, e.Data = ans.err == nil, ok.Kind, ok.Data
		if e.Data, err = a.selected(ans.data, e.Data); err != nil {
			return err
		}
	}
	if e.Error != nil {
		e.Error.Next = a.here(e.Error.Next)
	}
	e.Meta = a.meta(ans.ids)
	if a.set.jsonl && ans.rows && e.OK {
		return a.printRows(e.Data)
	}
	return a.printEnvelope(e)
}

func (a *app) meta(ids map[string]string) *control.Meta {
	if ids == nil {
		ids = map[string]string{}
	}
	return &control.Meta{Version: control.Version, ElapsedMS: time.Since(a.started).Milliseconds(), IDs: ids}
}

// printRows prints the elements of an array, one a line.
func (a *app) printRows(array jsontext.Value) error {
	var rows []jsontext.Value
	if err := json.Unmarshal(array, &rows); err != nil {
		return fault.Wrap(err, fault.Internal, "print rows", "")
	}
	for _, r := range rows {
		if err := a.printValue(r); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printEnvelope(e control.Envelope) error {
	b, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return fault.Wrap(err, fault.Internal, "print answer", e.Kind)
	}
	return a.printValue(b)
}

// printValue prints one JSON value on one line, through --jq when it is given.
func (a *app) printValue(v jsontext.Value) error {
	if a.set.jq != "" {
		return a.printJQ(v)
	}
	_, err := a.io.Out.Write(append(v, '\n'))
	return err
}

// printer writes for people.
type printer struct {
	w     io.Writer
	tty   bool
	color bool
	width int
}

func (a *app) printer() printer {
	return printer{w: a.io.Out, tty: a.io.OutTTY, color: a.colored(a.io.OutTTY), width: a.io.Width}
}

// colored decides by --color, NO_COLOR, CLICOLOR_FORCE, TERM and the stream.
func (a *app) colored(tty bool) bool {
	switch {
	case a.set.color == "always":
		return true
	case a.set.color == "never", a.io.Env("NO_COLOR") != "":
		return false
	case a.io.Env("CLICOLOR_FORCE") != "" && a.io.Env("CLICOLOR_FORCE") != "0":
		return true
	}
	return tty && a.io.Env("TERM") != "dumb"
}

func (p printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// Colours, by what they say and never alone.
const (
	good = "32"
	warn = "33"
	bad  = "31"
	dim  = "2"
)

func (p printer) paint(style, s string) string {
	if !p.color || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// table prints rows with a head, in columns on a terminal and separated by tabs
// without a head for programs. An empty table prints empty, which should say why.
func (p printer) table(empty string, head []string, rows [][]string) {
	if !p.tty {
		for _, r := range rows {
			for i := range r {
				r[i] = strings.ReplaceAll(visible(r[i]), "\t", " ")
			}
			p.line("%s", strings.Join(r, "\t"))
		}
		return
	}
	if len(rows) == 0 {
		p.line("%s", empty)
		return
	}
	// Styles would upset the column widths, so only the head has one, put on whole.
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, r := range rows {
		for i := range r {
			r[i] = visible(r[i])
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush() // into memory
	for i, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		l = clip(strings.TrimRight(l, " "), p.width)
		if i == 0 {
			l = p.paint(dim, l)
		}
		p.line("%s", l)
	}
}

// pairs prints a list of names and values; empty values are left out.
func (p printer) pairs(kv ...string) {
	wide := 0
	for i := 0; i < len(kv); i += 2 {
		wide = max(wide, len(kv[i]))
	}
	for i := 0; i < len(kv); i += 2 {
		switch {
		case kv[i+1] == "":
		case p.tty:
			p.line("%s  %s", p.paint(dim, fmt.Sprintf("%-*s", wide, kv[i])), visible(kv[i+1]))
		default:
			p.line("%s\t%s", kv[i], visible(kv[i+1]))
		}
	}
}
