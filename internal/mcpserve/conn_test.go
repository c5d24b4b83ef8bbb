package mcpserve_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reeve-run/reeve/internal/mcpserve"
)

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// talk gives the front end in as its whole input and returns its whole output.
func talk(t *testing.T, m *memory, in string) string {
	t.Helper()
	var out bytes.Buffer
	s := mcpserve.New(mcpserve.Options{
		Dial: dialled(m), Workspace: "/srv/x",
		Log: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err := s.Run(t.Context(), io.NopCloser(strings.NewReader(in)), closer{&out}); err != nil {
		t.Log(err)
	}
	return out.String()
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// message is a JSON-RPC message; anything else fails the test.
type message struct {
	Version string           `json:"jsonrpc"`
	ID      *json.RawMessage `json:"id"`
	Method  string           `json:"method"`
	Params  json.RawMessage  `json:"params"`
	Result  json.RawMessage  `json:"result"`
	Error   *struct {
		Code    int
		Message string
	} `json:"error"`
}

func messages(t testing.TB, out string) []message {
	t.Helper()
	var all []message
	if out != "" && !strings.HasSuffix(out, "\n") {
		t.Fatalf("the last line is not ended: %.200q", out)
	}
	sc := bufio.NewScanner(strings.NewReader(out))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var m message
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			t.Fatalf("line %q: %v", sc.Text(), err)
		}
		kinds := 0
		for _, is := range []bool{m.Method != "", m.Result != nil, m.Error != nil} {
			if is {
				kinds++
			}
		}
		if m.Version != "2.0" || kinds != 1 {
			t.Fatalf("no JSON-RPC message: %s", sc.Text())
		}
		all = append(all, m)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestHostileLinesAreAnsweredAndTheNextOneIsRead(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M4")
	long := `{"jsonrpc":"2.0","id":1,"method":"ping","x":"` + strings.Repeat("a", 5<<20) + `"}`
	for _, line := range []string{
		"garbage", "{", "null", "3", `"x"`, "[]", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "{}",
		`{"jsonrpc":"1.0","id":9,"method":"ping"}`, `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`,
		`{"jsonrpc":"2.0","id":9,"method":"no/such"}`, `{"jsonrpc":"2.0","id":9,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"nope"}}`,
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[]}`,
		`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"reeve://cell/\u0000\"/output"}}`,
		`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":1e300,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `{"jsonrpc":"2.0","id":true,"method":"ping"}`,
		"\xff\xfe", "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"\xff\"}", long, strings.Repeat("[", 100000),
	} {
		out := messages(t, talk(t, newMemory(), hello+line+"\n"+`{"jsonrpc":"2.0","id":77,"method":"ping"}`+"\n"))
		if len(out) != 3 {
			t.Errorf("%.60q: %d messages, want hello, the refusal and the answer to the next line", line, len(out))
			continue
		}
		refused := 0
		answered := false
		for _, m := range out {
			if m.Error != nil {
				refused++
			}
			answered = answered || (m.ID != nil && string(*m.ID) == "77" && m.Result != nil)
		}
		if refused != 1 || !answered {
			t.Errorf("%.60q: %d refusals, next line answered: %v", line, refused, answered)
		}
	}
	out := messages(t, talk(t, newMemory(), `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`+"\n"))
	if len(out) != 1 || out[0].Error == nil || out[0].Error.Code != -32600 || !strings.Contains(out[0].Error.Message, "one message a line") {
		t.Errorf("a batch was answered by %+v", out)
	}
	// Nothing is owed for these.
	for _, line := range []string{
		"", "   ", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/none"}`, `{"jsonrpc":"2.0","id":5,"result":{}}`,
	} {
		out := messages(t, talk(t, newMemory(), hello+line+"\r\n"+`{"jsonrpc":"2.0","id":77,"method":"ping"}`+"\n"))
		if len(out) != 2 {
			t.Errorf("%q: %d messages", line, len(out))
		}
	}
}

