package cli_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/cli"
	"github.com/reeve-run/reeve/internal/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// core is a Service of which a test fills in what it needs; any other call is a
// panic, which the server turns into an internal fault.
type core struct {
	control.Service
	session  func(id string) (control.Session, error)
	sessions []control.Session
	execute  func(ctx context.Context, r control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error)
	events   func(ctx context.Context, q control.EventQuery, row func(control.EventRow) error) error
	broken   func(cell string)
}

func (c *core) Session(_ context.Context, id string) (control.Session, error) { return c.session(id) }

func (c *core) ListSessions(context.Context) ([]control.Session, error) { return c.sessions, nil }

func (c *core) Execute(ctx context.Context, r control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
	return c.execute(ctx, r, progress)
}

func (c *core) Events(ctx context.Context, q control.EventQuery, row func(control.EventRow) error) error {
	return c.events(ctx, q, row)
}

func (c *core) Interrupt(_ context.Context, cell string, _ event.Actor) (control.InterruptReport, error) {
	c.broken(cell)
	return control.InterruptReport{Cell: cell, Found: true}, nil
}

// shell is a user at a terminal, or none, in front of a data directory.
type shell struct {
	dir      string
	tty      bool
	env      map[string]string
	in       string
	onOut    func() // called when something was printed
	programs cli.Programs
}

// watched is a Buffer that tells of what is written into it.
type watched struct {
	text bytes.Buffer
	on   func()
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.text.Write(b)
	if w.on != nil {
		w.on()
	}
	return n, err
}

// run runs one command line to its end.
func (s shell) run(ctx context.Context, args ...string) (status int, out, err string) {
	o, e := watched{on: s.onOut}, bytes.Buffer{}
	env := map[string]string{"REEVE_HOME": s.dir, "HOME": s.dir, "TERM": "xterm"}
	for k, v := range s.env {
		env[k] = v
	}
	status = cli.Run(ctx, args, cli.Stdio{
		In: strings.NewReader(s.in), Out: &o, Err: &e, InTTY: s.tty, OutTTY: s.tty, ErrTTY: s.tty,
		Env: func(k string) string { return env[k] }, WorkDir: "/work/some project", Width: 80,
	}, s.programs)
	return status, o.text.String(), e.String()
}

// serve makes c the running core of a new data directory.
func serve(t *testing.T, c control.Service) shell {
	t.Helper()
	dir := t.TempDir()
	l, err := control.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- control.NewServer(c, slog.New(slog.DiscardHandler)).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, l.Retire()); err != nil {
			t.Error(err)
		}
	})
	return shell{dir: dir}
}

func envelope(t *testing.T, out string) control.Envelope {
	t.Helper()
	var e control.Envelope
	if err := json.Unmarshal([]byte(out), &e, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("not one envelope: %v\n%s", err, out)
	}
	return e
}

// Every code gives its own status and stands in the envelope, whichever command met
// it; people get the text and the next step on standard error only.
func TestEveryCodeHasItsStatus(t *testing.T) {
	t.Parallel()
	for _, code := range fault.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Attr("requirement", "CP-134")
			t.Parallel()
			sh := serve(t, &core{session: func(id string) (control.Session, error) {
				return control.Session{}, fault.New(code, "read session", id, "it is so").WithNext("do this")
			}})
			next := "do this"
			if code == fault.NotFound { // then it may have been the beginning of an id
				next = "reeve session list"
			}
			status, out, err := sh.run(t.Context(), "session", "show", "x", "--json")
			e := envelope(t, out)
			if status != code.Exit() || e.OK || e.Error == nil || e.Error.Code != code || e.Error.Next != next || err != "" {
				t.Errorf("with --json: status %d, want %d\nstdout %s\nstderr %s", status, code.Exit(), out, err)
			}
			status, out, err = sh.run(t.Context(), "session", "show", "x")
			if status != code.Exit() || out != "" || !strings.HasPrefix(err, `reeve: `) || !strings.HasSuffix(err, "next: "+next+"\n") {
				t.Errorf("for people: status %d, want %d\nstdout %q\nstderr %q", status, code.Exit(), out, err)
			}
		})
	}
}

