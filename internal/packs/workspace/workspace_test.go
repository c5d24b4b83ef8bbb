package workspace_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/artifact"
	"github.com/reeve-run/reeve/internal/packs/workspace"
	"github.com/reeve-run/reeve/request"
	"github.com/reeve-run/reeve/verbs"
)

// store is a real artifact store.
type store struct{ *artifact.Store }

func (s store) PutBytes(b []byte) (string, error) {
	ref, err := s.Store.PutBytes(b)
	return ref.SHA256, err
}

// ledger remembers what acts changed.
type ledger struct {
	mu    sync.Mutex
	files map[string][]event.FileChange
}

func (l *ledger) Files(_ context.Context, _, act string) ([]event.FileChange, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files[act], nil
}

type rig struct {
	dir      string
	registry *verbs.Registry
	handler  verbs.Handler
	ledger   *ledger
}

// parent is the shim of programs, empty where there is none.
var parent []string

// acts numbers the acts of all rigs: what an act leaves running is found by its id.
var acts atomic.Int64

func newRig(t interface {
	Helper()
	TempDir() string
	Fatal(...any)
}) *rig {
	t.Helper()
	keep, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{dir: t.TempDir(), ledger: &ledger{files: map[string][]event.FileChange{}}}
	pack := workspace.Pack(workspace.Options{Artifacts: store{keep}, Acts: r.ledger, Env: append(os.Environ(), "SECRET_TOKEN=x"), Shim: parent})
	if r.registry, err = verbs.Build(verbs.Config{Packs: []verbs.Pack{pack}}); err != nil {
		t.Fatal(err)
	}
	if r.handler, err = pack.New(); err != nil {
		t.Fatal(err)
	}
	return r
}

// do calls a verb with arguments as JSON text.
func (r *rig) do(ctx context.Context, verb, args string) (map[string]any, string, error) {
	v, ok := r.registry.Lookup("workspace." + verb)
	if !ok {
		panic(verb)
	}
	value, err := request.ParseResult([]byte(args))
	if err != nil {
		panic(err)
	}
	checked, err := v.Check(value.Items())
	if err != nil {
		return nil, "", err
	}
	act := "act_" + strconv.FormatInt(acts.Add(1), 10)
	call := &verbs.Call{Verb: v, Args: checked, Scene: verbs.Scene{Session: "s", Workspace: r.dir, Act: act}}
	if _, err := r.handler.(verbs.Judge).Facts(ctx, call); err != nil {
		return nil, act, err
	}
	reply, err := r.handler.Handle(ctx, call)
	if err != nil {
		return nil, act, err
	}
	r.ledger.mu.Lock()
	r.ledger.files[act] = reply.Changes.Files
	r.ledger.mu.Unlock()
	var out map[string]any
	if err := json.Unmarshal(reply.Value.AppendJSON(nil), &out); err != nil {
		panic(err)
	}
	return out, act, nil
}

func (r *rig) must(t *testing.T, verb, args string) (map[string]any, string) {
	t.Helper()
	out, act, err := r.do(t.Context(), verb, args)
	if err != nil {
		t.Fatalf("%s %s: %v", verb, args, err)
	}
	return out, act
}

func (r *rig) refused(t *testing.T, verb, args string, code fault.Code) {
	t.Helper()
	if out, _, err := r.do(t.Context(), verb, args); fault.CodeOf(err) != code {
		t.Errorf("%s %s: %v, %v; want %s", verb, args, out, err, code)
	}
}

