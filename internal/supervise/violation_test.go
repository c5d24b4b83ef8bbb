package supervise_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise"
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

// lost executes code that the worker does not survive.
func lost(t *testing.T, p *supervise.Process, code string) supervise.Exit {
	t.Helper()
	c, err := p.Execute(t.Context(), "e-lost", code)
	var l *supervise.Lost
	if !errors.As(err, &l) {
		t.Fatalf("Execute(%q) = %+v, %v; want *Lost", code, c, err)
	}
	select {
	case <-p.Done():
	case <-t.Context().Done():
		t.Fatal("the worker did not end")
	}
	return l.Exit
}

// TestViolationInvalidates: each breach ends connection and generation at once, and
// the cause says which it was.
func TestViolationInvalidates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code, cites, says string
	}{
		{"garbage", "CP-005 CP-008", "read frame"},
		{"zero-frame", "CP-005 CP-008", "0"},
		{"huge-frame", "CP-005 CP-008", "limit"},
		{"half-frame", "CP-008 CP-135", "did not come in time"},
		{"other-generation", "CP-006 CP-008", "generation"},
		{"other-id", "CP-008", `"e-other"`},
		{"yield", "CP-025", "without an accepted wait"},
		{"hello-again", "CP-008", "hello"},
		{"host-message", "CP-008", "shutdown"},
		{"closes", "CP-008", "closed its connection"},
		{"over-budget", "CP-009", "65536"},
		{"seq-gap", "CP-141", "output 2"},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			t.Attr("requirement", tt.cites)
			t.Parallel()
			sp, _ := hostile(t, "")
			sp.Timing.Body = 200 * time.Millisecond
			p := start(t, sp)
			exit := lost(t, p, tt.code)
			if exit.Cause.Kind != event.CauseProtocol || !strings.Contains(exit.Cause.Text, tt.says) {
				t.Errorf("cause %+v, want protocol and %q", exit.Cause, tt.says)
			}
			if _, err := p.Execute(t.Context(), "e-2", "echo x"); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("a dead worker took an operation: %v", err)
			}
			if p.Phase() != worker.Dead {
				t.Errorf("phase %s", p.Phase())
			}
			noneMarked(t, sp.Runtime)
		})
	}
}

// TestSecondOperationIsRefused: the first goes on undisturbed.
func TestSecondOperationIsRefused(t *testing.T) {
	t.Attr("requirement", "CP-020")
	t.Parallel()
	sp, s := hostile(t, "")
	asked := make(chan func(wire.HostReply), 1)
	s.answer = func(_ context.Context, _ wire.HostRequest, reply func(wire.HostReply)) { asked <- reply }
	p := start(t, sp)
	first := make(chan string, 1)
	go func() { first <- result(t, p, "e-1", "request-as e-1") }()
	reply := <-asked
	_, err := p.Execute(t.Context(), "e-2", "echo second")
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "e-1") {
		t.Errorf("second Execute: %v", err)
	}
	reply(wire.HostReply{Value: wire.Raw("1")})
	if got := <-first; got != "ok" {
		t.Errorf("first cell: %q", got)
	}
	if got := result(t, p, "e-3", "echo third"); got != "third" {
		t.Errorf("third cell: %q", got)
	}
}

// TestRequestLimit: the 129th request of a cell is refused, the cell goes on, and
// the next cell has its own 128.
func TestRequestLimit(t *testing.T) {
	t.Attr("requirement", "CP-009 CP-134")
	t.Parallel()
	sp, s := hostile(t, "")
	p := start(t, sp)
	for _, id := range []string{"e-1", "e-2"} {
		codes := strings.Fields(result(t, p, id, "requests 130"))
		if n := len(slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return c != "ok" })); n != 128 {
			t.Errorf("%s: %d ok", id, n)
		}
		if n := len(slices.DeleteFunc(codes, func(c string) bool { return c != "request_limit" })); n != 2 {
			t.Errorf("%s: %d request_limit", id, n)
		}
	}
	if got := p.Counters().RefusedOver; got != 4 {
		t.Errorf("RefusedOver = %d", got)
	}
	if len(s.requests) != 256 {
		t.Errorf("the sink saw %d", len(s.requests))
	}
}

