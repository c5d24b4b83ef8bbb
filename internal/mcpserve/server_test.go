package mcpserve_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/mcpserve"
)

func TestResultsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	m := newMemory()
	cs := connect(t, mcpserve.Options{Dial: dialled(m)}, nil)
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*jsonschema.Resolved{}
	for _, tool := range list.Tools {
		b, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		if schemas[tool.Name], err = s.Resolve(nil); err != nil {
			t.Fatal(err)
		}
	}
	m.notice = &control.Notice{Kind: "namespace_lost", Text: "gone", Names: []string{"x"}}
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"execute", map[string]any{"code": "print hello"}},
		{"execute", map[string]any{"code": "raise ValueError"}},
		{"execute", map[string]any{}},
		{"execute", map[string]any{"code": 3}},
		{"execute", map[string]any{"code": "", "colour": "red"}},
		{"interrupt", nil},
		{"interrupt", map[string]any{"cell": 1}},
		{"status", nil},
		{"status", map[string]any{"cell": "cell_000000000001"}},
		{"status", map[string]any{"cell": "cell_nowhere"}},
		{"status", map[string]any{"offset": 3}},
	} {
		_, res := call(t, cs, c.tool, c.args)
		if err := schemas[c.tool].Validate(res.StructuredContent); err != nil {
			t.Errorf("%s %v: %v", c.tool, c.args, err)
		}
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	m := newMemory()
	cs := connect(t, mcpserve.Options{Dial: dialled(m)}, nil)

	g, res := call(t, cs, "execute", map[string]any{"code": "print hello\nprint there", "timeout_ms": 1500})
	if res.IsError || g.Status != "ok" || g.Cell != "cell_000000000001" {
		t.Errorf("result %+v, isError %v", g, res.IsError)
	}
	if diff := cmp.Diff([]event.Output{{Stream: "stdout", Text: "hello\nthere\n"}}, output(t, g)); diff != "" {
		t.Error(diff)
	}
	sent := m.requests()[0]
	if !strings.HasPrefix(sent.Session, "mcp-project-x-") || g.Session != sent.Session {
		t.Errorf("session %q, told %q", sent.Session, g.Session)
	}
	if sent.TimeoutMS != 1500 || sent.Workspace != "/srv/project x" {
		t.Errorf("sent %+v", sent)
	}
	if diff := cmp.Diff(event.Actor{Kind: "client", Name: "tester", Surface: "mcp"}, sent.By); diff != "" {
		t.Error(diff)
	}
	if _, res := call(t, cs, "execute", map[string]any{"code": "print 2", "session": "other"}); res.IsError {
		t.Error(words(res))
	}
	if s := m.requests()[1].Session; s != "other" {
		t.Errorf("session %q", s)
	}
}

func TestTwoConnectionsDoNotShareASession(t *testing.T) {
	t.Parallel()
	t.Attr("row", "W12")
	o := mcpserve.Options{Workspace: "/srv/x"}
	if a, b := mcpserve.New(o).Session(), mcpserve.New(o).Session(); a == b {
		t.Errorf("both have %q", a)
	}
}

func TestRaisedErrorIsAResultAndOnlyAFaultIsAnError(t *testing.T) {
	t.Parallel()
	m := newMemory()
	cs := connect(t, mcpserve.Options{Dial: dialled(m)}, nil)
	g, res := call(t, cs, "execute", map[string]any{"code": "raise ValueError: no"})
	if res.IsError || g.Status != "error" || g.Error == nil || *g.Error != "ValueError: no" {
		t.Errorf("%+v, isError %v", g, res.IsError)
	}
	m.refuse = fault.New(fault.StoreFull, "start cell", "s", "no space left").WithNext("free some space")
	g, res = call(t, cs, "execute", map[string]any{"code": "print x"})
	if !res.IsError || g.Status != "not_run" || g.Fault == nil || g.Fault.Code != fault.StoreFull {
		t.Errorf("%+v, isError %v", g, res.IsError)
	}
	if text := words(res); !strings.Contains(text, "nothing ran") || !strings.Contains(text, "next: free some space") {
		t.Errorf("text %q", text)
	}
	if n := len(m.requests()); n != 1 {
		t.Errorf("%d cells were sent", n)
	}
}

