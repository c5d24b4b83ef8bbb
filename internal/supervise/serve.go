package supervise

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// leaveTime is how long a worker that closed its connection has for its exit to be
// seen, so that the exit is the stated cause, before it is killed for the closing.
const leaveTime = 250 * time.Millisecond

// serve accepts until the child it started says a valid hello, or anything else on
// its connection, which goes to verdict; then it reads until the connection ends.
func (p *Process) serve(listener *net.UnixListener, token string, verdict chan<- error) {
	c, err := p.accept(listener)
	if err != nil {
		// Only a closed listener fails here, and it was closed for a reason that is known.
		return
	}
	conn := newConn(c, p.spec.Session, p.spec.Generation, p.spec.Timing.Body)
	hello, err := p.greet(conn, token)
	if err != nil {
		verdict <- err
		_ = c.Close()
		return
	}
	// From here on nobody else can connect, and the path is gone (CP-003).
	_ = listener.Close()
	p.memory = watchMemory(p.reports.pid)
	p.conn, p.hello = conn, hello
	p.ready = time.Since(p.began)
	p.mu.Lock()
	next, err := worker.Next(p.phase, worker.Greeted)
	p.phase = next
	p.mu.Unlock()
	if err != nil {
		// The start was given up meanwhile.
		_ = c.Close()
		return
	}
	close(p.greeted)
	p.read()
}

// accept returns the connection of the child the shim started (CP-003).
func (p *Process) accept(listener *net.UnixListener) (*net.UnixConn, error) {
	for {
		c, err := listener.AcceptUnix()
		if err != nil {
			return nil, err
		}
		<-p.reports.started
		pid, uid, err := peerOf(c)
		if err == nil && pid == p.reports.pid && int(uid) == os.Getuid() {
			return c, nil
		}
		p.counters.peers.Add(1)
		_ = c.Close()
	}
}

// greet reads and checks the hello.
func (p *Process) greet(conn *conn, token string) (wire.Hello, error) {
	// Start has a timer of its own; this later one ends the read when nobody else can.
	if err := conn.net.SetReadDeadline(p.began.Add(p.spec.Timing.Start + time.Second)); err != nil {
		return wire.Hello{}, err
	}
	m, err := conn.read()
	if err != nil {
		return wire.Hello{}, err
	}
	if err := conn.net.SetReadDeadline(time.Time{}); err != nil {
		return wire.Hello{}, err
	}
	hello, ok := m.(wire.Hello)
	if !ok {
		return wire.Hello{}, fault.New(fault.InvalidRequest, "greet worker", "", "%s came before hello", m.MessageKind())
	}
	if subtle.ConstantTimeCompare([]byte(hello.Token), []byte(token)) != 1 {
		return wire.Hello{}, fault.New(fault.Unauthorized, "greet worker", "", "the token is not the one that was handed out")
	}
	if hello.Role != string(p.spec.Role) {
		return wire.Hello{}, fault.New(fault.InvalidRequest, "greet worker", "",
			"the role is %q where %q was started", hello.Role, p.spec.Role)
	}
	hello.Token = ""
	return hello, nil
}

// read dispatches messages until the connection ends or breaks the protocol.
func (p *Process) read() {
	for {
		m, err := p.conn.read()
		if err == nil {
			err = p.dispatch(m)
		}
		if err == nil {
			continue
		}
		if !peerGone(err) {
			p.breakOff(protocolCause("%v", err), true)
			return
		}
		p.mu.Lock()
		p.phase, _ = worker.Next(p.phase, worker.Broken)
		expected := p.reason != nil
		p.mu.Unlock()
		if expected {
			// A ladder or a stop is on its way and sees to the rest in its own time.
			return
		}
		leaving := time.NewTimer(leaveTime)
		defer leaving.Stop()
		select {
		case <-p.reports.exited:
		case <-p.reports.ended:
		case <-p.killing:
		case <-leaving.C:
			p.breakOff(protocolCause("the worker closed its connection and went on running"), true)
		}
		return
	}
}

// peerGone reports whether err is how the end of the peer looks, which says
// nothing against the peer.
func peerGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// dispatch takes one message. An error is a protocol violation.
func (p *Process) dispatch(m wire.Message) error {
	switch m := m.(type) {
	case wire.Output:
		return p.takeOutput(m)
	case wire.Completed:
		return p.takeCompleted(m)
	case wire.Names:
		if p.running(m.ID) == nil {
			return violation("names of %q, which is not running", m.ID)
		}
		p.spec.Sink.Names(m)
	case wire.Artifact:
		if p.running(m.ID) == nil {
			return violation("an artifact of %q, which is not running", m.ID)
		}
		p.spec.Sink.Artifact(m)
	case wire.HostRequest:
		p.takeRequest(m)
	default:
		return violation("a worker does not send %s", m.MessageKind())
	}
	return nil
}

