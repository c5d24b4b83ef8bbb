package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
)

// entry is one operation of an answer of the verb plane.
type entry struct {
	OK          bool            `json:"ok"`
	Disposition string          `json:"domain_disposition"`
	Result      json.RawMessage `json:"result"`
	Error       struct {
		Code    string            `json:"code"`
		Message string            `json:"message"`
		Reason  string            `json:"reason"`
		Next    string            `json:"next"`
		Rules   []string          `json:"rules"`
		Facts   map[string]string `json:"facts"`
	} `json:"error"`
}

type envelope struct {
	Results []entry `json:"results"`
}

// ask has the agent ask for verbs with the request tool.
func (a *agent) ask(ctx context.Context, ops string) ([]entry, error) {
	a.print("   request %s\n", ops)
	res, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: "request", Arguments: map[string]any{"ops": ops, "presentation": "verbose"}})
	if err != nil {
		return nil, fmt.Errorf("request: %w%s", err, a.stderr)
	}
	var got envelope
	if err := json.Unmarshal([]byte(text(res)), &got); err != nil {
		return nil, fmt.Errorf("request: %w in %s", err, text(res))
	}
	return got.Results, nil
}

// look asks for three things in one request, two of them in a chain.
func (d *demo) look(ctx context.Context) (string, error) {
	got, err := d.agent.ask(ctx, `[whoami(), workspace.search(pattern="start = .* - ", glob="*.py") | workspace.read(path=$prev.items[0].path)]`)
	if err != nil {
		return "", err
	}
	if len(got) != 3 || !got[0].OK || !got[1].OK || !got[2].OK {
		return "", fmt.Errorf("not all of it was answered: %+v", got)
	}
	var who struct {
		Actor struct{ Kind, ID string } `json:"actor"`
	}
	var file struct {
		Path  string `json:"path"`
		Lines int    `json:"lines"`
	}
	if err := errors.Join(json.Unmarshal(got[0].Result, &who), json.Unmarshal(got[2].Result, &file)); err != nil {
		return "", err
	}
	return fmt.Sprintf("reeve knows the agent as %s %s; the search led to %s, %d lines", who.Actor.Kind, who.Actor.ID, file.Path, file.Lines),
		expect(file.Path == d.found.file, "the search led to %s, not to %s", file.Path, d.found.file)
}

// denied asks for what the policy forbids and shows what the agent is told.
func (d *demo) denied(ctx context.Context) (string, error) {
	got, err := d.agent.ask(ctx, `workspace.write(path=".git/hooks/pre-commit", content="#!/bin/sh\n")`)
	if err != nil {
		return "", err
	}
	if len(got) != 1 || got[0].OK {
		return "", fmt.Errorf("it was let through: %+v", got)
	}
	e := got[0]
	d.printf("   %s (%s)\n   rules %v, facts %v\n   next: %s\n", e.Error.Reason, e.Disposition, e.Error.Rules, e.Error.Facts, e.Error.Next)
	hook, err := d.git(ctx, "status", "--porcelain", "--ignored")
	if err != nil {
		return "", err
	}
	return "refused before anything was done, with the rule, the fact and what to do instead", errors.Join(
		expect(e.Error.Code == "permission_denied" && e.Disposition == "not_committed", "code %s, %s", e.Error.Code, e.Disposition),
		expect(len(e.Error.Rules) == 1 && e.Error.Rules[0] == "git-stays-git", "rules %v", e.Error.Rules),
		expect(!strings.Contains(hook, "hooks"), "git sees %q", hook))
}

// speak has the agent say something, which is held, and the operator approve it.
func (d *demo) speak(ctx context.Context) (string, error) {
	got, err := d.agent.ok(ctx, `
from reeve import local
receipt = await local.send("The negative start is mended; all tests pass.")
print(receipt["status"], receipt["reason"])
receipt["effect_id"]`)
	if err != nil {
		return "", err
	}
	id := strings.Trim(got.value(), "'")
	if !strings.HasPrefix(got.printed(), "held") || !strings.HasPrefix(id, "eff_") {
		return "", fmt.Errorf("it was not held: %s %s", got.printed(), id)
	}
	operator := event.Actor{Kind: "operator", Name: "demo", Surface: "cli"}
	answer, err := d.core.Request(ctx, control.RequestCall{
		Ops: fmt.Sprintf("held.approve(id=%q, note=\"well done\")", id), Presentation: "verbose", By: operator, Session: got.Session,
	})
	if err != nil {
		return "", err
	}
	if answer.Failed {
		return "", fmt.Errorf("the approval failed: %s", answer.Body)
	}
	d.printf("   operator: reeve held approve %s --note 'well done'\n", id)
	told, err := d.agent.ask(ctx, `runtime.inspect()`)
	if err != nil {
		return "", err
	}
	if len(told) != 1 || !told[0].OK || !strings.Contains(string(told[0].Result), "The operator approved "+id) {
		return "", fmt.Errorf("the agent was not told: %+v", told)
	}
	return "held until the operator approved it; the agent was told by an input", nil
}
