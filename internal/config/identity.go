package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/configid"
)

// identifying are the settings that decide what a request means. Limits and times
// only decide how long it takes.
var identifying = []string{"audit.reads", "work.discipline", "worker.python"}

// Identity is what a core of the data directory dir and its clients must agree on.
// It is read from the files that are the same for all of them, the managed one and
// that of the directory: neither environment nor home directory of who happens to
// start the core has a part in it (VD-133).
func Identity(dir string) (configid.Identity, error) {
	var id configid.Identity
	sources := SystemSources(dir)
	c, err := Load(Sources{Managed: sources.Managed, Data: sources.Data})
	if err != nil {
		return id, err
	}
	// One directory has one identity however it is spelled, so links are followed.
	resolved, err := filepath.EvalSymlinks(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		resolved = dir
	case err != nil:
		return id, fault.Wrap(err, fault.Unavailable, "identify data directory", dir)
	}
	if resolved, err = filepath.Abs(resolved); err != nil {
		return id, fault.Wrap(err, fault.Unavailable, "identify data directory", dir)
	}
	if err := id.Path("store", filepath.Join(resolved, "reeve.db")); err != nil {
		return id, err
	}
	id.Truth("read_only", false)
	for _, key := range identifying {
		value, ok := c.Value(key)
		if !ok {
			return id, fault.New(fault.Internal, "identify configuration", key, "there is no such setting")
		}
		id.Text(key, value)
	}
	return id, nil
}