// snapshot is every file with its mode and content, and every link with its target.
func snapshot(t interface{ Fatal(...any) }, dir string) map[string]string {
	all := map[string]string{}
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		if info.Mode()&os.ModeSymlink != 0 {
			all[rel], _ = os.Readlink(name)
			return nil
		}
		b, err := os.ReadFile(name)
		all[rel] = info.Mode().String() + " " + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestWriteReadEditRemove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	out, _ := r.must(t, "write", `{"path":"a/b.txt","content":"one\ntwo\n","expected_sha256":""}`)
	if !strings.Contains(out["diff"].(string), "+two") {
		t.Errorf("diff %q", out["diff"])
	}
	r.refused(t, "write", `{"path":"a/b.txt","content":"x","expected_sha256":""}`, fault.Conflict)
	if err := os.Chmod(filepath.Join(r.dir, "a/b.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	r.must(t, "edit", `{"path":"a/b.txt","old":"two","new":"2"}`)
	r.refused(t, "edit", `{"path":"a/b.txt","old":"two","new":"2"}`, fault.Conflict)
	read, _ := r.must(t, "read", `{"path":"a/b.txt"}`)
	if read["text"] != "one\n2\n" || read["mode"] != "-rwxr-x---" {
		t.Errorf("read %v", read)
	}
	part, _ := r.must(t, "read", `{"path":"a/b.txt","offset":2,"limit":1}`)
	if part["text"] != "2\n" || part["first_line"] != 2.0 || part["lines"] != 2.0 {
		t.Errorf("a part: %v", part)
	}
	r.must(t, "remove", `{"path":"a/b.txt","expected_sha256":`+quoted(read["sha256"].(string))+`}`)
	r.refused(t, "remove", `{"path":"a/b.txt"}`, fault.NotFound)
	r.refused(t, "read", `{"path":"a/b.txt"}`, fault.NotFound)
}

func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	out, act := r.must(t, "write", `{"path":"x","content":"y","dry_run":true}`)
	if len(snapshot(t, r.dir)) != 0 || out["dry_run"] != true || !strings.Contains(out["diff"].(string), "+y") || r.ledger.files[act] != nil {
		t.Errorf("%v, %v", out, snapshot(t, r.dir))
	}
}

// No path and no link leads out, and what is no file is refused at once.
func TestTheWorkspaceHasWalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out": outside, "up": "..", "file": filepath.Join(outside, "secret"), "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(r.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "/etc/passwd", "out/secret", "file", "up/x", "a/../../x"} {
		r.refused(t, "read", `{"path":`+quoted(name)+`}`, fault.Denied)
		r.refused(t, "write", `{"path":`+quoted(name)+`,"content":"x"}`, fault.Denied)
		r.refused(t, "remove", `{"path":`+quoted(name)+`}`, fault.Denied)
	}
	r.refused(t, "read", `{"path":"pipe"}`, fault.InvalidRequest)
	r.refused(t, "write", `{"path":"pipe","content":"x"}`, fault.InvalidRequest)
	r.refused(t, "read", `{"path":"."}`, fault.InvalidRequest)
	r.refused(t, "run", `{"argv":["true"],"cwd":"out"}`, fault.Denied)
	if b, err := os.ReadFile(filepath.Join(outside, "secret")); string(b) != "s" || err != nil {
		t.Errorf("outside: %q, %v", b, err)
	}
}

// Of many that saw the same content exactly one changes it.
func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(t, "write", `{"path":"n","content":"0"}`)
	read, _ := r.must(t, "read", `{"path":"n"}`)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		wg.Go(func() {
			_, _, err := r.do(context.Background(), "write", `{"path":"n","content":"`+strconv.Itoa(i+1)+`","expected_sha256":`+quoted(read["sha256"].(string))+`}`)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if fault.CodeOf(err) != fault.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d of 8 won", won)
	}
}

func TestAPatchIsAppliedWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(t, "write", `{"path":"a","content":"1\n2\n3\n"}`)
	r.must(t, "write", `{"path":"b","content":"x\n"}`)
	before := snapshot(t, r.dir)
	bad := "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-y\n+z\n"
	r.refused(t, "apply_patch", `{"patch":`+quoted(bad)+`}`, fault.Conflict)
	if diff := cmp.Diff(before, snapshot(t, r.dir)); diff != "" {
		t.Error(diff)
	}
	good := strings.Replace(bad, "-y", "-x", 1) + "--- /dev/null\n+++ b/new/c\n@@ -0,0 +1 @@\n+made\n\\ No newline at end of file\n"
	_, act := r.must(t, "apply_patch", `{"patch":`+quoted(good)+`}`)
	read, _ := r.must(t, "read", `{"path":"new/c"}`)
	if read["text"] != "made" {
		t.Errorf("%q", read["text"])
	}
	r.must(t, "undo", `{"act":"`+act+`"}`)
	if diff := cmp.Diff(before, snapshot(t, r.dir)); diff != "" {
		t.Error(diff)
	}
}

