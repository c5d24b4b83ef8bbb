package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/cli"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/demo"
	"github.com/reeve-run/reeve/internal/host"
	"github.com/reeve-run/reeve/internal/mcpserve"
	"github.com/reeve-run/reeve/internal/mcpserve/install"
)

// programs puts the parts together that the command line may not import.
func programs() cli.Programs {
	return cli.Programs{
		Core:     host.Main,
		MCP:      serveMCP,
		Install:  installMCP,
		Demo:     runDemo,
		Verify:   host.VerifyDir,
		Usage:    host.UsageDir,
		Policies: host.PolicySources,
		Probes:   append(pythonProbes(), probes...),
		About:    map[string]string{"sqlite": lib.SQLITE_VERSION, "mcp": module("github.com/modelcontextprotocol/go-sdk")},
	}
}

func serveMCP(ctx context.Context, o cli.MCPOptions) error {
	level := slog.LevelWarn
	if o.Debug {
		level = slog.LevelDebug
	}
	registry, err := host.Catalogue()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	settings, err := config.Load(config.SystemSources(o.Dir))
	if err != nil {
		// The core says what is wrong with the settings, in an answer that the agent sees.
		log.Warn("the settings cannot be read", "cause", err)
		settings = config.Defaults()
	}
	options := mcpserve.Options{
		Verbs:     registry.Catalogue("", ""),
		Surface:   settings.MCP.Surface,
		Dial:      func(ctx context.Context) (control.Service, error) { return control.Launch(ctx, o.Dir) },
		Version:   control.Version,
		Workspace: o.Workspace,
		Session:   o.Session,
		Log:       log,
	}
	if o.HTTP == "" {
		return mcpserve.Stdio(ctx, options)
	}
	return serveWeb(ctx, o, options)
}

// serveWeb serves many clients over HTTP. Where, and with which token, is said on
// standard error once they can come.
func serveWeb(ctx context.Context, o cli.MCPOptions, options mcpserve.Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fault.Wrap(err, fault.Unavailable, "make data directory", o.Dir)
	}
	token, err := mcpserve.Token(o.Dir)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.HTTP)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "listen", o.HTTP).WithNext("pass another address, or stop what listens there")
	}
	web, err := mcpserve.NewWeb(options, mcpserve.HTTPOptions{Token: token, Expose: o.Expose, Hosts: o.Hosts}, l.Addr())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	fmt.Fprintf(os.Stderr, "serving http://%s%s; clients need the token in %s\n", l.Addr(), mcpserve.Path, filepath.Join(o.Dir, mcpserve.TokenFile))
	return web.Serve(ctx, l)
}

func runDemo(ctx context.Context, o cli.DemoOptions) (cli.DemoReport, error) {
	r, err := demo.Run(ctx, demo.Options{Keep: o.Keep, Out: o.Out})
	out := cli.DemoReport{Dir: r.Dir, Steps: []cli.DemoStep{}, Timeline: []cli.DemoMoment{}, Verify: r.Verify}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, cli.DemoStep(s))
	}
	for _, m := range r.Timeline {
		out.Timeline = append(out.Timeline, cli.DemoMoment(m))
	}
	return out, err
}

func installMCP(ctx context.Context, o cli.InstallOptions) (cli.Installed, error) {
	r, err := install.Run(ctx, installOptions(o))
	return cli.Installed{Client: r.Client, Path: r.Path, Diff: r.Diff, Written: r.Written, Next: r.Next}, err
}

func installOptions(o cli.InstallOptions) install.Options {
	return install.Options{
		Client: o.Client, Scope: o.Scope, Workspace: o.Workspace, Dir: o.Dir, Exe: binary(),
		Write: o.Write, Confirm: o.Confirm, Getenv: o.Getenv,
	}
}

// binary is the path of this binary, empty when it has none any more.
func binary() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	if _, err := os.Stat(exe); err != nil {
		return ""
	}
	return exe
}

// module is the version of a module in this build.
func module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return filepath.Base(path) + " " + m.Version
		}
	}
	return ""
}

