package artifact_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/artifact"
)

func open(t *testing.T) (*artifact.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "artifacts")
	s, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func put(t *testing.T, s *artifact.Store, b []byte) artifact.Ref {
	t.Helper()
	ref, err := s.Put(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestContentComesBackByItsName(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for _, b := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("reeve\x00\xff"), 200_000)} {
		ref := put(t, s, b)
		if ref.SHA256 != artifact.Sum(b) || ref.Size != int64(len(b)) {
			t.Errorf("named %+v", ref)
		}
		again, err := s.PutBytes(b)
		if err != nil || again != ref {
			t.Errorf("again: %+v, %v", again, err)
		}
		got, err := s.ReadAll(ref.SHA256, int64(len(b)))
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes came back, %v", len(got), err)
		}
	}
}

// One content is one file, whoever puts it and however often (D11).
func TestTheSameContentIsKeptOnce(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 10 {
				if _, err := s.Put(strings.NewReader(strings.Repeat("x", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	count, size, err := s.Usage()
	if err != nil || count != 10 || size != 45 {
		t.Errorf("%d artifacts of %d bytes, %v; want 10 of 45", count, size, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func file(dir string, ref artifact.Ref) string {
	return filepath.Join(dir, ref.SHA256[:2], ref.SHA256[2:])
}

func TestAlteredContentIsNeverGivenOut(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	ref := put(t, s, []byte("the truth"))
	for name, damage := range map[string][]byte{"changed": []byte("the lies!"), "cut": []byte("the"), "empty": nil} {
		if err := os.Remove(file(dir, ref)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(dir, ref), damage, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := s.ReadAll(ref.SHA256, 100); fault.CodeOf(err) != fault.Altered || b != nil {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if again := put(t, s, []byte("the truth")); again != ref {
		t.Fatal(again)
	}
	if b, err := s.ReadAll(ref.SHA256, 100); err != nil || string(b) != "the truth" {
		t.Errorf("put again over a cut file: %q, %v", b, err)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	missing := artifact.Sum([]byte("never put"))
	for name, want := range map[string]fault.Code{
		missing: fault.NotFound, strings.ToUpper(missing): fault.InvalidRequest, "": fault.InvalidRequest,
		"../" + missing[3:]: fault.InvalidRequest, missing[:63]: fault.InvalidRequest,
	} {
		if _, err := s.Open(name); fault.CodeOf(err) != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}

func TestReadAllIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ref := put(t, s, make([]byte, 11))
	if _, err := s.ReadAll(ref.SHA256, 10); fault.CodeOf(err) != fault.LimitExceeded {
		t.Errorf("got %v", err)
	}
}

var errTorn = errors.New("torn")

type torn struct{ io.Reader }

func (r torn) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err == io.EOF {
		err = errTorn
	}
	return n, err
}

func TestAFailedPutLeavesNothing(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	if _, err := s.Put(torn{strings.NewReader("half")}); !errors.Is(err, errTorn) {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestOpenClearsWhatADeadWriterLeft(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	ref := put(t, s, []byte("kept"))
	if err := os.WriteFile(filepath.Join(dir, ".incoming-17"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := artifact.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	count, size, err := s.Usage()
	if err != nil || count != 1 || size != 4 {
		t.Errorf("%d artifacts of %d bytes, %v", count, size, err)
	}
	if _, err := s.Open(ref.SHA256); err != nil {
		t.Error(err)
	}
}