// TestLateReplyIsDiscarded: a reply to an ended cell is counted and reaches nobody;
// its request's context has ended with the cell.
func TestLateReplyIsDiscarded(t *testing.T) {
	t.Attr("requirement", "CP-023")
	t.Parallel()
	sp, s := hostile(t, "")
	type question struct {
		scope context.Context
		reply func(wire.HostReply)
	}
	asked := make(chan question, 1)
	s.answer = func(ctx context.Context, _ wire.HostRequest, reply func(wire.HostReply)) {
		asked <- question{ctx, reply}
	}
	p := start(t, sp)
	result(t, p, "e-1", "request-and-end")
	q := <-asked
	<-q.scope.Done()
	q.reply(wire.HostReply{Value: wire.Raw(`"late"`)})
	q.reply(wire.HostReply{Value: wire.Raw(`"later"`)})
	if got := p.Counters().LateReplies; got != 1 {
		t.Errorf("LateReplies = %d, want 1", got)
	}
	// A reply that had been sent would be the next message the worker reads.
	if got := result(t, p, "e-2", "echo clean"); got != "clean" {
		t.Errorf("next cell: %q", got)
	}
}

// TestRequestOfEndedExecution: a request in the name of an execution that is not
// running is refused, and does not reach the sink.
func TestRequestOfEndedExecution(t *testing.T) {
	t.Attr("requirement", "CP-041 CP-131")
	t.Parallel()
	sp, s := hostile(t, "")
	p := start(t, sp)
	if got := result(t, p, "e-2", "request-as e-1"); got != "scope_expired" {
		t.Errorf("reply %q", got)
	}
	if len(s.requests) != 0 || p.Counters().RefusedExpired != 1 {
		t.Errorf("sink saw %v, counters %+v", s.requests, p.Counters())
	}
}

// TestUnsendableReply: a value that the protocol has no room for becomes an error
// reply, and the worker lives.
func TestUnsendableReply(t *testing.T) {
	t.Attr("requirement", "CP-009")
	t.Parallel()
	sp, s := hostile(t, "")
	s.answer = func(_ context.Context, _ wire.HostRequest, reply func(wire.HostReply)) {
		reply(wire.HostReply{Value: wire.Raw(`"` + strings.Repeat("x", wire.MaxFrame) + `"`)})
	}
	p := start(t, sp)
	if got := result(t, p, "e-1", "request-as e-1"); got != "limit_exceeded" {
		t.Errorf("reply %q", got)
	}
}

// TestSlowRequestInvalidatesNothing: a host that takes its time costs no worker.
func TestSlowRequestInvalidatesNothing(t *testing.T) {
	t.Attr("requirement", "CP-135")
	t.Parallel()
	sp, s := hostile(t, "")
	sp.Timing.Body = 20 * time.Millisecond
	sp.Timing.Shutdown = 20 * time.Millisecond
	s.answer = func(_ context.Context, _ wire.HostRequest, reply func(wire.HostReply)) {
		// Longer than every deadline of this worker but the start's.
		time.AfterFunc(300*time.Millisecond, func() { reply(wire.HostReply{Value: wire.Raw("null")}) })
	}
	p := start(t, sp)
	if got := result(t, p, "e-1", "request-as e-1"); got != "ok" {
		t.Errorf("reply %q", got)
	}
}

// TestLateOutputKeepsItsID: text that arrives after its cell ended is given on with
// the id of that cell.
func TestLateOutputKeepsItsID(t *testing.T) {
	t.Attr("requirement", "CP-143")
	t.Parallel()
	sp, s := hostile(t, "")
	p := start(t, sp)
	result(t, p, "e-1", "late-output")
	result(t, p, "e-2", "echo x") // the late text was sent before this answer
	if got := s.text("e-1"); got != "afterwards" {
		t.Errorf("late text of e-1: %q", got)
	}
	if got := s.text("e-2"); got != "" {
		t.Errorf("text of e-2: %q", got)
	}
}

// TestNothingIsSentOutOfBounds: code that is too long is refused by name, limit and
// size before anything is sent, and the worker is as before.
func TestNothingIsSentOutOfBounds(t *testing.T) {
	t.Attr("requirement", "CP-009")
	t.Parallel()
	sp, _ := hostile(t, "")
	p := start(t, sp)
	_, err := p.Execute(t.Context(), "e-1", strings.Repeat("x", wire.MaxCode+1))
	if fault.CodeOf(err) != fault.LimitExceeded || !strings.Contains(err.Error(), "262144") {
		t.Errorf("Execute: %v", err)
	}
	_, err = p.Execute(t.Context(), "bad id", "x")
	if fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("Execute with a bad id: %v", err)
	}
	// Within the code limit, but over the frame's once escaped.
	_, err = p.Execute(t.Context(), "e-2", strings.Repeat("\x01", wire.MaxCode))
	if fault.CodeOf(err) != fault.LimitExceeded {
		t.Errorf("Execute of an over-size frame: %v", err)
	}
	if p.Phase() != worker.Ready {
		t.Errorf("phase %s", p.Phase())
	}
	if got := result(t, p, "e-3", "echo fine"); got != "fine" {
		t.Errorf("result %q", got)
	}
}
