package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
)

// maxInFlight is how many operations or units of a request run beside each other
// (VD-052).
const maxInFlight = 8

// maxResults is how many bytes of results a parallel request gathers before it starts
// nothing further (VD-057).
const maxResults = 4 << 20

// budget is what is left of maxResults.
type budget struct{ left atomic.Int64 }

// spent reports whether nothing may be started any more.
func (b *budget) spent() bool { return b != nil && b.left.Load() < 0 }

func (b *budget) take(v request.Value) {
	if b != nil {
		b.left.Add(-int64(len(v.AppendJSON(nil))))
	}
}

func overBudget() request.Outcome {
	return request.Outcome{Failure: &request.Failure{
		Kind: request.KindBudget, Disposition: request.NotCommitted,
		Message: fmt.Sprintf("not started: the results before it have more than %d bytes; ask for less, or in several requests", maxResults),
		Details: []request.Item{{Name: "code", Value: request.OfString(string(fault.LimitExceeded))}},
	}}
}

// keyer asks the pack of a verb what an operation would write.
type keyer struct{ d *Dispatcher }

// WriteKeys implements request.Keyer.
func (k keyer) WriteKeys(op *request.Op) []string {
	v, ok := k.d.o.Registry.Lookup(op.Tool)
	if !ok {
		return nil
	}
	if h, ok := k.d.handlers[v.Pack].(request.Keyer); ok {
		return h.WriteKeys(op)
	}
	return nil
}

// Request runs the operations of a request: units beside each other, the calls of a
// unit in sequence (VD-052, VD-053). There is one outcome per operation.
func (d *Dispatcher) Request(ctx context.Context, c Caller, r *request.Request) []request.Outcome {
	out := make([]request.Outcome, len(r.Ops))
	blocked := map[int]bool{}
	for _, conflict := range request.Conflicts(r, keyer{d}) {
		out[conflict.Op] = request.Outcome{Failure: request.Refused(conflict)}
		blocked[r.UnitOf(conflict.Op)] = true
	}
	if len(r.Units) == 1 {
		if !blocked[0] {
			d.unit(ctx, c, r, r.Units[0], out, nil)
		}
		return out
	}
	left := &budget{}
	left.left.Store(maxResults)
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxInFlight)
	for i, u := range r.Units {
		if blocked[i] {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			d.unit(ctx, c, r, u, out, left)
		})
	}
	wg.Wait()
	return out
}

func (d *Dispatcher) unit(ctx context.Context, c Caller, r *request.Request, u request.Unit, out []request.Outcome, left *budget) {
	var prev *request.Value
	for i := u.Start; i < u.End; i++ {
		if left.spent() {
			out[i] = overBudget()
			return
		}
		op := r.Ops[i]
		place := Place{Index: i}
		if args, err := request.Resolve(op.Args, prev); err != nil {
			out[i] = request.Outcome{Failure: request.Refused(err)}
			return
		} else if dynamic(op.Args) {
			op.Args, place.Resolved = args, true
		}
		out[i] = d.boundary(ctx, c, &op, place)
		if out[i].Failure != nil {
			return
		}
		left.take(out[i].Result)
		prev = &out[i].Result
	}
}

func dynamic(args []request.Item) bool {
	for i := range args {
		if args[i].Value.Dynamic() {
			return true
		}
	}
	return false
}

// boundary is where agents come in: verbs that are internal stop here, while the
// registry's own dispatch takes them (VD-059).
func (d *Dispatcher) boundary(ctx context.Context, c Caller, op *request.Op, at Place) request.Outcome {
	if op.Help() {
		return d.Do(ctx, c, op, at)
	}
	return answer(d.ask(ctx, c, op, at), op.Tool)
}

func (d *Dispatcher) ask(ctx context.Context, c Caller, op *request.Op, at Place) outcome {
	if v, ok := d.o.Registry.Lookup(op.Tool); ok {
		if err := internalTo(v, c); err != nil {
			return refuse(err)
		}
	}
	if c.Asked != nil {
		asked := *c.Asked
		asked.Op = int64(at.Index)
		c.Asked = &asked
	}
	return d.do(ctx, &operation{caller: c, op: op, place: at, begun: d.o.Now()})
}

// Ask runs one operation for a caller that takes a value or a fault, not an entry.
func (d *Dispatcher) Ask(ctx context.Context, c Caller, op *request.Op) (request.Value, error) {
	out := d.ask(ctx, c, op, Place{})
	var r *refusal
	if errors.As(out.err, &r) {
		return request.Value{}, fault.New(fault.LimitExceeded, "dispatch", op.Tool, "%s", r.text)
	}
	return out.value, out.err
}

// Admission is leave to do what a surface of its own carries out: a cell with its
// progress, a change of a session. Row is its audit row, committed by whoever does
// it with what is done.
type Admission struct {
	Row  event.AuditDispatchV1
	fail func(err error)
}

// Failed records that it was not done after all.
func (a *Admission) Failed(err error) { a.fail(err) }

// Admit takes an operation through every step up to the pack (VD-097). An error is
// its refusal.
func (d *Dispatcher) Admit(ctx context.Context, c Caller, op *request.Op) (*Admission, error) {
	o := &operation{caller: c, op: op, begun: d.o.Now()}
	o.verb, _ = d.o.Registry.Lookup(op.Tool)
	d.prepare(ctx, o, "", false)
	if out, stop := d.ruled(ctx, o); stop {
		return nil, out.err
	}
	return &Admission{Row: d.row(o, outcome{}), fail: func(err error) { d.owe(o, refuse(err)) }}, nil
}
