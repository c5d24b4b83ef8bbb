// Package control is the one way into a running core: an HTTP+JSON API with
// server-sent events on a Unix socket, used alike by the command line, the MCP
// front end, the TUI and the console.
//
// Invariants: the Go interface Service, the server and the client say the same
// thing (one test drives the core directly and through the socket); every failure
// is the JSON envelope with a fault code; a reader that stops reading never slows
// a writer. The package does not know how the core does anything.
package control

import (
	"context"
	"io"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/worker"
)

// ExecuteRequest runs code in a session's workbench, opening the session first
// when it does not exist.
type ExecuteRequest struct {
	Session   string      `json:"session"`
	Code      string      `json:"code"`
	TimeoutMS int64       `json:"timeout_ms"` // 0: none
	Workspace string      `json:"workspace"`  // used only when the session is opened by this call
	By        event.Actor `json:"by"`
	Detach    bool        `json:"detach"` // answer as soon as the cell has started
}

// CellResult is a cell as a caller sees it: the seed's members and reeve's.
// Status "running" and "queued" occur only for detached or listed cells.
type CellResult struct {
	Cell           string           `json:"cell"`
	Session        string           `json:"session"`
	Generation     string           `json:"generation"`
	Execution      string           `json:"execution"`
	Status         string           `json:"status"`
	Output         []event.Output   `json:"output"`
	TruncatedBytes int64            `json:"truncated_bytes"`
	BytesTotal     int64            `json:"bytes_total"`
	Error          *string          `json:"error"`
	Cause          *event.Cause     `json:"cause"`
	Artifacts      []event.Artifact `json:"artifacts"`
	Spool          *event.Spool     `json:"spool"`
	ElapsedMS      int64            `json:"elapsed_ms"`
	QueuedMS       int64            `json:"queued_ms"`
	CPUMS          *int64           `json:"cpu_ms"`
	StartedAtMS    int64            `json:"started_at_ms"`
	// Notice says what the reader must know before the output: a namespace that was
	// lost, a timeout that was reached. It is never part of text that can be cut.
	Notice *Notice `json:"notice"`
	// Unrecorded: the outcome could not be committed; the result is delivered all the
	// same (CP-140).
	Unrecorded bool `json:"unrecorded"`
}

// Notice is said once, in the first reply after what it tells.
type Notice struct {
	Kind       string       `json:"kind"` // namespace_lost | namespace_stopped | namespace_reset | timeout | interrupted | unattributed_output
	Text       string       `json:"text"` // whole sentences, with what to do
	Generation string       `json:"generation"`
	Previous   string       `json:"previous"`
	Cause      *event.Cause `json:"cause"`
	Names      []string     `json:"names"` // that existed, sorted
	NamesMore  int          `json:"names_more"`
}

// CellProgress is one step of a running cell as seen live.
type CellProgress struct {
	Cell    string `json:"cell"`
	Kind    string `json:"kind"` // queued | started | output | heartbeat | interrupting
	Stream  string `json:"stream"`
	Text    string `json:"text"`
	Ahead   int    `json:"ahead"` // cells before this one in the queue
	Elapsed int64  `json:"elapsed_ms"`
	Rung    string `json:"rung"`
}

// Cell is a row of a list.
type Cell struct {
	Cell        string      `json:"cell"`
	Session     string      `json:"session"`
	Execution   string      `json:"execution"`
	Generation  string      `json:"generation"`
	Status      string      `json:"status"`
	StartedAtMS int64       `json:"started_at_ms"`
	ElapsedMS   int64       `json:"elapsed_ms"`
	BytesTotal  int64       `json:"bytes_total"`
	Code        string      `json:"code"` // first line, at most 120 characters
	By          event.Actor `json:"by"`
}

// CellDetail is one cell whole.
type CellDetail struct {
	Result     CellResult  `json:"result"`
	Code       string      `json:"code"`
	CodeSHA256 string      `json:"code_sha256"`
	By         event.Actor `json:"by"`
	Late       string      `json:"late"` // printed after it ended
	EventID    int64       `json:"event_id"`
}

