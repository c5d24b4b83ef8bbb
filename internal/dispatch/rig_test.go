package dispatch_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const permitAll = `@id("all") @reason("everything") permit (principal, action, resource);` + "\n"

// rig is a dispatcher over a pack "fx" with a verb of every effect. What the verbs do
// is the test's: handle, which answers its argument n when it is nil.
type rig struct {
	*dispatch.Dispatcher
	*ledger
	options  dispatch.Options
	byItself bool // fx.record has done what there was to do and gives nothing to commit
	handle   func(ctx context.Context, call *verbs.Call) (verbs.Reply, error)
	judge    func(call *verbs.Call) (verbs.Facts, error)
	log      *strings.Builder
}

func newRig(t testing.TB, policy string, set func(*dispatch.Options)) *rig {
	t.Helper()
	r := &rig{ledger: &ledger{receipts: map[event.Asked]dispatch.Receipt{}}, log: &strings.Builder{}}
	registry, err := verbs.Build(verbs.Config{Packs: []verbs.Pack{{Table: table(), New: func() (verbs.Handler, error) { return fx{r}, nil }}}})
	if err != nil {
		t.Fatal(err)
	}
	r.options = dispatch.Options{
		Registry: registry, Ledger: r.ledger, Reads: dispatch.ReadsSync,
		Log: slog.New(slog.NewTextHandler(&lockedWriter{b: r.log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if set != nil {
		set(&r.options)
	}
	if r.Dispatcher, err = dispatch.New(r.options); err != nil {
		t.Fatal(err)
	}
	r.put(t, policy)
	return r
}

// put puts a policy in force.
func (r *rig) put(t testing.TB, text string) {
	t.Helper()
	p, err := gate.Load([]gate.Source{{Name: "test.cedar", Text: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	r.SetPolicy(p, nil)
}

func table() verbs.Table {
	params := []verbs.Param{
		{Name: "bytes", Type: verbs.Any, Description: "Anything."},
		{Name: "n", Type: verbs.Any, Description: "Anything."},
		{Name: "notes", Type: verbs.Texts, FreeText: true, Description: "Prose."},
		{Name: "path", Type: verbs.Text, Fact: verbs.FactPath, Description: "A path."},
		{Name: "target_id", Type: verbs.Text, Description: "A record."},
		{Name: "text", Type: verbs.Text, FreeText: true, Description: "Prose."},
	}
	spec := func(name string, e verbs.Effect, change func(*verbs.Spec)) verbs.Spec {
		s := verbs.Spec{
			Name: name, Description: "Does what the test says.", Visibility: verbs.Public, Category: verbs.Directive,
			Effect: e, Params: params,
		}
		if e == verbs.Read {
			s.Category = verbs.Assertive
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	return verbs.Table{Name: "fx", Verbs: []verbs.Spec{
		spec("fx.call", verbs.External, nil),
		spec("fx.hidden", verbs.Read, func(s *verbs.Spec) { s.Visibility = verbs.Internal }),
		spec("fx.read", verbs.Read, func(s *verbs.Spec) { s.Aliases = []string{"fx.look"} }),
		spec("fx.record", verbs.Record, nil),
		spec("fx.own", verbs.Record, func(s *verbs.Spec) { s.Records = true }),
		spec("fx.write", verbs.Workspace, nil),
	}}
}

type fx struct{ r *rig }

func (f fx) Handle(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	f.r.note("run " + call.Verb.Name)
	v, _ := call.Arg("n")
	reply, err := verbs.Reply{Value: v}, error(nil)
	if f.r.handle != nil {
		reply, err = f.r.handle(ctx, call)
	}
	if call.Verb.Name == "fx.record" && err == nil && !f.r.byItself {
		reply.Changes.Session = append(reply.Changes.Session, event.InputReceivedV1{Input: "in"})
	}
	return reply, err
}

func (f fx) Facts(_ context.Context, call *verbs.Call) (verbs.Facts, error) {
	if f.r.judge != nil {
		return f.r.judge(call)
	}
	return verbs.Facts{Path: call.Text("path")}, nil
}

// WriteKeys implements request.Keyer: fx.record and fx.write write the path.
func (fx) WriteKeys(op *request.Op) []string {
	v, ok := op.Arg("path")
	if text, isText := v.Text(); ok && isText && op.Tool != "fx.read" {
		return []string{"path:" + text}
	}
	return nil
}

// ledger keeps in memory what dispatch records, in the order in which it does.
type ledger struct {
	mu        sync.Mutex
	steps     []string
	rows      []event.AuditDispatchV1 // every row, by whichever way it came
	intents   []event.ActIntendedV1
	concluded []dispatch.Conclusion
	receipts  map[event.Asked]dispatch.Receipt

	recallErr, intendErr, concludeErr error
	slow                              bool // owed rows are never written
	late                              time.Duration
}

func (l *ledger) note(step string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, step)
}

func (l *ledger) Recall(_ context.Context, _ string, asked event.Asked) (dispatch.Receipt, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.receipts[asked]
	return r, ok, l.recallErr
}

func (l *ledger) Intend(_ context.Context, _ verbs.Scene, e event.ActIntendedV1) error {
	l.note("intend " + e.Verb)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.intents = append(l.intents, e)
	return l.intendErr
}

func (l *ledger) Conclude(ctx context.Context, scene verbs.Scene, c dispatch.Conclusion) error {
	l.note("conclude " + c.Verb)
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.concludeErr != nil {
		return l.concludeErr
	}
	l.concluded, l.rows = append(l.concluded, c), append(l.rows, c.Row)
	if c.Receipt != nil {
		l.receipts[*scene.Asked] = *c.Receipt
	}
	return nil
}

func (l *ledger) Owe(row event.AuditDispatchV1) <-chan error {
	l.note("owe " + row.Verb)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, row)
	done := make(chan error, 1)
	switch {
	case l.slow:
	case l.late > 0:
		time.AfterFunc(l.late, func() { done <- nil })
	default:
		done <- nil
	}
	return done
}

// only is the one audit row there is.
func (l *ledger) only(t testing.TB) event.AuditDispatchV1 {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows) != 1 {
		t.Fatalf("%d audit rows, want exactly one: %+v", len(l.rows), l.rows)
	}
	return l.rows[0]
}

type lockedWriter struct {
	mu sync.Mutex
	b  *strings.Builder
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func agent() dispatch.Caller {
	return dispatch.Caller{
		Identity: verbs.Identity{Actor: verbs.NewActor("session", "s1"), RequestID: 7},
		By:       event.Actor{Kind: "session", Name: "s1", Surface: "worker"},
		Session:  "s1", Workspace: "/w", Agent: true,
	}
}

func operator() dispatch.Caller {
	return dispatch.Caller{
		Identity: verbs.Identity{Actor: verbs.NewActor("operator", "ada")},
		By:       event.Actor{Kind: "operator", Name: "ada", Surface: "cli"},
		Session:  "s1", Workspace: "/w",
	}
}

func asking(request string) dispatch.Caller {
	c := agent()
	c.Asked = &event.Asked{Execution: "e-1", Request: request}
	return c
}

func parse(t testing.TB, text string) *request.Request {
	t.Helper()
	r, err := request.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ask sends a text and gives the answer's entries.
func (r *rig) ask(t testing.TB, c dispatch.Caller, text string) []request.Entry {
	t.Helper()
	return r.askIn(t.Context(), t, c, text)
}

func (r *rig) askIn(ctx context.Context, t testing.TB, c dispatch.Caller, text string) []request.Entry {
	t.Helper()
	parsed := parse(t, text)
	return request.Assemble(parsed, r.Request(ctx, c, parsed)).Results
}

func (r *rig) one(t testing.TB, c dispatch.Caller, text string) request.Entry {
	t.Helper()
	return r.ask(t, c, text)[0]
}

// detail is a member of a failure as text.
func detail(e request.Entry, name string) string {
	if e.Error == nil {
		return "(no failure)"
	}
	for _, it := range e.Error.Details {
		if it.Name == name {
			if s, ok := it.Value.Text(); ok {
				return s
			}
			return string(it.Value.AppendJSON(nil))
		}
	}
	return "(absent)"
}

func (l *ledger) did() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.steps, ", ")
}
