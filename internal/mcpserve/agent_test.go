package mcpserve_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/mcpserve"
)

func TestHintsAreInTermsOfTools(t *testing.T) {
	t.Parallel()
	for hint, want := range map[string]string{
		"":                "",
		"reeve cell list": "use the tool status",
		"look at the store with reeve status, then try again":       "look at the store with the tool status, then try again",
		"see what became of it with reeve cell show cell_0a":        "see what became of it with the tool status with cell=cell_0a",
		"reeve session show s-1 tells how it ended":                 "the tool status with session=s-1 tells how it ended",
		"run reeve ns reset s to try once more":                     "for the operator: run reeve ns reset s to try once more",
		"run reeve verify, and use another session meanwhile":       "for the operator: run reeve verify, and use another session meanwhile",
		"ask the operator to run: reeve policy test":                "ask the operator to run: reeve policy test",
		"do not repeat it: reeve act show a-1 tells its outcome":    "for the operator: do not repeat it: reeve act show a-1 tells its outcome",
		"try again, which starts it anew":                           "try again, which starts it anew",
		"wait for one to end, interrupt one, or raise limits.queue": "wait for one to end, interrupt one, or raise limits.queue",
		"use the reeve that made the file":                          "use the reeve that made the file",
		"reeve cell interrupt cell_0a, or wait":                     "the tool interrupt with cell=cell_0a, or wait",
	} {
		if got := mcpserve.InTools(hint); got != want {
			t.Errorf("%q: %q, want %q", hint, got, want)
		}
	}
}

// What a call names and is not there is spoken of as what it is.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, unknownNames)
}

func unknownNames(t *testing.T) {
	m := newMemory()
	cs := connect(t, mcpserve.Options{Dial: dialled(m), Session: "own"}, nil)
	g, res := call(t, cs, "interrupt", map[string]any{"session": "other"})
	if !res.IsError || g.Fault == nil || g.Fault.Code != fault.NotFound || strings.Contains(words(res), "cell") || g.Cell != "" {
		t.Errorf("an unknown session: %+v, %s", g, words(res))
	}
	g, res = call(t, cs, "interrupt", nil)
	if res.IsError || g.Found || !strings.Contains(words(res), "own") || strings.Contains(words(res), "handle") {
		t.Errorf("the own session, not opened: %+v, %s", g, words(res))
	}
	g, res = call(t, cs, "interrupt", map[string]any{"cell": "cell_none"})
	if !res.IsError || g.Fault == nil || g.Cell != "cell_none" {
		t.Errorf("an unknown cell: %+v", g)
	}
	g, res = call(t, cs, "status", map[string]any{"cell": "cell_none"})
	if !res.IsError || g.Fault == nil || g.Fault.Next != "use the tool status" || g.Core.Reachable == nil || !*g.Core.Reachable || g.Core.Fault != nil {
		t.Errorf("status of an unknown cell: %+v", g)
	}
	if g, _ := call(t, cs, "status", map[string]any{"offset": 3}); g.Core.Reachable != nil {
		t.Errorf("arguments that were not sent: %+v", g)
	}
	m.leave()
	g, res = call(t, cs, "status", map[string]any{"cell": "cell_none"})
	if !res.IsError || g.Core.Reachable == nil || *g.Core.Reachable || g.Core.Fault == nil {
		t.Errorf("status of a cell without a core: %+v", g)
	}
}