// OutputRange is a piece of the retained output bytes.
type OutputRange struct {
	Offset int64 // of the first byte, counted in the whole output
	Total  int64 // bytes the cell printed
	Body   io.ReadCloser
	Gap    *Gap // set when bytes between two kept parts were dropped
}

// Gap names dropped bytes: [From, To) of the whole output.
type Gap struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// InterruptReport tells how far an interrupt had to go and what it cost.
type InterruptReport struct {
	Cell          string      `json:"cell"`
	Found         bool        `json:"found"` // a running or queued cell of that name
	Rung          worker.Rung `json:"rung"`  // the one that ended it; empty when it was still queued
	NamespaceKept bool        `json:"namespace_kept"`
	ElapsedMS     int64       `json:"elapsed_ms"`
	Text          string      `json:"text"`
}

// Session is a row of a list and the answer to show.
type Session struct {
	Session      string      `json:"session"`
	Workspace    string      `json:"workspace"`
	State        string      `json:"state"`  // idle | running | starting | stopped | closed | quarantined
	Reason       string      `json:"reason"` // why it is in that state
	SinceMS      int64       `json:"since_ms"`
	Generation   string      `json:"generation"` // empty when no worker lives
	Python       string      `json:"python"`
	Cells        int64       `json:"cells"`
	Queue        int         `json:"queue"`
	Names        int         `json:"names"`
	OpenedAtMS   int64       `json:"opened_at_ms"`
	LastAtMS     int64       `json:"last_at_ms"`
	OpenedBy     event.Actor `json:"opened_by"`
	Head         int64       `json:"head"` // events in its stream
	RestartsLeft int         `json:"restarts_left"`
}

// Namespace lists what a live generation holds, or what the last one held when
// none lives and no reply has told of its end yet.
type Namespace struct {
	Session    string   `json:"session"`
	Generation string   `json:"generation"`
	Names      []string `json:"names"`
	Live       bool     `json:"live"`
}

// Process is a row of ps: everything the core has started, with its owner.
type Process struct {
	PID        int    `json:"pid"`
	Kind       string `json:"kind"` // core | shim | worker | descendant
	Session    string `json:"session"`
	Generation string `json:"generation"`
	Command    string `json:"command"`
	RSSBytes   int64  `json:"rss_bytes"`
	CPUMS      int64  `json:"cpu_ms"`
	StartedMS  int64  `json:"started_at_ms"`
}

// Status is the core in one page.
type Status struct {
	Version      string  `json:"version"`
	PID          int     `json:"pid"`
	Dir          string  `json:"dir"`
	Socket       string  `json:"socket"`
	StartedAtMS  int64   `json:"started_at_ms"`
	Epoch        int64   `json:"epoch"`
	Sessions     int     `json:"sessions"`
	Running      int     `json:"running"`
	Queued       int     `json:"queued"`
	Workers      int     `json:"workers"`
	Events       int64   `json:"events"`
	Store        Storage `json:"store"`
	Isolation    string  `json:"isolation"`
	Unrecorded   int64   `json:"unrecorded"` // outcomes that could not be committed since start
	LastRecovery string  `json:"last_recovery"`
}

// Storage is the health of the store.
type Storage struct {
	Engine      string `json:"engine"` // "sqlite 3.54.1"
	Synchronous string `json:"synchronous"`
	State       string `json:"state"` // ok | full | failed
	Reason      string `json:"reason"`
	WALBytes    int64  `json:"wal_bytes"`
}

// Usage is what du answers, in bytes.
type Usage struct {
	Events         int64 `json:"events"`
	DatabaseBytes  int64 `json:"database_bytes"`
	WALBytes       int64 `json:"wal_bytes"`
	Artifacts      int64 `json:"artifacts"`
	ArtifactBytes  int64 `json:"artifact_bytes"`
	PayloadBytes   int64 `json:"payload_bytes"`
	RuntimeBytes   int64 `json:"runtime_bytes"`
	AvailableBytes int64 `json:"available_bytes"`
}

// EventRow is a journal event as shown.
type EventRow struct {
	ID      int64  `json:"id"`
	Stream  string `json:"stream"`
	Seq     int64  `json:"seq"`
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	AtMS    int64  `json:"at_ms"`
	Digest  string `json:"digest"`
	Payload Raw    `json:"payload"`
}

