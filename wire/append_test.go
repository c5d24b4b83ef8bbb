package wire_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/wire"
)

// A sender is stopped before it sends what the other side would refuse.
func TestAppendRefuses(t *testing.T) {
	t.Attr("requirement", "CP-005 CP-006 CP-009")
	t.Parallel()
	deep := wire.Raw(strings.Repeat("[", 94) + strings.Repeat("]", 94))
	for name, c := range map[string]struct {
		message wire.Message
		code    fault.Code
		field   string
	}{
		"no message":            {nil, fault.InvalidRequest, "envelope.message"},
		"identifier":            {wire.Interrupt{ID: "e 1"}, fault.InvalidRequest, "message.id"},
		"code over":             {wire.Execute{ID: "e-1", Code: strings.Repeat("x", wire.MaxCode+1)}, fault.LimitExceeded, "message.code"},
		"code not UTF-8":        {wire.Execute{ID: "e-1", Code: "\xff"}, fault.InvalidRequest, "message.code"},
		"frame over by escapes": {wire.Execute{ID: "e-1", Code: strings.Repeat("\x01", wire.MaxCode)}, fault.LimitExceeded, "payload"},
		"value absent":          {wire.HostReply{ID: "r", ExecutionID: "e"}, fault.InvalidRequest, "message.result.value"},
		"value not JSON":        {wire.HostReply{ID: "r", ExecutionID: "e", Value: wire.Raw("NaN")}, fault.InvalidRequest, "message.result.value"},
		"value then text":       {wire.HostReply{ID: "r", ExecutionID: "e", Value: wire.Raw(`1},"x":{`)}, fault.InvalidRequest, "message.result.value"},
		"value with duplicates": {wire.HostReply{ID: "r", ExecutionID: "e", Value: wire.Raw(`{"a":1,"a":2}`)}, fault.InvalidRequest, "message.result.value"},
		"value too deep":        {wire.HostReply{ID: "r", ExecutionID: "e", Value: deep}, fault.LimitExceeded, "message.result.value"},
		"value and error":       {wire.HostReply{ID: "r", ExecutionID: "e", Value: wire.Raw("1"), Code: "denied"}, fault.InvalidRequest, "message.result"},
		"value not UTF-8":       {wire.HostReply{ID: "r", ExecutionID: "e", Value: wire.Raw("\"\xc3\"")}, fault.InvalidRequest, "message.result.value"},
		"other method":          {wire.HostRequest{ID: "r", ExecutionID: "e", Method: "a", Request: wire.Raw(`{"method":"b"}`)}, fault.InvalidRequest, "message.request.method"},
		"request no object":     {wire.HostRequest{ID: "r", ExecutionID: "e", Method: "a", Request: wire.Raw(`["method"]`)}, fault.InvalidRequest, "message.request"},
		"two forms":             {wire.Completed{ID: "e", Hook: wire.Raw("1"), Failed: ptr("x")}, fault.InvalidRequest, "message.result"},
		"no form":               {wire.Completed{ID: "e"}, fault.InvalidRequest, "message.result"},
		"negative seq":          {wire.Output{ID: "e", Stream: "stdout", Seq: -1}, fault.InvalidRequest, "message.seq"},
		"part over":             {wire.Artifact{ID: "e", ArtifactID: "a", MIME: "image/png", Size: wire.MaxArtifact, SHA256: hex64, Data: make([]byte, wire.MaxArtifactPart+1)}, fault.LimitExceeded, "message.data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := []byte("kept")
			got, err := wire.Append(before, wire.Envelope{SessionID: "root", Generation: "g-1", Message: c.message})
			f, ok := err.(*fault.Error)
			if !ok || f.Code != c.code || f.Subject != c.field {
				t.Errorf("got %v (%s), want %s at %q", err, fault.CodeOf(err), c.code, c.field)
			}
			if string(got) != "kept" {
				t.Errorf("dst became %d bytes", len(got))
			}
		})
	}
}

// A bound's fault says what was sent, how large it is and how large it may be.
func TestLimitNamesSizes(t *testing.T) {
	t.Attr("requirement", "CP-009")
	t.Parallel()
	_, err := wire.Append(nil, wire.Envelope{SessionID: "s", Generation: "g", Message: wire.Execute{ID: "e-1", Code: strings.Repeat("x", 300_000)}})
	const want = `write frame "message.code": 300000 bytes are over the limit of 262144`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Not parallel: it reads the allocation count of the whole process.
func TestDecodeMemory(t *testing.T) {
	t.Attr("requirement", "CP-011")
	const small = 8<<10 + 16*wire.MaxNames // of a fault or the message itself, whose lists are bounded
	for _, v := range payloads(t) {
		payload := v.bytes(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := wire.Decode(payload)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(2*len(payload)+small); got > most {
			t.Errorf("%s: %d bytes allocated for a payload of %d (%v)", v.ID, got, len(payload), err)
		}
	}
}

// manyNames is a frame that is nothing but member names, all different, then last.
func manyNames(n int, last string) []byte {
	b := []byte(`{"version":1,"session_id":"s","generation":"g","message":{"kind":"invoke","id":"h","slot":"attention.plan","input":{`)
	for i := range n {
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(i), 36)
		b = append(b, `":0,`...)
	}
	return append(b, last+`:0}}}`...)
}

// Not parallel: it reads the allocation count of the whole process.
func TestManyNames(t *testing.T) {
	t.Attr("requirement", "CP-005 CP-011")
	const n = 116_000
	for last, want := range map[string]string{`"zz~"`: "", `"1a"`: "duplicate member", `"\u0031a"`: "duplicate member"} {
		payload := manyNames(n, last)
		if len(payload) < wire.MaxFrame*9/10 || len(payload) > wire.MaxFrame {
			t.Fatalf("%d bytes are not nearly a whole frame", len(payload))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := wire.Decode(payload)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(2*len(payload)) {
			t.Errorf("%d bytes allocated for a payload of %d", got, len(payload))
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("last name %s: %v", last, err)
		}
	}
}

func TestByteOrderMarkIsNamed(t *testing.T) {
	t.Attr("requirement", "CP-005")
	t.Parallel()
	_, err := wire.Decode([]byte("\ufeff{}"))
	if err == nil || !strings.Contains(err.Error(), "byte order mark") {
		t.Errorf("got %v", err)
	}
}
