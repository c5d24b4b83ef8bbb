package cli

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// heldItem is what waits, or waited, for the operator's word.
type heldItem struct {
	ID          string       `json:"id"`
	Kind        string       `json:"kind"`  // act | send
	State       string       `json:"state"` // held | approved | denied
	Session     string       `json:"session"`
	Verb        string       `json:"verb"`
	Args        string       `json:"args"` // JSON text, of an act
	Text        string       `json:"text"` // of a send
	Reason      string       `json:"reason"`
	By          event.Actor  `json:"by"`
	Asked       *event.Asked `json:"asked"`
	AtMS        int64        `json:"at_ms"`
	DecidedBy   *event.Actor `json:"decided_by"`
	DecidedAtMS int64        `json:"decided_at_ms"`
	Note        string       `json:"note"`
}

// decided is one item of held approve or held deny.
type decided struct {
	ID      string         `json:"id"`
	OK      bool           `json:"ok"`
	Item    *heldItem      `json:"item"`
	Outcome jsontext.Value `json:"outcome"` // entry of an approved act that was tried, else null
	Code    fault.Code     `json:"code"`    // when not ok
	Message string         `json:"message"`
}

func (a *app) cmdHeld() *cobra.Command {
	return group(&cobra.Command{
		Use:   "held",
		Short: "What waits for your word: acts that a rule holds, and messages to you",
		Example: `  reeve held list
  reeve held approve held_0193 --note 'go on'
  reeve held deny held_0193 --note 'not on main'`,
	}, a.cmdHeldList(), a.cmdHeldShow(), a.cmdHeldDecide(true), a.cmdHeldDecide(false))
}

func (a *app) cmdHeldList() *cobra.Command {
	var state, session string
	c := &cobra.Command{
		Use:   "list",
		Short: "List what waits, the oldest first",
		Example: `  reeve held list                 what waits
  reeve held list --state denied -s .
  reeve held list --json --jq '.data[].id'`,
	}
	c.Flags().StringVar(&state, "state", "held", "held, approved or denied")
	c.Flags().StringVarP(&session, "session", "s", "", "only of this session (. for the working directory's)")
	a.completeFlag(c, "session", a.completeSessions())
	a.completeFlag(c, "state", cobra.FixedCompletions([]string{"held", "approved", "denied"}, cobra.ShellCompDirectiveNoFileComp))
	completeFields(c, members(reflect.TypeFor[heldItem]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		id, err := a.sessionFilter(ctx, c, session)
		if err != nil {
			return failed(err)
		}
		all, err := askList[heldItem](ctx, a, c, "held.list", arguments{"state": state}.text("session", id))
		if err != nil {
			return failed(err)
		}
		slices.SortStableFunc(all, func(x, y heldItem) int { return cmp.Compare(x.AtMS, y.AtMS) })
		return answer{kind: "held", data: all, rows: true, text: func(p printer) {
			rows := make([][]string, len(all))
			for i, x := range all {
				rows[i] = []string{x.ID, x.State, p.when(x.AtMS), x.Session, x.Verb, x.what(), x.Reason}
			}
			empty := "nothing is " + state
			if state == "held" {
				empty = "nothing waits for you"
			}
			p.table(empty, []string{"ID", "STATE", "SINCE", "SESSION", "VERB", "WHAT", "WHY"}, rows)
		}}
	}))
}

// what is the content of an item, in one line.
func (x *heldItem) what() string {
	if x.Kind == "send" {
		return x.Text
	}
	return x.Args
}

func (a *app) cmdHeldShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show <id>",
		Short: "Show one item whole: who wants what, and which rule holds it",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve held show held_0193
  reeve held show eff_ --fields text
  reeve held show held_0193 --json --jq '.data.args | fromjson'`,
		ValidArgsFunction: first(a.completeHeld()),
	}
	completeFields(c, members(reflect.TypeFor[heldItem]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		var x heldItem
		if err := a.ask(ctx, c, "held.show", arguments{"id": args[0]}, &x); err != nil {
			return failed(leads(err, heldNext))
		}
		return answer{kind: "held_item", data: x, ids: map[string]string{"held": x.ID}, text: func(p printer) {
			showHeld(p, x)
			if x.State == "held" {
				a.note("reeve held approve %s lets it pass, reeve held deny %s ends it", x.ID, x.ID)
			}
		}}
	}))
}

// heldNext leads on from what the queue refuses.
var heldNext = map[fault.Code]string{
	fault.NotFound: "reeve held list", fault.Ambiguous: "give more of the id; reeve held list shows them",
	fault.Conflict: "reeve held list --state approved, or --state denied",
}

func showHeld(p printer, x heldItem) {
	asked, by := "", ""
	if x.Asked != nil {
		asked = fmt.Sprintf("%s request %s", x.Asked.Execution, x.Asked.Request)
	}
	if x.DecidedBy != nil {
		by = p.when(x.DecidedAtMS) + " by " + actorName(*x.DecidedBy)
	}
	p.pairs("id", x.ID, "kind", x.Kind, "state", x.State, "verb", x.Verb, "session", x.Session, "by", actorName(x.By), "asked in", asked,
		"since", p.when(x.AtMS), "why", x.Reason, "decided", by, "note", x.Note)
	p.part("arguments", indented(x.Args))
	p.part("text", x.Text)
}

func actorName(by event.Actor) string { return by.Kind + " " + by.Name }

func (a *app) cmdHeldDecide(approve bool) *cobra.Command {
	verb, done := "deny", "denied"
	does, more := "Deny items: they are never said or done", ""
	if approve {
		verb, done = "approve", "approved"
		does = "Approve items: a message reaches you, an act is tried now"
		more = ` An approved act passes the gate again and is done for whoever asked for it; the answer has what