func TestEmptySessionIsRefused(t *testing.T) {
	t.Parallel()
	m := newMemory()
	cs := connect(t, mcpserve.Options{Dial: dialled(m)}, nil)
	for tool, args := range map[string]map[string]any{
		"execute":   {"code": "print x", "session": ""},
		"interrupt": {"session": ""},
		"status":    {"session": ""},
	} {
		g, res := call(t, cs, tool, args)
		if !res.IsError || g.Fault == nil || g.Fault.Code != fault.InvalidRequest || !strings.Contains(words(res), "leave session out") {
			t.Errorf("%s: %+v, isError %v", tool, g, res.IsError)
		}
	}
	if n := len(m.requests()); n != 0 {
		t.Errorf("%d cells were sent", n)
	}
}

func TestNoticeStandsFirst(t *testing.T) {
	t.Parallel()
	t.Attr("row", "W9")
	m := newMemory()
	m.notice = &control.Notice{Kind: "namespace_lost", Text: "The namespace of g-1 is gone.", Names: []string{"df"}}
	cs := connect(t, mcpserve.Options{Dial: dialled(m)}, nil)
	g, res := call(t, cs, "execute", map[string]any{"code": "flood 100000"})
	if g.Notice == nil || g.Notice.Kind != "namespace_lost" || !cmp.Equal(g.Notice.Names, []string{"df"}) {
		t.Errorf("notice %+v", g.Notice)
	}
	if !strings.HasPrefix(words(res), "[notice: The namespace of g-1 is gone.]\n[cut by reeve: ") {
		t.Errorf("text begins %.200q", words(res))
	}
	if g, _ := call(t, cs, "execute", map[string]any{"code": "print x"}); g.Notice != nil {
		t.Error("the notice was said twice")
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	cs := connect(t, mcpserve.Options{Dial: dialled(newMemory())}, nil)
	_, res := call(t, cs, "execute", map[string]any{"code": "image"})
	var found *mcp.ImageContent
	for _, c := range res.Content {
		if i, ok := c.(*mcp.ImageContent); ok {
			found = i
		}
	}
	if found == nil || string(found.Data) != picture || found.MIMEType != "image/png" {
		t.Errorf("content %+v", res.Content)
	}
	r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "reeve://artifact/" + strings.Repeat("a", 64)})
	if err != nil || string(r.Contents[0].Blob) != picture {
		t.Errorf("resource %+v, %v", r, err)
	}
}

func TestCutOutputIsReadBackInExactBytes(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-141")
	m := newMemory()
	cs := connect(t, mcpserve.Options{Dial: dialled(m)}, nil)
	g, _ := call(t, cs, "execute", map[string]any{"code": "print head é\nflood 500\nprint tail"})
	if g.BytesTotal != 513 || g.TruncatedBytes != 300 {
		t.Fatalf("total %d, truncated %d", g.BytesTotal, g.TruncatedBytes)
	}
	c := m.cells["cell_000000000001"]
	for _, step := range []int64{1, 7, 64, 1000} {
		var back []byte
		var gaps []control.Gap
		for offset, n := int64(0), 0; ; n++ {
			if n > 600 {
				t.Fatalf("step %d does not come to an end", step)
			}
			g, _ := call(t, cs, "status", map[string]any{"cell": g.Cell, "offset": offset, "limit": max(step, 2)})
			var o struct {
				Offset, Bytes, Total int64
				Next                 *int64 `json:"next_offset"`
				Gap                  *control.Gap
				Lossy                bool
				Text                 string
			}
			if err := json.Unmarshal(g.Output, &o); err != nil {
				t.Fatal(err)
			}
			if o.Total != 513 || o.Lossy || int64(len(o.Text)) != o.Bytes {
				t.Fatalf("range %+v", o)
			}
			back = append(back, o.Text...)
			if o.Next == nil {
				break
			}
			if at := o.Offset + o.Bytes; *o.Next != at {
				gaps = append(gaps, control.Gap{From: at, To: *o.Next})
			}
			offset = *o.Next
		}
		want := append(append([]byte{}, c.bytes[:100]...), c.bytes[400:]...)
		if string(back) != string(want) {
			t.Errorf("step %d: %d bytes differ from the %d kept", step, len(back), len(want))
		}
		if diff := cmp.Diff([]control.Gap{{From: 100, To: 400}}, gaps); diff != "" {
			t.Errorf("step %d: %s", step, diff)
		}
	}
	r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "reeve://cell/cell_000000000001/output?offset=5&limit=1"})
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Contents[0].Blob)+r.Contents[0].Text != string(c.bytes[5:6]) {
		t.Errorf("resource %+v", r.Contents[0])
	}
	if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "reeve://cell/cell_nowhere/output"}); err == nil {
		t.Error("no error for a cell that is not there")
	}
}

