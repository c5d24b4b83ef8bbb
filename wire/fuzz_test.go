package wire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/wire"
)

// FuzzDecode holds Decode to its contract on any bytes: one *fault.Error or a
// message that can be sent and comes back equal, and nothing accepted that a
// strict JSON reader of other make refuses.
func FuzzDecode(f *testing.F) {
	for _, v := range payloads(f) {
		if b := v.bytes(f); len(b) < 4096 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, err := wire.Decode(payload)
		if err != nil {
			if _, ok := err.(*fault.Error); !ok {
				t.Fatalf("not a fault: %v", err)
			}
			return
		}
		if !jsontext.Value(payload).IsValid() {
			t.Fatal("accepted, though not strict JSON")
		}
		again(t, e)
	})
}

// again sends e and reads it back.
func again(t interface{ Fatalf(string, ...any) }, e wire.Envelope) {
	frame, err := wire.Append(nil, e)
	if fault.HasCode(err, fault.LimitExceeded) {
		return // short escapes of the original may be longer in ours
	}
	if err != nil {
		t.Fatalf("what was decoded cannot be sent: %v", err)
	}
	got, err := wire.Decode(frame[4:])
	if err != nil {
		t.Fatalf("what was sent cannot be decoded: %v\n%s", err, frame[4:])
	}
	if d := cmp.Diff(e, got); d != "" {
		t.Fatalf("(-sent +received)\n%s", d)
	}
}

// FuzzValue compares the reader of free-form values with jsontext: they differ
// only in depth and in numbers that no double holds.
func FuzzValue(f *testing.F) {
	const before, after = `{"version":1,"session_id":"s","generation":"g","message":{"kind":"invoke","id":"h","slot":"attention.plan","input":`, `}}`
	for _, v := range payloads(f) {
		if v.Payload == nil || len(*v.Payload) > 2048 {
			continue
		}
		if _, value, ok := strings.Cut(*v.Payload, `"kind":"ok","value":`); ok {
			f.Add([]byte(strings.TrimSuffix(value, "}}}")))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := wire.Decode([]byte(before + string(value) + after))
		valid := jsontext.Value(value).IsValid()
		switch {
		case err == nil && !valid:
			t.Fatal("accepted, though not strict JSON")
		case err == nil:
			if in := e.Message.(wire.Invoke).Input; !bytes.Equal(in, bytes.Trim(value, " \t\r\n")) {
				t.Fatalf("kept %q of %q", in, value)
			}
		case valid && !fault.HasCode(err, fault.LimitExceeded) && !overRange(value):
			t.Fatalf("refused, though strict JSON: %v", err)
		}
	})
}

// overRange reports whether sound JSON has a number outside the range of a double.
func overRange(value []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		token, err := d.ReadToken()
		if err == io.EOF {
			return false
		}
		if err != nil {
			return true
		}
		if token.Kind() == '0' {
			if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
				return true
			}
		}
	}
}

// Any message of sound values survives, whatever its texts hold.
func TestAnyMessageRoundTrips(t *testing.T) {
	t.Attr("requirement", "CP-005 CP-006 CP-007")
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[A-Za-z0-9_.-]{1,128}`)
		value := func() wire.Raw {
			raw, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Float64())).Draw(t, "value"))
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		text := rapid.String()
		e := wire.Envelope{SessionID: id.Draw(t, "session"), Generation: id.Draw(t, "generation")}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			e.Message = wire.Execute{ID: id.Draw(t, "id"), Code: text.Draw(t, "code")}
		case 1:
			e.Message = wire.HostReply{ID: id.Draw(t, "id"), ExecutionID: id.Draw(t, "execution"), Value: value()}
		case 2:
			e.Message = wire.HostReply{ID: id.Draw(t, "id"), ExecutionID: id.Draw(t, "execution"), Code: "denied", Text: text.Draw(t, "text")}
		case 3:
			trace := text.Draw(t, "error")
			e.Message = wire.Completed{ID: id.Draw(t, "id"), Cell: &wire.CellResult{
				Status: "error", Error: &trace, TruncatedBytes: rapid.Int64Range(0, 1<<53-1).Draw(t, "cut"),
				Output: []wire.OutputRecord{{Stream: "stdout", Text: text.Draw(t, "out")}},
			}}
		case 4:
			names := rapid.SliceOfN(rapid.StringN(1, -1, -1), 1, 20)
			e.Message = wire.Names{ID: id.Draw(t, "id"), Added: names.Draw(t, "added"), Removed: names.Draw(t, "removed")}
		default:
			data := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "data")
			e.Message = wire.Artifact{ID: id.Draw(t, "id"), ArtifactID: id.Draw(t, "artifact"), MIME: "image/png", Size: int64(len(data)), SHA256: hex64, Data: data}
		}
		again(t, e)
	})
}
