package host

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/internal/export"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/session"
)

const (
	// requestTime is how long a request may take when nobody says (VD-009).
	requestTime = 30 * time.Second
	// maxRequestTime bounds what a caller may ask for.
	maxRequestTime = time.Hour
	// maxAnswer is the largest answer, in bytes (VD-058).
	maxAnswer = 8<<20 - 64<<10
)

// Request implements control.Verbs.
func (c *Core) Request(ctx context.Context, r control.RequestCall) (control.RequestAnswer, error) {
	if r.Plan {
		return encodeAnswer(request.MakePlan(r.Ops, c.registry), false)
	}
	parsed, err := request.Parse(r.Ops)
	if err != nil {
		return control.RequestAnswer{}, parseFault(err)
	}
	options := request.Options{Presentation: r.Presentation, PerOp: r.PerOp, Format: r.Format, FormatPerOp: r.FormatPerOp}
	if err := options.Check(len(parsed.Ops)); err != nil {
		return control.RequestAnswer{}, err
	}
	caller, err := c.requestCaller(ctx, r)
	if err != nil {
		return control.RequestAnswer{}, err
	}
	done, err := c.flight(ctx, r.Session)
	if err != nil {
		return control.RequestAnswer{}, err
	}
	defer done()
	var sink *export.Sink
	if r.SaveTo != "" {
		if sink, err = export.Reserve(filepath.Join(c.dirs.root, "exports"), r.SaveTo); err != nil {
			return control.RequestAnswer{}, err
		}
	}
	limit := requestTime
	if r.TimeoutMS > 0 {
		limit = min(time.Duration(r.TimeoutMS)*time.Millisecond, maxRequestTime)
	} else if longest := c.longest(parsed); longest > 0 {
		limit = longest + 5*time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	outcomes := c.dispatcher.Request(ctx, caller, parsed)
	present(parsed, outcomes, options, c.registry.FullOnly)
	if sink != nil {
		return saved(sink, request.Assemble(parsed, outcomes))
	}
	return c.fit(parsed, outcomes)
}

// saved answers a manifest in place of the results. When the file cannot be written
// the answer still says what was done.
func saved(sink *export.Sink, answer request.Answer) (control.RequestAnswer, error) {
	m, err := sink.Save(answer.Results)
	if err != nil {
		return encodeAnswer(map[string]any{
			"ok": false, "status": request.Partial, "summary": answer.Summary, "results": export.Outcomes(answer.Results),
			"error": map[string]any{"kind": "unavailable", "code": fault.CodeOf(err), "message": err.Error()},
		}, true)
	}
	return encodeAnswer(map[string]any{"ok": true, "status": answer.Status, "summary": answer.Summary, "manifest": m}, answer.IsError())
}

// longest is the longest time that a verb of the request sets for itself, 0 when none
// does: a cell or a process may take as long as its own argument says.
func (c *Core) longest(r *request.Request) time.Duration {
	var longest time.Duration
	for i := range r.Ops {
		if v, ok := c.registry.Lookup(r.Ops[i].Tool); ok {
			longest = max(longest, v.Timeout)
		}
	}
	return longest
}

// requestCaller resolves who asks, once. A session that exists has a workspace of its
// own.
func (c *Core) requestCaller(ctx context.Context, r control.RequestCall) (dispatch.Caller, error) {
	workspace := r.Workspace
	if r.Session != "" {
		l, err := c.lane(ctx, r.Session)
		if err != nil {
			return dispatch.Caller{}, err
		}
		workspace = l.workspaceOf(workspace)
	}
	caller := c.caller(validActor(r.By), r.Session, workspace, r.Agent)
	caller.Identity.Visible, caller.Identity.Process = r.Visible, r.Process
	if caller.Identity.RequestID = r.RequestID; caller.Identity.RequestID == 0 {
		caller.Identity.RequestID = mintRequestID()
	}
	return caller, nil
}

// workspaceOf is the session's workspace, or otherwise while the session does not
// exist.
func (l *lane) workspaceOf(otherwise string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.Phase == session.Unopened {
		return otherwise
	}
	return l.state.Workspace
}

// mintRequestID is a random number that is not zero (VD-006).
func mintRequestID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails, by its contract
		if n := binary.BigEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}

func parseFault(err error) error {
	return fault.Wrap(err, fault.InvalidRequest, "read request", "").
		WithNext("mend the text at the position named; plan=true shows how it is read")
}

// present shortens successes for an agent, with one sample of the clock (VD-080), and
// writes them in the format asked for. Help stays as it is.
func present(r *request.Request, outcomes []request.Outcome, o request.Options, fullOnly func(string) bool) {
	p := request.Presenter{Now: time.Now(), FullOnly: fullOnly}
	for i := range outcomes {
		if outcomes[i].Done {
			p.Collect(outcomes[i].Result)
		}
	}
	for i := range outcomes {
		if !outcomes[i].Done || r.Ops[i].Help() {
			continue
		}
		if o.PresentationOf(i, r.Ops[i].Tool) == request.Agent {
			outcomes[i].Result = p.Present(outcomes[i].Result)
		}
		outcomes[i].Result = request.Render(outcomes[i].Result, o.FormatOf(i))
	}
}

// fit makes the envelope, and takes the largest results out of one that does not fit
// the frame.
func (c *Core) fit(r *request.Request, outcomes []request.Outcome) (control.RequestAnswer, error) {
	answer := request.Assemble(r, outcomes)
	for {
		out, err := encodeAnswer(&answer, answer.IsError())
		if err != nil || len(out.Body) <= maxAnswer {
			return out, err
		}
		largest, size := -1, 0
		for i := range answer.Results {
			if e := &answer.Results[i]; e.OK {
				if n := len(e.Result.AppendJSON(nil)); n > size {
					largest, size = i, n
				}
			}
		}
		if largest < 0 {
			return out, fault.New(fault.LimitExceeded, "answer request", "", "the answer has %d bytes without any result", len(out.Body))
		}
		v, known := c.registry.Lookup(r.Ops[largest].Tool)
		answer.Withdraw(largest, size, maxAnswer, known && v.Effect != "read")
	}
}

func encodeAnswer(v any, failed bool) (control.RequestAnswer, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return control.RequestAnswer{}, fault.Wrap(err, fault.Internal, "answer request", "")
	}
	return control.RequestAnswer{Body: b, Failed: failed}, nil
}
