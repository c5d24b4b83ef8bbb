package link

import (
	"github.com/reeve-run/reeve/fault"
)

// Limits of the protocol. All but MaxFrame may be lowered or raised without a new
// version: a peer learns of them by a refusal.
const (
	// MaxFrame bounds the JSON of one frame in bytes.
	MaxFrame = 8 << 20
	// maxGreeting bounds a frame of a peer that has not shaken hands.
	maxGreeting = 64 << 10
	// maxOpen bounds the operations that one connection has open (VD-011).
	maxOpen = 1024
	// maxConnections bounds the connections of one server.
	maxConnections = 256
	// maxDepth bounds nesting of a body.
	maxDepth = 512
	// maxNumber is the largest integer that every JSON reader keeps exact.
	maxNumber = 1<<53 - 1
)

// kind is one of the closed set of frame kinds (VD-140).
type kind uint8

const (
	handshake kind = iota + 1
	handshakeAck
	request
	response
	failure
	cancel
	subscribe
	subscribeAck
	unsubscribe
	unsubscribeAck
	event
)

var kindNames = [...]string{
	handshake: "handshake", handshakeAck: "handshake_ack", request: "request", response: "response",
	failure: "error", cancel: "cancel", subscribe: "subscribe", subscribeAck: "subscribe_ack",
	unsubscribe: "unsubscribe", unsubscribeAck: "unsubscribe_ack", event: "event",
}

func (k kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "no kind"
}

// member is a bit for each member name a frame can have.
type member uint32

const (
	mKind member = 1 << iota
	mID
	mMin
	mMax
	mProtocol
	mClient
	mVersion
	mPID
	mConfigID
	mConfig
	mReadOnly
	mMethod
	mRequestID
	mReplay
	mTimeout
	mBody
	mSeq
	mCode
	mMessage
	mNext
	mRetryable
	mReason
)

var members = map[string]member{
	"kind": mKind, "id": mID, "min": mMin, "max": mMax, "protocol": mProtocol, "client": mClient,
	"version": mVersion, "pid": mPID, "config_id": mConfigID, "config": mConfig, "read_only": mReadOnly,
	"method": mMethod, "request_id": mRequestID, "replay": mReplay, "timeout_ms": mTimeout, "body": mBody,
	"seq": mSeq, "code": mCode, "message": mMessage, "next": mNext, "retryable": mRetryable, "reason": mReason,
}

// has is what each kind has beside mKind: all of it must be there and nothing else,
// except that a connection-fatal error has no id.
var has = [...]member{
	handshake:      mMin | mMax | mClient | mVersion | mConfigID | mConfig | mReadOnly,
	handshakeAck:   mProtocol | mVersion | mPID | mConfigID | mConfig,
	request:        mID | mMethod | mRequestID | mReplay | mTimeout | mBody,
	response:       mID | mBody,
	failure:        mID | mCode | mMessage | mNext | mRetryable | mReason,
	cancel:         mID,
	subscribe:      mID | mMethod | mRequestID | mBody,
	subscribeAck:   mID,
	unsubscribe:    mID,
	unsubscribeAck: mID,
	event:          mID | mSeq | mBody,
}

// frame is any frame. Members that its kind does not have are zero.
type frame struct {
	kind kind
	id   uint64 // of the operation, from 1; 0 in an error that ends the connection

	method    string
	requestID string
	replay    bool   // the caller's word that doing it twice is doing it once
	timeout   uint64 // ms from when it was sent; 0: none
	seq       uint64
	body      []byte // one JSON value, as the peer wrote it

	fault *refusal
	hello *hello
}

// refusal is a fault.Error as it travels.
type refusal struct {
	code      fault.Code
	message   string
	next      string
	retryable bool
	reason    Reason
}

// hello is what either end says of itself.
type hello struct {
	min, max, protocol uint64
	client, version    string
	pid                uint64
	configID           string
	config             []byte // a configid.Print
	readOnly           bool
}

// Reason tells refusals of one code apart, for counters and for what to do next.
type Reason string

// The reasons for which a core does not serve a client by the link. The first five
// are counted (VD-146).
const (
	ConfigMismatch    Reason = "config_mismatch"    // the configurations differ
	NamespaceMismatch Reason = "namespace_mismatch" // the core does not serve the namespace
	NoSocket          Reason = "no_socket"          // nothing listens
	ParseFailure      Reason = "parse_failure"      // the greeting was not understood
	ProtocolMismatch  Reason = "protocol_mismatch"  // no version in common
	Unreachable       Reason = "daemon_unreachable" // the socket may not be used
	RespawnFailed     Reason = "respawn_failed"     // a core was started and did not come up
	Closing           Reason = "closing"            // the core stops; what is unanswered has not begun
	Violation         Reason = "protocol_violation" // a frame that may not be
	Crowded           Reason = "crowded"            // too many connections or operations
	TooLarge          Reason = "answer_too_large"   // carried out; its answer fits no frame
	SlowReader        Reason = "slow_reader"        // events came faster than they were taken
)
