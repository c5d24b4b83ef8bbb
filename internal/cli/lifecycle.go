package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
)

func (a *app) cmdUp() *cobra.Command {
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the core, if it does not run",
		Long: `Start the core of the data directory, if it does not run, and say what it found.
Commands that need a core start one by themselves; up is for doing it beforehand.`,
		Example: `  reeve up                        start it and show its sessions
  reeve up --json                 the same as one JSON envelope
  reeve up --dir /tmp/try         a core of its own, beside the default one`,
	}
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		st, err := c.Status(ctx)
		if err != nil {
			return failed(err)
		}
		sessions, err := c.ListSessions(ctx)
		if err != nil {
			return failed(err)
		}
		gone, err := goneNamespaces(ctx, c, sessions)
		if err != nil {
			return failed(err)
		}
		return answer{kind: "status", data: st, text: func(p printer) {
			p.line("core %d is up in %s", st.PID, st.Dir)
			if st.LastRecovery != "" {
				p.line("%s", inert(st.LastRecovery))
			}
			for _, l := range gone {
				p.line("%s", l)
			}
		}}
	}))
}

// goneNamespaces says of each session without a worker what its namespace held.
func goneNamespaces(ctx context.Context, c control.Service, sessions []control.Session) ([]string, error) {
	var lines []string
	for _, s := range sessions {
		switch s.State {
		case "quarantined":
			lines = append(lines, fmt.Sprintf("session %s is quarantined: %s", s.Session, visible(s.Reason)))
			continue
		case "stopped":
		default:
			continue
		}
		n, err := c.Namespace(ctx, s.Session)
		if err != nil {
			return nil, err
		}
		held := "nothing"
		if len(n.Names) > 0 {
			held = visible(strings.Join(n.Names[:min(len(n.Names), 20)], ", "))
		}
		if more := len(n.Names) - 20; more > 0 {
			held += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, fmt.Sprintf("session %s: its namespace is gone (%s); it held %s", s.Session, visible(s.Reason), held))
	}
	return lines, nil
}

// stopped is the answer of down.
type stopped struct {
	Dir     string `json:"dir"`
	PID     int    `json:"pid"` // 0 when no core ran
	Stopped bool   `json:"stopped"`
}

// goneWithin is longer than a core gives running cells to end.
const goneWithin = 60 * time.Second

func (a *app) cmdDown() *cobra.Command {
	c := &cobra.Command{
		Use:   "down",
		Short: "Stop the core and its workers",
		Long: `Stop the core: no new work is taken, running cells are interrupted, workers end, and
what their namespaces held is recorded. Returns when the core has gone. It is no
error when none runs.`,
		Example: `  reeve down                      stop it and wait until it has gone
  reeve down --timeout 5s         wait no longer than that
  reeve down && reeve up          change to the version of this binary`,
	}
	return a.does(c, func(ctx context.Context, _ []string) answer {
		dir, err := a.dataDir()
		if err != nil {
			return failed(err)
		}
		limit := goneWithin
		if a.set.timeout != 0 {
			limit = a.set.timeout
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		did, err := a.stop(ctx, dir)
		return answer{kind: "stopped", data: did, err: err, text: func(p printer) {
			switch {
			case err != nil:
			case did.Stopped:
				p.line("core %d has stopped", did.PID)
			default:
				p.line("no core runs in %s", dir)
			}
		}}
	})
}

func (a *app) stop(ctx context.Context, dir string) (stopped, error) {
	did := stopped{Dir: dir}
	c, err := control.Reach(ctx, dir)
	switch {
	case err == nil:
		did.PID = c.Core().PID
		if err := c.Shutdown(ctx, a.actor()); err != nil {
			return did, err
		}
	case !fault.HasCode(err, fault.Unavailable):
		return did, err
	}
	// Nobody may listen while an earlier stop is still at work; the lock tells.
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		owner, held, err := durable.LockOwner(filepath.Join(dir, "lock"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return did, err
		}
		if !held {
			did.Stopped = did.PID != 0
			return did, nil
		}
		if owner.PID != 0 { // a core that is leaving has taken its name out already
			did.PID = owner.PID
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return did, ctx.Err()
			}
			return did, fault.New(fault.Timeout, "stop core", fmt.Sprint(owner.PID), "it has been asked and has not gone yet").Retryable().
				WithNext("wait and repeat reeve down, or look into %s", filepath.Join(dir, "core.log"))
		case <-t.C:
		}
	}
}

func (a *app) cmdStatus() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the core and the sessions in it",
		Long: `Show the running core, its store and its sessions. Starts no core: when none runs,
that is the answer, with status 11.`,
		Example: `  reeve status                    for people
  reeve status --json --jq .data.running
  reeve status --fields pid,version`,
	}
	completeFields(c, members(reflect.TypeFor[control.Status]()))
	return a.does(c, func(ctx context.Context, _ []string) answer {
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		c, _, err := a.running(ctx)
		if err != nil {
			return failed(err)
		}
		st, err := c.Status(ctx)
		if err != nil {
			return failed(err)
		}
		sessions, err := c.ListSessions(ctx)
		if err != nil {
			return failed(err)
		}
		return answer{kind: "status", data: st, text: func(p printer) { showStatus(p, st, sessions) }}
	})
}

