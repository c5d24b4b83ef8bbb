package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

const (
	// readWait is how long a read waits for its audit row (VD-209).
	readWait = 250 * time.Millisecond
	// refusalWait is how long a denial waits for its row before it says that the row
	// is owed.
	refusalWait = 2 * time.Second
	// inlineText is how long arguments and results may be to stand in an event.
	inlineText = 16 << 10
)

// run invokes the pack and records what came of it.
func (d *Dispatcher) run(ctx context.Context, o *operation) outcome {
	switch {
	case o.verb.Records:
		row := d.row(o, outcome{})
		o.call.Admitted = &row
		out := d.handle(ctx, o)
		if out.err != nil && o.call.Admitted != nil {
			d.owe(o, out)
		}
		d.hook(ctx, o, out)
		return out
	case o.verb.Effect == verbs.Read:
		out := d.handle(ctx, o)
		d.audited(ctx, o, &out)
		d.hook(ctx, o, out)
		return out
	case o.verb.Effect == verbs.Record:
		return d.record(ctx, o)
	default:
		return d.act(ctx, o)
	}
}

// handle calls the handler. What it changed besides its answer is in o.
func (d *Dispatcher) handle(ctx context.Context, o *operation) outcome {
	out, _ := d.invoke(ctx, o)
	return out
}

func (d *Dispatcher) invoke(ctx context.Context, o *operation) (out outcome, changes verbs.Changes) {
	if o.verb.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.verb.Timeout)
		defer cancel()
	}
	defer func() {
		if v := recover(); v != nil {
			d.o.Log.Error("a handler panicked", "verb", o.verb.Name, "cause", v, "stack", string(debug.Stack()))
			err := fault.New(fault.Internal, "run verb", o.verb.Name, "panic in its pack: %v", v)
			out = outcome{err: err, disp: verbs.DispositionOf(err, o.verb.Effect), act: o.call.Scene.Act}
		}
	}()
	o.ran = true
	reply, err := d.handlers[o.verb.Pack].Handle(ctx, &o.call)
	out = outcome{value: reply.Value, siblings: reply.Siblings, act: o.call.Scene.Act, disp: request.Committed}
	changes = reply.Changes
	if err != nil {
		out = outcome{err: err, disp: verbs.DispositionOf(err, o.verb.Effect), act: o.call.Scene.Act}
		if s, ok := settled(err); ok {
			changes = s.Changes
		}
		return out, changes
	}
	if depth := out.value.Depth(); depth > request.MaxDepth {
		out = outcome{act: o.call.Scene.Act, disp: request.Committed, err: &refusal{
			kind: request.KindResultTooDeep, code: string(fault.LimitExceeded),
			text: fmt.Sprintf("the result of %s is %d containers deep, %d are read", o.verb.Name, depth, request.MaxDepth),
		}}
	}
	return out, changes
}

// audited owes the row of a read, and waits a little for it where that is asked for.
func (d *Dispatcher) audited(ctx context.Context, o *operation, out *outcome) {
	if d.o.ReadOnly {
		out.readOnly()
		return
	}
	written := d.o.Ledger.Owe(d.row(o, *out))
	if d.o.Reads == ReadsAsync || out.err != nil || d.wait(ctx, written, readWait) {
		return
	}
	out.deferred()
}

func (o *outcome) deferred() {
	o.advisories = append(o.advisories, request.Advisory{
		Code: "audit_deferred", Severity: "info", Component: "audit_event_store", Reason: "slow_store",
		Message: "the audit row of this operation is not written yet; it is owed",
	})
}

func (o *outcome) readOnly() {
	if o.err == nil {
		o.advisories = append(o.advisories, request.Advisory{
			Code: "audit_persistence_skipped_read_only", Severity: "warning", Component: "audit_event_store",
			Reason: "read_only_backend", Message: "the store is open for reading only, so no audit row was written",
		})
	}
}

// wait reports whether a row was written within a time. The end of ctx does not end
// it: the row is owed all the same.
func (*Dispatcher) wait(_ context.Context, written <-chan error, most time.Duration) bool {
	select {
	case err := <-written:
		return err == nil
	default:
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case err := <-written:
		return err == nil
	case <-timer.C:
		return false
	}
}

// record runs a verb that writes only the journal: its changes, its receipt and its
// audit row are one batch (CP-151).
func (d *Dispatcher) record(ctx context.Context, o *operation) outcome {
	if d.o.ReadOnly {
		return refuse(readOnlyError(o.verb.Name))
	}
	out, changes := d.invoke(ctx, o)
	if out.err != nil && out.disp != request.Committed {
		d.owe(o, out)
		return out
	}
	if changes.Empty() {
		return d.recordedItself(ctx, o, out)
	}
	c := Conclusion{Verb: o.verb.Name, Changes: changes, Receipt: o.receipt(out), Row: d.row(o, out)}
	if err := d.o.Ledger.Conclude(ctx, o.call.Scene, c); err != nil {
		return outcome{err: err, disp: verbs.DispositionOf(err, notYet(err))}
	}
	d.hook(ctx, o, out)
	return out
}

