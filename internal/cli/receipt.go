package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

// auditRow is an audit row with the id of its event.
type auditRow struct {
	EventID int64 `json:"event_id"`
	event.AuditDispatchV1
}

// receiptRow is a receipt as lists have it.
type receiptRow struct {
	Receipt   string `json:"receipt"`
	AtMS      int64  `json:"at_ms"`
	Actor     string `json:"actor"`
	Surface   string `json:"surface"`
	Session   string `json:"session"`
	Verb      string `json:"verb"`
	Effect    string `json:"effect"`
	Decision  string `json:"decision"`
	Outcome   string `json:"outcome"`
	Code      string `json:"code"`
	Act       string `json:"act"`
	RequestID string `json:"request_id"`
	EventID   int64  `json:"event_id"`
}

// receipt is what is on record of one operation.
type receipt struct {
	Receipt     string             `json:"receipt"`
	Verb        string             `json:"verb"`
	Effect      string             `json:"effect"`
	Actor       string             `json:"actor"`
	Surface     string             `json:"surface"`
	Session     string             `json:"session"`
	Namespace   string             `json:"namespace"`
	Asked       *event.Asked       `json:"asked"` // of an act that a cell asked for
	RequestID   string             `json:"request_id"`
	AtMS        int64              `json:"at_ms"`
	DurationUS  int64              `json:"duration_us"`
	Decision    string             `json:"decision"`
	DenyReason  string             `json:"deny_reason"`
	Rules       []string           `json:"rules"`
	Policy      string             `json:"policy"`
	Obligations []event.Obligation `json:"obligations"`
	Outcome     string             `json:"outcome"`
	Code        string             `json:"code"`
	Act         string             `json:"act"`
	State       string             `json:"state"`       // of the act
	Disposition string             `json:"disposition"` // of the act
	Message     string             `json:"message"`
	Args        string             `json:"args"` // of an act, JSON text
	Result      string             `json:"result"`
	Changes     []event.FileChange `json:"changes"`
	Events      []receiptEvent     `json:"events"`
	Digest      string             `json:"digest"` // of the event that ends it: the act's last, else the audit row
}

// receiptEvent is where a receipt stands in the journal.
type receiptEvent struct {
	ID     int64  `json:"id"`
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"`
	Kind   string `json:"kind"`
	Digest string `json:"digest"`
}

func (a *app) cmdReceipt() *cobra.Command {
	return group(&cobra.Command{
		Use:   "receipt",
		Short: "Receipts: what was asked, by whom, why it was allowed, what came of it",
		Long: `Each operation that the gate was asked about has a receipt, an audit row (aud_…); an act
has one by its own id too (act_…). It names the events that prove it and their digests.`,
		Example: `  reeve receipt list
  reeve receipt show act_0193
  reeve verify --receipt act_0193`,
	}, a.cmdReceiptList(), a.cmdReceiptShow())
}

func (a *app) cmdReceiptList() *cobra.Command {
	var session, verb, effect, actor, outcome string
	var max int
	c := &cobra.Command{
		Use:   "list",
		Short: "List receipts, the latest first",
		Example: `  reeve receipt list --outcome denied
  reeve receipt list -s . --effect workspace
  reeve receipt list --verb workspace.write --json --jq '.data[].receipt'`,
	}
	f := c.Flags()
	f.StringVarP(&session, "session", "s", "", "only of this session (. for the working directory's)")
	f.StringVar(&verb, "verb", "", "only of this verb")
	f.StringVar(&effect, "effect", "", "only of verbs with this effect: read, record, workspace or external")
	f.StringVar(&actor, "actor", "", "only of this actor, as kind:id")
	f.StringVar(&outcome, "outcome", "", "only with this outcome: success, error, denied or held")
	f.IntVar(&max, "max", 50, "how many at most, up to 500")
	a.completeFlag(c, "session", a.completeSessions())
	a.completeFlag(c, "verb", a.completeVerbs())
	a.completeFlag(c, "effect", cobra.FixedCompletions([]string{"read", "record", "workspace", "external"}, cobra.ShellCompDirectiveNoFileComp))
	a.completeFlag(c, "outcome", cobra.FixedCompletions([]string{"success", "error", "denied", "held"}, cobra.ShellCompDirectiveNoFileComp))
	completeFields(c, members(reflect.TypeFor[receiptRow]()))
	c.PreRunE = func(*cobra.Command, []string) error { return upTo500(max) }
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		id, err := a.sessionFilter(ctx, c, session)
		if err != nil {
			return failed(err)
		}
		with := arguments{"limit": max}.text("session", id).text("verb", verb).text("effect", effect).text("actor", actor).text("outcome", outcome)
		rows, err := askList[auditRow](ctx, a, c, "audit.query", with)
		if err != nil {
			return failed(err)
		}
		all := make([]receiptRow, 0, len(rows))
		for i := len(rows) - 1; i >= 0; i-- {
			all = append(all, rows[i].short())
		}
		return answer{kind: "receipts", data: all, rows: true, text: func(p printer) {
			table := make([][]string, len(all))
			for i, x := range all {
				table[i] = []string{x.Receipt, p.when(x.AtMS), x.Actor, x.Session, x.Verb, x.Decision, x.Outcome, x.Act}
			}
			p.table("no such receipts", []string{"RECEIPT", "AT", "BY", "SESSION", "VERB", "RULING", "OUTCOME", "ACT"}, table)
		}}
	}))
}