func violation(format string, args ...any) error {
	return fault.New(fault.InvalidRequest, "read from worker", "", format, args...)
}

// running returns the operation in flight when it has this id.
func (p *Process) running(id string) *operation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.op != nil && p.op.id == id {
		return p.op
	}
	return nil
}

// takeOutput holds the running cell to its budget and to the order of its chunks.
// Text of a cell that has ended is the sink's to file (CP-143).
func (p *Process) takeOutput(m wire.Output) error {
	if op := p.running(m.ID); op != nil {
		if m.Seq != op.liveSeq {
			return violation("output %d of %q came where %d was due", m.Seq, m.ID, op.liveSeq)
		}
		op.liveSeq++
		op.liveBytes += int64(len(m.Text))
		if op.liveBytes > wire.MaxOutputText {
			return violation("live output of %q is over the limit of %d bytes", m.ID, wire.MaxOutputText)
		}
	}
	p.spec.Sink.Output(m)
	return nil
}

func (p *Process) takeCompleted(m wire.Completed) error {
	if m.Cell != nil && m.Cell.Status == "yielded" {
		// CP-025: no wait can have been accepted, as nothing here accepts one.
		return violation("%q completed as yielded without an accepted wait", m.ID)
	}
	hooks := p.spec.Role == worker.Hooks
	if (m.Cell != nil && hooks) || (m.Hook != nil && !hooks) {
		return violation("%q completed in a form that a %s worker has not", m.ID, p.spec.Role)
	}
	p.mu.Lock()
	op := p.op
	if op == nil || op.id != m.ID {
		p.mu.Unlock()
		return violation("%q completed, which is not running", m.ID)
	}
	next, err := worker.Next(p.phase, worker.Ended)
	if err != nil {
		p.mu.Unlock()
		return err
	}
	p.phase, p.op = next, nil
	var rung worker.Rung
	if op.ladder != nil {
		rung = op.ladder.rung
	}
	p.mu.Unlock()

	result := Completion{Cell: m.Cell, Hook: m.Hook, Failed: m.Failed, Rung: rung}
	if c := m.Cell; c != nil && (c.TruncatedBytes > 0 || op.liveBytes+textBytes(c.Output) > spoolFrom) {
		result.Spool, result.SpoolErr = openSpool(p.dir, op.id)
	}
	p.finish(op, result)
	return nil
}

func textBytes(records []wire.OutputRecord) (n int64) {
	for _, r := range records {
		n += int64(len(r.Text))
	}
	return n
}

// takeRequest passes a host request on, unless its execution has ended or has
// asked too often.
func (p *Process) takeRequest(m wire.HostRequest) {
	p.mu.Lock()
	op := p.op
	if op != nil && op.id != m.ExecutionID {
		op = nil
	}
	over := false
	var scope context.Context
	if op != nil {
		op.requests++
		over = op.requests > wire.MaxRequests
		if op.scope == nil {
			op.scope, op.release = context.WithCancel(context.Background())
		}
		scope = op.scope
	}
	p.mu.Unlock()
	refuse := func(code fault.Code, text string) {
		p.answer(wire.HostReply{ID: m.ID, ExecutionID: m.ExecutionID, Code: string(code), Text: text})
	}
	switch {
	case op == nil:
		p.counters.expired.Add(1)
		refuse(fault.ScopeExpired, "execution "+m.ExecutionID+" is not running")
	case over:
		p.counters.over.Add(1)
		refuse(fault.RequestLimit, "a cell may make 128 host requests")
	default:
		p.spec.Sink.Request(scope, m, p.replier(op, m))
	}
}

// replier makes the function that answers one request: the first call counts, and
// only while the request's cell runs (CP-023).
func (p *Process) replier(op *operation, m wire.HostRequest) func(wire.HostReply) {
	used := make(chan struct{}, 1)
	return func(r wire.HostReply) {
		select {
		case used <- struct{}{}:
		default:
			return
		}
		if p.running(op.id) != op {
			p.counters.late.Add(1)
			return
		}
		r.ID, r.ExecutionID = m.ID, m.ExecutionID
		p.answer(r)
	}
}

// answer sends a reply. One that the protocol has no room for becomes an error
// reply that says so: the cell must not wait for ever.
func (p *Process) answer(r wire.HostReply) {
	broken, err := p.conn.send(context.Background(), r, 0)
	if err != nil && !broken {
		r.Value, r.Code, r.Text = nil, string(codeOr(err, fault.Internal)), "the reply cannot be sent: "+err.Error()
		broken, err = p.conn.send(context.Background(), r, 0)
	}
	if broken {
		p.breakOff(protocolCause("the worker stopped reading: %v", err), true)
	}
}

// codeOr is the fault code in err's chain, or code when there is none.
func codeOr(err error, code fault.Code) fault.Code {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code
	}
	return code
}