func TestCellOutcomes(t *testing.T) {
	t.Parallel()
	raised := "Traceback (most recent call last):\nValueError: no"
	notice := func(kind string) *control.Notice { return &control.Notice{Kind: kind, Text: "What to know."} }
	for name, c := range map[string]struct {
		result      control.CellResult
		code        fault.Code
		stdout, err []string // parts
	}{
		"ok":             {control.CellResult{Status: "ok", Output: []event.Output{{Stream: "stdout", Text: "a"}, {Stream: "result", Text: "7"}}}, "", []string{"a\n7\n"}, nil},
		"yielded":        {control.CellResult{Status: "yielded"}, "", nil, nil},
		"raised":         {control.CellResult{Status: "error", Error: &raised}, fault.CellFailed, nil, []string{raised + "\n", "the code raised: ValueError: no", "next: reeve cell show cell_1"}},
		"lost":           {control.CellResult{Status: "failed", Cause: &event.Cause{Text: "it was killed"}}, fault.WorkerLost, nil, []string{"it was killed", "cell_1"}},
		"timed out":      {control.CellResult{Status: "interrupted", Notice: notice("timeout")}, fault.Timeout, nil, []string{"note: What to know.", "cell_1"}},
		"killed in time": {control.CellResult{Status: "failed", Notice: notice("timeout")}, fault.Timeout, nil, []string{"cell_1"}},
		"interrupted":    {control.CellResult{Status: "interrupted"}, fault.Cancelled, nil, []string{"cell_1"}},
		"cut":            {control.CellResult{Status: "ok", TruncatedBytes: 5, BytesTotal: 9}, "", nil, []string{"5 of 9 bytes are not shown; read them with reeve cell output cell_1"}},
		"not recorded":   {control.CellResult{Status: "ok", Unrecorded: true}, "", nil, []string{"could not be committed"}},
		"after a loss":   {control.CellResult{Status: "ok", Notice: notice("namespace_lost")}, "", nil, []string{"note: What to know."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.result.Cell, c.result.Session = "cell_1", "s"
			sh := serve(t, &core{execute: func(context.Context, control.ExecuteRequest, func(control.CellProgress)) (control.CellResult, error) {
				return c.result, nil
			}})
			status, out, err := sh.run(t.Context(), "cell", "run", "x")
			if status != c.code.Exit() || strings.Join(c.stdout, "") != out {
				t.Errorf("status %d, want %d; stdout %q", status, c.code.Exit(), out)
			}
			for _, part := range c.err {
				if !strings.Contains(err, part) {
					t.Errorf("stderr has no %q:\n%s", part, err)
				}
			}
			if len(c.err) == 0 && err != "" {
				t.Errorf("stderr %q, want none", err)
			}
			status, out, err = sh.run(t.Context(), "cell", "run", "x", "--json")
			e := envelope(t, out)
			var data control.CellResult
			if uerr := json.Unmarshal(e.Data, &data); uerr != nil || data.Cell != "cell_1" || e.Meta.IDs["cell"] != "cell_1" {
				t.Errorf("the envelope lost the cell: %v %s", uerr, out)
			}
			if status != c.code.Exit() || e.OK != (c.code == "") || err != "" {
				t.Errorf("with --json: status %d, ok %t, stderr %q", status, e.OK, err)
			}
		})
	}
}

func TestLiveOutputIsPrintedOnce(t *testing.T) {
	t.Parallel()
	sh := serve(t, &core{execute: func(_ context.Context, _ control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
		progress(control.CellProgress{Cell: "cell_1", Kind: "started"})
		progress(control.CellProgress{Cell: "cell_1", Kind: "output", Stream: "stdout", Text: "one "})
		progress(control.CellProgress{Cell: "cell_1", Kind: "output", Stream: "stderr", Text: "e1 "})
		progress(control.CellProgress{Cell: "cell_1", Kind: "output", Stream: "stdout", Text: "two "})
		return control.CellResult{Cell: "cell_1", Status: "ok", Output: []event.Output{
			{Stream: "stdout", Text: "one "},
			{Stream: "stderr", Text: "e1 e2\n"},
			{Stream: "stdout", Text: "two three\n"},
			{Stream: "result", Text: "42"},
		}}, nil
	}})
	status, out, err := sh.run(t.Context(), "cell", "run", "x")
	if status != 0 || out != "one two three\n42\n" || err != "e1 e2\n" {
		t.Errorf("status %d\nstdout %q\nstderr %q", status, out, err)
	}
}

