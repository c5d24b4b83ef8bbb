package mcpserve

import (
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/request"
)

// diagnosticsVerb is answered by the front end itself, also when no core can be
// reached (VD-012).
const diagnosticsVerb = "bridge.diagnostics"

const diagnosticsHelp = `{"verb":"bridge.diagnostics","pack":"bridge","category":"Assertive","params":[],` +
	`"description":"Tell what this front end knows of its connection to the core: who it is, and how often it had to do without."}`

// diagnostics answers a request for the front end's own counters. It reports false
// when ops asks for something else.
func (s *Server) diagnostics(ops string) (control.RequestAnswer, bool, error) {
	const op = "request"
	if !strings.Contains(ops, diagnosticsVerb) {
		return control.RequestAnswer{}, false, nil
	}
	parsed, err := request.Parse(ops)
	if err != nil {
		return control.RequestAnswer{}, false, err
	}
	asked := false
	for i := range parsed.Ops {
		asked = asked || parsed.Ops[i].Tool == diagnosticsVerb
	}
	switch {
	case !asked:
		return control.RequestAnswer{}, false, nil
	case len(parsed.Ops) > 1:
		return control.RequestAnswer{}, false, fault.New(fault.InvalidRequest, op, diagnosticsVerb, "it must be the only operation").
			WithNext("ask for it in a request of its own")
	case len(parsed.Ops[0].Args) > 0 && (len(parsed.Ops[0].Args) > 1 || !parsed.Ops[0].Help()):
		return control.RequestAnswer{}, false, fault.New(fault.InvalidRequest, op, diagnosticsVerb, "it takes nothing but help=true")
	}
	b := []byte(diagnosticsHelp)
	if !parsed.Ops[0].Help() {
		if b, err = json.Marshal(s.core.diagnostics(), json.Deterministic(true)); err != nil {
			return control.RequestAnswer{}, false, fault.Wrap(err, fault.Internal, op, diagnosticsVerb)
		}
	}
	v, err := request.ParseResult(b)
	if err != nil {
		return control.RequestAnswer{}, false, fault.Wrap(err, fault.Internal, op, diagnosticsVerb)
	}
	answer := request.Assemble(parsed, []request.Outcome{{Done: true, Result: v}})
	if b, err = json.Marshal(&answer); err != nil {
		return control.RequestAnswer{}, false, fault.Wrap(err, fault.Internal, op, diagnosticsVerb)
	}
	return control.RequestAnswer{Body: b}, true, nil
}

// diagnostics reads the counters of the connection, without making one.
func (c *core) diagnostics() control.LinkDiagnostics {
	c.mu.Lock()
	svc := c.svc
	c.mu.Unlock()
	if l, ok := svc.(interface {
		Link() control.LinkDiagnostics
	}); ok {
		return l.Link()
	}
	return control.LinkDiagnostics{PID: os.Getpid()}
}
