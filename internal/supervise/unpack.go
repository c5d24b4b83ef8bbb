package supervise

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/durable"
	embedded "github.com/reeve-run/reeve/python"
)

// Unpack is UnpackFiles of the embedded worker.
func Unpack(ctx context.Context, root, python string) (string, error) {
	return UnpackFiles(ctx, embedded.Files(), root, python)
}

// UnpackFiles writes files, the worker's source, below root in a directory named by
// their content, compiles them with the interpreter, and returns the directory for
// Spec.Source. What is there already is compared byte for byte, sources and
// compiled files, and replaced when it differs. Concurrent calls, also by other
// processes, are safe.
func UnpackFiles(ctx context.Context, files fs.FS, root, python string) (string, error) {
	dir, err := unpack(ctx, files, root, python)
	if err != nil {
		return "", fault.Wrap(err, codeOr(err, fault.Internal), "unpack worker", root)
	}
	return dir, nil
}

func unpack(ctx context.Context, files fs.FS, root, python string) (string, error) {
	i, err := probe(ctx, python)
	if err != nil {
		return "", err
	}
	names, hash, err := contentHash(files)
	if err != nil {
		return "", err
	}
	if err := durable.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(root, hash)
	for range 3 {
		switch err := sameSources(files, names, dir); {
		case err == nil:
			return dir, compiled(ctx, names, dir, i)
		case errors.Is(err, fs.ErrNotExist) && !exists(dir):
		default:
			if err := discard(dir); err != nil {
				return "", err
			}
		}
		if err := place(files, names, root, dir); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("directory %q is changed by somebody as fast as it is written", dir)
}

// contentHash names a set of files by their names and bytes.
func contentHash(files fs.FS) (names []string, hash string, err error) {
	h := sha256.New()
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		names = append(names, name)
		fmt.Fprintf(h, "%d %s %d ", len(name), name, len(body))
		h.Write(body)
		return nil
	})
	return names, hex.EncodeToString(h.Sum(nil)), err
}

// sameSources reports the first difference between dir and files.
func sameSources(files fs.FS, names []string, dir string) error {
	for _, name := range names {
		want, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%q differs from what was unpacked", name)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// discard takes a damaged directory away under one rename, so that nobody sees it
// half removed. Workers that run from it have loaded what they need.
func discard(dir string) error {
	trash, err := os.MkdirTemp(filepath.Dir(dir), ".damaged-")
	if err != nil {
		return err
	}
	err = os.Rename(dir, filepath.Join(trash, "was"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(trash))
}

// place writes the files beside dir and moves them there whole. Losing the race to
// another process is no error; the caller compares again.
func place(files fs.FS, names []string, root, dir string) error {
	temp, err := os.MkdirTemp(root, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for _, name := range names {
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := durable.WriteFile(path, body, 0o600); err != nil {
			return err
		}
	}
	if err := durable.Rename(temp, dir); err != nil && !exists(dir) {
		return err
	}
	return nil
}

// compiled makes sure that dir holds the compiled form of every source for this
// interpreter, as it was when it was made. The worker starts with -B and would
// never write it by itself.
func compiled(ctx context.Context, names []string, dir string, i interpreter) error {
	list := filepath.Join(dir, "compiled-"+i.tag+".json")
	want := map[string]string{}
	if raw, err := os.ReadFile(list); err == nil && json.Unmarshal(raw, &want) == nil {
		if got, err := compiledHashes(names, dir, i.tag); err == nil && maps.Equal(got, want) {
			return nil
		}
	}
	// unchecked-hash: Python then loads the compiled file without looking at its
	// source, which was compared here. -f replaces damaged ones.
	cmd := exec.CommandContext(ctx, i.path, "-I", "-S", "-E", "-X", "utf8", "-m", "compileall",
		"-q", "-f", "--invalidation-mode", "unchecked-hash", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %q: %w: %s", dir, err, lastOf(out))
	}
	got, err := compiledHashes(names, dir, i.tag)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(got)
	if err != nil {
		return err
	}
	return durable.WriteFile(list, raw, 0o600)
}

func compiledHashes(names []string, dir, tag string) (map[string]string, error) {
	hashes := make(map[string]string, len(names))
	for _, name := range names {
		base, ok := strings.CutSuffix(filepath.Base(name), ".py")
		if !ok {
			continue
		}
		path := filepath.Join(dir, filepath.Dir(name), "__pycache__", base+"."+tag+".pyc")
		body, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		hashes[name] = hex.EncodeToString(sum[:])
	}
	return hashes, nil
}

func lastOf(out []byte) string {
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(lines) == 0 {
		return "it said nothing"
	}
	return lines[len(lines)-1]
}