// probes are the checks of doctor that look into parts.
var probes = []cli.Probe{
	{ID: "store.state", Run: checkStore},
	{ID: "store.chain", Run: checkChain},
	{ID: "policy.loads", Run: checkPolicy},
	{ID: "mcp.clients", Run: checkClients},
}

func checkStore(ctx context.Context, s cli.Subject) cli.Finding {
	if s.Core == nil {
		if _, err := os.Stat(filepath.Join(s.Dir, "reeve.db")); err != nil {
			return cli.Found(cli.Skip, "", "there is no journal yet")
		}
		return cli.Found(cli.Skip, "reeve up", "it is looked at while a core runs; reeve verify checks it without one")
	}
	st, err := s.Core.Status(ctx)
	if err != nil {
		return cli.Found(cli.Fail, "reeve status", "%v", err)
	}
	text := fmt.Sprintf("%s, synchronous %s, %d events", st.Store.Engine, st.Store.Synchronous, st.Events)
	switch {
	case st.Store.State != "ok":
		return cli.Found(cli.Fail, "reeve status", "%s: %s: %s", text, st.Store.State, st.Store.Reason)
	case st.Unrecorded > 0:
		return cli.Found(cli.Warn, "reeve status", "%s; %d outcomes could not be committed yet", text, st.Unrecorded)
	}
	return cli.Found(cli.Pass, "", "%s", text)
}

// checkChain verifies the journal if that can be done in the time of a check.
func checkChain(ctx context.Context, s cli.Subject) cli.Finding {
	if _, err := os.Stat(filepath.Join(s.Dir, "reeve.db")); err != nil {
		return cli.Found(cli.Skip, "", "there is no journal yet")
	}
	ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
	defer cancel()
	verify := func() (control.VerifyReport, error) { return host.VerifyDir(ctx, s.Dir) }
	if s.Core != nil {
		verify = func() (control.VerifyReport, error) { return s.Core.Verify(ctx) }
	}
	r, err := verify()
	switch {
	case ctx.Err() != nil:
		return cli.Found(cli.Skip, "reeve verify", "the journal is too long for a quick check")
	case fault.HasCode(err, fault.Conflict): // core.running tells of it
		return cli.Found(cli.Skip, "", "a core that does not answer has the journal open")
	case err != nil:
		return cli.Found(cli.Fail, nextOf(err), "%v", err)
	case r.Code != "":
		return cli.Found(cli.Fail, "reeve verify", "%s: %s", r.Code, r.Text)
	}
	return cli.Found(cli.Pass, "", "%d events in %d streams follow from each other", r.Events, r.Streams)
}

// checkPolicy compiles the policy and runs its examples: one that cannot be used lets
// nothing pass.
func checkPolicy(_ context.Context, s cli.Subject) cli.Finding {
	sources, err := host.PolicySources(s.Dir)
	if err != nil {
		return cli.Found(cli.Fail, nextOf(err), "%v", err)
	}
	set, err := gate.Load(sources)
	if err != nil {
		return cli.Found(cli.Fail, "reeve policy test", "nothing passes: %v", err)
	}
	whose := "of " + host.PolicyDir(s.Dir)
	if _, err := os.Stat(host.PolicyDir(s.Dir)); err != nil {
		whose = "that come with reeve"
	}
	return cli.Found(cli.Pass, "", "the %d rules %s are sound, policy %.12s", len(set.Rules()), whose, set.Digest())
}

// checkClients looks which clients would start this reeve.
func checkClients(ctx context.Context, s cli.Subject) cli.Finding {
	var ready, not []string
	for _, name := range install.Clients() {
		r, err := install.Run(ctx, installOptions(cli.InstallOptions{
			Client: name, Scope: "user", Workspace: s.WorkDir, Getenv: s.Getenv,
		}))
		switch {
		case err != nil:
			return cli.Found(cli.Warn, "mend the configuration of "+name, "%s: %v", name, err)
		case r.Diff == "":
			ready = append(ready, name)
		default:
			not = append(not, name)
		}
	}
	if len(ready) == 0 {
		return cli.Found(cli.Skip, "reeve mcp install claude", "no client is set up to start this reeve (of %v)", not)
	}
	return cli.Found(cli.Pass, "", "set up: %v; not: %v", ready, not)
}
