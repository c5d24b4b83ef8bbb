package canon_test

import (
	"strings"
	"testing"

	"github.com/reeve-run/reeve/canon"
)

// sample is an envelope of the usual size and shape, in canonical form.
func sample(tb testing.TB) []byte {
	tb.Helper()
	digest := strings.Repeat("0f1e", 16)
	text := `{"protocolVersion":"developer/v8","eventId":"event:7","workScopeId":"scope:1","scopeSequence":7,"previousScopeEventSha256":"` + digest +
		`","causalRefs":[],"occurredAt":"2031-04-05T06:07:18.505Z","kind":"route-frame-opened","payload":{"frame":{"frameId":"frame:1","frameRevision":0,"parentFrameId":null,` +
		`"obligationIds":["obligation:a","obligation:b","obligation:c"],"obligationSetSha256":"` + digest + `"},"obligations":[` +
		`{"obligationId":"obligation:a","frameId":"frame:1","statement":"A statement that somebody settles later on."},` +
		`{"obligationId":"obligation:b","frameId":"frame:1","statement":"Another one, with a \"quotation\" and an é."}]},"eventSha256":"` + digest + `"}`
	form, err := canon.Canonicalize(nil, []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return form
}

func BenchmarkVerify(b *testing.B) {
	text := sample(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := canon.Verify(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	text := sample(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canon.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	text := sample(b)
	v, err := canon.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = v.Append(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	text := sample(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_ = canon.Hash(text)
	}
}