func (r *auditRow) short() receiptRow {
	return receiptRow{
		Receipt: r.ID, AtMS: r.AtMS, Actor: r.Actor, Surface: r.Surface, Session: text(r.SessionID), Verb: r.Verb, Effect: text(r.Effect),
		Decision: string(r.Decision), Outcome: string(r.Outcome), Code: text(r.Code), Act: text(r.Act),
		RequestID: text(r.Resource.RequestID), EventID: r.EventID,
	}
}

func (a *app) cmdReceiptShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show <receipt>",
		Short: "Show one receipt whole, with the events that prove it",
		Args:  cobra.ExactArgs(1),
		Example: `  reeve receipt show act_0193
  reeve receipt show aud_0193 --fields digest
  reeve receipt show aud_0193 --json --jq '.data.events[].digest'`,
		ValidArgsFunction: first(a.completeActs("")),
	}
	completeFields(c, members(reflect.TypeFor[receipt]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, args []string) answer {
		r, err := a.receipt(ctx, c, args[0])
		if err != nil {
			return failed(err)
		}
		return answer{kind: "receipt", data: r, ids: map[string]string{"receipt": r.Receipt}, text: func(p printer) {
			r.show(p)
			a.note("reeve verify --receipt %s checks that its events are as they were committed", r.Receipt)
		}}
	}))
}

// receiptNext leads on from an id that names no receipt, or several.
var receiptNext = map[fault.Code]string{
	fault.NotFound: "reeve receipt list", fault.Ambiguous: "give more of the id; reeve receipt list shows them",
}

// receipt puts together what is on record of an act or of an audit row.
func (a *app) receipt(ctx context.Context, c control.Service, id string) (receipt, error) {
	if strings.HasPrefix(id, "act_") {
		d, err := a.act(ctx, c, id)
		if err != nil {
			return receipt{}, leads(err, receiptNext)
		}
		rows, err := askList[auditRow](ctx, a, c, "audit.query", arguments{"act": d.Act, "limit": 1})
		if err != nil {
			return receipt{}, err
		}
		r := receipt{Receipt: d.Act, Verb: d.Verb, Effect: d.Effect, Actor: d.By.Kind + ":" + d.By.Name, Rules: d.Rules, Policy: d.Policy, Obligations: []event.Obligation{}}
		if len(rows) > 0 {
			r = rows[0].receipt()
			r.Receipt = d.Act
		}
		return a.proved(ctx, c, r, d, rows)
	}
	limit := 2
	if len(id) == len("aud_")+32 { // whole: nothing else begins with it
		limit = 1
	}
	rows, err := askList[auditRow](ctx, a, c, "audit.query", arguments{"id": id, "limit": limit})
	switch {
	case err != nil:
		return receipt{}, err
	case len(rows) == 0 || id == "":
		return receipt{}, fault.New(fault.NotFound, "find receipt", id, "no audit row and no act has this id or begins with it").WithNext("reeve receipt list")
	case len(rows) > 1:
		return receipt{}, fault.New(fault.Ambiguous, "find receipt", id, "several begin with it").WithNext("give more of the id; reeve receipt list shows them")
	}
	r := rows[0].receipt()
	if r.Act == "" {
		return a.proved(ctx, c, r, actDetail{Changes: []event.FileChange{}}, rows)
	}
	d, err := a.act(ctx, c, r.Act)
	if err != nil {
		return receipt{}, err
	}
	return a.proved(ctx, c, r, d, rows)
}

func (r *auditRow) receipt() receipt {
	return receipt{
		Receipt: r.ID, Verb: r.Verb, Effect: text(r.Effect), Actor: r.Actor, Surface: r.Surface, Session: text(r.SessionID), Namespace: r.Namespace,
		RequestID: text(r.Resource.RequestID), AtMS: r.AtMS, DurationUS: r.DurationUS, Decision: string(r.Decision), DenyReason: text(r.DenyReason),
		Rules: r.Rules, Policy: r.Policy, Obligations: r.Obligations, Outcome: string(r.Outcome), Code: text(r.Code), Act: text(r.Act),
	}
}

