package dispatch_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/verbs"
)

// nowhere takes what is recorded and keeps nothing.
type nowhere struct{ ledger }

func (*nowhere) Owe(event.AuditDispatchV1) <-chan error {
	done := make(chan error, 1)
	done <- nil
	return done
}

// BenchmarkNoOp is a read that does nothing, through the shipped policy, answered
// with its audit row made and put nowhere.
func BenchmarkNoOp(b *testing.B) {
	r := newRig(b, permitAll, func(o *dispatch.Options) {
		o.Ledger = &nowhere{}
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	})
	r.Dispatcher, _ = dispatch.New(r.options)
	shipped, err := gate.Load([]gate.Source{gate.DefaultSource()})
	if err != nil {
		b.Fatal(err)
	}
	r.SetPolicy(shipped, nil)
	op := parse(b, `fx.read(n=1)`).Ops[0]
	caller, ctx := agent(), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if out := r.Do(ctx, caller, &op, dispatch.Place{}); !out.Done {
			b.Fatal(out.Failure)
		}
		r.steps = r.steps[:0]
	}
}

var _ verbs.Judge = fx{}
