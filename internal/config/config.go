// Package config is what an operator may set, and from where: command line flag,
// then environment (REEVE_*), project file (.reeve/config.toml), data directory
// and user file, managed file (/etc/reeve), default.
//
// Invariants: a key that is not in the table here is an error that names the
// nearest one, never ignored; a project file may only tighten what is set without
// it, since it comes with the code and not from the operator; every value knows
// its origin. The package does not know who uses the values.
package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/worker"
)

// Config is every setting with a value.
type Config struct {
	Core   Core
	Worker Worker
	Limits Limits
	Log    Log
	Audit  Audit
	Work   Work
	MCP    MCP

	origins map[string]Origin
}

// Core says how long a core runs.
type Core struct {
	Owner int // process whose end is the core's too; 0 is none
}

// Audit says how operations are recorded.
type Audit struct {
	Reads string // sync: a read waits a little for its row; async: never (VD-209)
}

// MCP says what MCP clients see.
type MCP struct {
	Surface string // request | agent | developer: which tools there are
}

// Work says what a change of the workspace needs.
type Work struct {
	Discipline string // off | advisory | enforced (CP-062)
}

// Worker says how workers are started and how they are ended.
type Worker struct {
	Python string // a path, or a name on PATH
	Timing worker.Timing
}

// Limits bound what a session may take.
type Limits struct {
	Queue     int           // cells that may wait behind the running one
	Restarts  int           // quick deaths in a row that stop a session
	IdleStop  time.Duration // a worker without a cell for this long is stopped; 0 is never
	StopGrace time.Duration // for running cells, when the core is told to stop
}

// Log says what goes to the core's log.
type Log struct {
	Level string // debug | info | warn | error
}

// Origin says where a value comes from.
type Origin struct {
	Layer Layer
	Where string // file path, name of a variable or of a flag; empty for a default
}

func (o Origin) String() string {
	if o.Where == "" {
		return string(o.Layer)
	}
	return fmt.Sprintf("%s %s", o.Layer, o.Where)
}

// Layer is a kind of source.
type Layer string

// Layers, weakest first.
const (
	Default Layer = "default"
	Managed Layer = "managed file"
	User    Layer = "user file"
	Data    Layer = "data directory file"
	Project Layer = "project file"
	Env     Layer = "variable"
	Flag    Layer = "flag"
)

// Defaults is the configuration without any source.
func Defaults() Config {
	c := Config{
		Worker: Worker{Python: "python3", Timing: worker.DefaultTiming()},
		Limits: Limits{
			Queue:     16,
			Restarts:  worker.DefaultPolicy().Max,
			IdleStop:  12 * time.Hour,
			StopGrace: 3 * time.Second,
		},
		Log:     Log{Level: "info"},
		Audit:   Audit{Reads: "sync"},
		Work:    Work{Discipline: "off"},
		MCP:     MCP{Surface: "agent"},
		origins: map[string]Origin{},
	}
	for _, k := range keys {
		c.origins[k.name] = Origin{Layer: Default}
	}
	return c
}

// Origin says where the value of key comes from.
func (c Config) Origin(key string) (Origin, bool) {
	o, ok := c.origins[key]
	return o, ok
}

// Keys returns the names of all settings, sorted.
func Keys() []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// Value is the text of a setting as a file would give it.
func (c Config) Value(key string) (string, bool) {
	k, ok := find(key)
	if !ok {
		return "", false
	}
	return k.get(&c), true
}

// Variable is the name of the environment variable that sets key.
func Variable(key string) string {
	return "REEVE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// set gives key a value from one source.
func (c *Config) set(key, value string, from Origin) error {
	k, ok := find(key)
	if !ok {
		return unknown(key, from)
	}
	before := *c
	before.Worker.Timing.Ladder = slices.Clone(c.Worker.Timing.Ladder)
	if err := k.set(c, value); err != nil {
		return fault.New(fault.Usage, "read setting", key, "%s says %q: %v", from, value, err)
	}
	if from.Layer == Project {
		if why := k.project(&before, c); why != "" {
			*c = before
			return fault.New(fault.Usage, "read setting", key, "%s %s", from, why).
				WithNext("remove %s from %s, or set it in the user file", key, from.Where)
		}
	}
	c.origins[key] = from
	return nil
}

func unknown(key string, from Origin) error {
	err := fault.New(fault.Usage, "read setting", key, "%s has a key that does not exist", from)
	if near, ok := fault.Nearest(key, Keys()); ok {
		return err.WithNext("did you mean %s?", near)
	}
	return err.WithNext("use one of %s", strings.Join(Keys(), ", "))
}
