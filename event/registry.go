package event

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
)

type key struct {
	kind    Kind
	version int
}

var decoders = map[key]func([]byte) (Payload, error){
	{SessionOpened, 1}:   strict[SessionOpenedV1],
	{SessionClosed, 1}:   strict[SessionClosedV1],
	{KernelReset, 1}:     strict[KernelResetV1],
	{KernelLost, 1}:      strict[KernelLostV1],
	{KernelStopped, 1}:   strict[KernelStoppedV1],
	{CellStarted, 1}:     strict[CellStartedV1],
	{CellCompleted, 1}:   lifted[cellCompletedV1],
	{CellCompleted, 2}:   strict[CellCompletedV2],
	{CellLateOutput, 1}:  strict[CellLateOutputV1],
	{ActIntended, 1}:     strict[ActIntendedV1],
	{ActFinished, 1}:     strict[ActFinishedV1],
	{ActUnknown, 1}:      strict[ActUnknownV1],
	{ActSettled, 1}:      strict[ActSettledV1],
	{ActHeld, 1}:         strict[ActHeldV1],
	{ActApproved, 1}:     strict[ActApprovedV1],
	{ActDenied, 1}:       strict[ActDeniedV1],
	{SendHeld, 1}:        strict[SendHeldV1],
	{SendConfirmed, 1}:   strict[SendConfirmedV1],
	{SendApproved, 1}:    strict[SendApprovedV1],
	{SendDenied, 1}:      strict[SendDeniedV1],
	{OperatorMessage, 1}: strict[OperatorMessageV1],
	{InputReceived, 1}:   strict[InputReceivedV1],
	{AuditDispatch, 1}:   strict[AuditDispatchV1],
	{ConfigLocked, 1}:    strict[ConfigLockedV1],
}

// versions is the version that Encode writes.
var versions = map[Kind]int{
	SessionOpened: 1, SessionClosed: 1,
	KernelReset: 1, KernelLost: 1, KernelStopped: 1,
	CellStarted: 1, CellCompleted: 2, CellLateOutput: 1,
	ActIntended: 1, ActFinished: 1, ActUnknown: 1, ActSettled: 1, ActHeld: 1, ActApproved: 1, ActDenied: 1,
	SendHeld: 1, SendConfirmed: 1, SendApproved: 1, SendDenied: 1, OperatorMessage: 1, InputReceived: 1,
	AuditDispatch: 1, ConfigLocked: 1,
}

// Shape is a kind with a version that can be decoded.
type Shape struct {
	Kind    Kind
	Version int
}

// Shapes returns all that Decode knows, by kind and version.
func Shapes() []Shape {
	all := make([]Shape, 0, len(decoders))
	for k := range decoders {
		all = append(all, Shape{k.kind, k.version})
	}
	slices.SortFunc(all, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
	return all
}

// Current is the version that Encode writes for kind, 0 for an unknown kind.
func Current(kind Kind) int { return versions[kind] }

// Encode returns the version and the bytes that are stored for p. Text that is not
// valid UTF-8 is refused: it could not be read back.
func Encode(p Payload) (version int, payload []byte, err error) {
	b, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		return 0, nil, fault.Wrap(err, fault.InvalidRequest, "encode event", string(p.Kind()))
	}
	return versions[p.Kind()], b, nil
}

// Decode reads stored bytes strictly: an unknown, missing, duplicate or
// case-variant member, invalid UTF-8 and an unknown kind or version are refused.
// An old version is lifted into today's struct.
func Decode(kind Kind, version int, payload []byte) (Payload, error) {
	dec, ok := decoders[key{kind, version}]
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "decode event", string(kind), "no decoder for version %d", version)
	}
	return dec(payload)
}

func strict[P Payload](b []byte) (Payload, error) {
	var p P
	if err := json.Unmarshal(bytes.TrimSpace(b), &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, fault.Wrap(err, fault.InvalidRequest, "decode event", string(p.Kind()))
	}
	if err := complete[P](b); err != nil {
		return nil, fault.Wrap(err, fault.InvalidRequest, "decode event", string(p.Kind()))
	}
	return p, nil
}
