package refresh_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/internal/reevetest"
	"github.com/reeve-run/reeve/work"
	"github.com/reeve-run/reeve/work/refresh"
)

func script(t *testing.T) canon.Value {
	t.Helper()
	path := filepath.Join(reevetest.Root(t), "vectors", "work", "coordinator.json")
	if big := os.Getenv("REEVE_VECTORS"); big != "" {
		if other := filepath.Join(big, "developer-v8", "coordinator.json"); exists(other) {
			path = other
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := canon.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// stage is the names that the steps of the script bind. A name with "clone:" before it
// means a copy of what is bound.
type stage struct {
	registry     refresh.Registry
	projections  map[string]*work.Projection
	states       map[string]*refresh.State
	tickets      map[string]*refresh.Ticket
	publications map[string]*refresh.Publication
}

func pick[T any](all map[string]*T, name string) *T {
	if original, copied := strings.CutPrefix(name, "clone:"); copied {
		c := *all[original]
		return &c
	}
	return all[name]
}

func TestCoordinatorVectors(t *testing.T) {
	v := script(t)
	s := &stage{
		projections: map[string]*work.Projection{}, states: map[string]*refresh.State{},
		tickets: map[string]*refresh.Ticket{}, publications: map[string]*refresh.Publication{},
	}
	for name, p := range get(t, v, "projections").Members() {
		var entries []*work.Entry
		for _, e := range get(t, p, "entries").Items() {
			entries = append(entries, work.Parse([]byte(form(t, e))))
		}
		s.projections[name] = work.Reconstruct(slices.Values(entries), work.All(work.Reference)).Projection()
		if got, want := string(s.projections[name].Digest()), str(t, p, "projectionSha256"); got != want {
			t.Fatalf("projection %s is %s, want %s", name, got, want)
		}
	}
	for i, c := range get(t, v, "steps").Items() {
		step, expect := get(t, c, "step"), get(t, c, "expect")
		// Steps build on one another and run in order.
		t.Run(strconv.Itoa(i)+"-"+str(t, step, "op"), func(t *testing.T) {
			t.Attr("requirement", "DV-062 DV-063 DV-064 DV-210 DV-230 DV-231 DV-232 DV-233 DV-234 DV-235 DV-236")
			s.run(t, step, expect)
		})
	}
}

func (s *stage) run(t *testing.T, step, expect canon.Value) {
	t.Helper()
	var state *refresh.State
	var no *refresh.Refusal
	value := canon.Value{}
	at := pick(s.states, opt(step, "state"))
	switch str(t, step, "op") {
	case "init":
		state, no = s.registry.Init(work.CoordinatorID(str(t, step, "id")))
	case "begin":
		var ticket *refresh.Ticket
		state, ticket, no = at.Begin(work.Digest(str(t, step, "revision")))
		s.tickets[str(t, step, "ticketAs")] = ticket
		if no == nil {
			value = canon.OfString(string(ticket.Digest()))
		}
	case "complete":
		var p *refresh.Publication
		state, p, no = at.Complete(pick(s.tickets, str(t, step, "ticket")), pick(s.projections, str(t, step, "projection")))
		s.publications[str(t, step, "publicationAs")] = p
		if no == nil {
			value = canon.OfString(string(p.Digest()))
		}
	case "fail":
		state, no = at.Fail(pick(s.tickets, str(t, step, "ticket")))
	case "read":
		s.read(t, at, step, expect)
		return
	default:
		t.Fatalf("step of an unknown kind")
	}
	s.states[str(t, step, "as")] = state
	check(t, no, expect)
	if want, there := expect.Member("state"); there {
		if diff := cmp.Diff(form(t, want), string(state.Append(nil))); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
	}
	if want, there := expect.Member("value"); there && !want.IsNull() {
		if got, _ := value.Text(); got != opt(want, "ticketSha256")+opt(want, "publicationSha256") {
			t.Errorf("value %s", got)
		}
	}
}

func (s *stage) read(t *testing.T, at *refresh.State, step, expect canon.Value) {
	t.Helper()
	target, no := at.Read(pick(s.publications, opt(step, "publication")))
	check(t, no, expect)
	want, there := expect.Member("target")
	if !there {
		return
	}
	switch str(t, want, "kind") {
	case "refreshing":
		if !target.Refreshing || target.Current != nil {
			t.Errorf("target %+v", target)
		}
	case "current":
		if target.Refreshing || string(target.Current.Digest()) != str(t, want, "projectionSha256") {
			t.Errorf("target %+v", target)
		}
	}
}

func check(t *testing.T, no *refresh.Refusal, expect canon.Value) {
	t.Helper()
	code, isFault := opt(expect, "fault"), false
	if code != "" {
		isFault = true
	} else if e, there := expect.Member("error"); there {
		code = opt(e, "code")
	}
	got := refresh.Refusal{}
	if no != nil {
		got = *no
	}
	if want := (refresh.Refusal{Code: refresh.Code(code), Fault: isFault}); got != want {
		t.Errorf("refusal %+v, want %+v", got, want)
	}
}

func get(t *testing.T, v canon.Value, name string) canon.Value {
	t.Helper()
	m, there := v.Member(name)
	if !there {
		t.Fatalf("vector without %q", name)
	}
	return m
}

func str(t *testing.T, v canon.Value, name string) string {
	t.Helper()
	s, ok := get(t, v, name).Text()
	if !ok {
		t.Fatalf("vector whose %q is no string", name)
	}
	return s
}

// opt is the text of a member that may be absent or null.
func opt(v canon.Value, name string) string {
	m, _ := v.Member(name)
	s, _ := m.Text()
	return s
}

func form(t *testing.T, v canon.Value) string {
	t.Helper()
	b, err := v.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A refresh of a branch publishes what it projects, and of a blocked branch nothing.
func TestRefreshOfBranch(t *testing.T) {
	t.Attr("requirement", "DV-237")
	t.Parallel()
	var r refresh.Registry
	first, no := r.Init("coordinator:a")
	if no != nil {
		t.Fatal(no)
	}
	b := work.NewBranch()
	second, p, no := first.Refresh(b)
	if no != nil || second.Kind() != refresh.KindCurrent {
		t.Fatalf("%v, %v", second.Kind(), no)
	}
	target, no := second.Read(p)
	if no != nil {
		t.Fatal(no)
	}
	if page, no := work.Read(target, nil, work.MaxPage); no != nil || len(page.Receipts()) != 0 || page.Next() != nil {
		t.Errorf("page %+v, %v", page, no)
	}
	blocked := b.Extend(slices.Values([]*work.Entry{work.Parse([]byte("null"))}), work.All(work.Reference))
	third, p2, no := second.Refresh(blocked)
	if no != nil || p2 != nil || third.Kind() != refresh.KindUnavailable {
		t.Fatalf("%v, %v, %v", third.Kind(), p2, no)
	}
	if _, no := third.Read(p); no == nil || no.Code != refresh.Unavailable {
		t.Errorf("an earlier publication is back: %v", no)
	}
	if again, _, no := second.Begin(b.Revision()); no == nil || no.Code != refresh.StaleState || again != third {
		t.Errorf("an older state acts: %v", no)
	}
}
