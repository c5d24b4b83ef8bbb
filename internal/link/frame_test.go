package link_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/link"
)

// encode returns the header and the JSON of f.
func encode(t testing.TB, f link.Frame) []byte {
	t.Helper()
	b, err := link.AppendFrame(nil, &f)
	if err != nil {
		t.Fatalf("encode %+v: %v", f, err)
	}
	if n := binary.BigEndian.Uint32(b); int(n) != len(b)-4 {
		t.Fatalf("the header says %d bytes of %d", n, len(b)-4)
	}
	return b[4:]
}

func TestFramesComeBackAsTheyWere(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	for _, f := range link.SampleFrames() {
		text := encode(t, f)
		if !json.Valid(text) {
			t.Errorf("not JSON: %s", text)
		}
		got, err := link.DecodeFrame(text)
		if err != nil {
			t.Errorf("decode %s: %v", text, err)
			continue
		}
		if !reflect.DeepEqual(got, f) {
			t.Errorf("%s became %+v, was %+v", text, got, f)
		}
	}
}

// Kinds and members are closed, and a frame without a member of its kind is none.
func TestFramesAreClosed(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	for _, f := range link.SampleFrames() {
		var whole map[string]any
		d := json.NewDecoder(bytes.NewReader(encode(t, f)))
		d.UseNumber()
		if err := d.Decode(&whole); err != nil {
			t.Fatal(err)
		}
		remarshal := func() []byte {
			b, err := json.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if _, err := link.DecodeFrame(remarshal()); err != nil {
			t.Errorf("members in another order: %v", err)
		}
		for name, v := range whole {
			delete(whole, name)
			_, err := link.DecodeFrame(remarshal())
			if fatal := whole["kind"] == "error" && name == "id"; fatal != (err == nil) {
				t.Errorf("%v without %s: %v", whole["kind"], name, err)
			}
			whole[name] = v
		}
		for _, extra := range []string{"more", "seq", "min", "body"} {
			if _, there := whole[extra]; there {
				continue
			}
			whole[extra] = 1
			if _, err := link.DecodeFrame(remarshal()); !fault.HasCode(err, fault.InvalidRequest) {
				t.Errorf("%v with %s: %v", whole["kind"], extra, err)
			}
			delete(whole, extra)
		}
	}
}

func TestWhatIsNoFrame(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	for _, text := range []string{
		``, `null`, `[]`, `{}`, `{"kind":"cancel"}`, `{"kind":"","id":1}`, `{"kind":"hello","id":1}`, `{"kind":null,"id":1}`,
		`{"kind":"cancel","id":0}`, `{"kind":"cancel","id":-1}`, `{"kind":"cancel","id":01}`, `{"kind":"cancel","id":1.0}`,
		`{"kind":"cancel","id":9007199254740992}`, `{"kind":"cancel","id":"1"}`, `{"kind":"cancel","id":1,"id":1}`,
		`{"kind":"cancel","id":1}{}`, `{"kind":"cancel","id":1,}`, `{"kind":"cancel" "id":1}`, `{,"kind":"cancel","id":1}`,
		`{"kind":"cancel","\u0069d":1}`, `{"Kind":"cancel","id":1}`, "{\"kind\":\"cancel\xff\",\"id\":1}", `{"kind":"cancel\ud800","id":1}`,
		`{"kind":"response","id":1,"body":}`, `{"kind":"response","id":1,"body":tru}`, `{"kind":"response","id":1,"body":{"a":1,}}`,
		`{"kind":"response","id":1,"body":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
	} {
		if f, err := link.DecodeFrame([]byte(text)); !fault.HasCode(err, fault.InvalidRequest) {
			t.Errorf("%.60q: %+v, %v", text, f, err)
		}
	}
}

func TestAFrameOverTheLimitIsNotWritten(t *testing.T) {
	t.Attr("requirement", "VD-140 VD-135")
	t.Parallel()
	at := func(n int) error {
		f, err := link.DecodeFrame([]byte(`{"kind":"response","id":1,"body":"` + strings.Repeat("x", n) + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = link.AppendFrame(nil, &f)
		return err
	}
	most := link.MaxFrame - len(`{"kind":"response","id":1,"body":""}`)
	if err := at(most); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	if err := at(most + 1); !fault.HasCode(err, fault.LimitExceeded) {
		t.Errorf("a byte more: %v", err)
	}
}

// Whatever decodes encodes again to a frame that means the same.
func FuzzDecode(f *testing.F) {
	for _, s := range link.SampleFrames() {
		f.Add(encode(f, s))
	}
	f.Add([]byte(" {\t\"id\" : 1 ,\n\"kind\":\"response\",\"body\": [ 1 , {\"a\" :\"\\u00e9\\n\"} ] } "))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := link.DecodeFrame(text)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("decoded what is not JSON: %q", text)
		}
		again, err := link.DecodeFrame(encode(t, got))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%q became %+v, then %+v (%v)", text, got, again, err)
		}
	})
}

// A body is JSON exactly when the standard library says so, but for UTF-8, which we
// demand, and depth, which we bound.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{}`, `[1,{"a":[]},"\u00e9\/"]`, `-0.5E-7`, `01`, `1.`, `"\x"`, `[1 2]`, `{"a":1 "b":2}`, ` null `, `nul`, `{"a"}`, `[,]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 512 {
			return
		}
		want := json.Valid(text) && bytes.Equal(bytes.ToValidUTF8(text, nil), text)
		if got := link.CheckValue(text) == nil; got != want {
			t.Fatalf("%q: valid is %v, want %v", text, got, want)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	f, err := link.DecodeFrame([]byte(`{"kind":"request","id":7,"method":"request","request_id":"9f86d081884c7d65","replay":true,"timeout_ms":30000,"body":{"ops":"get(id=\"0123456789abcdef\")","session":"mcp-x-abcdefgh","actor":{"kind":"client","name":"bench","surface":"mcp"},"visible":["local"]}}`))
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = link.AppendFrame(buf[:0], &f); err != nil {
			b.Fatal(err)
		}
		if _, err = link.DecodeFrame(buf[4:]); err != nil {
			b.Fatal(err)
		}
	}
}
