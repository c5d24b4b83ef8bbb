package host

import (
	"context"
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/packs/policy"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// rulings is the gate, and the audit of it, as the pack policy sees them.
type rulings struct{ core *Core }

var _ policy.Gate = rulings{}

// Policy implements policy.Gate.
func (r rulings) Policy() (*gate.Policy, error) {
	set, err := r.core.dispatcher.Policy()
	if err == nil && set == nil {
		err = fault.New(fault.GateUnavailable, "show policy", "", "no policy is in force").WithNext("reeve policy test")
	}
	return set, err
}

// surfaces is where actors of a kind come from.
var surfaces = map[gate.ActorKind]string{gate.Operator: "cli", gate.Session: "worker", gate.Client: "mcp", gate.Hook: "core"}

// Could implements policy.Gate: a session asks in its own workspace, another actor in
// the caller's session.
func (r rulings) Could(ctx context.Context, call *verbs.Call, as *gate.Actor, op *request.Op) (policy.Prospect, error) {
	by, session, workspace, agent := call.Scene.By, call.Scene.Session, call.Scene.Workspace, call.Scene.Agent
	if as != nil {
		by, agent = event.Actor{Kind: string(as.Kind), Name: as.ID, Surface: surfaces[as.Kind]}, as.Kind != gate.Operator
		if as.Kind == gate.Session {
			l, err := r.core.lane(ctx, as.ID)
			if err != nil {
				return policy.Prospect{}, err
			}
			session, workspace = as.ID, l.workspaceOf(workspace)
		}
	}
	p := r.core.dispatcher.Could(ctx, r.core.caller(by, session, workspace, agent), op)
	return policy.Prospect(p), nil
}

// Decided implements policy.Gate.
func (r rulings) Decided(ctx context.Context, id string) (event.AuditDispatchV1, int64, error) {
	const op = "find decision"
	var found event.AuditDispatchV1
	var at int64
	n := 0
	number, _ := strconv.ParseInt(id, 10, 64) // 0 is no event
	for e, err := range journal.Backward(ctx, r.core.store, r.core.auditStream()) {
		if err != nil {
			return found, 0, err
		}
		row, ok, err := auditRow(e)
		if err != nil {
			return found, 0, err
		}
		if ok && (number == e.ID || begins(id, row)) {
			n++
			found, at = row, e.ID
		}
		if ok && (number == e.ID || row.ID == id || row.Act != nil && *row.Act == id) {
			break // whole: no other is named so
		}
	}
	switch {
	case id == "" || n == 0:
		return found, 0, fault.New(fault.NotFound, op, id, "no audit row has this id, or is of this act or event").WithNext("audit.query() lists them")
	case n > 1:
		return found, 0, fault.New(fault.Ambiguous, op, id, "%d audit rows begin with it", n).WithNext("give more characters")
	}
	return found, at, nil
}

// begins reports whether an audit row, or its act, is named by id or a beginning.
func begins(id string, row event.AuditDispatchV1) bool {
	return strings.HasPrefix(row.ID, id) || row.Act != nil && strings.HasPrefix(*row.Act, id)
}

// auditRow is an event of the audit as a row, if it is one.
func auditRow(e journal.Stored) (row event.AuditDispatchV1, ok bool, err error) {
	if event.Kind(e.Kind) != event.AuditDispatch {
		return row, false, nil
	}
	p, err := event.Decode(event.Kind(e.Kind), e.Version, e.Payload)
	if err != nil {
		return row, false, err
	}
	row, ok = p.(event.AuditDispatchV1)
	return row, ok, nil
}
