package control_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/configid"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/link"
)

// linked is a client of the link of dir's core, as configured by the files of dir.
func linked(t testing.TB, dir string) *link.Client {
	t.Helper()
	c := link.NewClient(link.ClientOptions{
		Client: "test", Version: control.Version, Identity: func() (configid.Identity, error) { return config.Identity(dir) },
		Dial: func(ctx context.Context) (net.Conn, error) { return control.DialLink(ctx, dir) },
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The link says what HTTP says.
func TestTheLinkAnswersLikeHTTP(t *testing.T) {
	t.Attr("requirement", "VD-140")
	t.Parallel()
	dir := serve(t, newService())
	want, err := connect(t, dir).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := linked(t, dir)
	body, err := c.Call(t.Context(), link.Request{Method: "status", Body: []byte(`{}`), Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	var got control.Status
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("status (-HTTP +link):\n%s", d)
	}
	if _, err := c.Call(t.Context(), link.Request{Method: "nonsense", Body: []byte(`{}`)}); !fault.HasCode(err, fault.UnknownMethod) {
		t.Errorf("an unknown method: %v", err)
	}
}

// A directory that was copied with its core.json leads to the core of the original,
// which serves no client that means the copy.
func TestACopiedDirectoryIsNotServedByTheOriginalsCore(t *testing.T) {
	t.Attr("requirement", "VD-132 VD-133")
	t.Parallel()
	dir, copied := serve(t, newService()), t.TempDir()
	b, err := os.ReadFile(filepath.Join(dir, "core.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(copied, "core.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = linked(t, copied).Call(t.Context(), link.Request{Method: "status", Body: []byte(`{}`)})
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Conflict || link.ReasonOf(err) != link.ConfigMismatch || !strings.Contains(e.Next, "remove core.json") {
		t.Fatalf("%v", err)
	}
	// What it says helps.
	if err := os.Remove(filepath.Join(copied, "core.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := linked(t, copied).Call(t.Context(), link.Request{Method: "status", Body: []byte(`{}`)}); link.ReasonOf(err) != link.NoSocket {
		t.Errorf("afterwards: %v", err)
	}
}

func TestACoreWithoutALink(t *testing.T) {
	t.Attr("requirement", "VD-146")
	t.Parallel()
	dir := t.TempDir()
	if _, err := control.DialLink(t.Context(), dir); !fault.HasCode(err, fault.NotFound) {
		t.Errorf("no core: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "core.json"), []byte(`{"pid":1,"socket":"/nonexistent","version":"0.1.0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.DialLink(t.Context(), dir); !fault.HasCode(err, fault.NotFound) {
		t.Errorf("an older core: %v", err)
	}
	_, err := linked(t, dir).Call(t.Context(), link.Request{Method: "status", Body: []byte(`{}`)})
	if link.ReasonOf(err) != link.NoSocket {
		t.Errorf("%v (%s)", err, link.ReasonOf(err))
	}
}

// What one call costs on the way: an answer that costs nothing to make, by HTTP and
// by the link.
func BenchmarkRoundTrip(b *testing.B) {
	dir := b.TempDir()
	sockets, err := control.Listen(dir)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- control.NewServer(newService(), quiet()).Serve(ctx, sockets) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	b.Run("http", func(b *testing.B) {
		c, err := control.Connect(ctx, dir)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Status(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("link", func(b *testing.B) {
		c := linked(b, dir)
		var v control.Status
		b.ReportAllocs()
		for b.Loop() {
			body, err := c.Call(ctx, link.Request{Method: "status", Body: []byte(`{}`), Replay: true})
			if err == nil {
				err = json.Unmarshal(body, &v)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
