package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/worker"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// Each source beats the ones below it, and the value says which source won.
func TestTheStrongestSourceWins(t *testing.T) {
	t.Parallel()
	s := config.Sources{
		Managed: write(t, "[limits]\nqueue = 2\n"),
		User:    write(t, "[limits]\nqueue = 3\n"),
		Data:    write(t, "[limits]\nqueue = 4\n"),
		Lookup:  lookup(map[string]string{"REEVE_LIMITS_QUEUE": "5"}),
		Flags:   map[string]string{"limits.queue": "6"},
	}
	for _, c := range []struct {
		want   int
		layer  config.Layer
		weaken func()
	}{
		{6, config.Flag, func() { s.Flags = nil }},
		{5, config.Env, func() { s.Lookup = nil }},
		{4, config.Data, func() { s.Data = "" }},
		{3, config.User, func() { s.User = filepath.Join(t.TempDir(), "none") }},
		{2, config.Managed, func() { s.Managed = "" }},
		{16, config.Default, func() {}},
	} {
		got, err := config.Load(s)
		if err != nil {
			t.Fatal(err)
		}
		origin, ok := got.Origin("limits.queue")
		if got.Limits.Queue != c.want || !ok || origin.Layer != c.layer {
			t.Errorf("queue %d from %s, want %d from %s", got.Limits.Queue, origin, c.want, c.layer)
		}
		c.weaken()
	}
}

func TestEveryKeyReadsWhatItShows(t *testing.T) {
	t.Parallel()
	d := config.Defaults()
	if !slices.IsSorted(config.Keys()) {
		t.Error("keys are not sorted")
	}
	for _, key := range config.Keys() {
		shown, ok := d.Value(key)
		if !ok {
			t.Fatal(key)
		}
		got, err := config.Load(config.Sources{Flags: map[string]string{key: shown}})
		if err != nil {
			t.Errorf("%s = %s: %v", key, shown, err)
		}
		if again, _ := got.Value(key); again != shown {
			t.Errorf("%s: shown %q, read back %q", key, shown, again)
		}
		if _, err := config.Load(config.Sources{Flags: map[string]string{key: ""}}); err == nil {
			t.Errorf("%s may be empty", key)
		}
	}
}

func TestALadderIsSetRungByRung(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Sources{User: write(t, "[worker.ladder]\nsigint = '3s'\nclose = '20ms'\n")})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range c.Worker.Timing.Ladder {
		want := map[worker.Rung]time.Duration{worker.RungSignal: 3 * time.Second, worker.RungClose: 20 * time.Millisecond}[step.Rung]
		if want != 0 && step.Wait != want {
			t.Errorf("%s waits %s", step.Rung, step.Wait)
		}
	}
	if d := config.Defaults(); d.Worker.Timing.Bound() == c.Worker.Timing.Bound() {
		t.Error("a loaded ladder changed the default one")
	}
}

// What cannot be understood is an error that names the place and the way out.
func TestNothingIsIgnored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, next string }{
		"unknown key":      {"[limits]\nqueu = 2\n", "limits.queu", "did you mean limits.queue?"},
		"unknown table":    {"[wroker]\npython = 'x'\n", "wroker.python", "did you mean worker.python?"},
		"far from all":     {"[colours]\nbackground = 'x'\n", "colours.background", "limits.queue, limits"},
		"empty table":      {"[nothing]\n", "nothing", "use one of"},
		"not a number":     {"[limits]\nqueue = 'many'\n", "not a whole number", ""},
		"too many":         {"[limits]\nqueue = 100000\n", "not within 1 to 10000", ""},
		"none":             {"[limits]\nqueue = 0\n", "not within", ""},
		"time as number":   {"[worker]\nstart_timeout = 10\n", "not a time like", ""},
		"time too long":    {"[worker]\nstart_timeout = '99h'\n", "not within", ""},
		"list":             {"[worker]\npython = ['a','b']\n", "worker.python", ""},
		"level":            {"[log]\nlevel = 'loud'\n", "debug", ""},
		"no TOML":          {"limits: queue\n", "read settings", "mend the TOML"},
		"key set twice":    {"[limits]\nqueue = 2\nqueue = 3\n", "read settings", "mend the TOML"},
		"scalar for table": {"worker = 3\n", "worker", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, c.text)
			_, err := config.Load(config.Sources{User: path})
			if err == nil {
				t.Fatal("accepted")
			}
			if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %q, want it to name %q and the file", err, c.want)
			}
			if next := nextOf(err); !strings.Contains(next, c.next) {
				t.Errorf("next is %q, want %q", next, c.next)
			}
		})
	}
}