// proved adds what the act tells, and the events: of the act, then of the audit.
func (a *app) proved(ctx context.Context, c control.Service, r receipt, d actDetail, rows []auditRow) (receipt, error) {
	r.Changes, r.Events = d.Changes, []receiptEvent{}
	if d.Act != "" {
		r.Act, r.State, r.Disposition, r.Asked, r.Session = d.Act, d.State, string(d.Disposition), d.Asked, d.Session
		r.Message, r.Args, r.Result = d.Message, d.Args, d.Result
	}
	ids := []int64{d.Intended, d.Finished}
	for _, row := range rows {
		ids = append(ids, row.EventID)
	}
	for _, id := range ids {
		if id == 0 {
			continue
		}
		e, err := eventOf(ctx, c, id)
		if err != nil {
			return r, err
		}
		r.Events = append(r.Events, receiptEvent{e.ID, e.Stream, e.Seq, e.Kind, e.Digest})
		r.Digest = e.Digest
	}
	if r.Receipt == d.Act {
		r.Digest = d.Digest
	}
	return r, nil
}

// eventOf reads one event by its id.
func eventOf(ctx context.Context, c control.Service, id int64) (control.EventRow, error) {
	var found control.EventRow
	err := c.Events(ctx, control.EventQuery{AfterID: id - 1, Max: 1}, func(e control.EventRow) error {
		found = e
		return nil
	})
	if err == nil && found.ID != id {
		err = fault.New(fault.Truncated, "read event", fmt.Sprint(id), "a receipt names it and the journal does not have it").WithNext("reeve verify")
	}
	return found, err
}

func (r *receipt) show(p printer) {
	asked := ""
	if r.Asked != nil {
		asked = fmt.Sprintf("%s request %s", r.Asked.Execution, r.Asked.Request)
	}
	duties := make([]string, len(r.Obligations))
	for i, o := range r.Obligations {
		duties[i] = strings.TrimSpace(o.Kind + " " + o.Detail)
	}
	p.pairs("receipt", r.Receipt, "verb", r.Verb, "effect", r.Effect, "by", r.Actor, "surface", r.Surface, "session", r.Session,
		"asked in", asked, "request", r.RequestID, "at", p.when(r.AtMS), "took", span(time.Duration(r.DurationUS)*time.Microsecond),
		"decision", r.Decision, "reason", r.DenyReason, "rules", strings.Join(r.Rules, ", "), "obligations", strings.Join(duties, "; "),
		"policy", r.Policy, "outcome", r.Outcome, "code", r.Code, "act", r.Act, "state", r.State, "disposition", r.Disposition,
		"message", r.Message, "digest", r.Digest)
	for _, f := range r.Changes {
		p.line("%s", changed(f))
	}
	for _, e := range r.Events {
		p.line("event %d\t%s\t%d\t%s\t%s", e.ID, visible(e.Stream), e.Seq, e.Kind, e.Digest)
	}
	p.part("arguments", indented(r.Args))
}

// proof is what verify --receipt found.
type proof struct {
	Receipt string               `json:"receipt"`
	Digest  string               `json:"digest"`
	Events  []receiptEvent       `json:"events"`
	Journal control.VerifyReport `json:"journal"`
}

// verifyReceipt checks the journal, and that the receipt stands in it: its events
// have the digests that were found good, and digest, where it is given, is the
// receipt's.
func (a *app) verifyReceipt(ctx context.Context, c control.Service, id, digest string) answer {
	report, err := c.Verify(ctx)
	if err != nil {
		return failed(err)
	}
	if err := verifyFault(report); err != nil {
		return answer{kind: "proof", data: proof{Receipt: id, Events: []receiptEvent{}, Journal: report}, err: err}
	}
	r, err := a.receipt(ctx, c, id)
	if err != nil {
		return failed(err)
	}
	ans := answer{kind: "proof", data: proof{r.Receipt, r.Digest, r.Events, report}}
	if digest != "" && !r.has(digest) {
		ans.err = fault.New(fault.Altered, "verify receipt", r.Receipt, "none of its events has the digest %s", digest).
			WithNext("reeve receipt show %s, and compare it with the receipt that was kept", r.Receipt)
		return ans
	}
	ans.text = func(p printer) {
		p.line("%s: %s is in the journal, whose %s follow from each other", p.paint(good, "good"), r.Receipt, count(report.Events, "event", "events"))
		for _, e := range r.Events {
			p.line("event %d\t%s\t%d\t%s\t%s", e.ID, visible(e.Stream), e.Seq, e.Kind, e.Digest)
		}
	}
	return ans
}

// has reports whether an event of the receipt has a digest.
func (r *receipt) has(digest string) bool {
	for _, e := range r.Events {
		if strings.EqualFold(e.Digest, digest) {
			return true
		}
	}
	return false
}
