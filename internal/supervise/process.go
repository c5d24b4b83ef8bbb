package supervise

import (
	"context"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// Process is one generation: a worker from its spawn to the end of its last
// descendant. Its methods may be called from any goroutine.
type Process struct {
	done chan struct{}
}

// Counters are what a Process has discarded or refused so far.
type Counters struct {
	LateReplies    int64 // replies to a host request whose cell had ended
	WrongPeers     int64 // connections closed for their credentials
	RefusedOver    int64 // host requests over the limit of a cell
	RefusedExpired int64 // host requests of an execution that was not running
	Ignored        int64 // interrupts that named an operation that was not running
}

// Start spawns a worker and waits for its valid hello. The error is a fault:
// unavailable when the interpreter cannot be run or said no hello in time (with
// both diagnostic tails in its text), limit_exceeded when the socket path is too
// long. When ctx ends first the child is killed and Start returns. After Start has
// returned, ctx no longer matters. Nothing is left running on error.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	return nil, fault.New(fault.Unavailable, "start worker", spec.Session, "not built yet")
}

// Execute runs code as the one foreground operation and returns when the worker
// has completed it or is dead with all descendants (then the error is a *Lost).
// While another operation runs the error is a fault conflict and nothing was sent;
// code or id out of bounds is limit_exceeded or invalid_request, nothing sent. When
// ctx ends the interrupt ladder is climbed and Execute still returns only at the
// operation's end, at most Timing.Bound() later (plus the reaping of descendants).
func (p *Process) Execute(ctx context.Context, id, code string) (Completion, error) {
	return Completion{}, fault.New(fault.Unavailable, "execute", id, "not built yet")
}

// Invoke is Execute for a hook worker; Completion.Hook or Failed is set.
func (p *Process) Invoke(ctx context.Context, id, slot string, input wire.Raw) (Completion, error) {
	return Completion{}, fault.New(fault.Unavailable, "invoke", id, "not built yet")
}

// Interrupt climbs the ladder until the named operation has ended and says which
// rung was needed and whether the worker, and with it the namespace, lives on. Two
// interrupts of one operation share a ladder. An operation that is not running is
// not_found. When ctx ends Interrupt returns early; the ladder goes on.
func (p *Process) Interrupt(ctx context.Context, id string) (worker.Rung, bool, error) {
	return "", false, fault.New(fault.Unavailable, "interrupt", id, "not built yet")
}

// Stop asks the worker to leave, kills it and all descendants after
// Timing.Shutdown or when ctx ends, and returns when nothing is left. A running
// Execute returns *Lost with the cause shutdown. Stopping twice is harmless.
func (p *Process) Stop(ctx context.Context) Exit { return Exit{} }

// Kill ends the worker and all descendants at once; it does not wait (see Done).
func (p *Process) Kill() {}

// Done is closed when the worker and all its descendants are gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how the worker ended; it waits for Done.
func (p *Process) Exit() Exit { return Exit{} }

// PID is Python's process id.
func (p *Process) PID() int { return 0 }

// ShimPID is the process id of Python's parent.
func (p *Process) ShimPID() int { return 0 }

// Hello is what the worker said of itself, without the token.
func (p *Process) Hello() wire.Hello { return wire.Hello{} }

// Started is when the shim was spawned and how long spawn to ready took.
func (p *Process) Started() (time.Time, time.Duration) { return time.Time{}, 0 }

// Phase is where the worker's life stands now.
func (p *Process) Phase() worker.Phase { return worker.Dead }

// Counters returns a snapshot.
func (p *Process) Counters() Counters { return Counters{} }

// Tails are the last bytes of raw stdout and stderr so far.
func (p *Process) Tails() (stdout, stderr event.Tail) { return event.Tail{}, event.Tail{} }

// Probe runs the interpreter once and returns its real path (behind launcher
// scripts) and version; an interpreter that is missing or older than 3.11 is a
// fault with a hint. Give the path it found to Spec.Python: it starts faster.
func Probe(ctx context.Context, python string) (event.Python, error) {
	return event.Python{}, fault.New(fault.Unavailable, "probe python", python, "not built yet")
}

// Unpack writes the embedded worker below root, once per content hash, compiles it
// with the interpreter, checks what is there already, and returns the directory
// for Spec.Source. Concurrent calls, also by other processes, are safe.
func Unpack(ctx context.Context, root, python string) (string, error) {
	return "", fault.New(fault.Unavailable, "unpack worker", root, "not built yet")
}

// Sweep ends what workers of a dead core left behind: processes that carry the
// marker of runtime in their environment, and private directories below it. Only
// the holder of the data directory's lock may call it, before it starts workers.
func Sweep(ctx context.Context, runtime string) (killed []int, err error) {
	return nil, fault.New(fault.Unavailable, "sweep workers", runtime, "not built yet")
}

// ShimCommand is the hidden command under which main must call ShimMain before
// anything else; Spec.Shim is the binary's path followed by it.
const ShimCommand = "worker-shim"

// ShimMain is the life of Python's persistent parent. args is what follows
// ShimCommand. It returns the process exit status.
func ShimMain(args []string) int { return 1 }
