package journal_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/journal"
)

type cause struct {
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"`
}

type chainCase struct {
	Name          string  `json:"name"`
	Prev          string  `json:"prev"`
	Stream        string  `json:"stream"`
	Seq           int64   `json:"seq"`
	Kind          string  `json:"kind"`
	Version       int     `json:"version"`
	AtMS          int64   `json:"at_ms"`
	Causes        []cause `json:"causes"`
	PayloadHex    string  `json:"payload_hex"`
	PayloadRepeat *struct {
		Hex   string `json:"hex"`
		Times int    `json:"times"`
	} `json:"payload_repeat"`
	PreimageHex string `json:"preimage_hex"`
	Digest      string `json:"digest"`
}

func lines[T any](t *testing.T, file string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join(reevetest.VectorDir(t, "journal"), file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var c T
		if err := json.Unmarshal(sc.Bytes(), &c, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, c)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no case", file)
	}
	return all
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChainVectors(t *testing.T) {
	t.Parallel()
	chain := journal.NewChain()
	for _, c := range lines[chainCase](t, "chain.jsonl") {
		prev, err := journal.ParseDigest(c.Prev)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		e := journal.Event{Kind: c.Kind, Version: c.Version, AtMS: c.AtMS, Payload: unhex(t, c.PayloadHex)}
		if r := c.PayloadRepeat; r != nil {
			e.Payload = bytes.Repeat(unhex(t, r.Hex), r.Times)
		}
		for _, ref := range c.Causes {
			e.Causes = append(e.Causes, journal.Ref(ref))
		}
		if got := chain.Link(prev, c.Stream, c.Seq, &e).String(); got != c.Digest {
			t.Errorf("%s: digest %s, want %s", c.Name, got, c.Digest)
		}
	}
}

func TestCausesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) journal.Ref {
			return journal.Ref{Stream: rapid.String().Draw(rt, "stream"), Seq: rapid.Int64Range(1, journal.MaxID).Draw(rt, "seq")}
		})).Draw(rt, "causes")
		got, err := journal.ParseCauses(journal.AppendCauses(nil, want))
		if err != nil {
			rt.Fatal(err)
		}
		if len(want) == 0 && len(got) == 0 {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestBadCausesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range lines[struct {
		Name string `json:"name"`
		Hex  string `json:"hex"`
	}](t, "bad-causes.jsonl") {
		if got, err := journal.ParseCauses(unhex(t, c.Hex)); !fault.HasCode(err, fault.Altered) {
			t.Errorf("%s: %v, %v; want altered", c.Name, got, err)
		}
	}
}

func FuzzParseCauses(f *testing.F) {
	f.Add(journal.AppendCauses(nil, []journal.Ref{{Stream: "a", Seq: 1}}))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		causes, err := journal.ParseCauses(b)
		if err != nil || len(b) == 0 {
			return
		}
		if again := journal.AppendCauses(nil, causes); !bytes.Equal(again, b) {
			t.Errorf("%x reads as %v, which is written %x", b, causes, again)
		}
	})
}
