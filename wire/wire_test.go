package wire_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/wire"
)

func ptr(s string) *string { return &s }

var hex64 = strings.Repeat("0f", 32)

// messages holds each kind in each of its forms.
func messages() map[string]wire.Message {
	return map[string]wire.Message{
		"hello of a workbench":  wire.Hello{Token: hex64, Role: "workbench", Skills: ptr(hex64)},
		"hello of a hook":       wire.Hello{Token: hex64, Role: "hooks", Revision: ptr(hex64), Slots: wire.HookSlots},
		"execute":               wire.Execute{ID: "e-1", Code: "print('<é&\U0001f600>')\n\x00\x1f\x7f\"\\"},
		"invoke":                wire.Invoke{ID: "h-1", Slot: "attention.plan", Input: wire.Raw(`{"event_id":1}`)},
		"host request":          wire.HostRequest{ID: "r.1", ExecutionID: "e-1", Method: "runtime.wait", Request: wire.Raw(`{"n":1.50,"method":"runtime.wait"}`)},
		"host reply, ok":        wire.HostReply{ID: "r.1", ExecutionID: "e-1", Value: wire.Raw(`{"b":9007199254740993,"a":[1e2, "\u00e9"]}`)},
		"host reply, null":      wire.HostReply{ID: "r.1", ExecutionID: "e-1", Value: wire.Raw(`null`)},
		"host reply, error":     wire.HostReply{ID: "r.1", ExecutionID: "e-1", Code: "not_found", Text: "no such thing"},
		"completed, cell":       wire.Completed{ID: "e-1", Cell: &wire.CellResult{Status: "ok", Output: []wire.OutputRecord{{"stdout", "a\n"}, {"result", "42"}}, TruncatedBytes: 7}},
		"completed, empty cell": wire.Completed{ID: "e-1", Cell: &wire.CellResult{Status: "yielded"}},
		"completed, raised":     wire.Completed{ID: "e-1", Cell: &wire.CellResult{Status: "error", Error: ptr("Traceback")}},
		"completed, hook":       wire.Completed{ID: "h-1", Hook: wire.Raw(`{"action":"allow"}`)},
		"completed, failed":     wire.Completed{ID: "e-2", Failed: ptr("busy with e-1")},
		"interrupt":             wire.Interrupt{ID: "e-1"},
		"shutdown":              wire.Shutdown{},
		"output":                wire.Output{ID: "e-1", Stream: "stderr", Text: "warn", Seq: 3},
		"names":                 wire.Names{ID: "e-1", Added: []string{"x", "größe"}, Removed: []string{"y"}},
		"artifact":              wire.Artifact{ID: "e-1", ArtifactID: "a-1", MIME: "image/svg+xml", Size: 5, SHA256: hex64, Last: true, Data: []byte{0, 1, 2, 250, 255}},
	}
}

func frame(t *testing.T, m wire.Message) []byte {
	t.Helper()
	f, err := wire.Append(nil, wire.Envelope{SessionID: "root", Generation: "g-1", Message: m})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRoundTrip(t *testing.T) {
	t.Attr("requirement", "CP-005 CP-006 CP-007 CP-144")
	t.Parallel()
	for name, m := range messages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := frame(t, m)
			n, err := wire.Length([4]byte(f[:4]))
			if err != nil || n != len(f)-4 {
				t.Fatalf("Length = %d, %v; payload has %d bytes", n, err, len(f)-4)
			}
			got, err := wire.Decode(f[4:])
			if err != nil {
				t.Fatalf("Decode(%s): %v", f[4:], err)
			}
			want := wire.Envelope{SessionID: "root", Generation: "g-1", Message: m}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-sent +received)\n%s", d)
			}
		})
	}
}

// What arrives may not change when the reader's buffer is used again.
func TestDecodeCopies(t *testing.T) {
	t.Attr("requirement", "CP-007")
	t.Parallel()
	for name, m := range messages() {
		f := frame(t, m)
		got, err := wire.Decode(f[4:])
		if err != nil {
			t.Fatal(err)
		}
		clear(f)
		if d := cmp.Diff(m, got.Message, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-sent +received)\n%s", name, d)
		}
	}
}

func TestLength(t *testing.T) {
	t.Attr("requirement", "CP-005")
	t.Parallel()
	for n, want := range map[uint32]fault.Code{0: fault.InvalidRequest, 1: "", wire.MaxFrame: "", wire.MaxFrame + 1: fault.LimitExceeded, 1<<32 - 1: fault.LimitExceeded} {
		var h [4]byte
		binary.BigEndian.PutUint32(h[:], n)
		got, err := wire.Length(h)
		if fault.CodeOf(err) != want || err == nil && got != int(n) {
			t.Errorf("Length(%d) = %d, %v; want code %q", n, got, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Attr("requirement", "CP-006")
	t.Parallel()
	e := wire.Envelope{SessionID: "root", Generation: "g-2", Message: wire.Shutdown{}}
	if err := wire.Check(e, "root", "g-2"); err != nil {
		t.Error(err)
	}
	if err := wire.Check(e, "toor", "g-2"); !fault.HasCode(err, fault.InvalidRequest) {
		t.Errorf("other session: %v", err)
	}
	if err := wire.Check(e, "root", "g-1"); !fault.HasCode(err, fault.StaleGeneration) {
		t.Errorf("other generation: %v", err)
	}
}

func BenchmarkAppendExecute(b *testing.B) {
	e := wire.Envelope{SessionID: "root", Generation: "g-1", Message: wire.Execute{ID: "e-1", Code: "x = 1\nprint(x + 1)\n"}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = wire.Append(buf[:0], e)
	}
}

func BenchmarkDecode(b *testing.B) {
	large := wire.Completed{ID: "e-1", Cell: &wire.CellResult{Status: "ok", Output: []wire.OutputRecord{{"stdout", strings.Repeat("some line of output\n", 3000)}}}}
	list := wire.HostReply{ID: "r-1", ExecutionID: "e-1", Value: wire.Raw("[" + strings.Repeat(`{"name":"abc","size":12.5,"ok":true},`, 5000) + "null]")}
	for name, m := range map[string]wire.Message{
		"small": messages()["completed, cell"], "request": messages()["host request"], "output60k": large, "value190k": list,
	} {
		f, err := wire.Append(nil, wire.Envelope{SessionID: "root", Generation: "g-1", Message: m})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(f)))
			for b.Loop() {
				if _, err := wire.Decode(f[4:]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
