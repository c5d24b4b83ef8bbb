package control

import (
	"context"

	"github.com/reeve-run/reeve/event"
)

// RequestCall is a text of the ops language and what stands beside it (VD-002). Who
// asks comes from the surface that took the text, never from the text (VD-103).
type RequestCall struct {
	Ops          string      `json:"ops"`
	Presentation string      `json:"presentation"`
	PerOp        []string    `json:"presentation_per_op"`
	Format       string      `json:"format"`
	FormatPerOp  []string    `json:"format_per_op"`
	SaveTo       string      `json:"save_to"`
	Plan         bool        `json:"plan"`
	RequestID    uint64      `json:"request_id"`
	Session      string      `json:"session"`   // on whose behalf; empty for none
	Workspace    string      `json:"workspace"` // used only when the session is opened by this call
	By           event.Actor `json:"by"`
	Agent        bool        `json:"agent"` // an agent's surface: internal verbs are refused (VD-059)
	Visible      []string    `json:"visible_namespaces"`
	Process      string      `json:"process_ref"`
	TimeoutMS    int64       `json:"timeout_ms"` // 0: the core's own (VD-009)
}

// RequestAnswer is the envelope of a request, or a plan, as JSON text. Failed: no
// operation succeeded and at least one did not (VD-007).
type RequestAnswer struct {
	Body   Raw  `json:"body"`
	Failed bool `json:"failed"`
}

// Verbs is the verb plane.
type Verbs interface {
	// Request runs the operations of a text. An error means that nothing was run: the
	// text or the options cannot be read. Everything else is in the envelope.
	Request(ctx context.Context, c RequestCall) (RequestAnswer, error)
}

// Request implements Service.
func (c *Client) Request(ctx context.Context, r RequestCall) (v RequestAnswer, err error) {
	return v, c.effect(ctx, "request", "/v1/request", r, &v)
}
