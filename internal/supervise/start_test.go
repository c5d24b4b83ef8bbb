package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/internal/supervise"
	_ "github.com/reeve-run/reeve/internal/supervise/shim/early" // this binary is also the shim
	"github.com/reeve-run/reeve/wire"
	"github.com/reeve-run/reeve/worker"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if unpacked.root != "" {
			if err := os.RemoveAll(unpacked.root); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
		os.Exit(code)
	}))
}

// sink keeps what a worker sent.
type sink struct {
	mu        sync.Mutex
	output    []wire.Output
	names     []wire.Names
	artifacts []wire.Artifact
	requests  []wire.HostRequest
	live      chan wire.Output // when set, each output goes there too
	answer    func(ctx context.Context, r wire.HostRequest, reply func(wire.HostReply))
}

func (s *sink) Output(o wire.Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.output = append(s.output, o)
	if s.live != nil {
		s.live <- o
	}
}

func (s *sink) Names(n wire.Names) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, n)
}

func (s *sink) Artifact(a wire.Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.artifacts = append(s.artifacts, a)
}

func (s *sink) Request(ctx context.Context, r wire.HostRequest, reply func(wire.HostReply)) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	answer := s.answer
	s.mu.Unlock()
	if answer != nil {
		answer(ctx, r, reply)
		return
	}
	reply(wire.HostReply{Value: wire.Raw("null")})
}

// text is what came live for one execution.
func (s *sink) text(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, o := range s.output {
		if o.ID == id {
			b.WriteString(o.Text)
		}
	}
	return b.String()
}

// spec is a workbench of the given source directory.
func spec(t testing.TB, source string) (supervise.Spec, *sink) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The usual place of test files makes socket paths too long.
	runtime, err := os.MkdirTemp("", "rv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := os.ReadDir(runtime)
		if err != nil || len(left) > 0 {
			t.Errorf("private directories left: %v %v", left, err)
		}
		if err := os.RemoveAll(runtime); err != nil {
			t.Error(err)
		}
	})
	s := &sink{}
	return supervise.Spec{
		Session: "s-1", Generation: "g-1", Role: worker.Workbench,
		Python: reevetest.Python(t).Path, Source: source, Shim: []string{self, supervise.ShimCommand},
		Dir: t.TempDir(), Env: os.Environ(), Runtime: runtime,
		Timing: worker.DefaultTiming(), Sink: s,
	}, s
}

// hostile is a spec of the worker in testdata that misbehaves as asked.
func hostile(t testing.TB, mode string) (supervise.Spec, *sink) {
	t.Helper()
	dir, err := filepath.Abs("testdata/hostile")
	if err != nil {
		t.Fatal(err)
	}
	sp, s := spec(t, dir)
	sp.Env = append(sp.Env, "HOSTILE="+mode)
	return sp, s
}

// start starts a worker that the test's end stops.
func start(t testing.TB, sp supervise.Spec) *supervise.Process {
	t.Helper()
	p, err := supervise.Start(t.Context(), sp)
	if err != nil {
		var failed *supervise.StartError
		if errors.As(err, &failed) {
			t.Logf("exit: %+v", failed.Exit)
		}
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		p.Stop(ctx)
	})
	return p
}

// result is the text of a completed cell's result record.
func result(t testing.TB, p *supervise.Process, id, code string) string {
	t.Helper()
	c, err := p.Execute(t.Context(), id, code)
	if err != nil {
		t.Fatalf("Execute(%q): %v", code, err)
	}
	if c.Cell != nil && c.Cell.Error != nil {
		t.Errorf("the cell's error: %s", *c.Cell.Error)
	}
	if c.Cell == nil || c.Cell.Status != "ok" {
		t.Fatalf("Execute(%q) = %+v", code, c.Cell)
	}
	for _, r := range c.Cell.Output {
		if r.Stream == "result" {
			return r.Text
		}
	}
	return ""
}

func TestStartExecuteStop(t *testing.T) {
	t.Parallel()
	sp, _ := hostile(t, "")
	p := start(t, sp)
	if got := result(t, p, "e-1", "echo hello"); got != "hello" {
		t.Errorf("result %q", got)
	}
	if got := result(t, p, "e-2", "echo again"); got != "again" {
		t.Errorf("result %q", got)
	}
	exit := p.Stop(t.Context())
	if exit.Cause.Kind != "shutdown" || exit.Cause.Code == nil || *exit.Cause.Code != 0 {
		t.Errorf("exit %+v", exit)
	}
	_, took := p.Started()
	t.Logf("ready after %s", took)
}
