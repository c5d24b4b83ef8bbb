package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// dataDir is the absolute data directory: flag, REEVE_HOME, XDG_DATA_HOME, HOME.
func (a *app) dataDir() (string, error) {
	const op = "find data directory"
	dir := a.set.dir
	if dir == "" {
		dir = a.io.Env("REEVE_HOME")
	}
	if xdg := a.io.Env("XDG_DATA_HOME"); dir == "" && filepath.IsAbs(xdg) {
		dir = filepath.Join(xdg, "reeve")
	}
	if home := a.io.Env("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".local", "share", "reeve")
	}
	if dir == "" {
		return "", fault.New(fault.Usage, op, "", "neither --dir, REEVE_HOME, XDG_DATA_HOME nor HOME is set").WithNext("name one with --dir")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.io.WorkDir, dir)
	}
	return filepath.Clean(dir), nil
}

// DefaultSession is the session of a working directory: its base name, for people,
// and a piece of the hash of its path, so that two directories never share one.
func DefaultSession(workDir string) string {
	sum := sha256.Sum256([]byte(workDir))
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_.-", r):
			return r
		}
		return '_'
	}, filepath.Base(workDir))
	const longest = 64 // far below what an identifier may have, and readable
	if len(name) > longest {
		name = name[:longest]
	}
	return name + "-" + hex.EncodeToString(sum[:3])
}
