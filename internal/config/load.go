package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/v2"

	"github.com/reeve-run/reeve/fault"
)

// Sources says where to look. A file that does not exist is skipped; an empty path
// is not looked for.
type Sources struct {
	Managed string
	User    string
	Data    string
	Flags   map[string]string
	Lookup  func(name string) (string, bool) // environment; nil: none
}

// SystemSources are the places of this machine for the data directory dir.
func SystemSources(dir string) Sources {
	s := Sources{
		Managed: "/etc/reeve/config.toml",
		Data:    filepath.Join(dir, "config.toml"),
		Lookup:  os.LookupEnv,
	}
	if home, err := os.UserConfigDir(); err == nil {
		s.User = filepath.Join(home, "reeve", "config.toml")
	}
	return s
}

// ProjectFile is the settings file of the project in dir.
func ProjectFile(dir string) string { return filepath.Join(dir, ".reeve", "config.toml") }

// Load reads the sources that concern the core itself. All that is wrong is
// reported together.
func Load(s Sources) (Config, error) {
	c := Defaults()
	err := errors.Join(
		c.file(s.Managed, Managed),
		c.file(s.User, User),
		c.file(s.Data, Data),
		c.environment(s.Lookup),
		c.flags(s.Flags),
	)
	return c, err
}

// ForProject returns c with the settings of the project file at path, each of
// which may only tighten c, whatever layer set it.
func (c Config) ForProject(path string) (Config, error) {
	p := c
	p.origins = maps.Clone(c.origins)
	p.Worker.Timing.Ladder = slices.Clone(c.Worker.Timing.Ladder)
	if err := p.file(path, Project); err != nil {
		return c, err
	}
	return p, nil
}

func (c *Config) file(path string, layer Layer) error {
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.Wrap(err, fault.Usage, "read settings", path)
	}
	k := koanf.New(".")
	if err := k.Load(document(b), toml.Parser()); err != nil {
		return fault.Wrap(err, fault.Usage, "read settings", path).WithNext("mend the TOML in %s", path)
	}
	var all []error
	flat := k.All()
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		if _, ok := find(key); !ok {
			all = append(all, unknown(key, Origin{layer, path}))
			continue
		}
		value, err := plain(flat[key])
		if err != nil {
			all = append(all, fault.New(fault.Usage, "read setting", key, "%s %s: %v", layer, path, err))
			continue
		}
		all = append(all, c.set(key, value, Origin{layer, path}))
	}
	return errors.Join(all...)
}

// document is a koanf provider of bytes that are already read.
type document []byte

func (t document) ReadBytes() ([]byte, error)    { return t, nil }
func (t document) Read() (map[string]any, error) { return nil, errors.New("not a map") }

// plain is a scalar as the text that a variable or a flag would hold.
func plain(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64, bool:
		return fmt.Sprint(v), nil
	default:
		return "", fmt.Errorf("a text, a whole number or a truth value is wanted")
	}
}

func (c *Config) environment(lookup func(string) (string, bool)) error {
	if lookup == nil {
		return nil
	}
	var all []error
	for _, k := range keys {
		name := Variable(k.name)
		if value, ok := lookup(name); ok {
			all = append(all, c.set(k.name, value, Origin{Env, name}))
		}
	}
	return errors.Join(all...)
}

func (c *Config) flags(values map[string]string) error {
	var all []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, c.set(key, values[key], Origin{Flag, key}))
	}
	return errors.Join(all...)
}
