package dispatch

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// Prospect is what would become of an operation up to its pack. Refused is what
// says no beside the gate; when it is nil the Decision alone tells.
type Prospect struct {
	Verb     string // canonical, or as it was asked for
	Effect   string // empty for a verb nobody owns
	Decision gate.Decision
	Refused  error
}

// Could asks what Do would answer before it invoked a pack, by the same steps. It
// does nothing, takes nothing from a rate limit and records nothing.
func (d *Dispatcher) Could(ctx context.Context, c Caller, op *request.Op) Prospect {
	o := &operation{caller: c, op: op, begun: d.o.Now()}
	p := Prospect{Verb: op.Tool}
	if v, ok := d.o.Registry.Lookup(op.Tool); ok {
		o.verb, p.Verb, p.Effect = v, v.Name, string(v.Effect)
		if err := internalTo(v, c); err != nil {
			p.Refused = err
			return p
		}
	}
	namespace, explicit, err := verbs.ResolveNamespace(op)
	if err == nil {
		err = o.ownNamespace(namespace, explicit)
	}
	if err != nil {
		p.Refused = err
		return p
	}
	d.prepare(ctx, o, namespace, explicit)
	d.judge(ctx, o)
	p.Decision = o.decision
	if p.Decision.Ruling != gate.Allow {
		return p
	}
	p.Refused = d.behind(o)
	return p
}

// judge asks the gate. What is wrong with the arguments is said after it has ruled.
func (d *Dispatcher) judge(ctx context.Context, o *operation) {
	defer func() {
		if v := recover(); v != nil {
			d.o.Log.Error("a pack panicked before the gate", "verb", o.op.Tool, "cause", v, "stack", string(debug.Stack()))
			o.decision = gate.Decision{Ruling: gate.Error, Reason: "the facts of the act could not be found out"}
		}
	}()
	var facts verbs.Facts
	if o.verb != nil && o.checked == nil {
		facts, o.checked = d.facts(ctx, o)
	}
	o.decision = d.decide(o, facts)
}

// logged tells the log of a ruling (VD-109).
func (d *Dispatcher) logged(ctx context.Context, o *operation) {
	level := slog.LevelDebug
	if o.decision.Ruling != gate.Allow {
		level = slog.LevelInfo
	}
	if !d.o.Log.Enabled(ctx, level) {
		return
	}
	actor := o.call.Token.Actor()
	d.o.Log.LogAttrs(ctx, level, "gate.check",
		slog.String("actor", actor.Kind+":"+actor.ID), slog.String("namespace", o.call.Token.GateNamespace()),
		slog.String("verb", bounded(o.op.Tool)), slog.String("decision", string(o.decision.Ruling)),
		slog.Any("rules", o.decision.Rules), slog.String("reason", bounded(d.o.Mask(o.decision.Reason))))
}

// behind is what an allowed operation would meet before its pack, in the order in
// which it meets it. A rate limit is counted and stands aside.
func (d *Dispatcher) behind(o *operation) error {
	if o.verb == nil {
		return d.o.Registry.UnknownVerb(o.op.Tool)
	}
	if o.checked != nil {
		return o.checked
	}
	if err := d.disciplined(o); err != nil {
		return err
	}
	if out, found := d.secret(o); found {
		return out.err
	}
	return nil
}

// internalTo refuses a verb that only the operator calls (VD-059).
func internalTo(v *verbs.Verb, c Caller) error {
	if v.Visibility != verbs.Internal || !c.Agent {
		return nil
	}
	return fault.New(fault.Denied, "permission denied for verb", v.Name, "it is an internal subhandler, which only the operator calls")
}