func TestPanicIsAnsweredAndTheFrontEndGoesOn(t *testing.T) {
	t.Parallel()
	t.Attr("row", "M4")
	m := newMemory()
	cells := m.cells
	m.cells = nil // the next execute writes to a nil map
	out := messages(t, talk(t, m, hello+
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute","arguments":{"code":"print x"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"))
	m.cells = cells
	byID := map[string]message{}
	for _, o := range out {
		byID[string(*o.ID)] = o
	}
	if r := byID["1"]; !bytes.Contains(r.Result, []byte("panic in reeve")) || !bytes.Contains(r.Result, []byte(`"isError":true`)) {
		t.Errorf("the call was answered by %s %+v", r.Result, r.Error)
	}
	if byID["2"].Result == nil {
		t.Error("the next call was not answered")
	}
}

func TestWhatMustNotBeCutStandsBeforeTheOutput(t *testing.T) {
	t.Parallel()
	t.Attr("row", "W9")
	out := messages(t, talk(t, newMemory(), hello+
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute","arguments":{"code":"print <x>"}}}`+"\n"))
	var result struct {
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(out[1].Result, &result); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(result.Structured, []byte(`"output"`))
	for _, name := range []string{"status", "notice", "fault", "cell", "session", "generation", "truncated_bytes", "bytes_total", "error"} {
		if i := bytes.Index(result.Structured, []byte(fmt.Sprintf("%q:", name))); i < 0 || i > at {
			t.Errorf("%s stands at %d, output at %d in %s", name, i, at, result.Structured)
		}
	}
}

// A client that closes its end while a cell runs gets the answer if there soon is
// one, and the front end does not stay behind if there is none.
func TestEndOfInputWaitsOnlySoLong(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"print soon": 2, "ignore": 1} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			begun := time.Now()
			out := messages(t, talk(t, m, hello+fmt.Sprintf(
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute","arguments":{"code":%q}}}`+"\n", code)))
			if len(out) != want {
				t.Errorf("%s: %d messages, want %d", code, len(out), want)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%s: the front end stayed for %s", code, took)
			}
		})
	}
}

func FuzzInputLine(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute","arguments":{"code":"print x"},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"status","arguments":{"cell":"c","offset":1}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `[1]`, `{"jsonrpc":"2.0","id":1e400}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"reeve://cell/x/output?limit=9"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "wait") || strings.Contains(line, "ignore") || strings.Contains(line, "subscriptions") {
			return // such a call stays open, which is another test's matter
		}
		messages(t, talk(t, newMemory(), hello+line+"\n"))
	})
}

// A request is answered under its own id, by whatever kind of answer, and never
// with a code that means nothing.
func TestAnswersHaveTheIDAndACode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		id   string
		code int
	}{
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:              {"1.5", -32600},
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`: {"9007199254740993", -32600},
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:             {"null", -32600},
		`{"jsonrpc":"2.0","id":-3,"method":"ping"}`:               {"-3", 0},
		`{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}`: {"9007199254740991", 0},
		`{"jsonrpc":"2.0","id":"1.5","method":"ping"}`:            {`"1.5"`, 0},
		`{"jsonrpc":"2.0","id":"a","method":"no/such"}`:           {`"a"`, -32601},
	} {
		out := messages(t, talk(t, newMemory(), hello+line+"\n"))
		out = slices.DeleteFunc(out, func(m message) bool { return m.ID != nil && string(*m.ID) == "0" }) // of hello
		if len(out) != 1 || (out[0].Error == nil) != (want.code == 0) || out[0].Error != nil && out[0].Error.Code != want.code {
			t.Errorf("%s: %+v", line, out)
			continue
		}
		if id := out[0].ID; id == nil && want.id != "null" || id != nil && string(*id) != want.id {
			t.Errorf("%s: answered under %s", line, *id)
		}
	}
	early := `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"status","arguments":{}}}` + "\n"
	out := messages(t, talk(t, newMemory(), early))
	if len(out) != 1 || out[0].Error == nil || out[0].Error.Code != -32600 || string(*out[0].ID) != "4" {
		t.Errorf("a call before initialize: %+v", out)
	}
}
