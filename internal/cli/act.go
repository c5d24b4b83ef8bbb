package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// actRow is an act as lists have it.
type actRow struct {
	Act         string            `json:"act"`
	Session     string            `json:"session"`
	Verb        string            `json:"verb"`
	Effect      string            `json:"effect"`
	State       string            `json:"state"` // intended | done | failed | unknown | settled
	Disposition event.Disposition `json:"disposition"`
	Code        string            `json:"code"`
	By          event.Actor       `json:"by"`
	Asked       *event.Asked      `json:"asked"`
	StartedAtMS int64             `json:"started_at_ms"`
	DurationUS  int64             `json:"duration_us"`
	Files       []string          `json:"files"`
	Note        string            `json:"note"`
}

// actDetail is an act whole.
type actDetail struct {
	Act         string             `json:"act"`
	Session     string             `json:"session"`
	Verb        string             `json:"verb"`
	Effect      string             `json:"effect"`
	State       string             `json:"state"`
	Disposition event.Disposition  `json:"disposition"`
	Code        string             `json:"code"`
	Message     string             `json:"message"`
	By          event.Actor        `json:"by"`
	Asked       *event.Asked       `json:"asked"`
	StartedAtMS int64              `json:"started_at_ms"`
	DurationUS  int64              `json:"duration_us"`
	Args        string             `json:"args"`   // JSON text
	Result      string             `json:"result"` // JSON text
	Files       []string           `json:"files"`
	Changes     []event.FileChange `json:"changes"`
	Rules       []string           `json:"rules"`
	Policy      string             `json:"policy"`
	Note        string             `json:"note"`
	Intended    int64              `json:"intended_event"`
	Finished    int64              `json:"finished_event"`
	Digest      string             `json:"digest"`
}

func (a *app) cmdAct() *cobra.Command {
	return group(&cobra.Command{
		Use:   "act",
		Short: "Acts: what was done to workspaces and beyond, and what became of it",
		Long: `The ledger of acts. An act is recorded before it is done and again with its outcome;
one whose outcome nobody saw is unknown, until you find out and settle it.`,
		Example: `  reeve act list --state unknown
  reeve act show act_0193
  reeve act undo act_0193`,
	}, a.cmdActList(), a.cmdActShow(), a.cmdActSettle(), a.cmdActUndo())
}

var actStates = []string{"intended", "done", "failed", "unknown", "settled"}

func (a *app) cmdActList() *cobra.Command {
	var session, state string
	var max int
	c := &cobra.Command{
		Use:   "list",
		Short: "List acts, the latest first",
		Example: `  reeve act list
  reeve act list --state unknown -s .
  reeve act list --json --jq '.data[] | select(.verb=="workspace.write") | .act'`,
	}
	c.Flags().StringVarP(&session, "session", "s", "", "only of this session (. for the working directory's)")
	c.Flags().StringVar(&state, "state", "", "only in this state: "+strings.Join(actStates, ", "))
	c.Flags().IntVar(&max, "max", 50, "how many at most, up to 500")
	a.completeFlag(c, "session", a.completeSessions())
	a.completeFlag(c, "state", cobra.FixedCompletions(actStates, cobra.ShellCompDirectiveNoFileComp))
	completeFields(c, members(reflect.TypeFor[actRow]()))
	c.PreRunE = func(*cobra.Command, []string) error { return upTo500(max) }
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		id, err := a.sessionFilter(ctx, c, session)
		if err != nil {
			return failed(err)
		}
		all, err := askList[actRow](ctx, a, c, "act.list", arguments{"limit": max}.text("session", id).text("state", state))
		if err != nil {
			return failed(err)
		}
		return answer{kind: "acts", data: all, rows: true, text: func(p printer) {
			rows := make([][]string, len(all))
			for i, x := range all {
				rows[i] = []string{x.Act, x.State, p.when(x.StartedAtMS), span(time.Duration(x.DurationUS) * time.Microsecond), x.Session, x.Verb, strings.Join(x.Files, " ")}
			}
			empty := "no acts yet"
			if state != "" || id != "" {
				empty = "no such acts"
			}
			p.table(empty, []string{"ACT", "STATE", "STARTED", "TOOK", "SESSION", "VERB", "FILES"}, rows)
		}}
	}))
}

