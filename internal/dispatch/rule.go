package dispatch

import (
	"context"
	"fmt"
	"strings"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// rule asks the gate, and goes on when it allows.
func (d *Dispatcher) rule(ctx context.Context, o *operation) outcome {
	if out, stop := d.ruled(ctx, o); stop {
		return out
	}
	return d.run(ctx, o)
}

// ruled takes an operation past the gate and what stands behind it. stop means that
// it does not go on, for the reason in its outcome.
func (d *Dispatcher) ruled(ctx context.Context, o *operation) (out outcome, stop bool) {
	d.judge(ctx, o)
	d.logged(ctx, o)
	switch o.decision.Ruling {
	case gate.Allow:
	case gate.Deny:
		return d.denied(ctx, o, o.denial(fault.Denied, "permission denied for verb"), event.AuditDenied), true
	default:
		for _, b := range o.decision.Broken {
			d.o.Log.Error("a rule could not be evaluated", "rule", b.Rule, "cause", bounded(d.o.Mask(b.Message)))
		}
		return d.denied(ctx, o, o.denial(fault.GateUnavailable, "gate unavailable for verb"), event.AuditError), true
	}
	if o.verb == nil {
		out := refuse(d.o.Registry.UnknownVerb(o.op.Tool))
		out.reason = reasonVerb
		d.owe(o, out)
		return out, true
	}
	if o.checked != nil {
		out := refuse(o.checked)
		d.owe(o, out)
		return out, true
	}
	if err := d.limited(o); err != nil {
		return d.denied(ctx, o, err, event.AuditDenied), true
	}
	if err := d.disciplined(o); err != nil {
		return d.denied(ctx, o, err, event.AuditDenied), true
	}
	if out, found := d.secret(o); found {
		d.owe(o, out)
		return out, true
	}
	if hold, ok := o.decision.Hold(); ok && o.caller.Approved == nil {
		return d.hold(ctx, o, hold), true
	}
	return outcome{}, false
}

// facts are what a policy sees of arguments that are what the verb takes.
func (d *Dispatcher) facts(ctx context.Context, o *operation) (verbs.Facts, error) {
	if j, ok := d.handlers[o.verb.Pack].(verbs.Judge); ok {
		return j.Facts(ctx, &o.call)
	}
	return o.plainFacts(), nil
}

// plainFacts are the arguments as they are.
func (o *operation) plainFacts() verbs.Facts {
	var f verbs.Facts
	for i := range o.verb.Params {
		p := &o.verb.Params[i]
		v, given := o.call.Arg(p.Name)
		if p.Fact == "" || !given {
			continue
		}
		text, _ := v.Text()
		switch p.Fact {
		case verbs.FactPath:
			f.Path = text
		case verbs.FactPaths:
			f.Paths = texts(v)
		case verbs.FactArgv:
			f.Argv = texts(v)
		case verbs.FactTarget:
			f.Target = text
		case verbs.FactScope:
			f.Scope = text
		case verbs.FactBytes:
			f.Bytes += int64(len(text))
		case verbs.FactDryRun:
			f.DryRun = v.IsTrue()
		}
	}
	return f
}

func texts(v request.Value) []string {
	all := make([]string, 0, v.Len())
	for _, it := range v.Items() {
		s, _ := it.Value.Text()
		all = append(all, s)
	}
	return all
}

func (d *Dispatcher) decide(o *operation, facts verbs.Facts) gate.Decision {
	p := d.policy.Load()
	if p.set == nil {
		reason := "no policy is in force"
		if p.err != nil {
			d.o.Log.Error("no policy is in force", "cause", p.err)
			reason = "the policy cannot be used: reeve policy test says why"
		}
		return gate.Decision{Ruling: gate.Error, Reason: reason}
	}
	name := gate.Unknown
	if o.verb != nil {
		name = o.verb.Name
	}
	return p.set.Decide(gate.Request{
		Actor:     gateActor(o.call.Token.Actor()),
		Namespace: o.call.Token.GateNamespace(),
		Verb:      d.verbs[name],
		Args:      gate.Args(facts),
		Work:      d.o.Work(o.caller.Session),
		Context: gate.Context{
			SessionID: o.caller.Session, Surface: o.caller.By.Surface, Isolation: "off", Attended: d.o.Attended(),
		},
	})
}

func gateActor(a verbs.Actor) gate.Actor { return gate.Actor{Kind: gate.ActorKind(a.Kind), ID: a.ID} }

func (d *Dispatcher) limited(o *operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limiter.Take(o.decision, gateActor(o.call.Token.Actor()), d.o.Now().UnixMilli())
}

// disciplined refuses what changes the workspace without an active authorization,
// where the discipline is enforced (CP-062).
func (d *Dispatcher) disciplined(o *operation) error {
	if o.verb.Effect != verbs.Workspace {
		return nil
	}
	w := d.o.Work(o.caller.Session)
	if w.Discipline != "enforced" || w.Authorized {
		return nil
	}
	return fault.New(fault.Denied, "permission denied for verb", o.verb.Name, "the work discipline is enforced and no change is authorized").
		WithNext("call developer_authorize_change, after a judgment that concludes with the change")
}

// secret looks for secrets in what a verb marks as free text (VD-170, VD-211).
func (d *Dispatcher) secret(o *operation) (outcome, bool) {
	if d.o.Secrets == nil {
		return outcome{}, false
	}
	for i := range o.verb.Params {
		p := &o.verb.Params[i]
		v, given := o.call.Arg(p.Name)
		if !p.FreeText || !given {
			continue
		}
		if detector, excerpt, found := d.secretIn(v); found {
			out := refuse(fault.New(fault.SecretDetected, "write blocked", p.Name, "%s found: %s", detector, excerpt).
				WithNext("leave the secret out, or name where it is kept"))
			out.reason = reasonGate
			return out, true
		}
	}
	return outcome{}, false
}

// secretIn looks through every text in v, keys included. Values are at most
// request.MaxDepth deep.
func (d *Dispatcher) secretIn(v request.Value) (detector, excerpt string, found bool) {
	if text, ok := v.Text(); ok {
		return d.o.Secrets(text)
	}
	for _, it := range v.Items() {
		if detector, excerpt, found = d.o.Secrets(it.Name); found {
			return detector, excerpt, true
		}
		if detector, excerpt, found = d.secretIn(it.Value); found {
			return detector, excerpt, true
		}
	}
	return "", "", false
}

// denied records a refusal before it is told, and tells whether it is on record
// (VD-110).
func (d *Dispatcher) denied(ctx context.Context, o *operation, err error, as event.AuditOutcome) outcome {
	out := refuse(err)
	row := d.row(o, out)
	row.Outcome = as
	if as == event.AuditDenied && row.Decision == event.DecisionAllow {
		row.Decision = event.DecisionDeny
		reason := d.o.Mask(err.Error())
		row.DenyReason = &reason
	}
	state := "owed"
	switch {
	case d.o.ReadOnly:
		state = "skipped_read_only"
	case d.wait(ctx, d.o.Ledger.Owe(row), refusalWait):
		state = "written"
	}
	out.details = append(out.details,
		request.Item{Name: "verb", Value: request.OfString(o.op.Tool)},
		request.Item{Name: "reason", Value: request.OfString(o.decision.Reason)},
		request.Item{Name: "audit_event_id", Value: request.OfString(row.ID)},
		request.Item{Name: "audit_outcome", Value: request.OfString(state)},
	)
	if o.decision.Ruling != gate.Allow {
		out.details = append(out.details, explanation(o.decision)...)
	}
	return out
}

// denial is the gate's no as a fault (VD-156).
func (o *operation) denial(code fault.Code, op string) error {
	return fault.New(code, op, o.op.Tool, "%s", o.decision.Reason).WithNext("%s", o.decision.Remedy)
}

// explanation is what decided, and what would allow the act.
func explanation(d gate.Decision) []request.Item {
	rules := make([]request.Value, len(d.Rules))
	for i, r := range d.Rules {
		rules[i] = request.OfString(r)
	}
	facts := make([]request.Item, len(d.Facts))
	for i, f := range d.Facts {
		facts[i] = request.Item{Name: f.Name, Value: request.OfString(f.Value)}
	}
	return []request.Item{
		{Name: "rules", Value: request.OfArray(rules...)},
		{Name: "forbidden", Value: request.OfBool(d.Forbidden)},
		{Name: "policy", Value: request.OfString(d.Digest)},
		{Name: "facts", Value: request.OfObject(facts...)},
		{Name: "remedy", Value: request.OfString(d.Remedy)},
	}
}

// hold puts an act into the operator's queue (VD-203).
func (d *Dispatcher) hold(ctx context.Context, o *operation, by gate.Obligation) outcome {
	held := newID("held_", d.o.Now())
	reason := by.Reason
	if reason == "" {
		reason = fmt.Sprintf("rule %q lets it pass only with the operator's approval", by.Rule)
	}
	out := refuse(fault.New(fault.Held, "dispatch", o.verb.Name, "it waits for the operator as %s: %s; nothing has been done", held, reason).
		WithNext("go on with something else: the operator approves or denies it and you are told"))
	out.details = []request.Item{{Name: "held_id", Value: request.OfString(held)}}
	row := d.row(o, out)
	row.Outcome = event.AuditHeld
	c := Conclusion{Verb: o.verb.Name, Row: row, Receipt: o.receipt(out)}
	if c.Receipt != nil {
		c.Receipt.Held = held
	}
	c.Changes.Session = []event.Payload{event.ActHeldV1{
		Held: held, Verb: o.verb.Name, Effect: string(o.verb.Effect), Namespace: o.call.Token.GateNamespace(), Args: string(o.args),
		By: o.caller.By, Asked: o.caller.Asked, Ruled: o.ruled(), Reason: reason, Namespaced: o.call.Token.Explicit(),
	}}
	if err := d.o.Ledger.Conclude(ctx, o.call.Scene, c); err != nil {
		return refuse(err)
	}
	return out
}

// bounded keeps what goes to the log from growing with what a caller sends.
func bounded(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func (o *operation) ruled() event.Ruled {
	return event.Ruled{Rules: append([]string{}, o.decision.Rules...), Policy: o.decision.Digest}
}
