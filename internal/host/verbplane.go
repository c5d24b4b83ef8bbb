package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/gate"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/dispatch"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/internal/packs/act"
	"github.com/reeve-run/reeve/internal/packs/audit"
	"github.com/reeve-run/reeve/internal/packs/catalogue"
	"github.com/reeve-run/reeve/internal/packs/evidence"
	"github.com/reeve-run/reeve/internal/packs/held"
	"github.com/reeve-run/reeve/internal/packs/local"
	"github.com/reeve-run/reeve/internal/packs/policy"
	"github.com/reeve-run/reeve/internal/packs/runtime"
	"github.com/reeve-run/reeve/internal/packs/workbench"
	"github.com/reeve-run/reeve/internal/packs/workspace"
	"github.com/reeve-run/reeve/secret"
	"github.com/reeve-run/reeve/verbs"
)

// serveVerbs puts the verb plane together: auditor, packs, gate, dispatcher.
func (c *Core) serveVerbs(ctx context.Context) error {
	var err error
	if c.auditor, err = newAuditor(ctx, c); err != nil {
		return err
	}
	registry, err := verbs.Build(verbs.Config{Packs: c.packs()})
	if err != nil {
		return err
	}
	c.registry = registry
	c.dispatcher, err = dispatch.New(dispatch.Options{
		Registry: registry, Ledger: ledger{c}, Log: c.log, Work: c.work, Reads: dispatch.Reads(c.config.Audit.Reads),
		Secrets: secret.First, Mask: secret.Mask,
	})
	if err != nil {
		return err
	}
	c.loadPolicy()
	if c.catalogue, err = describe(filepath.Join(c.dirs.root, "verbs.json"), registry); err != nil {
		return err
	}
	go c.auditor.run(c.hard)
	return nil
}

// describe writes what cells know of the verbs: help in Python is made from it.
func describe(file string, r *verbs.Registry) (string, error) {
	type param struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Required    bool   `json:"required"`
		Description string `json:"description"`
	}
	type verb struct {
		Verb        string  `json:"verb"`
		Pack        string  `json:"pack"`
		Effect      string  `json:"effect"`
		Description string  `json:"description"`
		Params      []param `json:"params"`
	}
	all := []verb{}
	for _, v := range r.Catalogue("", "") {
		d := verb{Verb: v.Name, Pack: v.Pack, Effect: string(v.Effect), Description: v.Description, Params: []param{}}
		for _, p := range v.Params {
			d.Params = append(d.Params, param{p.Name, string(p.Type), p.Required, p.Description})
		}
		all = append(all, d)
	}
	b, err := json.Marshal(map[string]any{"verbs": all})
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "describe verbs", file)
	}
	return file, durable.WriteFile(file, b, 0o600)
}

// Catalogue is the registry of this build without anything that serves it (VD-096):
// front ends describe verbs from it.
func Catalogue() (*verbs.Registry, error) {
	return verbs.Build(verbs.Config{Packs: (&Core{}).packs()})
}

// packs are what this binary can do; a pack is trusted because it stands here
// (VD-091).
func (c *Core) packs() []verbs.Pack {
	return []verbs.Pack{
		catalogue.Pack(desk{c}),
		runtime.Pack(desk{c}),
		workbench.Pack(desk{c}),
		local.Pack(),
		workspace.Pack(c.workspaceOptions()),
		evidence.Pack(desk{c}),
		act.Pack(acts{c}),
		held.Pack(queue{c}),
		audit.Pack(desk{c}),
		policy.Pack(rulings{c}),
	}
}

// work is the state of the work scope of a session. No scope can be opened yet, so
// none is authorized.
func (c *Core) work(string) gate.Work { return gate.Work{Discipline: c.config.Work.Discipline} }

// loadPolicy puts the operator's policy in force, or the shipped one when there is
// none. One that cannot be used refuses everything: the operator hears it from every
// denial, and nothing passes meanwhile.
func (c *Core) loadPolicy() {
	sources, err := PolicySources(c.dirs.root)
	if err != nil {
		c.dispatcher.SetPolicy(nil, err)
		return
	}
	set, err := gate.Load(sources)
	if err != nil {
		c.log.Error("the policy cannot be used: every act is refused", "cause", err)
	}
	c.dispatcher.SetPolicy(set, err)
}

// PolicyDir is where an operator's policies lie in a data directory.
func PolicyDir(root string) string { return filepath.Join(root, "policy") }

// PolicySources reads the policies of a data directory: every *.cedar in it, or the
// shipped one when the directory does not exist. An empty directory is an error: it
// is not the same as having said nothing.
func PolicySources(root string) ([]gate.Source, error) {
	dir := PolicyDir(root)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return []gate.Source{gate.DefaultSource()}, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "read policy", dir)
	}
	var sources []gate.Source
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".cedar") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "read policy", e.Name())
		}
		sources = append(sources, gate.Source{Name: e.Name(), Text: text})
	}
	if len(sources) == 0 {
		return nil, fault.New(fault.Usage, "read policy", dir, "there is no .cedar file in it").
			WithNext("write one (reeve policy show --shipped prints the shipped one), or remove the directory")
	}
	return sources, nil
}

// caller is who asks, as dispatch knows it.
func (c *Core) caller(by event.Actor, session, workspace string, agent bool) dispatch.Caller {
	return dispatch.Caller{
		Identity: verbs.Identity{Actor: verbs.NewActor(by.Kind, by.Name)},
		By:       by, Session: session, Workspace: workspace, Agent: agent,
	}
}

// Registry implements catalogue.Source.
func (d desk) Registry() *verbs.Registry { return d.core.registry }

// Build implements catalogue.Source.
func (d desk) Build() map[string]string {
	return map[string]string{"version": control.Version, "host": d.core.host.ID}
}

// Stats implements catalogue.Source.
func (d desk) Stats(ctx context.Context) (map[string]int64, error) {
	u, err := d.core.Usage(ctx)
	if err != nil {
		return nil, err
	}
	sessions, err := d.core.countSessions(ctx)
	return map[string]int64{
		"events": u.Events, "sessions": int64(sessions), "artifacts": u.Artifacts, "artifact_bytes": u.ArtifactBytes,
		"database_bytes": u.DatabaseBytes, "verbs": int64(len(d.core.registry.Catalogue("", ""))),
	}, err
}