// What later changes would lose is not put back.
func TestUndoRefusesWhatHasChangedSince(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, act := r.must(t, "write", `{"path":"a","content":"1"}`)
	r.must(t, "write", `{"path":"a","content":"2"}`)
	r.refused(t, "undo", `{"act":"`+act+`"}`, fault.Conflict)
}

// Any row of changes, undone in reverse, gives back the tree as it was.
func TestUndoingEverythingRestoresTheTree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(dirs{rt, t})
		names := []string{"a", "b", "d/c", "d/e f", "ü"}
		for _, n := range names[:2] {
			if err := os.WriteFile(filepath.Join(r.dir, n), []byte("start "+n), 0o640); err != nil {
				rt.Fatal(err)
			}
		}
		before := snapshot(rt, r.dir)
		var done []string
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			a, b := rapid.SampledFrom(names).Draw(rt, "a"), rapid.SampledFrom(names).Draw(rt, "b")
			verb := rapid.SampledFrom([]string{"write", "move", "remove"}).Draw(rt, "verb")
			args := map[string]string{
				"write":  `{"path":` + quoted(a) + `,"content":` + quoted(rapid.StringMatching(`[a-z\n]{0,9}`).Draw(rt, "content")) + `}`,
				"move":   `{"from":` + quoted(a) + `,"to":` + quoted(b) + `}`,
				"remove": `{"path":` + quoted(a) + `}`,
			}[verb]
			if _, act, err := r.do(context.Background(), verb, args); err == nil {
				done = append(done, act)
			} else if c := fault.CodeOf(err); c != fault.NotFound && c != fault.Conflict {
				rt.Fatal(err)
			}
		}
		for i := len(done) - 1; i >= 0; i-- {
			if _, _, err := r.do(context.Background(), "undo", `{"act":"`+done[i]+`"}`); err != nil {
				rt.Fatal(err)
			}
		}
		if diff := cmp.Diff(before, snapshot(rt, r.dir)); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// dirs gives a rapid check directories of its test.
type dirs struct {
	*rapid.T
	t *testing.T
}

func (d dirs) TempDir() string { return d.t.TempDir() }

func TestListAndSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, n := range []string{"a.go", "b.txt", "d/c.go", ".git/x.go", ".hidden"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(r.dir, n)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.dir, n), []byte("needle in "+n+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := r.must(t, "list", `{"depth":3,"glob":"*.go"}`)
	if list["count"] != 2.0 {
		t.Errorf("list %v", list)
	}
	found, _ := r.must(t, "search", `{"pattern":"need.e","glob":"*.go"}`)
	if found["count"] != 2.0 {
		t.Errorf("search %v", found)
	}
	few, _ := r.must(t, "search", `{"pattern":"needle","literal":true,"limit":1}`)
	if few["count"] != 1.0 || few["truncated"] != true {
		t.Errorf("search %v", few)
	}
	r.refused(t, "search", `{"pattern":"("}`, fault.InvalidRequest)
}

func TestRun(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-060")
	r := newRig(t)
	out, _ := r.must(t, "run", `{"argv":["/bin/sh","-c","echo out; echo err >&2; echo $SECRET_TOKEN$EXTRA; pwd; exit 3"],"env":{"EXTRA":"given"}}`)
	stdout := out["stdout"].(map[string]any)["text"].(string)
	if out["exit_code"] != 3.0 || out["signal"] != nil || !strings.HasPrefix(stdout, "out\ngiven\n") || out["stderr"].(map[string]any)["text"] != "err\n" {
		t.Errorf("%v", out)
	}
	killed, _ := r.must(t, "run", `{"argv":["/bin/sh","-c","kill -9 $$"]}`)
	if killed["exit_code"] != nil || killed["signal"] != "SIGKILL" {
		t.Errorf("%v", killed)
	}
	much, _ := r.must(t, "run", `{"argv":["/bin/sh","-c","i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done"],"max_output_bytes":200}`)
	s := much["stdout"].(map[string]any)
	if s["bytes_total"].(float64) != 23890 || s["bytes_dropped"].(float64) != 23890-100 || !strings.HasPrefix(s["text"].(string), "0\n1\n") || !strings.HasSuffix(s["text"].(string), "4999\n") {
		t.Errorf("%v", s)
	}
	r.refused(t, "run", `{"argv":[]}`, fault.InvalidRequest)
	r.refused(t, "run", `{"argv":["no-such-program"]}`, fault.NotFound)
	r.refused(t, "run", `{"argv":["true"],"timeout_ms":0}`, fault.LimitExceeded)
	r.refused(t, "run", `{"argv":["true"],"cwd":"../"}`, fault.Denied)
}