func TestProgressOnlyWithTokenAndStrictlyRising(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M7")
	for _, token := range []any{nil, "a", 7} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var seen []*mcp.ProgressNotificationParams
			m := newMemory()
			cs := connect(t, mcpserve.Options{Dial: dialled(m)}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, r.Params)
				},
			})
			p := &mcp.CallToolParams{Name: "execute", Arguments: map[string]any{"code": "print step 1\nqueue\nwait"}}
			if token != nil {
				p.SetProgressToken(token)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := cs.CallTool(t.Context(), p); err != nil {
					t.Error(err)
				}
			}()
			begun := time.Now()
			time.Sleep(time.Minute)
			if _, res := call(t, cs, "interrupt", nil); res.IsError {
				t.Error(words(res))
			}
			<-done
			mu.Lock()
			defer mu.Unlock()
			if token == nil {
				if len(seen) > 0 {
					t.Errorf("%d messages without a token", len(seen))
				}
				return
			}
			if want := int(time.Since(begun) / (10 * time.Second)); len(seen) < want {
				t.Errorf("%d messages in a minute, promised are %d", len(seen), want)
			}
			last := -1.0
			for _, s := range seen {
				if s.Progress <= last {
					t.Errorf("progress %v after %v", s.Progress, last)
				}
				last = s.Progress
				if !strings.Contains(s.Message, "step 1") || !strings.Contains(s.Message, "queued behind") {
					t.Errorf("message %q", s.Message)
				}
			}
		})
	}
}

func TestCancelledCallInterruptsItsCellOnly(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M5 M6")
	m := newMemory()
	started := make(chan struct{})
	cs := connect(t, mcpserve.Options{Dial: dialled(m), Progress: time.Millisecond}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if strings.Contains(r.Params.Message, "ready") {
				select {
				case started <- struct{}{}:
				default:
				}
			}
		},
	})
	other := make(chan got, 1)
	go func() {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute", Arguments: map[string]any{"code": "wait", "session": "other"}})
		if err != nil {
			t.Error(err)
			close(other)
			return
		}
		other <- decode(t, res)
	}()
	ctx, cancel := context.WithCancel(t.Context())
	p := &mcp.CallToolParams{Name: "execute", Arguments: map[string]any{"code": "print ready\nwait"}}
	p.SetProgressToken("x")
	go func() { <-started; cancel() }()
	if _, err := cs.CallTool(ctx, p); err == nil {
		t.Fatal("the cancelled call was answered")
	}
	select {
	case <-m.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the cell of the cancelled call goes on")
	}
	if g, _ := call(t, cs, "status", nil); len(g.Cells) != 1 || g.Cells[0].Status != "interrupted" {
		t.Errorf("%+v", g.Cells)
	}
	select {
	case g := <-other:
		t.Fatalf("the other call ended too: %+v", g)
	default:
	}
	if g, _ := call(t, cs, "interrupt", map[string]any{"session": "other"}); !g.Found {
		t.Error("the other cell is not there")
	}
	if g := <-other; g.Status != "interrupted" {
		t.Errorf("%+v", g)
	}
}

func TestCancelIsTerminalWhenTheCellDoesNotYield(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M5")
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := mcpserve.New(mcpserve.Options{Dial: dialled(m), Workspace: "/srv/x"})
		var answer *mcp.CallToolResult
		finished := make(chan time.Time, 1)
		s.Protocol().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				res, err := next(ctx, method, req)
				if r, ok := res.(*mcp.CallToolResult); ok {
					answer = r
					finished <- time.Now()
				}
				return res, err
			}
		})
		ours, theirs := mcp.NewInMemoryTransports()
		ss, err := s.Protocol().Connect(t.Context(), ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "execute", Arguments: map[string]any{"code": "ignore"}})
		if err == nil {
			t.Error("the cancelled call was answered")
		}
		if took := (<-finished).Sub(begun); took > 9*time.Second {
			t.Errorf("the call was open for %s", took)
		}
		if g := decode(t, answer); !answer.IsError || g.Status != "unknown" || g.Cell != "cell_000000000001" {
			t.Errorf("%+v", g)
		}
		cs.Close()
		ss.Wait()
	})
}
