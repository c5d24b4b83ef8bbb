package workspace

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/verbs"
)

// tree is the files of one workspace. Every access goes through root, which no link
// leads out of.
type tree struct {
	root *os.Root
	dir  string
	keep Artifacts
}

// file is a file as it stands. The zero file does not exist.
type file struct {
	exists bool
	data   []byte
	mode   fs.FileMode
	sha    string
}

// clean is a path as the root takes it.
func clean(op, name string) (string, error) {
	switch {
	case name == "":
		return "", fault.New(fault.InvalidRequest, op, name, "the path is empty")
	case strings.ContainsRune(name, 0):
		return "", fault.New(fault.InvalidRequest, op, name, "the path holds a zero byte")
	case !utf8.ValidString(name):
		return "", fault.New(fault.InvalidRequest, op, name, "the path is not UTF-8")
	}
	c := path.Clean(filepath.ToSlash(name))
	if !filepath.IsLocal(c) {
		return "", fault.New(fault.Denied, op, name, "the path leads out of the workspace").WithNext("name a path inside the workspace")
	}
	return c, nil
}

// place is where a change of name takes place: the path without the links it leads
// through, so that what a link leads to is changed and the link stays. A verb that
// takes the name itself away, or makes it, refuses a link.
func (w *tree) place(op, name string, itself bool) (string, error) {
	c, err := clean(op, name)
	if err != nil {
		return "", err
	}
	to := resolved(w.dir, c)
	if !filepath.IsLocal(to) {
		return "", fault.New(fault.Denied, op, name, "a link leads it out of the workspace").WithNext("name a path inside the workspace")
	}
	if info, err := w.root.Lstat(c); itself && err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", fault.New(fault.InvalidRequest, op, name, "it is a link, and only files are kept for undoing").
			WithNext("name the file it leads to, or use workspace.run")
	}
	return to, nil
}

// faultOf gives an error of the file system its code.
func faultOf(err error, op, name string) error {
	code := fault.Unavailable
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(err, fault.NotFound, op, name).WithNext("workspace.list shows what is there")
	case errors.Is(err, fs.ErrExist):
		code = fault.Conflict
	case errors.Is(err, fs.ErrPermission):
		code = fault.Denied
	case errors.Is(err, fs.ErrInvalid), strings.Contains(err.Error(), "path escapes from parent"):
		// os.Root has no error value for this; the text only chooses the code.
		code = fault.Denied
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		code = fault.InvalidRequest
	case noSpace(err):
		code = fault.StoreFull
	}
	return fault.Wrap(err, code, op, name)
}

// stat refuses what is no regular file, before it is opened: a pipe would block.
func (w *tree) stat(op, name string) (fs.FileInfo, error) {
	info, err := w.root.Stat(name)
	if err != nil {
		return nil, faultOf(err, op, name)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.InvalidRequest, op, name, "it is %s, not a file", kindOf(info.Mode()))
	}
	if info.Size() > MaxFile {
		return nil, fault.New(fault.LimitExceeded, op, name, "it has %d bytes, more than %d", info.Size(), MaxFile).
			WithNext("use workspace.run or a cell")
	}
	return info, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m.IsRegular():
		return "file"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}

// load reads a file whole. One that does not exist is the zero file.
func (w *tree) load(op, name string) (file, error) {
	info, err := w.stat(op, name)
	if fault.HasCode(err, fault.NotFound) {
		return file{}, nil
	}
	if err != nil {
		return file{}, err
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return file{}, faultOf(err, op, name)
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return file{}, faultOf(err, op, name)
	}
	if len(data) > MaxFile {
		return file{}, fault.New(fault.LimitExceeded, op, name, "it grew past %d bytes while it was read", MaxFile)
	}
	return file{exists: true, data: data, mode: info.Mode().Perm(), sha: digest(data)}, nil
}

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// read answers workspace.read.
func (w *tree) read(call *verbs.Call) (verbs.Reply, error) {
	const op = "read"
	name, err := clean(op, call.Text("path"))
	if err != nil {
		return verbs.Reply{}, err
	}
	if _, err := w.stat(op, name); err != nil {
		return verbs.Reply{}, err
	}
	f, err := w.load(op, name)
	if err != nil {
		return verbs.Reply{}, err
	}
	out := map[string]any{"path": name, "sha256": f.sha, "size": len(f.data), "mode": f.mode.String(), "binary": false}
	if binary(f.data) {
		part := f.data[:min(len(f.data), MaxRead/4*3)]
		out["binary"], out["text"], out["base64"] = true, "", base64.StdEncoding.EncodeToString(part)
		out["truncated"] = len(part) < len(f.data)
		return verbs.Answer(out)
	}
	text, from, to, total := lines(string(f.data), max(call.Int("offset", 1), 1), call.Int("limit", 1<<40))
	out["text"], out["first_line"], out["last_line"], out["lines"], out["truncated"] = text, from, to, total, to < total
	return verbs.Answer(out)
}

// lines are limit lines of s from the line from, as far as they fit MaxRead.
func lines(s string, from, limit int64) (text string, first, last, total int64) {
	var b strings.Builder
	full := false
	last = from - 1
	for line := range strings.Lines(s) {
		total++
		if total < from || total >= from+max(limit, 0) || full {
			continue
		}
		if b.Len()+len(line) > MaxRead {
			full = true
			continue
		}
		b.WriteString(line)
		last = total
	}
	return b.String(), from, last, total
}
