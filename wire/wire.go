// Package wire is the runtime control protocol v1 between host and worker: frames,
// the envelope, the closed set of messages, and their limits (CP-001…CP-028,
// CP-130…CP-144; docs/protocol/worker.md is the normative page).
//
// Invariants: a frame that decodes re-encodes to an equal message; every bad input
// gives exactly one *fault.Error and never a panic, whatever its depth or size;
// free-form values pass through as the bytes that arrived. The package reads and
// writes byte slices; it knows no sockets and starts nothing.
package wire

// Limits of the protocol. Byte limits count bytes before JSON escaping.
const (
	Version         = 1
	MaxFrame        = 1 << 20
	MaxDepth        = 96 // nesting, counted from the envelope
	MaxIdentifier   = 128
	MaxCode         = 262_144
	MaxOutputText   = 65_536
	MaxOutputItems  = 256
	MaxErrorText    = 65_536
	MaxRequests     = 128 // host requests of one cell
	MaxNumberDigits = 4_300
	MaxArtifactPart = 512 << 10
	MaxArtifact     = 8 << 20
	MaxNames        = 4_096
	TailBytes       = 8 << 10
	LateBytes       = 8 << 10
)

// Kind is the "kind" member of a message.
type Kind string

// Message kinds. H is host, W is worker.
const (
	KindHello       Kind = "hello"        // W→H
	KindExecute     Kind = "execute"      // H→W
	KindInvoke      Kind = "invoke"       // H→W
	KindHostRequest Kind = "host_request" // W→H
	KindHostReply   Kind = "host_reply"   // H→W
	KindCompleted   Kind = "completed"    // W→H
	KindInterrupt   Kind = "interrupt"    // H→W
	KindShutdown    Kind = "shutdown"     // H→W
	KindOutput      Kind = "output"       // W→H, beyond the seed
	KindNames       Kind = "names"        // W→H, beyond the seed
	KindArtifact    Kind = "artifact"     // W→H, beyond the seed
)

// Envelope is the outer object of every frame.
type Envelope struct {
	SessionID  string
	Generation string
	Message    Message
}

// Message is one of the structs below.
type Message interface {
	MessageKind() Kind
	sealed()
}

// Raw is a free-form JSON value, exactly as it arrived or is to be sent.
type Raw []byte

// Hello is the worker's first and only greeting.
type Hello struct {
	Token    string
	Role     string // "workbench" | "hooks"
	Revision *string
	Slots    []string
	Skills   *string
}

// Execute asks a workbench to run code.
type Execute struct {
	ID   string
	Code string
}

// Invoke asks a hook worker for a decision.
type Invoke struct {
	ID    string
	Slot  string
	Input Raw
}

// HostRequest asks the host for something on behalf of an execution. Request is
// the whole object; Method repeats its "method", empty when that is absent or no string.
type HostRequest struct {
	ID          string
	ExecutionID string
	Method      string
	Request     Raw
}

// HostReply answers it: Value when Code is empty, else Code and Text.
type HostReply struct {
	ID          string
	ExecutionID string
	Value       Raw
	Code        string
	Text        string
}

// OutputRecord is one item of a cell's output.
type OutputRecord struct {
	Stream string // stdout | stderr | result
	Text   string
}

// CellResult is the "cell" form of completed.
type CellResult struct {
	Status         string // ok | error | yielded | interrupted
	Output         []OutputRecord
	TruncatedBytes int64
	Error          *string
}

// Completed ends an operation: exactly one of Cell, Hook and Failed is set.
type Completed struct {
	ID     string
	Cell   *CellResult
	Hook   Raw
	Failed *string
}

// Interrupt names the operation to stop.
type Interrupt struct{ ID string }

// Shutdown asks the worker to leave.
type Shutdown struct{}

// Output is a live chunk of the running cell. Seq rises by one per chunk of a cell,
// from 0.
type Output struct {
	ID     string
	Stream string // stdout | stderr
	Text   string
	Seq    int64
}

// Names tells which names a cell bound and removed, just before its completed.
type Names struct {
	ID      string
	Added   []string
	Removed []string
}

// Artifact carries a part of a rich result. Index counts parts from 0.
type Artifact struct {
	ID         string
	ArtifactID string
	MIME       string
	Size       int64
	SHA256     string
	Index      int64
	Last       bool
	Data       []byte // base64 on the wire
}

// MessageKind implementations.
func (Hello) MessageKind() Kind       { return KindHello }
func (Execute) MessageKind() Kind     { return KindExecute }
func (Invoke) MessageKind() Kind      { return KindInvoke }
func (HostRequest) MessageKind() Kind { return KindHostRequest }
func (HostReply) MessageKind() Kind   { return KindHostReply }
func (Completed) MessageKind() Kind   { return KindCompleted }
func (Interrupt) MessageKind() Kind   { return KindInterrupt }
func (Shutdown) MessageKind() Kind    { return KindShutdown }
func (Output) MessageKind() Kind      { return KindOutput }
func (Names) MessageKind() Kind       { return KindNames }
func (Artifact) MessageKind() Kind    { return KindArtifact }

func (Hello) sealed()       {}
func (Execute) sealed()     {}
func (Invoke) sealed()      {}
func (HostRequest) sealed() {}
func (HostReply) sealed()   {}
func (Completed) sealed()   {}
func (Interrupt) sealed()   {}
func (Shutdown) sealed()    {}
func (Output) sealed()      {}
func (Names) sealed()       {}
func (Artifact) sealed()    {}
