package control_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func post(path, contentType, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: core\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, contentType, len(body), body)
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := newService()
	dir := serve(t, s)
	const by = `"by":{"kind":"operator","name":"a","surface":"cli"}`
	for name, c := range map[string]struct {
		request string
		code    fault.Code
	}{
		"unknown member":      {post("/v1/sessions/s/close", "application/json", `{`+by+`,"x":1}`), fault.InvalidRequest},
		"duplicate member":    {post("/v1/sessions/s/close", "application/json", `{`+by+`,`+by+`}`), fault.InvalidRequest},
		"other case":          {post("/v1/sessions/s/close", "application/json", strings.Replace("{"+by+"}", "by", "By", 1)), fault.InvalidRequest},
		"bad UTF-8":           {post("/v1/cells", "application/json", "{\"session\":\"\xff\"}"), fault.InvalidRequest},
		"trailing bytes":      {post("/v1/sessions/s/close", "application/json", `{`+by+`}{}`), fault.InvalidRequest},
		"no body":             {post("/v1/cells", "application/json", ""), fault.InvalidRequest},
		"a form":              {post("/v1/sessions/s/close", "application/x-www-form-urlencoded", `{`+by+`}`), fault.InvalidRequest},
		"over the limit":      {post("/v1/cells", "application/json", `{"code":"`+strings.Repeat("x", 2<<20)+`"}`), fault.LimitExceeded},
		"unknown parameter":   {"GET /v1/cells?sesion=s HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.InvalidRequest},
		"negative number":     {"GET /v1/cells?max=-1 HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.InvalidRequest},
		"no number":           {"GET /v1/events?after_id=x HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.InvalidRequest},
		"no flag":             {"GET /v1/events?follow=yes HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.InvalidRequest},
		"no time":             {"GET /v1/events?since=today HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.InvalidRequest},
		"no such call":        {"GET /v1/cell HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.UnknownMethod},
		"other method":        {"DELETE /v1/status HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.UnknownMethod},
		"effect by a link":    {"GET /v1/shutdown HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.UnknownMethod},
		"output offset words": {"GET /v1/cells/x/output?offset=a HTTP/1.1\r\nHost: core\r\nConnection: close\r\n\r\n", fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, status := raw(t, dir, c.request)
			var e control.Envelope
			if err := json.Unmarshal(body, &e); err != nil {
				t.Fatalf("answer is no envelope: %v\n%s", err, body)
			}
			if e.OK || e.Error == nil || e.Error.Code != c.code || status != control.HTTPStatus(c.code) {
				t.Errorf("answer = %d %s, want %s", status, body, c.code)
			}
		})
	}
	t.Cleanup(func() {
		if n := s.count(); n != 0 {
			t.Errorf("the service was asked %d times: %v", n, s.calls)
		}
	})
}

func TestOneAnswerWithoutAStream(t *testing.T) {
	t.Parallel()
	body, status := raw(t, serve(t, newService()), post("/v1/cells", "application/json",
		`{"session":"s","code":"1","timeout_ms":0,"workspace":"/","by":{"kind":"operator","name":"a","surface":"cli"},"detach":false}`))
	var e control.Envelope
	if err := json.Unmarshal(body, &e); err != nil || status != 200 || !e.OK || e.Kind != "cell_result" {
		t.Errorf("answer = %d %s, %v", status, body, err)
	}
}

func TestConnectionsOfNobodyAreRefused(t *testing.T) {
	t.Parallel()
	t.Run("not admitted by Serve", func(t *testing.T) {
		t.Parallel()
		w := httptest.NewRecorder()
		control.NewServer(newService(), quiet()).Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/status", nil))
		if w.Code != http.StatusUnauthorized {
			t.Errorf("status %d, want 401", w.Code)
		}
	})
	t.Run("over TCP", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: control.NewServer(newService(), quiet()).Handler()}
		go func() { _ = srv.Serve(l) }()
		defer func() { _ = srv.Close() }()
		resp, err := http.Get("http://" + l.Addr().String() + "/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("status %d, want 401", resp.StatusCode)
		}
	})
	// Only root can become another user; for anybody else the case cannot arise here.
	if runtime.GOOS == "linux" && os.Geteuid() == 0 {
		t.Run("of another user", func(t *testing.T) {
			t.Parallel()
			s := newService()
			dir := serve(t, s)
			core, err := control.ReadCore(dir)
			if err != nil {
				t.Fatal(err)
			}
			open := func(path string, m os.FileMode) {
				if err := os.Chmod(path, m); err != nil {
					t.Fatal(err)
				}
			}
			open(core.Socket, 0o666)
			for d := dir; d != os.TempDir(); d = parent(d) {
				open(d, 0o755)
			}
			status := asNobody(t, core.Socket)
			if status != http.StatusUnauthorized || s.count() != 0 {
				t.Errorf("status %d and %d calls, want 401 and none", status, s.count())
			}
		})
	}
}
