package dispatch

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// Place is where an operation stands in its request.
type Place struct {
	Index    int
	Resolved bool // its arguments referred to an earlier result
}

// operation is one call on its way through the steps of VD-097.
type operation struct {
	caller   Caller
	op       *request.Op
	place    Place
	verb     *verbs.Verb // nil for a name nobody owns
	call     verbs.Call
	checked  error // what is wrong with the arguments
	args     []byte
	digest   string // of args, lower-case hex
	decision gate.Decision
	begun    time.Time
	ran      bool // its pack was invoked
}

// outcome is what became of one operation.
type outcome struct {
	value      request.Value
	siblings   []request.Item
	advisories []request.Advisory
	err        error // a fault, or a *refusal
	disp       request.Disposition
	act        string
	reason     string // of VD-077
	details    []request.Item
	domain     *request.Value // what the handler answered although the operation failed
}

// Do runs one operation whose references have been filled in (VD-097).
func (d *Dispatcher) Do(ctx context.Context, c Caller, op *request.Op, at Place) request.Outcome {
	if op.Help() {
		v, err := d.o.Registry.Describe(op.Tool)
		if err != nil {
			return answer(outcome{err: err, disp: request.NotCommitted, reason: reasonVerb}, op.Tool)
		}
		return request.Outcome{Done: true, Result: v}
	}
	o := &operation{caller: c, op: op, place: at, begun: d.o.Now()}
	return answer(d.do(ctx, o), op.Tool)
}

func (d *Dispatcher) do(ctx context.Context, o *operation) outcome {
	if err := ctx.Err(); err != nil {
		return refuse(fault.Wrap(context.Cause(ctx), fault.Cancelled, "dispatch", o.op.Tool))
	}
	namespace, explicit, err := verbs.ResolveNamespace(o.op)
	if err != nil {
		return refuse(err)
	}
	o.verb, _ = d.o.Registry.Lookup(o.op.Tool)
	if err := o.ownNamespace(namespace, explicit); err != nil {
		return refuse(err)
	}
	d.prepare(ctx, o, namespace, explicit)
	if o.caller.Asked == nil || o.verb == nil || o.verb.Effect == verbs.Read {
		return d.rule(ctx, o)
	}
	return d.once(ctx, o)
}

// ownNamespace holds acts on the workspace and the developer operations to the
// session's own namespace: an agent cannot choose a lenient one (VD-206).
func (o *operation) ownNamespace(namespace string, explicit bool) error {
	if o.verb == nil || !explicit || o.verb.Effect != verbs.Workspace {
		return nil
	}
	own := o.caller.Identity.Default
	if own == "" {
		own = verbs.DefaultNamespace
	}
	if namespace == own {
		return nil
	}
	return fault.New(fault.InvalidRequest, "dispatch", o.verb.Name, "it takes place in the session's own namespace %q, not in %q", own, namespace).
		WithNext("leave the argument namespace out")
}

// prepare mints the token and checks the arguments; what is wrong with them is said
// after the gate has let the operation through.
func (d *Dispatcher) prepare(_ context.Context, o *operation, namespace string, explicit bool) {
	token, skipped := verbs.Mint(o.caller.Identity, namespace, explicit)
	for _, ns := range skipped {
		d.o.Log.Warn("a visible namespace is none", "namespace", ns)
	}
	o.call = verbs.Call{Verb: o.verb, Token: token, Scene: verbs.Scene{
		Session: o.caller.Session, Workspace: o.caller.Workspace, By: o.caller.By, Agent: o.caller.Agent, Asked: o.caller.Asked,
	}}
	if o.caller.Approved != nil {
		o.call.Scene.Approved = o.caller.Approved.Held
	}
	o.args = appendArgs(nil, o.op.Args)
	if o.verb != nil {
		o.call.Args, o.checked = o.verb.Check(o.op.Args)
	}
}

func appendArgs(dst []byte, items []request.Item) []byte {
	return request.OfObject(items...).AppendJSON(dst)
}

// sum is the digest of the arguments as submitted.
func (o *operation) sum() string {
	if o.digest == "" {
		s := sha256.Sum256(o.args)
		o.digest = hex.EncodeToString(s[:])
	}
	return o.digest
}

// once answers a host request of a cell: the same one again is answered as the first
// time, one that is on its way is joined (CP-132). It comes before gate and hook.
func (d *Dispatcher) once(ctx context.Context, o *operation) outcome {
	key := AskedKey(o.caller.Session, *o.caller.Asked)
	d.mu.Lock()
	f, joined := d.flights[key]
	if !joined {
		f = &flight{done: make(chan struct{}), args: o.op.Tool + o.sum()}
		d.flights[key] = f
	}
	d.mu.Unlock()
	if joined {
		if f.args != o.op.Tool+o.sum() {
			return refuse(otherBody(o))
		}
		select {
		case <-f.done:
			return f.out
		case <-ctx.Done():
			return outcome{err: fault.Wrap(context.Cause(ctx), fault.Cancelled, "dispatch", o.op.Tool), disp: request.Undetermined}
		}
	}
	f.out = d.recalled(ctx, o)
	d.mu.Lock()
	delete(d.flights, key)
	d.mu.Unlock()
	close(f.done)
	return f.out
}

func (d *Dispatcher) recalled(ctx context.Context, o *operation) outcome {
	r, found, err := d.o.Ledger.Recall(ctx, o.caller.Session, *o.caller.Asked)
	switch {
	case err != nil && fault.HasCode(err, fault.Unknown): // an earlier attempt may have done it
		return outcome{err: err, disp: request.Undetermined}
	case err != nil:
		return refuse(err)
	case !found:
		return d.rule(ctx, o)
	case r.Verb != o.verb.Name || r.ArgsSHA256 != o.sum():
		return refuse(otherBody(o))
	}
	return r.outcome()
}

func otherBody(o *operation) error {
	return fault.New(fault.Conflict, "dispatch", o.op.Tool, "request %q of this execution was another one", o.caller.Asked.Request).
		WithNext("give each request an id of its own")
}

// AskedKey is the identity of a host request.
func AskedKey(session string, a event.Asked) string {
	return session + "/" + a.Execution + "/" + a.Request + "/" + strconv.FormatInt(a.Op, 10)
}

// outcome is a receipt as an answer.
func (r *Receipt) outcome() outcome {
	out := outcome{disp: request.Disposition(r.Disposition), act: r.Act}
	if r.OK {
		if r.Result == nil {
			out.err = fault.New(fault.Unknown, "read receipt", r.Act, "its result was too large to be kept").WithNext("evidence.resolve(refs=[\"effect:%s\"])", r.Act)
			return out
		}
		v, err := request.ParseResult([]byte(*r.Result))
		if err != nil {
			out.err = fault.Wrap(err, fault.Internal, "read receipt", r.Act)
			return out
		}
		out.value = v
		return out
	}
	out.err = &kept{r}
	if r.Held != "" {
		out.details = []request.Item{{Name: "held_id", Value: request.OfString(r.Held)}}
	}
	return out
}

func refuse(err error) outcome { return outcome{err: err, disp: request.NotCommitted} }

// newID is a typed identifier of 32 digits that rises with time (VD-208).
func newID(prefix string, now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	ms := now.UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80 // version and variant of a UUID by time
	return prefix + hex.EncodeToString(b[:])
}

// settled takes a *verbs.Settled apart.
func settled(err error) (*verbs.Settled, bool) {
	var s *verbs.Settled
	return s, errors.As(err, &s)
}
