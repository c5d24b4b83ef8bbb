package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/reeve-run/reeve/fault"
)

// schema is every attribute of a request's context. A rule that reads anything else
// is refused at load.
var schema = []string{
	"context.args", "context.args.argv", "context.args.argv0", "context.args.bytes", "context.args.dry_run",
	"context.args.in_git", "context.args.outside", "context.args.path", "context.args.paths",
	"context.args.scope", "context.args.target",
	"context.origin", "context.origin.attended", "context.origin.isolation", "context.origin.session", "context.origin.surface",
	"context.verb", "context.verb.category", "context.verb.effect", "context.verb.name", "context.verb.pack",
	"context.work", "context.work.authorized", "context.work.discipline", "context.work.scope",
}

// checkAttribute reports whether name is in the schema, else the nearest one.
func checkAttribute(name string) (nearest string, ok bool) {
	if slices.Contains(schema, name) {
		return name, true
	}
	nearest, _ = fault.Nearest(name, schema)
	return nearest, false
}

// cedar builds the question as Cedar sees it.
func (r Request) cedar() (cedar.Request, cedar.EntityGetter) {
	e := r.entities()
	return cedar.Request{
		Principal: e.principal,
		Action:    e.verb.action.UID,
		Resource:  e.resource,
		Context:   r.record(e.verb),
	}, e
}

// record is the context. One whose act has no arguments that a policy sees is made
// once for its verb and circumstances.
func (r Request) record(verb *static) cedar.Record {
	if !r.Args.none() || r.Verb.static == nil {
		return r.newRecord(verb)
	}
	return verb.plain.of(circumstances{r.Context, r.Work}, func() cedar.Record { return r.newRecord(verb) })
}

func (r Request) newRecord(verb *static) cedar.Record {
	return cedar.NewRecord(cedar.RecordMap{
		"args":   r.Args.record(),
		"origin": origins.of(r.Context, r.Context.record),
		"verb":   verb.record,
		"work":   works.of(r.Work, r.Work.record),
	})
}

// circumstances is what the context of an act without arguments depends on beside
// its verb.
type circumstances struct {
	context Context
	work    Work
}

// memo keeps records by what they are made of, for to make one costs more than to
// rule on it. It forgets everything when it is full. It is safe for use by many
// goroutines.
type memo[K comparable] struct {
	mu    sync.RWMutex
	known map[K]cedar.Record
}

// maxMemo bounds the records of one memo.
const maxMemo = 256

var (
	origins memo[Context]
	works   memo[Work]
)

func (m *memo[K]) of(k K, build func() cedar.Record) cedar.Record {
	m.mu.RLock()
	rec, ok := m.known[k]
	m.mu.RUnlock()
	if ok {
		return rec
	}
	rec = build()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMemo {
		m.known = map[K]cedar.Record{}
	}
	m.known[k] = rec
	return rec
}

// none reports whether there is nothing in a.
func (a Args) none() bool {
	return a.Path == "" && len(a.Paths) == 0 && len(a.Argv) == 0 && a.Target == "" && a.Scope == "" && a.Bytes == 0 && !a.DryRun
}

// record gives argv as one string, the JSON text of the list, so that a pattern
// cannot confuse one argument with two.
func (a Args) record() cedar.Record {
	argv0 := ""
	if len(a.Argv) > 0 {
		argv0 = a.Argv[0]
	}
	paths := make([]types.Value, len(a.Paths))
	for i, p := range a.Paths {
		paths[i] = cedar.String(p)
	}
	return cedar.NewRecord(cedar.RecordMap{
		"argv":    cedar.String(argvText(a.Argv)),
		"argv0":   cedar.String(argv0),
		"bytes":   cedar.Long(a.Bytes),
		"dry_run": cedar.Boolean(a.DryRun),
		"in_git":  cedar.Boolean(a.any(inGit)),
		"outside": cedar.Boolean(a.any(outside)),
		"path":    cedar.String(a.Path),
		"paths":   cedar.NewSet(paths...),
		"scope":   cedar.String(a.Scope),
		"target":  cedar.String(a.Target),
	})
}

func (c Context) record() cedar.Record {
	return cedar.NewRecord(cedar.RecordMap{
		"attended":  cedar.Boolean(c.Attended),
		"isolation": cedar.String(c.Isolation),
		"session":   cedar.String(c.SessionID),
		"surface":   cedar.String(c.Surface),
	})
}

func (w Work) record() cedar.Record {
	return cedar.NewRecord(cedar.RecordMap{
		"authorized": cedar.Boolean(w.Authorized),
		"discipline": cedar.String(w.Discipline),
		"scope":      cedar.Boolean(w.Scope),
	})
}

// any reports whether a path of the act has the property.
func (a Args) any(is func(string) bool) bool {
	return is(a.Path) || slices.ContainsFunc(a.Paths, is)
}

// inGit is true for .git and what lies below one, in any spelling of case: some file
// systems fold it.
func inGit(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// outside is true for a normalised path that leaves the workspace.
func outside(path string) bool {
	return strings.HasPrefix(path, "/") || path == ".." || strings.HasPrefix(path, "../")
}

// argvText is the JSON text of argv; "[]" for none. Encoding strings cannot fail.
func argvText(argv []string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(',')
		}
		q, err := json.Marshal(a)
		if err != nil {
			return ""
		}
		b.Write(q)
	}
	b.WriteByte(']')
	return b.String()
}

// static is the part of a question that depends on the verb alone.
type static struct {
	action cedar.Entity // in its effect and its pack
	record cedar.Record
	plain  memo[circumstances]
}

func (v Verb) prepare() *static {
	return &static{
		action: cedar.Entity{
			UID: types.NewEntityUID("Action", cedar.String(v.Name)),
			Parents: cedar.NewEntityUIDSet(
				types.NewEntityUID("Effect", cedar.String(v.Effect)),
				types.NewEntityUID("Pack", cedar.String(v.Pack)),
			),
		},
		record: cedar.NewRecord(cedar.RecordMap{
			"category": cedar.String(v.Category),
			"effect":   cedar.String(v.Effect),
			"name":     cedar.String(v.Name),
			"pack":     cedar.String(v.Pack),
		}),
	}
}

// entities answers Cedar's look-ups of one request without a map.
type entities struct {
	principal, resource types.EntityUID
	verb                *static
}

func (r Request) entities() entities {
	e := entities{
		principal: types.NewEntityUID(types.EntityType(entityTypes[r.Actor.Kind]), cedar.String(r.Actor.ID)),
		resource:  types.NewEntityUID("Namespace", cedar.String(r.Namespace)),
		verb:      r.Verb.static,
	}
	if e.verb == nil {
		e.verb = r.Verb.prepare()
	}
	return e
}

// Get implements cedar.EntityGetter. A namespace is in its parent namespaces.
func (e entities) Get(uid cedar.EntityUID) (cedar.Entity, bool) {
	switch {
	case uid == e.verb.action.UID:
		return e.verb.action, true
	case uid.Type == "Namespace":
		parent, _, ok := cutLast(string(uid.ID), ":")
		if !ok {
			return cedar.Entity{UID: uid}, true
		}
		return cedar.Entity{UID: uid, Parents: cedar.NewEntityUIDSet(types.NewEntityUID("Namespace", cedar.String(parent)))}, true
	case uid == e.principal:
		return cedar.Entity{UID: uid}, true
	}
	return cedar.Entity{}, false
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
