package control_test

import (
	"bufio"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/reeve-run/reeve/internal/control"
)

// raw sends the bytes of one request to the core of dir.
func raw(t *testing.T, dir, request string) (body []byte, status int) {
	t.Helper()
	core, err := control.ReadCore(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", core.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	go func() { _, _ = io.WriteString(c, request) }() // the server may answer and close before it has read all
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body, resp.StatusCode
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	i, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return i.Mode().Perm()
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}