// Raw is JSON kept as it is stored.
type Raw []byte

// MarshalJSON returns r itself, null when it is empty.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of b.
func (r *Raw) UnmarshalJSON(b []byte) error { *r = append((*r)[:0], b...); return nil }

// EventQuery selects events. Zero members do not restrict.
type EventQuery struct {
	AfterID int64     `json:"after_id"`
	Stream  string    `json:"stream"`
	Session string    `json:"session"`
	Kinds   []string  `json:"kinds"`
	Not     []string  `json:"not"`
	Failed  bool      `json:"failed"`
	Grep    string    `json:"grep"`
	Since   time.Time `json:"since"`
	Max     int       `json:"max"`    // of rows returned; 0 means 200
	Tail    bool      `json:"tail"`   // the last Max that match, in order, instead of the first
	Follow  bool      `json:"follow"` // go on with new ones until ctx ends; Max then bounds only a Tail
}

// VerifyReport is what verify found. Code is empty when all is good.
type VerifyReport struct {
	Streams   int64    `json:"streams"`
	Events    int64    `json:"events"`
	Anchors   int64    `json:"anchors"`   // heads compared with signed notes
	Artifacts int64    `json:"artifacts"` // whose bytes were compared, each as often as events name it
	Code      string   `json:"code"`      // "" | altered | truncated | unavailable
	Stream    string   `json:"stream"`    // where
	Seq       int64    `json:"seq"`
	Text      string   `json:"text"`
	Elapsed   int64    `json:"elapsed_ms"`
	Warnings  []string `json:"warnings"`
}

// AnchorReport tells what was signed and where the note lies.
type AnchorReport struct {
	Path    string `json:"path"`
	Key     string `json:"key"` // verifier key, to be kept elsewhere
	Streams int64  `json:"streams"`
	Events  int64  `json:"events"`
	AtMS    int64  `json:"at_ms"`
}

// Cells is running code and reading what it did.
type Cells interface {
	// Execute runs a cell and returns when it has ended (or, detached, when it has
	// started). A cell that raised is a result, not an error. progress may be nil;
	// it is called from one goroutine, in order. When ctx ends the cell is
	// interrupted.
	Execute(ctx context.Context, r ExecuteRequest, progress func(CellProgress)) (CellResult, error)
	Cell(ctx context.Context, cell string) (CellDetail, error) // a unique prefix is enough
	ListCells(ctx context.Context, session string, max int) ([]Cell, error)
	Interrupt(ctx context.Context, cell string, by event.Actor) (InterruptReport, error) // a cell handle or a session id
	Output(ctx context.Context, cell string, offset int64) (OutputRange, error)
}

// Sessions is the life of sessions and their namespaces.
type Sessions interface {
	Session(ctx context.Context, id string) (Session, error)
	ListSessions(ctx context.Context) ([]Session, error)
	Resume(ctx context.Context, id string, by event.Actor) (Session, error) // start its worker now
	CloseSession(ctx context.Context, id string, by event.Actor) (Session, error)
	Namespace(ctx context.Context, session string) (Namespace, error)
	ListNamespaces(ctx context.Context) ([]Namespace, error)
	ResetNamespace(ctx context.Context, session string, by event.Actor) (Session, error)
}

// Records is reading and proving the journal.
type Records interface {
	Events(ctx context.Context, q EventQuery, row func(EventRow) error) error
	Artifact(ctx context.Context, sha256 string) (io.ReadCloser, error)
	Verify(ctx context.Context) (VerifyReport, error)
	Anchor(ctx context.Context) (AnchorReport, error)
	Usage(ctx context.Context) (Usage, error)
}

// Lifecycle is watching and stopping the core itself.
type Lifecycle interface {
	Status(ctx context.Context) (Status, error)
	Processes(ctx context.Context) ([]Process, error)
	Shutdown(ctx context.Context, by event.Actor) error // returns when it has been accepted
}

// Service is the whole API; the core implements it and so does Client.
type Service interface {
	Cells
	Sessions
	Records
	Lifecycle
	Verbs
}