// recordedItself ends a verb whose handler has done and recorded what there was to do,
// such as an interrupt: it stands whatever becomes of its audit row, which is owed
// (VD-164).
func (d *Dispatcher) recordedItself(ctx context.Context, o *operation, out outcome) outcome {
	written := d.o.Ledger.Owe(d.row(o, out))
	if out.err == nil && !d.wait(ctx, written, refusalWait) {
		out.deferred()
	}
	d.hook(ctx, o, out)
	return out
}

// notYet is how far an error of the ledger leaves doubt: only one that says so does.
func notYet(err error) verbs.Effect {
	if fault.HasCode(err, fault.Unknown) {
		return verbs.Record
	}
	return verbs.Read
}

func readOnlyError(verb string) error {
	return fault.New(fault.Unavailable, "run verb", verb, "the store is open for reading only").WithNext("use the core that writes it")
}

// act runs a verb that touches what the journal cannot undo: intent, run, outcome.
func (d *Dispatcher) act(ctx context.Context, o *operation) outcome {
	if d.o.ReadOnly {
		return refuse(readOnlyError(o.verb.Name))
	}
	o.call.Scene.Act = newID("act_", d.o.Now())
	w := d.o.Work(o.caller.Session)
	intent := event.ActIntendedV1{
		Act: o.call.Scene.Act, Verb: o.verb.Name, Effect: string(o.verb.Effect), Namespace: o.call.Token.GateNamespace(),
		ArgsSHA256: o.sum(), By: o.caller.By, Asked: o.caller.Asked, Ruled: o.ruled(),
		Discipline: w.Discipline, Authorized: w.Authorized, Query: o.verb.Query || o.verb.Repeatable,
	}
	if len(o.args) <= inlineText {
		text := string(o.args)
		intent.Args = &text
	}
	if o.caller.Approved != nil {
		intent.Held = &o.caller.Approved.Held
	}
	if err := d.o.Ledger.Intend(ctx, o.call.Scene, intent); err != nil {
		return refuse(err)
	}
	out, changes := d.invoke(ctx, o)
	finished := d.finished(o, out, changes)
	c := Conclusion{Finished: &finished, Verb: o.verb.Name, Changes: changes, Receipt: o.receipt(out), Row: d.row(o, out)}
	// The act is done: its outcome is recorded whatever has become of the caller.
	if err := d.o.Ledger.Conclude(context.WithoutCancel(ctx), o.call.Scene, c); err != nil {
		return o.unrecorded(out, err)
	}
	d.hook(ctx, o, out)
	return out
}

// unrecorded is the answer when an act was done and its outcome is not in the
// journal yet (VD-164): it carries what the handler answered.
func (o *operation) unrecorded(out outcome, err error) outcome {
	f := fault.Wrap(err, fault.AuditObligation, "record outcome of", o.verb.Name)
	f.Message = "it was done, and the journal has not taken its outcome yet"
	f.Next = "do not repeat it: reeve act show " + o.call.Scene.Act + " tells its outcome"
	failed := outcome{err: f, disp: out.disp, act: out.act}
	if out.err == nil {
		failed.disp, failed.domain = request.Committed, &out.value
	}
	return failed
}

func (d *Dispatcher) finished(o *operation, out outcome, changes verbs.Changes) event.ActFinishedV1 {
	f := event.ActFinishedV1{
		Act: o.call.Scene.Act, OK: out.err == nil, Disposition: event.Disposition(out.disp),
		Files: append([]event.FileChange{}, changes.Files...), DurationUS: d.o.Now().Sub(o.begun).Microseconds(),
	}
	if out.err != nil {
		code, message := string(fault.CodeOf(out.err)), out.err.Error()
		f.Code, f.Message = &code, &message
		return f
	}
	text, sum := out.resultText()
	f.ResultSHA256 = &sum
	if len(text) <= inlineText {
		f.Result = &text
	}
	return f
}

// receipt is what is kept of a host request of a cell.
func (o *operation) receipt(out outcome) *Receipt {
	if o.caller.Asked == nil {
		return nil
	}
	r := &Receipt{Verb: o.verb.Name, ArgsSHA256: o.sum(), Act: out.act, OK: out.err == nil, Disposition: string(out.disp)}
	if out.err == nil {
		if text, _ := out.resultText(); len(text) <= inlineText {
			r.Result = &text
		}
		return r
	}
	v := view(out.err)
	r.Code, r.Kind, r.Shown = string(fault.CodeOf(out.err)), v.kind, v.code
	r.Message, r.Next, r.Retry = v.message, v.next, v.retry
	return r
}

func (d *Dispatcher) hook(ctx context.Context, o *operation, out outcome) {
	if d.o.Hook == nil || out.err != nil {
		return
	}
	if err := d.o.Hook(ctx, d.row(o, out)); err != nil {
		d.o.Log.Warn("the dispatch hook failed", "verb", o.verb.Name, "cause", err)
	}
}
