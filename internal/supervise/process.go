package supervise

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise/shim"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// Process is one generation: a worker from its spawn to the end of its last
// descendant. Its methods may be called from any goroutine.
type Process struct {
	spec    Spec
	python  string // resolved interpreter
	dir     string // private directory
	socket  string // path of the socket, while there is one
	cmd     *exec.Cmd
	control *os.File // orders to the shim
	reports reports
	stdout  rawStream
	stderr  rawStream
	drains  sync.WaitGroup // of their two readers
	began   time.Time
	memory  memoryWatch

	// Set once before greeted is closed.
	conn  *conn
	hello wire.Hello
	ready time.Duration

	greeted chan struct{} // closed at a valid hello
	killing chan struct{} // closed when the kill was ordered
	done    chan struct{} // closed when nothing is left
	exit    Exit          // set before done is closed

	counters struct{ late, peers, over, expired, ignored atomic.Int64 }

	// mu guards what follows. Nothing that can block is done under it.
	mu     sync.Mutex
	phase  worker.Phase
	op     *operation
	reason *event.Cause // why reeve ended the worker; nil when it ended by itself
}

// operation is one execute or invoke in flight.
type operation struct {
	id     string
	ended  chan struct{} // closed when result and err are set
	result Completion
	err    error
	cpu    atomic.Int64 // processor time of the worker, in ns, just after the beginning

	// Guarded by Process.mu.
	ladder   *ladder
	requests int
	scope    context.Context // of its host requests, made with the first
	release  context.CancelFunc

	// Of the reader goroutine.
	liveBytes int64
	liveSeq   int64
}

// Counters are what a Process has discarded or refused so far.
type Counters struct {
	LateReplies    int64 // replies to a host request whose cell had ended
	WrongPeers     int64 // connections closed for their credentials
	RefusedOver    int64 // host requests over the limit of a cell
	RefusedExpired int64 // host requests of an execution that was not running
	Ignored        int64 // interrupts that named an operation that was not running
}

// Execute runs code as the one foreground operation and returns when the worker
// has completed it or is dead with all descendants (then the error is a *Lost).
// While another operation runs the error is a fault conflict and nothing was sent;
// code or id out of bounds is limit_exceeded or invalid_request, nothing sent. When
// ctx ends the interrupt ladder is climbed and Execute still returns only at the
// operation's end, at most Timing.Bound() later (plus the reaping of descendants).
func (p *Process) Execute(ctx context.Context, id, code string) (Completion, error) {
	return p.operate(ctx, "execute", id, wire.Execute{ID: id, Code: code})
}

// Invoke is Execute for a hook worker; Completion.Hook or Failed is set.
func (p *Process) Invoke(ctx context.Context, id, slot string, input wire.Raw) (Completion, error) {
	return p.operate(ctx, "invoke", id, wire.Invoke{ID: id, Slot: slot, Input: input})
}

func (p *Process) operate(ctx context.Context, verb, id string, m wire.Message) (Completion, error) {
	op := &operation{id: id, ended: make(chan struct{})}
	if err := p.begin(ctx, verb, op, m); err != nil {
		return Completion{}, err
	}
	select {
	case <-op.ended:
	case <-ctx.Done():
		p.climb(op)
		<-op.ended
	}
	return op.result, op.err
}

// begin makes op the running operation and sends m. An error means that nothing
// was sent and nothing has changed; a write that failed halfway is not an error
// here, it breaks the connection and the operation ends with it.
func (p *Process) begin(ctx context.Context, verb string, op *operation, m wire.Message) error {
	if err := p.conn.lock(ctx); err != nil {
		return fault.Wrap(err, fault.Cancelled, verb, op.id)
	}
	defer p.conn.unlock()
	if err := p.conn.encode(m); err != nil {
		return fault.Wrap(err, fault.CodeOf(err), verb, op.id)
	}
	p.mu.Lock()
	next, err := worker.Next(p.phase, worker.Began)
	if err != nil {
		running := p.op
		p.mu.Unlock()
		return refuseBegin(err, verb, op.id, running)
	}
	p.phase, p.op = next, op
	p.mu.Unlock()
	if err := p.conn.flush(); err != nil {
		p.breakOff(protocolCause("the worker stopped reading: %v", err), true)
	}
	// Read while the worker is already at work: the answer need not wait for it.
	if now, ok := cpuTime(p.reports.pid); ok {
		op.cpu.Store(int64(now))
	}
	return nil
}

func refuseBegin(err error, verb, id string, running *operation) error {
	f := fault.Wrap(err, fault.CodeOf(err), verb, id)
	if running != nil {
		f.Message = "operation " + running.id + " is still running"
		return f.WithNext("wait for %s or interrupt it", running.id).Retryable()
	}
	return f
}

