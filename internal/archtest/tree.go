// Package archtest states the rules of this repository's structure and finds what
// breaks them: which way imports point, what a pure package may not touch, how
// long a file may be, what a package may be called, what a text may not mention.
//
// Invariants: a rule looks at the files as they lie in the working tree and at
// nothing else, so that it says the same on every machine; every finding names
// its file and the rule's reason; an exception is an entry in a table with its
// reason. The package must not know what the packages it judges do.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is one text file of the repository.
type File struct {
	Path string // relative to the root, with slashes
	Text []byte
	Go   *ast.File // nil unless it is Go outside testdata
	fset *token.FileSet
}

// Finding is one breach of one rule.
type Finding struct {
	Path string
	Line int // 0 when it concerns the whole file
	Why  string
}

func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.Path, f.Why)
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Why)
}

// Dir is the directory of the file, "." for the root.
func (f File) Dir() string { return path.Dir(f.Path) }

// Test reports whether the file belongs to tests only.
func (f File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

func (f File) at(node ast.Node, why string, args ...any) Finding {
	return Finding{Path: f.Path, Line: f.fset.Position(node.Pos()).Line, Why: fmt.Sprintf(why, args...)}
}

// Parse makes a File; Go source outside testdata is parsed with its comments.
func Parse(name string, text []byte) (File, error) {
	f := File{Path: name, Text: text}
	if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
		return f, nil
	}
	f.fset = token.NewFileSet()
	parsed, err := parser.ParseFile(f.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return f, fmt.Errorf("parse %q: %w", name, err)
	}
	f.Go = parsed
	return f, nil
}

// unowned are directories that hold no source of ours.
var unowned = map[string]bool{
	".git": true, "node_modules": true, "__pycache__": true, ".mypy_cache": true, "dist": true, "bin": true,
}

// Load reads every text file below root.
func Load(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if unowned[d.Name()] {
				return fs.SkipDir
			}
			return nil
		}
		// In a linked worktree .git is a file, which names a place on this machine.
		if !d.Type().IsRegular() || d.Name() == ".git" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			return nil // binary
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := Parse(filepath.ToSlash(rel), text)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}
