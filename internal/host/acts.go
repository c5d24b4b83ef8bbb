package host

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/packs/act"
	"github.com/reeve-run/reeve/journal"
	"github.com/reeve-run/reeve/verbs"
)

// acts is the ledger of acts over the journal.
type acts struct{ core *Core }

var _ act.Ledger = acts{}

func (row actRow) list(r journal.Record) act.Row {
	return act.Row{
		Act: r.Key, Session: r.Session, Verb: row.Verb, Effect: row.Effect, State: r.State, Disposition: row.Disposition, Code: row.Code,
		By: row.By, Asked: row.Asked, StartedAtMS: row.StartedAtMS, DurationUS: row.DurationUS, Files: row.Files, Note: row.Note,
	}
}

// List implements act.Ledger.
func (a acts) List(ctx context.Context, session, state string, max int) ([]act.Row, error) {
	rows := []act.Row{}
	for r, err := range journal.Records(ctx, a.core.store, journal.Query{Kind: recordAct, Session: session, State: state}) {
		if err != nil {
			return nil, err
		}
		row, err := readAct(r)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row.list(r))
		if len(rows) >= 2*max { // keep memory to what is shown: ids rise with time
			rows = append(rows[:0], rows[len(rows)-max:]...)
		}
	}
	slices.Reverse(rows)
	return rows[:min(len(rows), max)], nil
}

// Show implements act.Ledger.
func (a acts) Show(ctx context.Context, id string) (act.Detail, error) {
	r, err := a.core.byPrefix(ctx, recordAct, id)
	if err != nil {
		return act.Detail{}, err
	}
	row, err := readAct(r)
	if err != nil {
		return act.Detail{}, err
	}
	d := act.Detail{Row: row.list(r), Rules: []string{}, Changes: []event.FileChange{}}
	told, err := a.told(ctx, r)
	for _, e := range told {
		if err == nil {
			err = tells(&d, r.Key, e)
		}
	}
	return d, err
}

// told are the events of an act in order, from its intent on. They are looked for
// from the end of the stream, where most acts that are asked for lie.
func (a acts) told(ctx context.Context, r journal.Record) ([]journal.Stored, error) {
	var told []journal.Stored
	for e, err := range journal.Backward(ctx, a.core.store, stream(r.Session)) {
		if err != nil {
			return nil, err
		}
		if !actKind(event.Kind(e.Kind)) {
			continue
		}
		var of struct {
			Act string `json:"act"`
		}
		if err := json.Unmarshal(e.Payload, &of); err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "read event of act", r.Key)
		}
		if of.Act != r.Key {
			continue
		}
		told = append(told, e)
		if event.Kind(e.Kind) == event.ActIntended {
			break
		}
	}
	slices.Reverse(told)
	return told, nil
}

func actKind(k event.Kind) bool {
	return k == event.ActIntended || k == event.ActFinished || k == event.ActUnknown || k == event.ActSettled
}

// tells adds to d what an event says of the act.
func tells(d *act.Detail, id string, e journal.Stored) error {
	p, err := event.Decode(event.Kind(e.Kind), e.Version, e.Payload)
	if err != nil {
		return err
	}
	switch p := p.(type) {
	case event.ActIntendedV1:
		if p.Act != id {
			return nil
		}
		d.Intended, d.Rules, d.Policy = e.ID, p.Ruled.Rules, p.Ruled.Policy
		if p.Args != nil {
			d.Args = *p.Args
		}
	case event.ActFinishedV1:
		if p.Act != id {
			return nil
		}
		d.Finished, d.Changes = e.ID, p.Files
		if p.Result != nil {
			d.Result = *p.Result
		}
		if p.Message != nil {
			d.Message = *p.Message
		}
	case event.ActUnknownV1:
		if p.Act != id {
			return nil
		}
		d.Message = p.Cause.Text
	case event.ActSettledV1:
		if p.Act != id {
			return nil
		}
		d.Finished, d.Message = e.ID, p.Note
	}
	d.Digest = e.Digest.String()
	return nil
}

// Files are the changes of an act, for undoing it.
func (a acts) Files(ctx context.Context, workspace, id string) ([]event.FileChange, error) {
	d, err := a.Show(ctx, id)
	if err != nil {
		return nil, err
	}
	l, err := a.core.lane(ctx, d.Session)
	if err != nil {
		return nil, err
	}
	if there := l.workspaceOf(""); there != workspace {
		return nil, fault.New(fault.Denied, "undo act", d.Act, "it was done in workspace %q, not in this one", there).
			WithNext("undo it in session %s", d.Session)
	}
	if d.State != actDone && d.State != actFailed {
		return nil, fault.New(fault.Conflict, "undo act", d.Act, "it is %s", d.State).WithNext("act.show(id=%q)", d.Act)
	}
	return d.Changes, nil
}

// Settle implements act.Ledger.
func (a acts) Settle(ctx context.Context, call *verbs.Call, id string, as event.Disposition, text string) (act.Row, error) {
	r, err := a.core.byPrefix(ctx, recordAct, id)
	if err != nil {
		return act.Row{}, err
	}
	if r.State != actUnknown {
		return act.Row{}, fault.New(fault.Conflict, "settle act", r.Key, "it is %s; only an unknown one can be settled", r.State).WithNext("act.show(id=%q)", r.Key)
	}
	row, err := readAct(r)
	if err != nil {
		return act.Row{}, err
	}
	row.Disposition, row.Note = as, text
	done, err := actRecord(r.Key, r.Session, actSettled, r.Rev, row)
	if err != nil {
		return act.Row{}, err
	}
	l, err := a.core.lane(ctx, r.Session)
	if err != nil {
		return act.Row{}, err
	}
	err = l.record(&note{word: true, step: step{
		events: []event.Payload{event.ActSettledV1{Act: r.Key, By: call.Scene.By, Disposition: as, Note: text}},
		put:    []journal.Record{done}, audit: []event.AuditDispatchV1{*call.Admitted},
	}})
	if err == nil {
		call.Admitted = nil
	}
	return row.list(done), err
}

// recoverActs says of every act that has no outcome that nobody knows it: its core is
// gone (CP-120).
func (c *Core) recoverActs(ctx context.Context) (int, error) {
	n := 0
	for r, err := range journal.Records(ctx, c.store, journal.Query{Kind: recordAct, State: actIntended}) {
		if err != nil {
			return n, err
		}
		row, err := readAct(r)
		if err != nil {
			return n, err
		}
		l, err := c.lane(ctx, r.Session)
		if err != nil {
			return n, err
		}
		if l.broken != nil {
			continue
		}
		row.Disposition = event.Undetermined
		lost, err := actRecord(r.Key, r.Session, actUnknown, r.Rev, row)
		if err != nil {
			return n, err
		}
		cause := event.Cause{Kind: event.CauseCoreRestart, Text: "the core ended while it was being done, at " + time.UnixMilli(row.StartedAtMS).UTC().Format(time.RFC3339)}
		l.settle(step{events: []event.Payload{event.ActUnknownV1{Act: r.Key, Cause: cause}}, put: []journal.Record{lost}})
		n++
	}
	return n, nil
}