// finish hands a reported result to whoever waits for op. The caller has taken op
// out of p under the lock.
func (p *Process) finish(op *operation, result Completion) {
	if now, ok := cpuTime(p.reports.pid); ok {
		var ms int64
		// An answer that was faster than the first reading took no time to speak of.
		if was := op.cpu.Load(); was > 0 {
			ms = max(0, (now - time.Duration(was)).Milliseconds())
		}
		result.CPUMS = &ms
	}
	op.result = result
	p.conclude(op)
}

func (p *Process) conclude(op *operation) {
	if op.release != nil {
		op.release()
	}
	close(op.ended)
}

// Stop asks the worker to leave, kills it and all descendants after
// Timing.Shutdown or when ctx ends, and returns when nothing is left. A running
// Execute returns *Lost with the cause shutdown, or its result when the worker
// reported one meanwhile. Stopping twice is harmless.
func (p *Process) Stop(ctx context.Context) Exit {
	first := p.quit(event.Cause{Kind: event.CauseShutdown, Text: "the worker was asked to leave"})
	ctx, cancel := context.WithTimeout(ctx, p.spec.Timing.Shutdown)
	defer cancel()
	if first {
		if broken, err := p.conn.send(ctx, wire.Shutdown{}, p.spec.Timing.Shutdown); broken || err != nil {
			// A worker that cannot be asked is not waited for.
			cancel()
		}
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		<-p.done
	}
	return p.exit
}

// quit moves to Stopping and reports whether it was the first to do so.
func (p *Process) quit(why event.Cause) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase == worker.Stopping || p.phase == worker.Dead {
		return false
	}
	p.phase, _ = worker.Next(p.phase, worker.Quit)
	p.reason = &why
	return true
}

// Kill ends the worker and all descendants at once; it does not wait (see Done).
func (p *Process) Kill() {
	p.breakOff(event.Cause{Kind: event.CauseShutdown, Text: "the worker was killed on request"}, true)
}

// breakOff invalidates the generation (CP-008): no operation begins any more, and
// with kill the worker and its descendants are killed now. The first reason stands.
func (p *Process) breakOff(why event.Cause, kill bool) {
	p.mu.Lock()
	if p.reason == nil && p.phase != worker.Dead {
		p.reason = &why
	}
	p.phase, _ = worker.Next(p.phase, worker.Broken)
	first := kill
	select {
	case <-p.killing:
		first = false
	default:
		if kill {
			close(p.killing)
		}
	}
	p.mu.Unlock()
	if first {
		p.order(shim.Kill)
	}
}

// order tells the shim. A shim that cannot be told has ended, which the owner sees.
func (p *Process) order(b byte) {
	_, _ = p.control.Write([]byte{b})
}

// Done is closed when the worker and all its descendants are gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how the worker ended; it waits for Done. Whoever takes it first owns
// its Spool.
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

// PID is Python's process id.
func (p *Process) PID() int { return p.reports.pid }

// ShimPID is the process id of Python's parent.
func (p *Process) ShimPID() int { return p.cmd.Process.Pid }

// Hello is what the worker said of itself, without the token.
func (p *Process) Hello() wire.Hello { return p.hello }

// Started is when the shim was spawned and how long spawn to ready took.
func (p *Process) Started() (time.Time, time.Duration) { return p.began, p.ready }

// Phase is where the worker's life stands now.
func (p *Process) Phase() worker.Phase {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase
}

// Counters returns a snapshot.
func (p *Process) Counters() Counters {
	return Counters{
		LateReplies:    p.counters.late.Load(),
		WrongPeers:     p.counters.peers.Load(),
		RefusedOver:    p.counters.over.Load(),
		RefusedExpired: p.counters.expired.Load(),
		Ignored:        p.counters.ignored.Load(),
	}
}

// Tails are the last bytes of raw stdout and stderr so far.
func (p *Process) Tails() (stdout, stderr event.Tail) {
	stdout, _ = p.stdout.since(0)
	stderr, _ = p.stderr.since(0)
	return stdout, stderr
}

// RawCount is how many bytes a worker's raw streams have carried.
type RawCount struct{ Stdout, Stderr int64 }

// Raw tells what the raw streams have carried after seen: everything that was
// written before the call, by the worker or by what it has started.
func (p *Process) Raw(seen RawCount) (now RawCount, stdout, stderr event.Tail) {
	p.stdout.pull()
	p.stderr.pull()
	stdout, now.Stdout = p.stdout.since(seen.Stdout)
	stderr, now.Stderr = p.stderr.since(seen.Stderr)
	return now, stdout, stderr
}
