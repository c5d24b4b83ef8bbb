// Package python holds the worker: the Python program that runs cells, embedded so
// that the binary needs nothing but an interpreter.
//
// Invariants: Files is exactly the source a worker needs, standard library apart
// (a test compares it with the directory); Hash changes when and only when a byte or
// a name of it does. The package starts nothing and knows no protocol; README.md
// beside it says which flags the program takes.
package python

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sync"
)

// Boot is the script among Files that an interpreter is started with.
const Boot = "reeve_boot.py"

//go:embed reeve_boot.py reeve_worker/*.py reeve/*.py reeve/skills/*.py
var files embed.FS

// Files is the source tree of the worker; Boot is at its root.
func Files() fs.FS { return files }

// Hash names the tree: SHA-256, in hex, over its files in order of their names, each
// as name length, name, content length, content, with lengths as big-endian u64.
var Hash = sync.OnceValue(func() string {
	digest := sha256.New()
	feed := func(b []byte) {
		digest.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		digest.Write(b)
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		feed([]byte(name))
		feed(content)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("read embedded worker: %v", err)) // the tree is part of the binary
	}
	return hex.EncodeToString(digest.Sum(nil))
})
