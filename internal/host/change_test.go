package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/host"
)

// ask runs a text as the operator and gives the envelope.
func ask(t *testing.T, c *host.Core, session, workspace, ops string) envelope {
	t.Helper()
	a, err := c.Request(t.Context(), control.RequestCall{
		Ops: ops, Session: session, Workspace: workspace, Presentation: "verbose",
		By: event.Actor{Kind: "operator", Name: "ada", Surface: "cli"},
	})
	if err != nil {
		t.Fatalf("%s: %v", ops, err)
	}
	var e envelope
	if err := json.Unmarshal(a.Body, &e); err != nil {
		t.Fatalf("%s: %v\n%s", ops, err, a.Body)
	}
	return e
}

type envelope struct {
	Results []struct {
		OK          bool            `json:"ok"`
		Disposition string          `json:"domain_disposition"`
		Result      json.RawMessage `json:"result"`
		Error       struct {
			Code string `json:"code"`
			Act  string `json:"act"`
		} `json:"error"`
	} `json:"results"`
	Status string `json:"status"`
}

// A change of a file is an act: it opens the session, is listed, is undone, and the
// images that its events name are compared when the journal is verified.
func TestAChangeIsKeptAndUndone(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-200")
	r := newRig(t)
	c := r.open(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	if e := ask(t, c, "s", dir, `workspace.write(path="a", content="1") | workspace.edit(path="a", old="1", new="2")`); e.Status != "success" {
		t.Fatalf("%+v", e)
	}
	var listed struct {
		Items []struct {
			Act   string   `json:"act"`
			State string   `json:"state"`
			Files []string `json:"files"`
		} `json:"items"`
	}
	if err := json.Unmarshal(ask(t, c, "s", dir, `act.list()`).Results[0].Result, &listed); err != nil || len(listed.Items) != 2 || listed.Items[0].State != "done" {
		t.Fatalf("%+v, %v", listed, err)
	}
	if e := ask(t, c, "s", dir, `workspace.undo(act="`+listed.Items[0].Act+`")`); e.Status != "success" {
		t.Fatalf("%+v", e)
	}
	if b, err := os.ReadFile(file); string(b) != "1" || err != nil {
		t.Errorf("after undo: %q, %v", b, err)
	}
	if e := ask(t, c, "elsewhere", t.TempDir(), `workspace.undo(act="`+listed.Items[1].Act+`")`); e.Results[0].OK || e.Results[0].Error.Code != "permission_denied" {
		t.Errorf("an act of another workspace was undone: %+v", e)
	}
	sound, err := c.Verify(t.Context())
	if err != nil || sound.Code != "" || sound.Artifacts < 5 {
		t.Errorf("%+v, %v", sound, err)
	}
	var images []string
	if err := filepath.Walk(filepath.Join(r.dir, "artifacts"), func(name string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			images = append(images, name)
		}
		return err
	}); err != nil || len(images) == 0 {
		t.Fatal(images, err)
	}
	if err := os.Remove(images[0]); err != nil {
		t.Fatal(err)
	}
	if bad, err := c.Verify(t.Context()); err != nil || bad.Code != string(fault.Truncated) && bad.Code != string(fault.Altered) {
		t.Errorf("with an image gone: %+v, %v", bad, err)
	}
}