came of it.`
	}
	var note string
	c := &cobra.Command{
		Use:   verb + " <id>...",
		Short: does,
		Long: does + `.` + more + `
Several ids are decided one after the other; one that cannot be does not keep the others.
A decision is made once.`,
		Args: cobra.MinimumNArgs(1),
		Example: `  reeve held ` + verb + ` held_0193
  reeve held ` + verb + ` held_0193 held_0194 --note 'as agreed'
  reeve held ` + verb + ` eff_ --json --jq '.data[].ok'`,
		ValidArgsFunction: a.completeHeld(),
	}
	c.Flags().StringVar(&note, "note", "", "what to tell the agent with it")
	completeFields(c, members(reflect.TypeFor[decided]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		all := make([]decided, len(args))
		var outcomes []error
		for i, id := range args {
			var err error
			all[i], err = a.decide(ctx, c, "held."+verb, id, note)
			outcomes = append(outcomes, err)
		}
		return answer{kind: "decisions", data: all, rows: true, err: worstOf(outcomes), text: func(p printer) {
			for _, d := range all {
				showDecided(p, d, done)
			}
		}}
	}))
}

func (a *app) decide(ctx context.Context, c control.Service, verb, id, note string) (decided, error) {
	var got struct {
		Item    heldItem       `json:"item"`
		Outcome jsontext.Value `json:"outcome"`
	}
	d := decided{ID: id, Outcome: jsontext.Value("null")}
	err := a.ask(ctx, c, verb, arguments{"id": id}.text("note", note), &got)
	if err != nil {
		err = leads(err, heldNext)
		d.Code, d.Message = fault.CodeOf(err), err.Error()
		return d, err
	}
	d.ID, d.OK, d.Item = got.Item.ID, true, &got.Item
	if len(got.Outcome) == 0 || got.Outcome.Kind() == 'n' {
		return d, nil
	}
	d.Outcome = got.Outcome
	var e entry
	if err := json.Unmarshal(got.Outcome, &e); err != nil {
		return d, fault.Wrap(err, fault.Internal, "read outcome", d.ID)
	}
	f := e.fault()
	if f == nil {
		return d, nil
	}
	d.OK, d.Code, d.Message = false, f.Code, f.Error()
	return d, f
}

func showDecided(p printer, d decided, done string) {
	switch {
	case d.Item == nil:
		p.line("%s: %s", d.ID, inert(d.Message))
	case d.Code != "":
		p.line("%s %s, and %s failed: %s", d.ID, done, d.Item.Verb, inert(d.Message))
	case d.Outcome.Kind() == '{':
		p.line("%s %s, and %s is done", d.ID, done, d.Item.Verb)
		var e entry
		if json.Unmarshal(d.Outcome, &e) == nil {
			p.showJSON(e.Result)
		}
	case d.Item.Kind == "send" && done == "approved":
		p.line("%s %s: %s", d.ID, done, inert(d.Item.Text))
	default:
		p.line("%s %s", d.ID, done)
	}
}

// worstOf is the error that the exit status tells of.
func worstOf(all []error) error {
	var found error
	for _, err := range all {
		if err != nil && (found == nil || badness(fault.CodeOf(err)) > badness(fault.CodeOf(found))) {
			found = err
		}
	}
	return found
}

func (a *app) completeHeld() completer {
	return a.live(func(ctx context.Context, c control.Service) ([]string, error) {
		all, err := askList[heldItem](ctx, a, c, "held.list", nil)
		found := make([]string, len(all))
		for i, x := range all {
			found[i] = cobra.CompletionWithDesc(x.ID, x.Verb+", "+span(time.Since(time.UnixMilli(x.AtMS)))+" ago, "+clip(visible(x.what()), 30))
		}
		return found, err
	})
}
