package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/reeve-run/reeve"

// ours is the import's directory in this repository, or false.
func ours(spec *ast.ImportSpec) (dir string, ok bool) {
	p, _ := strconv.Unquote(spec.Path.Value)
	if p == module {
		return ".", true
	}
	return strings.CutPrefix(p, module+"/")
}

// under reports whether dir is tree or lies in it.
func under(dir, tree string) bool { return dir == tree || strings.HasPrefix(dir, tree+"/") }

func underAny(dir string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return under(dir, tree) })
}

// direction says what of ours the packages below a directory may import. The
// first entry that matches decides; only is a closed list, never an open one.
type direction struct {
	from  string
	only  []string
	never []string
	why   string
}

var (
	composition = []string{"cmd", "internal/cli", "internal/host", "internal/mcpserve", "internal/demo", "internal/gen"}
	domain      = []string{"fault", "canon", "event", "journal", "wire", "worker", "session", "work", "judgment", "request", "verbs", "gate", "secret", "llm", "python", "vectors"}
)

// frontEnd is what everything that talks to a core through its control API may see.
var frontEnd = append([]string{"internal/control", "internal/config", "internal/durable"}, domain...)

var directions = []direction{
	{from: "fault", only: []string{}, why: "fault is the leaf that everything imports"},
	{from: "canon", only: []string{"fault"}, why: "canon is a leaf beside fault"},
	{from: "journal", only: []string{"fault", "canon", "journal", "internal/durable"}, why: "the journal carries opaque payloads and knows no events"},
	{from: "wire", only: []string{"fault", "canon", "wire"}, why: "the wire is what a stranger needs to write a worker, nothing more"},
	{from: "cmd", never: []string{"internal/archtest", "internal/reevetest"}, why: "the binary carries no test code"},
	{from: "internal/cli", only: append([]string{"internal/cli"}, frontEnd...), why: "the command line is a client of the control API"},
	{from: "internal/mcpserve", only: append([]string{"internal/mcpserve"}, frontEnd...), why: "the MCP front end is a client of the control API"},
	{from: "internal/demo", only: append([]string{"internal/demo"}, frontEnd...), why: "the demo sees what a user sees"},
	{from: "internal/host", never: []string{"cmd", "internal/cli", "internal/mcpserve", "internal/demo", "internal/gen"}, why: "the host is driven through its control API"},
	{from: "internal/gen", never: []string{"cmd"}, why: "nothing imports main"},
	{from: "internal", never: composition, why: "only the composition root puts components together"},
	{from: "bench", never: []string{"cmd"}, why: "nothing imports main"},
	{from: "", never: []string{"cmd", "internal"}, why: "a domain package decides; what touches the world imports it, not the other way round"},
}

// controlClients may import internal/control; every other internal package is
// below it and is called, not calling.
var controlClients = []string{"internal/control", "internal/cli", "internal/host", "internal/mcpserve", "internal/demo", "internal/gen", "internal/reevetest"}

func directionOf(dir string) direction {
	for _, d := range directions {
		if d.from == "" || under(dir, d.from) {
			return d
		}
	}
	panic("the last entry matches everything")
}

// Imports checks the direction of imports between packages of ours. Tests are
// free: an external test package sees what it needs to set a scene.
func Imports(files []File) []Finding {
	var found []Finding
	for _, f := range files {
		if f.Go == nil || f.Test() {
			continue
		}
		d := directionOf(f.Dir())
		for _, spec := range f.Go.Imports {
			to, ok := ours(spec)
			if !ok {
				continue
			}
			switch {
			case d.only != nil && !underAny(to, d.only), underAny(to, d.never):
				found = append(found, f.at(spec, "must not import %s: %s", to, d.why))
			case under(f.Dir(), "internal") && under(to, "internal/control") && !underAny(f.Dir(), controlClients):
				found = append(found, f.at(spec, "must not import %s: only the host and front ends know the control API", to))
			}
		}
	}
	return found
}

// touching are packages through which code reaches the world.
var touching = []string{"os", "net", "database/sql", "log/slog", "math/rand", "log", "syscall", "plugin"}

// pureExceptions lie below the seam of their top-level package: they are where
// the world is touched, or stand in for it.
var pureExceptions = []string{"journal/sqlite", "journal/postgres", "journal/journaltest", "llm/llmtest"}

// impureTrees are no domain packages.
var impureTrees = []string{"cmd", "internal", "bench", "examples"}

// clock are the functions of package time that read or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// Pure checks that domain packages touch nothing: no I/O, no randomness, no clock,
// no goroutine of their own.
func Pure(files []File) []Finding {
	var found []Finding
	for _, f := range files {
		if f.Go == nil || f.Test() || underAny(f.Dir(), impureTrees) || underAny(f.Dir(), pureExceptions) {
			continue
		}
		for _, spec := range f.Go.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if underAny(p, touching) {
				found = append(found, f.at(spec, "a pure package must not import %q", p))
			}
		}
		ast.Inspect(f.Go, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = append(found, f.at(n, "a pure package starts no goroutine"))
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && id.Name == "time" && slices.Contains(clock, n.Sel.Name) {
					found = append(found, f.at(n, "a pure package reads no clock (time.%s): time comes in with the event", n.Sel.Name))
				}
			}
			return true
		})
	}
	return found
}

// Testing checks that code which ships does not link packages made for tests.
func Testing(files []File) []Finding {
	var found []Finding
	for _, f := range files {
		if f.Go == nil || f.Test() || testOnly(f.Dir()) {
			continue
		}
		for _, spec := range f.Go.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if dir, ok := ours(spec); p == "testing" || ok && testOnly(dir) {
				found = append(found, f.at(spec, "only tests may import %q", p))
			}
		}
	}
	return found
}

// testOnly names packages by their last element: journaltest, llmtest, archtest, …
func testOnly(dir string) bool {
	return strings.HasSuffix(path.Base(dir), "test") || under(dir, "bench")
}
