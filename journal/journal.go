// Package journal is the durable record: append-only streams of events, each
// stream a hash chain, written by one declarative conditional batch at a time.
//
// Invariants:
//   - a Batch is all or nothing, and carries at least one event: nothing changes
//     without a trace;
//   - order is per stream, by sequence from 1; the store-wide event id is an
//     identity, not an order;
//   - what Commit acknowledged survives process death and power loss; when the
//     outcome is not known Commit says so (fault.Unknown) and the same batch ID,
//     sent again, either applies once or answers Replayed.
//
// The package is pure: it defines the seam, the chain rule and verification over
// an iterator. It does not know what the events mean, and knows no database;
// engines live below it (journal/sqlite, journal/journaltest). Shapes and rules
// are specified in docs/format/journal.md.
package journal

import (
	"context"
	"fmt"
	"time"
)

// Limits of what a store takes. Larger bytes belong in artifacts: a long write
// holds up every other writer.
const (
	MaxName    = 400      // bytes of a stream, kind, key, session, host or input id
	MaxBatchID = 200      // bytes
	MaxPayload = 8 << 20  // bytes of one payload or body
	MaxBatch   = 32 << 20 // bytes of all payloads and bodies of a batch
	MaxItems   = 10_000   // events, records, inputs and conditions of a batch together
	MaxCauses  = 256      // of one event
	MaxPage    = 1000     // rows of a page
)

// MaxID is the largest store-wide event id: 2^53-1, so that every JSON reader
// holds it exactly.
const MaxID = 1<<53 - 1

// Digest is a SHA-256 value.
type Digest [32]byte

// Ref names an event by its place.
type Ref struct {
	Stream string
	Seq    int64
}

// Event is what a caller appends. Payload is opaque here.
type Event struct {
	Kind    string
	Version int
	AtMS    int64 // wall clock of the decision, Unix milliseconds
	Causes  []Ref
	Payload []byte
}

// Stored is an event as the store holds it.
type Stored struct {
	ID     int64
	Stream string
	Seq    int64
	Event
	Batch  string // ID of the batch that wrote it
	Prev   Digest // digest of the event before it in the stream; zero for Seq 1
	Digest Digest
}

// AnyHead as the Head of an Append stands for wherever the stream ends when the
// batch is applied. It is for a stream that many sessions write beside their own,
// where nothing is decided from what the stream holds.
const AnyHead = -1

// Append adds events to a stream. Head is the sequence of the last event the
// caller has seen, 0 for an empty stream: compare-and-set. Or it is AnyHead.
type Append struct {
	Stream string
	Head   int64
	Events []Event
}

// Record is what must be found by key or by due time: receipts, waits, timers,
// activations, requests. In a batch, Rev 0 means that the record must not exist;
// any other Rev must equal the stored one, and the write raises it by one.
type Record struct {
	Kind    string
	Key     string
	Session string // owner, may be empty
	State   string
	Rev     int64
	DueMS   int64 // Unix milliseconds, 0 when it has no due time
	Body    []byte
}

// Input is delivered to a session's inbox, once per (To, ID); each one raises
// the inbox counter of To by one.
type Input struct {
	To   string
	ID   string
	Body []byte
}

// CondKind selects what a Cond compares.
type CondKind int

// The zero CondKind is invalid.
const (
	HeadIs  CondKind = iota + 1 // stream Key has head N
	InboxIs                     // inbox of session Key has counter N
	RevIs                       // record Key ("kind/key") has revision N
	Absent                      // record Key ("kind/key") does not exist
)

// Cond is checked in the same transaction as the write.
type Cond struct {
	Kind CondKind
	Key  string
	N    int64
}

// Lease is the right of a host to write a session. Epochs of a session only rise.
type Lease struct {
	Session string
	Host    string
	Epoch   int64
}

// Batch is the one unit of writing. One that appends at AnyHead also holds an Append
// with a definite head, or a Put, whose revision is compared: without either, the
// batch sent again would apply again.
type Batch struct {
	ID      string // identity of the intent, 1..200 bytes
	Lease   *Lease // nil only for outside input and operators
	If      []Cond
	Append  []Append
	Put     []Record
	Deliver []Input
}

// Result tells where the streams of the batch now end. FirstID is the id of the
// batch's first event; ids within a batch are consecutive, in the order given.
type Result struct {
	Heads    map[string]int64
	FirstID  int64
	Replayed bool
}

// Head is where a stream ends.
type Head struct {
	Stream string
	Seq    int64
	ID     int64
	Digest Digest
}

