package host_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/journal"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervise.ShimCommand {
		os.Exit(supervise.ShimMain(os.Args[2:]))
	}
	if dir := os.Getenv(coreEnv); dir != "" {
		os.Exit(coreMain(dir))
	}
	goleak.VerifyTestMain(m)
}

var me = event.Actor{Kind: "operator", Name: "ada", Surface: "cli"}

// rig is a data directory and what its cores are made of.
type rig struct {
	dir, workspace string
	config         config.Config
	store          func() journal.Store // nil: SQLite
	workers        host.Workers         // nil: Python
}

func newRig(t testing.TB) *rig {
	t.Helper()
	c := config.Defaults()
	c.Worker.Python = reevetest.Python(t).Path
	return &rig{dir: filepath.Join(t.TempDir(), "data"), workspace: t.TempDir(), config: c}
}

// open starts a core, which the end of the test closes.
func (r *rig) open(t testing.TB) *host.Core {
	t.Helper()
	o := host.Options{
		Dir: r.dir, Config: r.config, Log: slog.New(slog.NewTextHandler(writer{t}, nil)),
		Shim: []string{os.Args[0], supervise.ShimCommand}, Workers: r.workers,
	}
	if r.store != nil {
		o.Store = r.store()
	}
	c, err := host.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// writer sends a core's log to the test's.
type writer struct{ t testing.TB }

func (w writer) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (r *rig) request(session, code string) control.ExecuteRequest {
	return control.ExecuteRequest{Session: session, Code: code, Workspace: r.workspace, By: me}
}

// run runs code and wants no error of reeve.
func (r *rig) run(t testing.TB, c *host.Core, session, code string) control.CellResult {
	t.Helper()
	res, err := c.Execute(t.Context(), r.request(session, code), nil)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return res
}

// text joins the output of one stream.
func text(r control.CellResult, stream string) string {
	var b strings.Builder
	for _, o := range r.Output {
		if o.Stream == stream {
			b.WriteString(o.Text)
		}
	}
	return b.String()
}

// kinds lists the kinds of a session's events in order.
func kinds(t *testing.T, c *host.Core, session string) []string {
	t.Helper()
	var all []string
	err := c.Events(context.Background(), control.EventQuery{Session: session, Max: 1000}, func(e control.EventRow) error {
		all = append(all, e.Kind)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func itoa(n int) string { return strconv.Itoa(n) }

// waitForEvent follows a session's events until one of the kind is there.
func waitForEvent(t *testing.T, c *host.Core, session string, kind event.Kind) control.EventRow {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var found control.EventRow
	q := control.EventQuery{Session: session, Kinds: []string{string(kind)}, Follow: true}
	err := c.Events(ctx, q, func(e control.EventRow) error { found = e; cancel(); return nil })
	if err != nil || found.ID == 0 {
		t.Fatalf("no %s within a minute: %v", kind, err)
	}
	return found
}

// bg is for what a test does beside its calls.
var bg = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}
