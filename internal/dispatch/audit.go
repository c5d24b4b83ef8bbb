package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/verbs"
)

// gateImpl names the gate in audit rows.
const gateImpl = "cedar"

// row is the audit row of an operation (VD-106, VD-107).
func (d *Dispatcher) row(o *operation, out outcome) event.AuditDispatchV1 {
	actor := o.call.Token.Actor()
	now := d.o.Now()
	row := event.AuditDispatchV1{
		ID: newID("aud_", now), AtMS: now.UnixMilli(), Actor: actor.Kind + ":" + actor.ID, Surface: o.caller.By.Surface,
		Namespace: o.call.Token.GateNamespace(), Verb: o.op.Tool, Decision: event.DecisionAllow,
		Rules: append([]string{}, o.decision.Rules...), Policy: o.decision.Digest, Obligations: []event.Obligation{}, GateImpl: gateImpl,
		Outcome: event.AuditSuccess, OpIndex: int64(o.place.Index), RefResolution: event.RefLiteral,
		Resource: event.Resource{WorkClass: string(verbs.Read)},
	}
	if o.caller.Session != "" {
		row.SessionID = &o.caller.Session
	}
	if o.verb != nil {
		effect := string(o.verb.Effect)
		row.Verb, row.Pack, row.Effect, row.Resource.WorkClass = o.verb.Name, &o.verb.Pack, &effect, effect
	}
	if o.decision.Ruling != gate.Allow {
		// A rule may repeat what was asked (VD-101).
		reason := d.o.Mask(o.decision.Reason)
		row.Decision, row.DenyReason = event.DecisionDeny, &reason
		if o.decision.Ruling == gate.Error {
			row.Decision = event.DecisionUnavailable
		}
	}
	for _, ob := range o.decision.Obligations {
		row.Obligations = append(row.Obligations, event.Obligation{Kind: string(ob.Kind), Rule: ob.Rule, Detail: detail(ob)})
	}
	if o.place.Resolved {
		row.RefResolution = event.RefResolved
	}
	if id := o.caller.Identity.RequestID; id != 0 {
		text := strconv.FormatUint(id, 10)
		row.Resource.RequestID = &text
	}
	row.TargetID = o.target()
	if out.act != "" {
		row.Act = &out.act
	}
	if o.ran {
		row.DurationUS = now.Sub(o.begun).Microseconds()
	}
	if out.err != nil {
		code := string(fault.CodeOf(out.err))
		row.Outcome, row.Code = event.AuditError, &code
	}
	return row
}

// target is the argument target_id, when it is a complete identifier.
func (o *operation) target() *string {
	v, ok := o.op.Arg("target_id")
	if !ok {
		return nil
	}
	s, _ := v.Text()
	id := verbs.ReadIdentifier(s)
	if id.Form != verbs.Complete {
		return nil
	}
	return &id.Text
}

func detail(o gate.Obligation) string {
	switch o.Kind {
	case gate.ObligeHold:
		return o.Reason
	case gate.ObligeRateLimit:
		return strconv.FormatInt(o.Max, 10) + " in " + strconv.FormatInt(o.WindowSecs, 10) + " s"
	default:
		return o.Tag
	}
}

// owe writes the row of an operation that did nothing, without waiting for it.
func (d *Dispatcher) owe(o *operation, out outcome) {
	if !d.o.ReadOnly {
		d.o.Ledger.Owe(d.row(o, out))
	}
}

// resultText is the canonical result and its digest.
func (o *outcome) resultText() (text, sum string) {
	b := o.value.AppendJSON(nil)
	h := sha256.Sum256(b)
	return string(b), hex.EncodeToString(h[:])
}
