package event

// Kinds of the stream "session/<id>".
const (
	SessionOpened  Kind = "session.opened"
	SessionClosed  Kind = "session.closed"
	KernelReset    Kind = "kernel.reset"
	KernelLost     Kind = "kernel.lost"
	KernelStopped  Kind = "kernel.stopped"
	CellStarted    Kind = "cell.started"
	CellCompleted  Kind = "cell.completed"
	CellLateOutput Kind = "cell.late_output"
)

// Actor says on whose behalf something was done and through which surface.
type Actor struct {
	Kind    string `json:"kind"`    // operator | client | session | host
	Name    string `json:"name"`    // user name, MCP client name, session id, host id
	Surface string `json:"surface"` // cli | mcp | control | core
}

// SessionOpenedV1 starts a session's stream.
type SessionOpenedV1 struct {
	Session   string `json:"session"`
	Workspace string `json:"workspace"` // absolute path that cells start in
	By        Actor  `json:"by"`
}

// SessionClosedV1 ends it; only the operator's word about what stood open may follow.
type SessionClosedV1 struct {
	By     Actor  `json:"by"`
	Reason string `json:"reason"`
}

// Python identifies an interpreter.
type Python struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// ResetReason says why a generation began.
type ResetReason string

// Reasons of kernel.reset.
const (
	ResetStart    ResetReason = "start"     // first generation of the session
	ResetLost     ResetReason = "lost"      // the one before died
	ResetStopped  ResetReason = "stopped"   // the one before was stopped with its core or for idleness
	ResetOperator ResetReason = "requested" // somebody asked for a fresh namespace
)

// KernelResetV1 records that a generation is ready: an empty namespace.
type KernelResetV1 struct {
	Generation     string      `json:"generation"` // "g-<number>"
	Number         int64       `json:"number"`     // from 1
	Python         Python      `json:"python"`
	Isolation      string      `json:"isolation"`       // "off" until confinement exists
	SkillsRevision *string     `json:"skills_revision"` // what the worker echoed
	Reason         ResetReason `json:"reason"`
	PID            int         `json:"pid"`
	StartMS        int64       `json:"start_ms"` // spawn to ready
}

// CauseKind says how a worker ended.
type CauseKind string

// Kinds of Cause.
const (
	CauseExit        CauseKind = "exit"         // exited by itself with Code
	CauseSignal      CauseKind = "signal"       // killed by Signal, not by reeve
	CauseMemory      CauseKind = "memory"       // killed by the kernel for want of memory
	CauseProtocol    CauseKind = "protocol"     // bad frame or identity; reeve ended it
	CauseInterrupt   CauseKind = "interrupt"    // an interrupt had to go as far as killing
	CauseStart       CauseKind = "start"        // no valid hello before the start deadline
	CauseCoreRestart CauseKind = "core_restart" // the core died or was killed
	CauseShutdown    CauseKind = "shutdown"     // down, close, reset: on request
	CauseEffect      CauseKind = "effect"       // an act ended and nobody knows what it changed
	CauseStore       CauseKind = "store"        // the intent was not known to be durable, so no code was sent
)

// Cause explains an end. Text is one line for people.
type Cause struct {
	Kind   CauseKind `json:"kind"`
	Code   *int      `json:"code"`   // exit status, for exit
	Signal *string   `json:"signal"` // "SIGKILL", for signal and interrupt
	Text   string    `json:"text"`
}

// Tail is the end of a raw diagnostic stream of a worker (CP-004).
type Tail struct {
	Text    string `json:"text"`
	Dropped int64  `json:"dropped"` // bytes before Text
}

// KernelLostV1 records that a generation and its namespace are gone against
// anyone's wish. Names existed just before.
type KernelLostV1 struct {
	Generation string   `json:"generation"`
	Cause      Cause    `json:"cause"`
	Names      []string `json:"names"`      // sorted
	NamesMore  int      `json:"names_more"` // not listed
	Stdout     Tail     `json:"stdout"`
	Stderr     Tail     `json:"stderr"`
}

// KernelStoppedV1 records an end on request.
type KernelStoppedV1 struct {
	Generation string   `json:"generation"`
	By         Actor    `json:"by"`
	Cause      Cause    `json:"cause"`
	Names      []string `json:"names"`
	NamesMore  int      `json:"names_more"`
}

