package archtest

import (
	"bytes"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxLines is where a file stops being read whole by anyone.
const maxLines = 600

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// Size checks that no hand-written source file is longer than maxLines.
func Size(files []File) []Finding {
	var found []Finding
	for _, f := range files {
		if ext := path.Ext(f.Path); ext != ".go" && ext != ".py" || generated.Match(f.Text) {
			continue
		}
		if n := bytes.Count(f.Text, []byte("\n")); n > maxLines {
			found = append(found, Finding{f.Path, n, "longer than 600 lines: split it by job"})
		}
	}
	return found
}

// vague are names that say nothing of what a package is for; such a package
// collects whatever has no better place.
var vague = []string{
	"util", "utils", "common", "types", "manager", "managers", "helper", "helpers", "misc", "shared",
	"models", "interfaces", "core", "mocks", "pkg", "base", "lib",
}

// Names checks what packages and their directories are called.
func Names(files []File) []Finding {
	var found []Finding
	seen := map[string]bool{}
	for _, f := range files {
		if f.Go == nil || seen[f.Dir()] {
			continue
		}
		seen[f.Dir()] = true
		name := strings.TrimSuffix(f.Go.Name.Name, "_test")
		for _, n := range []string{name, path.Base(f.Dir())} {
			if slices.Contains(vague, n) {
				found = append(found, f.at(f.Go.Name, "package %q: name it by what it does", n))
				break
			}
		}
	}
	return found
}

// Comments checks that every package says what it is in exactly one place.
func Comments(files []File) []Finding {
	type pkg struct {
		first    File
		comments int
	}
	packages := map[string]*pkg{}
	var order []string
	for _, f := range files {
		if f.Go == nil || f.Test() {
			continue
		}
		p := packages[f.Dir()]
		if p == nil {
			p = &pkg{first: f}
			packages[f.Dir()] = p
			order = append(order, f.Dir())
		}
		if doc := f.Go.Doc.Text(); strings.HasPrefix(doc, "Package ") || strings.HasPrefix(doc, "Command ") {
			p.comments++
		}
	}
	var found []Finding
	for _, dir := range order {
		if p := packages[dir]; p.comments != 1 {
			found = append(found, p.first.at(p.first.Go.Name, "package in %s has %d package comments, want one", dir, p.comments))
		}
	}
	return found
}

// internalTests are test files inside the package they test, each with its reason.
var internalTests = map[string]string{}

// External checks that tests stand outside the package they test and so see what
// its users see; export_test.go may open a window.
func External(files []File) []Finding {
	var found []Finding
	for _, f := range files {
		if f.Go == nil || !f.Test() || path.Base(f.Path) == "export_test.go" || internalTests[f.Path] != "" {
			continue
		}
		if name := f.Go.Name.Name; name != "main" && !strings.HasSuffix(name, "_test") {
			found = append(found, f.at(f.Go.Name, "test inside package %s: use %s_test", name, name))
		}
	}
	return found
}

// Skips checks that no test skips except through reevetest.Need, which fails where
// everything must run. Discarding a generated case (rapid) is no skip.
func Skips(files []File) []Finding {
	var found []Finding
	for _, f := range files {
		if f.Go == nil || f.Dir() == "internal/reevetest" {
			continue
		}
		for _, decl := range f.Go.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				found = append(found, skips(f, fn.Body, testers(nil, fn.Type))...)
			}
		}
	}
	return found
}

// testers is outer plus the parameters of fn, each with whether it is of package
// testing.
func testers(outer map[string]bool, fn *ast.FuncType) map[string]bool {
	inner := map[string]bool{}
	for name, is := range outer {
		inner[name] = is
	}
	for _, field := range fn.Params.List {
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		sel, _ := typ.(*ast.SelectorExpr)
		is := false
		if sel != nil {
			id, _ := sel.X.(*ast.Ident)
			is = id != nil && id.Name == "testing"
		}
		for _, name := range field.Names {
			inner[name.Name] = is
		}
	}
	return inner
}

func skips(f File, body ast.Node, tb map[string]bool) []Finding {
	var found []Finding
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			found = append(found, skips(f, n.Body, testers(tb, n.Type))...)
			return false
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && tb[id.Name] && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, n.Sel.Name) {
				found = append(found, f.at(n, "use reevetest.Need, so that CI cannot skip it"))
			}
		}
		return true
	})
	return found
}
