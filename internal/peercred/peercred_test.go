package peercred_test

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/peercred"
)

func TestOwnUserIsAdmittedOnAUnixSocketOnly(t *testing.T) {
	t.Attr("requirement", "VD-135")
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	here, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(peercred.SameUser(here), peercred.SameUser(there)); err != nil {
		t.Errorf("our own process: %v", err)
	}
	if err := errors.Join(here.Close(), there.Close()); err != nil {
		t.Fatal(err)
	}
	if err := peercred.SameUser(here); !fault.HasCode(err, fault.Unauthorized) {
		t.Errorf("a connection that cannot be asked: %v", err)
	}
	piped, other := net.Pipe()
	defer func() { _ = errors.Join(piped.Close(), other.Close()) }()
	if err := peercred.SameUser(piped); !fault.HasCode(err, fault.Unauthorized) {
		t.Errorf("a pipe: %v", err)
	}
}
