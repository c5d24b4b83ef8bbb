// Package local is the agent's one lane to the operator.
//
// Invariant: a text reaches the operator's lane only past a review. While no review
// is active every send is held (CP-056), and its receipt never changes afterwards.
package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/verbs"
)

// MaxText bounds a text, in bytes (CP-055).
const MaxText = 32_768

// Receipt is the answer to a send. EventID is not null exactly when it is confirmed,
// Reason exactly when it is not.
type Receipt struct {
	EffectID string  `json:"effect_id"`
	Status   string  `json:"status"` // confirmed | held
	EventID  *int64  `json:"event_id"`
	Reason   *string `json:"reason"`
}

// Pack is the pack.
func Pack() verbs.Pack {
	return verbs.Pack{
		Table: verbs.Table{Name: "local", Verbs: []verbs.Spec{{
			Name: "local.send", Description: "Says something to the operator. Held until a review, or the operator, lets it pass.",
			Visibility: verbs.Public, Category: verbs.Commissive, Effect: verbs.Record,
			Params: []verbs.Param{{
				Name: "text", Type: verbs.Text, Required: true, FreeText: true, Fact: verbs.FactBytes,
				Description: fmt.Sprintf("What to say, 1 to %d bytes.", MaxText),
			}},
		}}},
		New: func() (verbs.Handler, error) { return handler{}, nil },
	}
}

type handler struct{}

// Handle implements verbs.Handler.
func (handler) Handle(_ context.Context, call *verbs.Call) (verbs.Reply, error) {
	text := call.Text("text")
	if len(text) == 0 || len(text) > MaxText {
		return verbs.Reply{}, fault.New(fault.LimitExceeded, "send", "text", "it has %d bytes; 1 to %d are taken", len(text), MaxText).
			WithNext("send less, and put the rest into a file of the workspace")
	}
	id, reason := effectID(call), "no delivery review is active"
	reply, err := verbs.Answer(Receipt{EffectID: id, Status: "held", Reason: &reason})
	reply.Changes.Session = []event.Payload{event.SendHeldV1{
		Effect: id, Text: text, Reason: reason, By: call.Scene.By, Asked: call.Scene.Asked,
	}}
	return reply, err
}

// effectID is known before anything is committed: of a host request it is made from
// its identity (CP-151).
func effectID(call *verbs.Call) string {
	var seed []byte
	if a := call.Scene.Asked; a != nil {
		seed = fmt.Appendf(nil, "%s/%s/%s/%d", call.Scene.Session, a.Execution, a.Request, a.Op)
	} else {
		seed = []byte(rand.Text())
	}
	sum := sha256.Sum256(seed)
	return "eff_" + hex.EncodeToString(sum[:])[:26]
}