// CellStartedV1 is the durable intent: committed before the code is sent
// (CP-140). Code is inline up to 16 KiB, else in the artifact that its
// digest names.
type CellStartedV1 struct {
	Cell       string  `json:"cell"`      // the handle, unique in the store
	Execution  string  `json:"execution"` // "e-<n>", unique in the session for ever
	Generation string  `json:"generation"`
	Code       *string `json:"code"` // null when it is an artifact
	CodeSHA256 string  `json:"code_sha256"`
	CodeBytes  int64   `json:"code_bytes"`
	TimeoutMS  *int64  `json:"timeout_ms"`
	By         Actor   `json:"by"`
}

// CellStatus is how a cell ended. Failed is the host's word for a worker that
// did not answer; the others are the worker's (CP-031).
type CellStatus string

// Cell statuses.
const (
	CellOK          CellStatus = "ok"
	CellError       CellStatus = "error"
	CellYielded     CellStatus = "yielded"
	CellInterrupted CellStatus = "interrupted"
	CellFailed      CellStatus = "failed"
)

// Output is one record of what a cell printed or displayed, adjacent writes to
// one stream joined.
type Output struct {
	Stream string `json:"stream"` // stdout | stderr | result
	Text   string `json:"text"`
}

// Artifact names content by hash (CP-035, CP-144).
type Artifact struct {
	SHA256 string `json:"sha256"`
	MIME   string `json:"mime"`
	Size   int64  `json:"size"`
	ID     string `json:"id"` // as the worker named it; "spool" for a cell's output
}

// Spool is a cell's output beyond its record, kept as an artifact. The bytes
// [0, DropFrom) and [DropTo, Total) of the output are in it, in that order.
type Spool struct {
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
	Total    int64  `json:"total"`
	DropFrom int64  `json:"drop_from"`
	DropTo   int64  `json:"drop_to"`
}

// CellCompletedV2 is the outcome, one per cell, committed before the caller is
// answered. Version 1 had no effects.
type CellCompletedV2 struct {
	Cell           string     `json:"cell"`
	Execution      string     `json:"execution"`
	Generation     string     `json:"generation"`
	Status         CellStatus `json:"status"`
	Cause          *Cause     `json:"cause"` // for failed, and for an interrupt: how far it went
	Output         []Output   `json:"output"`
	TruncatedBytes int64      `json:"truncated_bytes"` // in no record of output
	BytesTotal     int64      `json:"bytes_total"`     // printed and shown: in output or truncated
	Error          *string    `json:"error"`           // what it raised, with its traceback
	Artifacts      []Artifact `json:"artifacts"`
	Spool          *Spool     `json:"spool"`
	NamesAdded     []string   `json:"names_added"`
	NamesRemoved   []string   `json:"names_removed"`
	Effects        []string   `json:"effects"`    // acts and sends it asked for that took or may have taken effect (CP-026)
	ElapsedMS      int64      `json:"elapsed_ms"` // from its code being sent; when its core died, to the last sign of its worker, 0 without one
	QueuedMS       int64      `json:"queued_ms"`  // from its request to its code being sent
	CPUMS          *int64     `json:"cpu_ms"`     // null when it could not be read
}

// CellLateOutputV1 is text that arrived after its cell had ended (CP-143).
type CellLateOutputV1 struct {
	Cell    string `json:"cell"`
	Stream  string `json:"stream"`
	Text    string `json:"text"`
	Dropped int64  `json:"dropped"` // bytes over the 8 KiB a cell may be late with
}

func (SessionOpenedV1) Kind() Kind  { return SessionOpened }
func (SessionClosedV1) Kind() Kind  { return SessionClosed }
func (KernelResetV1) Kind() Kind    { return KernelReset }
func (KernelLostV1) Kind() Kind     { return KernelLost }
func (KernelStoppedV1) Kind() Kind  { return KernelStopped }
func (CellStartedV1) Kind() Kind    { return CellStarted }
func (CellCompletedV2) Kind() Kind  { return CellCompleted }
func (CellLateOutputV1) Kind() Kind { return CellLateOutput }

func (SessionOpenedV1) sealed()  {}
func (SessionClosedV1) sealed()  {}
func (KernelResetV1) sealed()    {}
func (KernelLostV1) sealed()     {}
func (KernelStoppedV1) sealed()  {}
func (CellStartedV1) sealed()    {}
func (CellCompletedV2) sealed()  {}
func (CellLateOutputV1) sealed() {}