func upTo500(max int) error {
	if max < 1 || max > 500 {
		return fault.New(fault.Usage, "read arguments", fmt.Sprintf("--max %d", max), "it is 1 to 500")
	}
	return nil
}

// actNext leads on from what the ledger refuses.
var actNext = map[fault.Code]string{
	fault.NotFound: "reeve act list", fault.Ambiguous: "give more of the id; reeve act list shows them",
}

func (a *app) act(ctx context.Context, c control.Service, id string) (actDetail, error) {
	var d actDetail
	err := a.ask(ctx, c, "act.show", arguments{"id": id}, &d)
	return d, leads(err, actNext)
}

func (a *app) cmdActShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show <act>",
		Short: "Show one act whole: who, what, why it was allowed, what came of it",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve act show act_0193
  reeve act show act_0193 --fields disposition,digest
  reeve act show act_0193 --json --jq '.data.result | fromjson'`,
		ValidArgsFunction: first(a.completeActs("")),
	}
	completeFields(c, members(reflect.TypeFor[actDetail]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		d, err := a.act(ctx, c, args[0])
		if err != nil {
			return failed(err)
		}
		return answer{kind: "act", data: d, ids: map[string]string{"act": d.Act, "session": d.Session}, text: func(p printer) {
			showAct(p, d)
			if d.State == "unknown" {
				a.note("reeve act settle %s --as committed (or not_committed) says what you found out", d.Act)
			}
		}}
	}))
}

func showAct(p printer, d actDetail) {
	asked := ""
	if d.Asked != nil {
		asked = fmt.Sprintf("%s request %s", d.Asked.Execution, d.Asked.Request)
	}
	events := fmt.Sprint(d.Intended)
	if d.Finished != 0 {
		events += ", " + fmt.Sprint(d.Finished)
	}
	p.pairs("act", d.Act, "verb", d.Verb, "effect", d.Effect, "session", d.Session, "by", actorName(d.By), "asked in", asked,
		"state", d.State, "disposition", string(d.Disposition), "code", d.Code, "message", d.Message, "note", d.Note,
		"started", p.when(d.StartedAtMS), "took", span(time.Duration(d.DurationUS)*time.Microsecond),
		"allowed by", strings.Join(d.Rules, ", "), "policy", d.Policy, "events", events, "digest", d.Digest)
	for _, f := range d.Changes {
		p.line("%s", changed(f))
	}
	p.part("arguments", indented(d.Args))
	diff, rest := diffOf(d.Result)
	p.part("result", indented(rest))
	p.diff(diff)
}

// changed is one file that an act changed.
func changed(f event.FileChange) string {
	word := "changed"
	switch {
	case f.Before == nil:
		word = "made"
	case f.After == nil:
		word = "removed"
	}
	return word + "\t" + visible(f.Path)
}

// diffOf takes the difference out of a result, of one file or of several.
func diffOf(result string) (diff, rest string) {
	if jsontext.Value(result).Kind() != '{' {
		return "", result
	}
	kept := jsontext.Value(result)
	var found strings.Builder
	for _, m := range membersOf(kept) {
		if m.name == "diff" {
			found.WriteString(plain(m.value))
		}
	}
	if found.Len() == 0 {
		return "", result
	}
	var all map[string]jsontext.Value
	if json.Unmarshal(kept, &all) != nil {
		return "", result
	}
	delete(all, "diff")
	b, err := json.Marshal(all, json.Deterministic(true))
	if err != nil {
		return "", result
	}
	return found.String(), string(b)
}

// diff prints a unified difference; its signs say what its colours say.
func (p printer) diff(text string) {
	if text == "" {
		return
	}
	p.line("\n%s", p.paint(dim, "--- difference"))
	for l := range strings.Lines(text) {
		l = inert(strings.TrimRight(l, "\n"))
		switch {
		case strings.HasPrefix(l, "+"):
			l = p.paint(good, l)
		case strings.HasPrefix(l, "-"):
			l = p.paint(bad, l)
		}
		p.line("%s", l)
	}
}

func (a *app) cmdActSettle() *cobra.Command {
	var as, note string
	c := &cobra.Command{
		Use:   "settle <act>",
		Short: "Say of an unknown act whether it took effect",
		Long: `Close an act whose outcome nobody saw: its core ended while it was being done. Look at
