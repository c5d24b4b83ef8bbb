package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

type cellRun struct {
	session string
	file    string
	detach  bool
}

func (a *app) cmdCellRun() *cobra.Command {
	var o cellRun
	c := &cobra.Command{
		Use:   "run [code]",
		Short: "Run code in a session and print what it prints",
		Long: `Run code in the working directory's session, which is made on first use and keeps its
names between cells. Output comes as it is printed; the value of a last expression is
printed after it. Ctrl-C interrupts the cell, a second one leaves at once.

What a child process prints is not part of the cell's output unless the code captures it:
  print(subprocess.run(["ls"], capture_output=True, text=True).stdout)

Status: 0 done, 1 the code raised, 8 the time of --timeout was reached, 12 the worker
was lost and its namespace with it, 130 interrupted.`,
		Args: cobra.MaximumNArgs(1),
		Example: `  reeve cell run 'x = 6*7'        then: reeve cell run x
  reeve cell run --file script.py --timeout 30s
  echo 'print(1)' | reeve cell run -
  reeve cell run --session other 'x' --json`,
	}
	c.Flags().StringVarP(&o.session, "session", "s", "", "session to run in, made on first use (default: the working directory's)")
	c.Flags().StringVarP(&o.file, "file", "f", "", "read the code from this file (- for standard input)")
	c.Flags().BoolVar(&o.detach, "detach", false, "return when the cell has started, with its handle")
	a.completeFlag(c, "session", a.completeSessions())
	completeFields(c, members(reflect.TypeFor[control.CellResult]()))
	return a.does(c, func(ctx context.Context, args []string) answer {
		code, err := a.codeFrom(args, o.file)
		if err != nil {
			return failed(err)
		}
		find, cancel := a.overdue(ctx, findWithin, "there is no core that answers, so nothing was run")
		defer cancel()
		c, err := a.core(find)
		if err != nil {
			return failed(err)
		}
		return a.runCell(ctx, c, code, o)
	})
}

// maxCode is one byte over what a cell may have, so that the core refuses it.
const maxCode = 262_144 + 1

// codeOf reads a file, or standard input for a dash.
func (a *app) codeOf(name string) (string, error) {
	const op = "read code"
	if name == "-" {
		b, err := io.ReadAll(io.LimitReader(a.io.In, maxCode+int64(len(byteOrderMark))))
		if err != nil {
			return "", fault.Wrap(err, fault.Usage, op, "standard input")
		}
		return source("standard input", b)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.io.WorkDir, name)
	}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", fault.Wrap(err, fault.NotFound, op, name)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Usage, op, name)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxCode+int64(len(byteOrderMark))))
	if err != nil {
		return "", fault.Wrap(err, fault.Usage, op, name)
	}
	return source(name, b)
}

const byteOrderMark = "\ufeff"

// source is the text of a file of code: without the one byte order mark that Python
// too takes off, and in UTF-8. What is too long may be cut within a character and is
// left for the core to refuse.
func source(name string, b []byte) (string, error) {
	code := strings.TrimPrefix(string(b), byteOrderMark)
	if len(code) >= maxCode || utf8.ValidString(code) {
		return code, nil
	}
	at := 0
	for at < len(b) {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return "", fault.New(fault.Usage, "read code", name, "not UTF-8: byte 0x%02x at offset %d", b[at], at).
		WithNext("save it as UTF-8, or convert it with iconv -t UTF-8 -f and the encoding it has")
}

// codeFrom is what to run. Standard input is read only when a dash asks for it.
func (a *app) codeFrom(args []string, file string) (string, error) {
	switch {
	case len(args) > 0 && file != "":
		return "", fault.New(fault.Usage, "read arguments", "--file", "give the code or a file, not both")
	case file != "":
		return a.codeOf(file)
	case len(args) == 0:
		return "", fault.New(fault.Usage, "read arguments", "reeve cell run", "no code is given").
			WithNext("give the code as an argument, a file with --file, or - for standard input")
	case args[0] == "-":
		return a.codeOf("-")
	}
	return args[0], nil
}

func (a *app) runCell(ctx context.Context, c control.Service, code string, o cellRun) answer {
	session := o.session
	if session == "" || session == "." {
		session = DefaultSession(a.io.WorkDir)
	}
	live := newLive(a)
	ctx, cancel := a.overdue(ctx, answerWithin, "the core does not answer any more")
	defer cancel()
	r, err := c.Execute(ctx, control.ExecuteRequest{
		Session: session, Code: code, TimeoutMS: a.set.timeout.Milliseconds(),
		Workspace: a.io.WorkDir, By: a.actor(), Detach: o.detach,
	}, live.step)
	live.end()
	if err != nil {
		ans := failed(err)
		if live.cell != "" {
			ans.ids = map[string]string{"cell": live.cell, "session": session}
		}
		return ans
	}
	ans := answer{kind: "cell_result", data: r, ids: cellIDs(r), err: cellFault(r)}
	if a.machine() || len(a.set.fields) > 0 {
		return ans
	}
	ans.text = func(p printer) {
		if o.detach {
			p.line("%s", r.Cell)
			a.note("it runs in session %s; reeve cell output --follow %s", r.Session, r.Cell)
			return
		}
		live.rest(r)
	}
	return ans
}

// cellFault is what the status of a cell means for the command: nil when the code
// ran to its end, or was only started.
func cellFault(r control.CellResult) error {
	const op = "run cell"
	show := "reeve cell show " + r.Cell
	timeout := r.Notice != nil && r.Notice.Kind == "timeout"
	switch {
	case timeout:
		return fault.New(fault.Timeout, op, r.Cell, "the time it may take was reached after %s", millis(r.ElapsedMS)).WithNext("%s", show)
	case r.Status == "error":
		return fault.New(fault.CellFailed, op, r.Cell, "the code raised: %s", lastLine(r.Error)).WithNext("%s", show)
	case r.Status == "interrupted":
		return fault.New(fault.Cancelled, op, r.Cell, "it was interrupted after %s", millis(r.ElapsedMS)).WithNext("%s", show)
	case r.Status == "failed":
		why := "its worker ended before it answered"
		if r.Cause != nil && r.Cause.Text != "" {
			why = r.Cause.Text
		}
		return fault.New(fault.WorkerLost, op, r.Cell, "%s", why).WithNext("%s", show)
	}
	return nil
}

// lastLine of a traceback is what was raised.
func lastLine(s *string) string {
	if s == nil {
		return "it does not say what"
	}
	t := strings.TrimRight(*s, "\n")
	return t[strings.LastIndexByte(t, '\n')+1:]
}
