package wire_test

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/wire"
)

// vector is a case of vectors/wire; its README says what the members mean.
type vector struct {
	ID         string
	Rule       string
	To         string
	Payload    *string
	PayloadB64 *string `json:"payload_b64"`
	FrameHex   *string `json:"frame_hex"`
	Generate   *struct {
		Kind  string
		Parts [][2]any
	}
	Expect struct {
		OK        bool
		Kind      wire.Kind
		Canonical string
		Code      fault.Code
	}
}

func (v vector) bytes(t testing.TB) []byte {
	t.Helper()
	var b []byte
	var err error
	switch {
	case v.Payload != nil:
		b = []byte(*v.Payload)
	case v.PayloadB64 != nil:
		b, err = base64.StdEncoding.DecodeString(*v.PayloadB64)
	case v.FrameHex != nil:
		b, err = hex.DecodeString(*v.FrameHex)
	case v.Generate != nil && v.Generate.Kind == "parts":
		for _, part := range v.Generate.Parts {
			for range int(part[1].(float64)) {
				b = append(b, part[0].(string)...)
			}
		}
	default:
		t.Fatalf("vector %s has no source known here", v.ID)
	}
	if err != nil {
		t.Fatalf("vector %s: %v", v.ID, err)
	}
	return b
}

// vectors reads files of the vector folder; every file must hold a case.
func vectors(t testing.TB, files ...string) []vector {
	t.Helper()
	dir := reevetest.VectorDir(t, "wire")
	var all []vector
	for _, name := range files {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		before := len(all)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var v vector
			if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, v)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if len(all) == before {
			t.Fatalf("%s holds no case", name)
		}
	}
	return all
}

func payloads(t testing.TB) []vector {
	t.Helper()
	return vectors(t, "text.jsonl", "envelope.jsonl", "messages.jsonl", "limits.jsonl")
}

func TestWireVectors(t *testing.T) {
	t.Parallel()
	for _, v := range payloads(t) {
		t.Run(v.ID, func(t *testing.T) {
			t.Attr("requirement", v.Rule)
			t.Parallel()
			v.judge(t, v.bytes(t))
		})
	}
	for _, v := range vectors(t, "frames.jsonl") {
		t.Run(v.ID, func(t *testing.T) {
			t.Attr("requirement", v.Rule)
			t.Parallel()
			b := v.bytes(t)
			n, err := wire.Length([4]byte(b))
			if err != nil {
				v.refused(t, err)
				return
			}
			v.judge(t, b[4:4+n])
		})
	}
}

// judge decodes payload and compares with what the vector expects.
func (v vector) judge(t *testing.T, payload []byte) {
	t.Helper()
	e, err := wire.Decode(payload)
	if err != nil || !v.Expect.OK {
		v.refused(t, err)
		return
	}
	if got := e.Message.MessageKind(); got != v.Expect.Kind {
		t.Errorf("kind %q, want %q", got, v.Expect.Kind)
	}
	sent, err := wire.Append(nil, e)
	if err != nil {
		t.Fatalf("what was decoded cannot be sent: %v", err)
	}
	if v.Expect.Canonical != "" && string(sent[4:]) != v.Expect.Canonical {
		t.Errorf("sent again as\n%s\nwant\n%s", sent[4:], v.Expect.Canonical)
	}
}

func (v vector) refused(t *testing.T, err error) {
	t.Helper()
	switch f, ok := err.(*fault.Error); {
	case err == nil:
		t.Errorf("accepted, want %s", v.Expect.Code)
	case v.Expect.OK:
		t.Errorf("refused: %v", err)
	case !ok || f.Code != v.Expect.Code:
		t.Errorf("refused with %v (%s), want %s", err, fault.CodeOf(err), v.Expect.Code)
	case f.Op == "" || f.Subject == "" || f.Message == "" || len(err.Error()) > 512:
		t.Errorf("a fault names the place and the rule, shortly; got %q", err)
	}
}
