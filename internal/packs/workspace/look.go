package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/verbs"
)

// entry is a row of a list.
type entry struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // file | directory | link | pipe | socket | device
	Size int64  `json:"size"`
}

// errFull ends a walk that has found enough.
var errFull = errors.New("enough")

// list answers workspace.list.
func (w *tree) list(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	const op = "list"
	top, err := directory(op, call.Text("path"))
	if err != nil {
		return verbs.Reply{}, err
	}
	glob, err := checkGlob(call.Text("glob"))
	if err != nil {
		return verbs.Reply{}, err
	}
	depth, hidden := min(max(call.Int("depth", 1), 1), 20), call.True("hidden")
	items, full := []entry{}, false
	err = fs.WalkDir(w.root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == top:
			return err
		case err != nil || name == top:
			return skipDir(d, err)
		case !hidden && strings.HasPrefix(d.Name(), "."):
			return skipDir(d, fs.SkipDir)
		}
		if matched, _ := path.Match(glob, d.Name()); glob == "" || matched {
			if len(items) == MaxList {
				full = true
				return errFull
			}
			e := entry{Path: name, Kind: kindOf(d.Type())}
			if info, err := d.Info(); err == nil && d.Type().IsRegular() {
				e.Size = info.Size()
			}
			items = append(items, e)
		}
		if d.IsDir() && levels(top, name) >= depth {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return verbs.Reply{}, faultOf(err, op, top)
	}
	return verbs.Answer(map[string]any{"items": items, "count": len(items), "truncated": full})
}

// skipDir passes over an entry: what cannot be read is left out, not an end.
func skipDir(d fs.DirEntry, err error) error {
	if err != nil && d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func levels(top, name string) int64 {
	if top != "." {
		name = strings.TrimPrefix(name, top+"/")
	}
	return int64(strings.Count(name, "/")) + 1
}

func directory(op, name string) (string, error) {
	if name == "" {
		return ".", nil
	}
	return clean(op, name)
}

func checkGlob(glob string) (string, error) {
	if _, err := path.Match(glob, "x"); err != nil {
		return "", fault.New(fault.InvalidRequest, "match", glob, "it is no pattern").WithNext("use * and ? and [a-z], as in *.go")
	}
	return glob, nil
}

// match is a line that was found.
type match struct {
	Path string `json:"path"`
	Line int64  `json:"line"`
	Text string `json:"text"`
}

// Bounds of one search, after which it answers what it has found, as truncated.
const (
	maxLine     = 400 // of the text of a match, in bytes
	searchBytes = 256 << 20
	searchTime  = 20 * time.Second
)

// search answers workspace.search.
func (w *tree) search(ctx context.Context, call *verbs.Call) (verbs.Reply, error) {
	const op = "search"
	top, err := directory(op, call.Text("path"))
	if err != nil {
		return verbs.Reply{}, err
	}
	glob, err := checkGlob(call.Text("glob"))
	if err != nil {
		return verbs.Reply{}, err
	}
	pattern := call.Text("pattern")
	if call.True("literal") {
		pattern = regexp.QuoteMeta(pattern)
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return verbs.Reply{}, fault.Wrap(err, fault.InvalidRequest, op, "pattern").WithNext("write an RE2 expression, or give literal=true")
	}
	most := int(min(max(call.Int("limit", 100), 1), MaxMatch))
	found, files, full := []match{}, 0, false
	began, read := time.Now(), 0
	err = fs.WalkDir(w.root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == top:
			return err
		case err != nil:
			return skipDir(d, err)
		case read > searchBytes || time.Since(began) > searchTime:
			full = true
			return errFull
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if matched, _ := path.Match(glob, d.Name()); glob != "" && !matched {
			return nil
		}
		f, err := w.load(op, name)
		if err != nil || binary(f.data) { // too large, gone meanwhile, or no text
			return nil //nolint:nilerr // such a file is passed over
		}
		files, read = files+1, read+len(f.data)
		if found, full = matches(found, name, f.data, expression, most); full {
			return errFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return verbs.Reply{}, faultOf(err, op, top)
	}
	return verbs.Answer(map[string]any{"items": found, "count": len(found), "files_read": files, "truncated": full})
}

func matches(found []match, name string, data []byte, expression *regexp.Regexp, most int) ([]match, bool) {
	line := int64(0)
	for text := range bytes.Lines(data) {
		line++
		if !expression.Match(bytes.TrimRight(text, "\r\n")) {
			continue
		}
		if len(found) == most {
			return found, true
		}
		found = append(found, match{name, line, cut(strings.TrimRight(string(text), "\r\n"), maxLine)})
	}
	return found, false
}