what it would have changed, then say whether it did.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve act settle act_0193 --as committed --note 'the file is there'
  reeve act settle act_0193 --as not_committed
  reeve act list --state unknown`,
		ValidArgsFunction: first(a.completeActs("unknown")),
	}
	c.Flags().StringVar(&as, "as", "", "committed or not_committed")
	c.Flags().StringVar(&note, "note", "", "how you found out")
	a.completeFlag(c, "as", cobra.FixedCompletions([]string{"committed", "not_committed"}, cobra.ShellCompDirectiveNoFileComp))
	completeFields(c, members(reflect.TypeFor[actRow]()))
	c.PreRunE = func(*cobra.Command, []string) error {
		if as != "committed" && as != "not_committed" {
			return fault.New(fault.Usage, "read arguments", "--as "+as, "it is committed or not_committed").
				WithNext("find out what the act did, then say so with --as")
		}
		return nil
	}
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		var row actRow
		err := a.ask(ctx, c, "act.settle", arguments{"id": args[0], "as": as}.text("note", note), &row)
		if fault.CodeOf(err) == fault.Conflict {
			err = fault.Wrap(err, fault.Conflict, "", "").WithNext("reeve act show %s", args[0])
		}
		if err != nil {
			return failed(leads(err, actNext))
		}
		return answer{kind: "act", data: row, ids: map[string]string{"act": row.Act}, text: func(p printer) {
			p.line("%s is settled as %s", row.Act, row.Disposition)
		}}
	}))
}

func (a *app) cmdActUndo() *cobra.Command {
	c := &cobra.Command{
		Use:   "undo <act>",
		Short: "Put back the files that an act changed, if nothing else has changed them since",
		Long: `Put back what an act changed in its workspace. A file that is not any more as the act
left it is a conflict (status 5) and nothing is touched. The undoing is an act too.`,
		Args: cobra.ExactArgs(1),
		Example: `  reeve act undo act_0193
  reeve act undo act_0193 --json --jq .ok
  reeve act show act_0193         what it would put back`,
		ValidArgsFunction: first(a.completeActs("done")),
	}
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		d, err := a.act(ctx, c, args[0])
		if err != nil {
			return failed(err)
		}
		var result jsontext.Value
		err = a.askIn(ctx, c, d.Session, "workspace.undo", arguments{"act": d.Act}, &result)
		if fault.CodeOf(err) == fault.Conflict {
			err = fault.Wrap(err, fault.Conflict, "", "").WithNext("reeve act show %s", d.Act)
		}
		if err != nil {
			return failed(err)
		}
		return answer{kind: "undone", data: result, ids: map[string]string{"act": d.Act}, text: func(p printer) {
			p.line("undid %s: %s", d.Act, visible(strings.Join(d.Files, ", ")))
			diff, _ := diffOf(string(result))
			p.diff(diff)
		}}
	}))
}

func (a *app) completeActs(state string) completer {
	return a.live(func(ctx context.Context, c control.Service) ([]string, error) {
		all, err := askList[actRow](ctx, a, c, "act.list", arguments{}.text("state", state))
		found := make([]string, len(all))
		for i, x := range all {
			found[i] = cobra.CompletionWithDesc(x.Act, x.State+", "+span(time.Since(time.UnixMilli(x.StartedAtMS)))+" ago, "+x.Verb)
		}
		return found, err
	})
}