func nextOf(err error) string {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return nextOf(all.Unwrap()[0])
	}
	if f, ok := err.(*fault.Error); ok {
		return f.Next
	}
	return ""
}

func TestAllMistakesAreToldTogether(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Sources{
		User:   write(t, "[limits]\nqueu = 2\nrestarts = 'x'\n"),
		Lookup: lookup(map[string]string{"REEVE_LOG_LEVEL": "loud"}),
	})
	for _, want := range []string{"limits.queu", "limits.restarts", "REEVE_LOG_LEVEL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestUnknownVariablesAreNobodysMistake(t *testing.T) {
	t.Parallel()
	if _, err := config.Load(config.Sources{Lookup: lookup(map[string]string{"REEVE_HOME": "/x", "REEVE_PYTHON": "y"})}); err != nil {
		t.Error(err)
	}
}

// A project file comes with the code: it may take away, not give.
func TestAProjectMayOnlyTighten(t *testing.T) {
	t.Parallel()
	base, err := config.Load(config.Sources{User: write(t, "[limits]\nqueue = 8\nidle_stop = '1h'\n")})
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"[limits]\nqueue = 7\n":                  true,
		"[limits]\nqueue = 8\n":                  true,
		"[limits]\nqueue = 9\n":                  false,
		"[limits]\nidle_stop = '30m'\n":          true,
		"[limits]\nidle_stop = '2h'\n":           false,
		"[limits]\nidle_stop = '0s'\n":           false,
		"[worker]\npython = './python3'\n":       false,
		"[core]\nowner = 7\n":                    false,
		"[worker]\nstart_timeout = '1s'\n":       true,
		"[worker]\nstart_timeout = '1m'\n":       false,
		"[worker.ladder]\nsigint = '500ms'\n":    true,
		"[worker.ladder]\nsigint = '1m'\n":       false,
		"[log]\nlevel = 'debug'\n":               false,
		"[limits]\nqueue = 7\nrestarts = 1000\n": false,
	} {
		path := write(t, text)
		got, err := base.ForProject(path)
		if ok != (err == nil) {
			t.Errorf("%q: %v, want allowed %t", text, err, ok)
			continue
		}
		if !ok && (fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v", text, err)
		}
		if !ok && got.Limits.Queue != 8 {
			t.Errorf("%q: refused, and yet queue is %d", text, got.Limits.Queue)
		}
	}
	if base.Limits.Queue != 8 || base.Worker.Timing.Ladder[1].Wait != worker.DefaultTiming().Ladder[1].Wait {
		t.Error("a project changed what others start from")
	}
	if base, err = base.ForProject(config.ProjectFile(t.TempDir())); err != nil || base.Limits.Queue != 8 {
		t.Errorf("without a project file: %v", err)
	}
}

func TestSystemSources(t *testing.T) {
	// Not parallel: it sets where the user's files lie.
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(t.TempDir(), "cfg"))
	s := config.SystemSources("/data")
	if s.Data != "/data/config.toml" || !strings.HasSuffix(s.User, "cfg/reeve/config.toml") || s.Managed != "/etc/reeve/config.toml" {
		t.Errorf("%+v", s)
	}
	if config.Variable("worker.start_timeout") != "REEVE_WORKER_START_TIMEOUT" {
		t.Error(config.Variable("worker.start_timeout"))
	}
}