func TestRequestOfACell(t *testing.T) {
	t.Parallel()
	var got control.ExecuteRequest
	sh := serve(t, &core{execute: func(_ context.Context, r control.ExecuteRequest, _ func(control.CellProgress)) (control.CellResult, error) {
		got = r
		return control.CellResult{Cell: "cell_1", Status: "running"}, nil
	}})
	sh.in = "from stdin"
	if status, out, err := sh.run(t.Context(), "cell", "run", "-", "--detach", "--timeout", "1500ms", "--quiet"); status != 0 || out != "cell_1\n" || err != "" {
		t.Errorf("status %d\nstdout %q\nstderr %q", status, out, err)
	}
	got.By.Name = ""
	want := control.ExecuteRequest{
		Session: cli.DefaultSession("/work/some project"), Code: "from stdin", TimeoutMS: 1500, Workspace: "/work/some project",
		By: event.Actor{Kind: "operator", Surface: "cli"}, Detach: true,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("request (-want +got):\n%s", d)
	}
}

// Files come as editors write them: one byte order mark is none of the code, and what
// is not UTF-8 is refused with its place.
func TestCodeIsReadAsPythonReadsIt(t *testing.T) {
	t.Parallel()
	var got string
	sh := serve(t, &core{execute: func(_ context.Context, r control.ExecuteRequest, _ func(control.CellProgress)) (control.CellResult, error) {
		got = r.Code
		return control.CellResult{Cell: "cell_1", Status: "ok"}, nil
	}})
	file := filepath.Join(t.TempDir(), "code.py")
	for given, want := range map[string]string{
		"\ufeffx = 'ü'":      "x = 'ü'",
		"\ufeff\ufeffx":      "\ufeffx",
		"x = '\ufeff\ufffd'": "x = '\ufeff\ufffd'",
	} {
		if err := os.WriteFile(file, []byte(given), 0o600); err != nil {
			t.Fatal(err)
		}
		sh.in = given
		for _, from := range []string{file, "-"} {
			got = ""
			if status, _, err := sh.run(t.Context(), "cell", "run", "--file", from); status != 0 || got != want {
				t.Errorf("%s with %q: status %d, sent %q, want %q\n%s", from, given, status, got, want, err)
			}
		}
	}
	sh.in = "\ufeffab\xff"
	if err := os.WriteFile(file, []byte(sh.in), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, name := range map[string]string{file: file, "-": "standard input"} {
		status, _, err := sh.run(t.Context(), "cell", "run", "--file", from)
		if status != 2 || !strings.Contains(err, name) || !strings.Contains(err, "byte 0xff at offset 5") || !strings.Contains(err, "iconv") {
			t.Errorf("%s: status %d, stderr %q", from, status, err)
		}
	}
	sh.in = "\ufeff" + strings.Repeat("x", 300_000)
	if sh.run(t.Context(), "cell", "run", "-"); len(got) <= 262_144 {
		t.Errorf("%d bytes of code that is too long were sent as if they were all", len(got))
	}
}

// A signal interrupts the cell and its own outcome is still told; the two signals are
// told apart.
func TestSignals(t *testing.T) {
	t.Parallel()
	for number, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(number.String(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			asked := make(chan string, 1)
			sh := serve(t, &core{
				broken: func(cell string) { asked <- cell },
				execute: func(_ context.Context, _ control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
					progress(control.CellProgress{Cell: "cell_1", Kind: "started"})
					progress(control.CellProgress{Cell: "cell_1", Kind: "output", Stream: "stdout", Text: "so far\n"})
					return control.CellResult{Cell: <-asked, Status: "interrupted", Output: []event.Output{{Stream: "stdout", Text: "so far\n"}}}, nil
				},
			})
			sh.onOut = func() { cancel(cli.Signal{Number: number}) }
			status, out, err := sh.run(ctx, "cell", "run", "x")
			if status != want || out != "so far\n" || !strings.Contains(err, "it was interrupted") {
				t.Errorf("status %d, want %d\nstdout %q\nstderr %q", status, want, out, err)
			}
		})
	}
}

func TestFollowerIsSilentWhenStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	sh := serve(t, &core{events: func(ctx context.Context, _ control.EventQuery, row func(control.EventRow) error) error {
		if err := row(control.EventRow{ID: 1, Kind: "cell.started", Payload: control.Raw(`{}`)}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	sh.onOut = func() { cancel(cli.Signal{Number: syscall.SIGINT}) }
	status, _, err := sh.run(ctx, "events", "--follow")
	if status != 130 || err != "" {
		t.Errorf("status %d, stderr %q; want 130 and nothing", status, err)
	}
}
