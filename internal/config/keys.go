package config

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/reeve-run/reeve/worker"
)

// setting is one key: its name, how it is read and shown, and what a project file
// may do to it.
type setting struct {
	name string
	get  func(*Config) string
	set  func(*Config, string) error
	// project returns why a project file may not change before to after, or "".
	project func(before, after *Config) string
}

// keys is every setting, sorted by name.
var keys = []setting{
	owner,
	choice("audit.reads", []string{"sync", "async"}, func(c *Config) *string { return &c.Audit.Reads }),
	discipline,
	choice("mcp.surface", []string{"request", "agent", "developer"}, func(c *Config) *string { return &c.MCP.Surface }),
	limitCount("limits.queue", 1, 10_000, func(c *Config) *int { return &c.Limits.Queue }),
	limitCount("limits.restarts", 1, 100, func(c *Config) *int { return &c.Limits.Restarts }),
	idleStop,
	limitTime("limits.stop_grace", 0, time.Hour, func(c *Config) *time.Duration { return &c.Limits.StopGrace }),
	choice("log.level", []string{"debug", "info", "warn", "error"}, func(c *Config) *string { return &c.Log.Level }),
	rung(worker.RungCancel),
	rung(worker.RungClose),
	rung(worker.RungSignal),
	rung(worker.RungKill),
	rung(worker.RungTerminate),
	text("worker.python", func(c *Config) *string { return &c.Worker.Python }),
	limitTime("worker.shutdown_timeout", 10*time.Millisecond, 5*time.Minute, func(c *Config) *time.Duration { return &c.Worker.Timing.Shutdown }),
	limitTime("worker.start_timeout", 100*time.Millisecond, 10*time.Minute, func(c *Config) *time.Duration { return &c.Worker.Timing.Start }),
}

func init() {
	slices.SortFunc(keys, func(a, b setting) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
}

func find(name string) (setting, bool) {
	for _, k := range keys {
		if k.name == name {
			return k, true
		}
	}
	return setting{}, false
}

func limitCount(name string, low, high int, at func(*Config) *int) setting {
	return setting{
		name: name,
		get:  func(c *Config) string { return strconv.Itoa(*at(c)) },
		set: func(c *Config, s string) error {
			n, err := strconv.Atoi(s)
			if err != nil {
				return fmt.Errorf("not a whole number")
			}
			if n < low || n > high {
				return fmt.Errorf("not within %d to %d", low, high)
			}
			*at(c) = n
			return nil
		},
		project: func(before, after *Config) string {
			if *at(after) > *at(before) {
				return fmt.Sprintf("raises it from %d to %d; a project may only lower it", *at(before), *at(after))
			}
			return ""
		},
	}
}

func limitTime(name string, low, high time.Duration, at func(*Config) *time.Duration) setting {
	return setting{
		name: name,
		get:  func(c *Config) string { return at(c).String() },
		set: func(c *Config, s string) error {
			d, err := parseTime(s, low, high)
			if err == nil {
				*at(c) = d
			}
			return err
		},
		project: func(before, after *Config) string {
			if *at(after) > *at(before) {
				return fmt.Sprintf("raises it from %s to %s; a project may only lower it", *at(before), *at(after))
			}
			return ""
		},
	}
}

func parseTime(s string, low, high time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("not a time like 10s or 1m30s")
	}
	if d < low || d > high {
		return 0, fmt.Errorf("not within %s to %s", low, high)
	}
	return d, nil
}

// idleStop differs from the other times in that zero is the loosest value.
var idleStop = setting{
	name: "limits.idle_stop",
	get:  func(c *Config) string { return c.Limits.IdleStop.String() },
	set: func(c *Config, s string) error {
		d, err := parseTime(s, 0, 365*24*time.Hour)
		if err == nil {
			c.Limits.IdleStop = d
		}
		return err
	},
	project: func(before, after *Config) string {
		was, is := before.Limits.IdleStop, after.Limits.IdleStop
		if was != 0 && (is == 0 || is > was) {
			return fmt.Sprintf("raises it from %s to %s; a project may only lower it", was, is)
		}
		return ""
	},
}

// rung is the wait after one step of the interrupt ladder.
func rung(r worker.Rung) setting {
	return limitTime("worker.ladder."+string(r), 10*time.Millisecond, 5*time.Minute, func(c *Config) *time.Duration {
		for i := range c.Worker.Timing.Ladder {
			if c.Worker.Timing.Ladder[i].Rung == r {
				return &c.Worker.Timing.Ladder[i].Wait
			}
		}
		panic("the default ladder has no rung " + string(r))
	})
}

var owner = setting{
	name: "core.owner",
	get:  func(c *Config) string { return strconv.Itoa(c.Core.Owner) },
	set: func(c *Config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return fmt.Errorf("not a process id, nor 0 for none")
		}
		c.Core.Owner = n
		return nil
	},
	project: func(before, after *Config) string {
		return operators(strconv.Itoa(before.Core.Owner), strconv.Itoa(after.Core.Owner))
	},
}

// operators refuses any change by a project file.
func operators(before, after string) string {
	if before != after {
		return "sets it; only the operator may"
	}
	return ""
}

func text(name string, at func(*Config) *string) setting {
	return setting{
		name: name,
		get:  func(c *Config) string { return *at(c) },
		set: func(c *Config, s string) error {
			if s == "" {
				return fmt.Errorf("empty")
			}
			*at(c) = s
			return nil
		},
		project: func(before, after *Config) string { return operators(*at(before), *at(after)) },
	}
}

func choice(name string, of []string, at func(*Config) *string) setting {
	k := text(name, at)
	k.set = func(c *Config, s string) error {
		if !slices.Contains(of, s) {
			return fmt.Errorf("not one of %v", of)
		}
		*at(c) = s
		return nil
	}
	return k
}

// discipline may be made stricter by a project and never looser.
var discipline = func() setting {
	degrees := []string{"off", "advisory", "enforced"}
	k := choice("work.discipline", degrees, func(c *Config) *string { return &c.Work.Discipline })
	k.project = func(before, after *Config) string {
		if slices.Index(degrees, after.Work.Discipline) < slices.Index(degrees, before.Work.Discipline) {
			return fmt.Sprintf("lowers it from %s to %s; a project may only raise it", before.Work.Discipline, after.Work.Discipline)
		}
		return ""
	}
	return k
}()
