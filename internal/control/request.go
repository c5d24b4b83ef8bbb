package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/link"
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

	// Reads is the caller's finding that every operation only reads: a client may then
	// ask again when the answer was lost (VD-148).
	Reads bool `json:"-"`
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

// transit is what an answer that a core gives at its limit may take to arrive.
const transit = 5 * time.Second

// Request implements Service. It goes by the link: when the caller cancels after the
// core has the request, what came of it is waited for (VD-010).
func (c *Client) Request(ctx context.Context, r RequestCall) (v RequestAnswer, err error) {
	const op = "request"
	for r.RequestID == 0 {
		var b [8]byte
		rand.Read(b[:]) // never fails: crypto/rand ends the process instead
		r.RequestID = binary.BigEndian.Uint64(b[:])
	}
	body, err := json.Marshal(r)
	if err != nil {
		return v, fault.Wrap(err, fault.InvalidRequest, op, "")
	}
	timeout := link.NoTimeout
	if r.TimeoutMS > 0 {
		timeout = time.Duration(r.TimeoutMS)*time.Millisecond + transit
	}
	body, err = c.frames().Call(ctx, link.Request{
		Method: op, Body: body, Timeout: timeout,
		RequestID: strconv.FormatUint(r.RequestID, 10), Replay: r.Reads || r.Plan,
	})
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fault.Wrap(err, fault.Internal, op, "answer of the core")
	}
	return v, nil
}