func showStatus(p printer, st control.Status, sessions []control.Session) {
	store := st.Store.Engine + ", synchronous " + st.Store.Synchronous + ", " + st.Store.State
	if st.Store.Reason != "" {
		store += ": " + st.Store.Reason
	}
	unrecorded := ""
	if st.Unrecorded > 0 {
		unrecorded = count(st.Unrecorded, "outcome is", "outcomes are") + " not committed"
	}
	p.pairs(
		"core", fmt.Sprintf("%d, version %s, up %s", st.PID, st.Version, span(time.Since(time.UnixMilli(st.StartedAtMS)))),
		"data", st.Dir,
		"store", store,
		"events", fmt.Sprint(st.Events),
		"isolation", st.Isolation,
		"work", fmt.Sprintf("%d running, %d queued, %s", st.Running, st.Queued, count(int64(st.Workers), "worker", "workers")),
		"recovery", st.LastRecovery,
		"unrecorded", unrecorded,
	)
	if len(sessions) > 0 {
		p.line("")
		sessionTable(p, sessions)
	}
}

func (a *app) cmdPS() *cobra.Command {
	c := &cobra.Command{
		Use:   "ps",
		Short: "List every process of the core, with its owner",
		Long: `List the core, the parents of its workers, the workers, and whatever cells have
started that still runs. Starts no core.`,
		Example: `  reeve ps                        all of them
  reeve ps --json --jq '.data[] | select(.kind=="descendant")'
  reeve ps --fields pid,session   two columns`,
	}
	completeFields(c, members(reflect.TypeFor[control.Process]()))
	return a.does(c, func(ctx context.Context, _ []string) answer {
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		c, _, err := a.running(ctx)
		if err != nil {
			return failed(err)
		}
		all, err := c.Processes(ctx)
		return answer{kind: "processes", data: all, rows: true, err: err, text: func(p printer) {
			rows := make([][]string, len(all))
			for i, x := range all {
				rows[i] = []string{fmt.Sprint(x.PID), x.Kind, x.Session, x.Generation, bytesText(x.RSSBytes), millis(x.CPUMS), p.when(x.StartedMS), clip(x.Command, 60)}
			}
			p.table("nothing runs", []string{"PID", "KIND", "SESSION", "GENERATION", "MEMORY", "CPU", "STARTED", "COMMAND"}, rows)
		}}
	})
}

// made is the answer of init.
type made struct {
	Dir     string `json:"dir"`
	Created bool   `json:"created"`
	Session string `json:"session"` // of the working directory
	Policy  string `json:"policy"`  // file that was written, empty when there was a policy
}

// writePolicy puts the shipped policy into a data directory that has none, for the
// operator to read and change. It returns the file, or nothing.
func writePolicy(dir string) (string, error) {
	in := filepath.Join(dir, "policy")
	if _, err := os.Stat(in); !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	s := gate.DefaultSource()
	// The directory appears with the file in it: an empty one is no policy.
	making, err := os.MkdirTemp(dir, ".policy-")
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "write policy", in)
	}
	defer func() { _ = os.RemoveAll(making) }()
	if err := durable.WriteFile(filepath.Join(making, s.Name), s.Text, 0o600); err != nil {
		return "", err
	}
	if err := durable.Rename(making, in); err != nil {
		return "", err
	}
	return filepath.Join(in, s.Name), nil
}

func (a *app) cmdInit() *cobra.Command {
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the data directory and check that reeve can work",
		Long: `Make the data directory, for this user only, write the policy into it that says what
agents may do, unless it has one, and check what a first cell needs. Other commands make
the directory as well; init is for knowing beforehand.`,
		Example: `  reeve init                      the default directory
  reeve init --dir /srv/reeve     another one
  reeve init && reeve cell run 'print("hello")'`,
	}
	return a.does(c, func(ctx context.Context, _ []string) answer {
		dir, err := a.dataDir()
		if err != nil {
			return failed(err)
		}
		_, statErr := os.Stat(dir)
		if err := durable.MkdirAll(dir, 0o700); err != nil {
			return failed(err)
		}
		m := made{Dir: dir, Created: errors.Is(statErr, os.ErrNotExist), Session: DefaultSession(a.io.WorkDir)}
		if m.Policy, err = writePolicy(dir); err != nil {
			return failed(err)
		}
		report := a.examine(ctx, dir, func(id string) bool {
			return strings.HasPrefix(id, "python.") || strings.HasPrefix(id, "dir.") || strings.HasPrefix(id, "config.")
		})
		return answer{kind: "made", data: m, err: report.err(), text: func(p printer) {
			if m.Created {
				p.line("made %s", dir)
			} else {
				p.line("%s is there already", dir)
			}
			if m.Policy != "" {
				p.line("wrote %s: what agents may do, to be read and changed", m.Policy)
			}
			report.show(p, false)
			if report.err() == nil {
				p.line("ready: reeve cell run 'print(1+1)'")
			}
		}}
	})
}

func (a *app) cmdCore() *cobra.Command {
	var with []string
	c := &cobra.Command{
		Use:    "core",
		Short:  "Be the core of a data directory",
		Long:   "Be the core of a data directory until asked to stop. reeve up starts it in the background.",
		Hidden: true,
		Example: `  reeve core --dir ./data         in the foreground
  reeve core -c log.level=debug   saying more
  reeve core -c worker.python=/usr/bin/python3`,
	}
	c.Flags().StringArrayVarP(&with, "config", "c", nil, "a setting, as key=value; may be repeated")
	return a.does(c, func(ctx context.Context, _ []string) answer {
		dir, err := a.dataDir()
		if err != nil {
			return failed(err)
		}
		set := map[string]string{}
		for _, kv := range with {
			k, v, ok := strings.Cut(kv, "=")
			if !ok {
				return failed(fault.New(fault.Usage, "read arguments", "-c "+kv, "it has the form key=value"))
			}
			set[k] = v
		}
		if a.programs.Core == nil {
			return failed(missing("core"))
		}
		return answer{kind: "ended", err: a.programs.Core(ctx, dir, set, a.io.Err)}
	})
}

func missing(what string) error {
	return fault.New(fault.Unavailable, "run", what, "this build does not have it")
}