// A timeout ends everything, also what left the group and holds the pipe.
func TestRunEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-060")
	r := newRig(t)
	began := time.Now()
	out, _ := r.must(t, "run", `{"argv":["/bin/sh","-c","setsid sleep 300 & echo $! > pid; sleep 300"],"timeout_ms":5000}`)
	if out["timed_out"] != true || time.Since(began) > 60*time.Second {
		t.Errorf("%v after %s", out, time.Since(began))
	}
	gone(t, filepath.Join(r.dir, "pid"))
	out, _ = r.must(t, "run", `{"argv":["/bin/sh","-c","setsid sleep 300 & echo $! > pid2"]}`)
	if out["exit_code"] != 0.0 || out["ended"] != 1.0 {
		t.Errorf("%v", out)
	}
	gone(t, filepath.Join(r.dir, "pid2"))
}

func gone(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("process %d lives on: %s", pid, stat)
	}
}

func TestRunIsEndedWithItsCaller(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-060")
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(r.dir, "up")); err == nil {
				cancel()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, _, err := r.do(ctx, "run", `{"argv":["/bin/sh","-c","touch up; sleep 300"]}`)
	if fault.CodeOf(err) != fault.Cancelled || verbs.DispositionOf(err, verbs.Workspace) != request.Committed {
		t.Errorf("%v", err)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-061")
	r := newRig(t)
	out, _ := r.must(t, "info", `{}`)
	if out["root"] != r.dir || out["vcs"].(map[string]any)["kind"] != "none" || out["may"].(map[string]any)["write"] != true {
		t.Errorf("%v", out)
	}
	r.must(t, "run", `{"argv":["git","init","-q","-b","trunk"]}`)
	r.must(t, "write", `{"path":"a","content":"1"}`)
	out, _ = r.must(t, "info", `{}`)
	if v := out["vcs"].(map[string]any); v["kind"] != "git" || v["branch"] != "trunk" || v["untracked"] != 1.0 || v["dirty"] != true {
		t.Errorf("%v", v)
	}
}

// What a policy sees of a path has its links resolved.
func TestFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.MkdirAll(filepath.Join(r.dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"g": ".git", "out": "/etc", "dangling": "../nowhere"} {
		if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"a/b": "a/b", "g/hooks/x": ".git/hooks/x", "./a/../b": "b", "../x": "../x", "dangling/x": "../nowhere/x",
	} {
		v, _ := r.registry.Lookup("workspace.write")
		call := &verbs.Call{Verb: v, Args: []request.Item{{Name: "path", Value: request.OfString(name)}}, Scene: verbs.Scene{Workspace: r.dir}}
		f, err := r.handler.(verbs.Judge).Facts(t.Context(), call)
		if err != nil || f.Path != want {
			t.Errorf("%s: %q, %v; want %q", name, f.Path, err, want)
		}
	}
	v, _ := r.registry.Lookup("workspace.read")
	call := &verbs.Call{Verb: v, Args: []request.Item{{Name: "path", Value: request.OfString("out/passwd")}}, Scene: verbs.Scene{Workspace: r.dir}}
	if f, _ := r.handler.(verbs.Judge).Facts(t.Context(), call); !strings.HasPrefix(f.Path, "..") {
		t.Errorf("a link that leads out is seen as %q", f.Path)
	}
}