// Query selects records. Zero members do not restrict. Pages are keyset pages
// ordered by (Kind, Key), bytewise: pass the last key seen as After. A query that
// names no Kind passes "kind/key" of the last record instead.
type Query struct {
	Kind      string
	KeyPrefix string
	Session   string
	State     string
	DueByMS   int64
	After     string
	Max       int
}

// Store is the seam to a storage engine. journaltest.Run is the one statement
// of its semantics.
//
// Commit refuses with fault.Conflict (and a *ConflictError that names what moved),
// fault.StaleEpoch, fault.StoreFull, fault.Unavailable, fault.LimitExceeded or
// fault.InvalidRequest when nothing was written, and with fault.Unknown when it
// cannot tell. A batch whose ID already stands at (stream, Head+1) of its streams
// is answered Replayed with its first Result, before anything else is checked; the
// same ID with other events is refused as invalid_request. Only AtMS may differ. An
// Append at AnyHead has no place to look at: it is found through the others of its
// batch, and a batch without others is never answered Replayed; sent again it
// conflicts with the revision of its own Put.
// A context that ends before the write began cancels it; after that Commit waits.
//
// Readers never block the writer and hold no transaction open after returning. A
// page holds at most max rows and never more than MaxPage; it may be shorter than
// asked, so only an empty page is the end (see Stream, All, Records, AllHeads).
// Empty payloads and bodies read back as nil.
type Store interface {
	Commit(ctx context.Context, b Batch) (Result, error)
	Events(ctx context.Context, stream string, after int64, max int) ([]Stored, error)
	ByID(ctx context.Context, after int64, max int) ([]Stored, error) // all streams, by store-wide id
	Find(ctx context.Context, q Query) ([]Record, error)
	Heads(ctx context.Context, after string, max int) ([]Head, error) // streams by name, keyset page
	Inbox(ctx context.Context, session string, after int64, max int) ([]Delivered, error)
	Close() error
}

// Delivered is an Input with its place in the inbox.
type Delivered struct {
	N int64 // position, from 1
	Input
}

// Leaser is the part of an engine that hands out session ownership. Host leases
// expire by the store's clock, never the caller's.
type Leaser interface {
	Acquire(ctx context.Context, session string, h Host) (Lease, error) // free, own, or expired: epoch+1
	Renew(ctx context.Context, h Host) (time.Duration, error)           // fault.StaleEpoch when superseded
	Release(ctx context.Context, l Lease) error
}

// Host is one running core.
type Host struct {
	ID          string
	Incarnation int64         // rises at every start of the same ID
	TTL         time.Duration // 0: never expires (embedded)
}

// ConflictError says which condition of a batch did not hold. It is found by
// errors.As below a fault.Conflict.
type ConflictError struct {
	What CondKind
	Key  string
	Want int64
	Now  int64
}

func (e *ConflictError) Error() string {
	switch e.What {
	case HeadIs:
		return fmt.Sprintf("stream %q ends at %d, not at %d", e.Key, e.Now, e.Want)
	case InboxIs:
		return fmt.Sprintf("inbox of %q is at %d, not at %d", e.Key, e.Now, e.Want)
	case RevIs:
		return fmt.Sprintf("record %q has revision %d, not %d", e.Key, e.Now, e.Want)
	case Absent:
		return fmt.Sprintf("record %q exists with revision %d", e.Key, e.Now)
	default:
		return fmt.Sprintf("condition %d on %q", e.What, e.Key)
	}
}

// Info is what an engine says about itself, for status, du and doctor.
type Info struct {
	Engine       string // "sqlite 3.54.1", "memory"
	Synchronous  string // read back from the engine: "full"; empty when it has no disk
	State        string // ok | full | unavailable
	Problem      string // why State is not ok
	Events       int64
	Streams      int64
	PayloadBytes int64 // sum over all events
	FileBytes    int64 // main database file
	WALBytes     int64 // write-ahead log
	Migrations   []string
	// StartCheck tells what was checked when the store was opened: none (it was
	// closed in order), quick or full.
	StartCheck string
	// Foreign counts changes by other processes that were noticed since the start.
	Foreign int64
}

// States of a store.
const (
	StateOK          = "ok"
	StateFull        = "full"        // no space: reads work, writes are refused and tried again
	StateUnavailable = "unavailable" // the disk failed: the engine reopens by itself
)

// Informer is the part of an engine that tells about itself.
type Informer interface {
	Info(ctx context.Context) (Info, error)
}
