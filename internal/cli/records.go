package cli

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
)

type eventFlags struct {
	q     control.EventQuery
	since string
}

func (a *app) cmdEvents() *cobra.Command {
	var f eventFlags
	c := &cobra.Command{
		Use:   "events",
		Short: "Read the journal: the latest events, filtered, and go on with --follow",
		Example: `  reeve events                    the latest 50
  reeve events --failed --since 1h
  reeve events --follow --kind cell.started,cell.completed --jsonl`,
	}
	fs := c.Flags()
	fs.BoolVar(&f.q.Follow, "follow", false, "go on with new events until interrupted")
	fs.StringSliceVar(&f.q.Kinds, "kind", nil, "only these kinds (comma separated)")
	fs.StringSliceVar(&f.q.Not, "not", nil, "all but these kinds (comma separated)")
	fs.BoolVar(&f.q.Failed, "failed", false, "only what went wrong")
	fs.StringVar(&f.q.Grep, "grep", "", "only events whose payload has this text")
	fs.StringVarP(&f.q.Session, "session", "s", "", "only of this session (. for the working directory's)")
	fs.StringVar(&f.q.Stream, "stream", "", "only of this stream")
	fs.StringVar(&f.since, "since", "", "only from then on: a duration back from now (90m) or an RFC 3339 time")
	fs.Int64Var(&f.q.AfterID, "after", 0, "only after the event of this id")
	fs.IntVar(&f.q.Max, "max", 50, "how many at most, the latest; with --after the next")
	a.completeFlag(c, "session", a.completeSessions())
	a.completeFlag(c, "kind", completeKinds)
	a.completeFlag(c, "not", completeKinds)
	completeFields(c, members(reflect.TypeFor[control.EventRow]()))
	c.PreRunE = func(*cobra.Command, []string) (err error) {
		if f.q.Max < 1 || f.q.AfterID < 0 {
			return fault.New(fault.Usage, "read arguments", "", "--max is at least 1 and --after at least 0")
		}
		if f.q.Follow && !a.streams() {
			return fault.New(fault.Usage, "read arguments", "--follow", "it never ends, so there is no one envelope").WithNext("use --jsonl")
		}
		if err := knownKinds("--kind", f.q.Kinds); err != nil {
			return err
		}
		if err := knownKinds("--not", f.q.Not); err != nil {
			return err
		}
		f.q.Since, err = sinceTime(f.since, time.Now())
		return err
	}
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		q := f.q
		var err error
		if q.Session, err = a.sessionFilter(ctx, c, q.Session); err != nil {
			return failed(err)
		}
		q.Tail = q.AfterID == 0
		return a.readEvents(ctx, c, q)
	}))
}

// knownKinds refuses a kind that no event has: its list would be empty for ever.
func knownKinds(flag string, names []string) error {
	for _, name := range names {
		if event.Current(event.Kind(name)) != 0 {
			continue
		}
		var kinds []string
		for _, s := range event.Shapes() {
			kinds = append(kinds, string(s.Kind))
		}
		near, _ := fault.Nearest(name, kinds)
		return fault.New(fault.Usage, "read arguments", flag+" "+name, "no event is of this kind; the nearest is %s", near).
			WithNext("use %s %s", flag, near)
	}
	return nil
}

// sinceTime reads a duration back from now or a point in time.
func sinceTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fault.New(fault.Usage, "read arguments", "--since "+s, "neither a duration such as 90m nor a time such as 2026-01-31T08:00:00Z")
	}
	return t, nil
}

// streams reports whether rows are printed as they come.
func (a *app) streams() bool { return a.set.jsonl || !a.machine() && len(a.set.fields) == 0 }

// readEvents streams rows to people and to --jsonl, and collects them otherwise.
func (a *app) readEvents(ctx context.Context, c control.Service, q control.EventQuery) answer {
	stream := a.streams()
	all, n := []control.EventRow{}, 0
	p := a.printer()
	err := c.Events(ctx, q, func(e control.EventRow) error {
		n++
		switch {
		case !stream:
			all = append(all, e)
			return nil
		case !a.set.jsonl:
			eventLine(p, e)
			return nil
		}
		return a.printEvent(e)
	})
	if q.Follow && ctx.Err() != nil {
		return a.followed(ctx, err)
	}
	if err != nil {
		return failed(err)
	}
	if !stream {
		return answer{kind: "events", data: all, rows: true}
	}
	if n == 0 && p.tty {
		p.line("no events%s", filterText(q))
	}
	return answer{streamed: true}
}

// followed is the end of a follower: it was told to stop, which is how it ends.
func (a *app) followed(ctx context.Context, err error) answer {
	if fault.CodeOf(err) != fault.Timeout {
		err = fault.Wrap(context.Cause(ctx), fault.Cancelled, "follow events", "")
	}
	return answer{err: err, streamed: true}
}

func (a *app) printEvent(e control.EventRow) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "print event", fmt.Sprint(e.ID))
	}
	v, err := a.selected(e, b)
	if err != nil {
		return err
	}
	return a.printValue(v)
}

func eventLine(p printer, e control.EventRow) {
	at := time.UnixMilli(e.AtMS)
	if !p.tty {
		p.line("%d\t%s\t%s\t%d\t%s\t%s", e.ID, at.UTC().Format("2006-01-02T15:04:05.000Z"), visible(e.Stream), e.Seq, e.Kind, e.Payload)
		return
	}
	line := fmt.Sprintf("%6d  %s  %-16s %s  %s", e.ID, at.Format("01-02 15:04:05"), e.Kind, visible(e.Stream), visible(string(e.Payload)))
	p.line("%s", clip(line, p.width))
}

// filterText names the filters that an empty answer is due to.
func filterText(q control.EventQuery) string {
	var on []string
	add := func(name, value string) {
		if value != "" {
			on = append(on, name+" "+value)
		}
	}
	add("--kind", strings.Join(q.Kinds, ","))
	add("--not", strings.Join(q.Not, ","))
	add("--grep", q.Grep)
	add("--session", q.Session)
	add("--stream", q.Stream)
	if q.Failed {
		on = append(on, "--failed")
	}
	if !q.Since.IsZero() {
		add("--since", q.Since.Format(time.RFC3339))
	}
	if q.AfterID > 0 {
		add("--after", fmt.Sprint(q.AfterID))
	}
	if len(on) == 0 {
		return " yet"
	}
	return " with " + strings.Join(on, ", ")
}

func (a *app) cmdVerify() *cobra.Command {
	var receipt, digest string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the whole journal against its digests and anchors",
		Long: `Check every event against its digest and the digest before it, and the ends of the
streams against the signed notes that reeve anchor made. Works with and without a
running core and starts none.

With --receipt it also says where the events of a receipt stand in the journal, and with
--digest that they are those of a receipt that was kept elsewhere; this needs a core.

Status: 0 good, 9 altered or truncated (error.code says which), 11 it could not be
checked.`,
		Example: `  reeve verify
  reeve verify --json --jq .error.code
  reeve verify --receipt act_0193
  reeve verify --dir /backup/reeve`,
	}
	c.Flags().StringVar(&receipt, "receipt", "", "look for this receipt in it (act_… or aud_…)")
	c.Flags().StringVar(&digest, "digest", "", "the digest of the receipt that was kept")
	a.completeFlag(c, "receipt", a.completeActs(""))
	completeFields(c, members(reflect.TypeFor[control.VerifyReport]()))
	c.PreRunE = func(*cobra.Command, []string) error {
		if digest != "" && receipt == "" {
			return fault.New(fault.Usage, "read arguments", "--digest", "it is the digest of a receipt, and none is named").WithNext("name it with --receipt")
		}
		return nil
	}
	return a.does(c, func(ctx context.Context, args []string) answer {
		if receipt != "" {
			return a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
				return a.verifyReceipt(ctx, c, receipt, digest)
			})(ctx, args)
		}
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		r, err := offline(ctx, a, func(c *control.Client) (control.VerifyReport, error) { return c.Verify(ctx) }, a.programs.Verify)
		if err != nil {
			return failed(err)
		}
		return answer{kind: "verify", data: r, err: verifyFault(r), text: func(p printer) {
			for _, w := range r.Warnings {
				p.line("%s: %s", p.paint(warn, "warning"), visible(w))
			}
			if r.Code == "" {
				p.line("%s: %s in %s, %s and %s compared, in %s", p.paint(good, "good"), count(r.Events, "event", "events"),
					count(r.Streams, "stream", "streams"), count(r.Anchors, "anchored head", "anchored heads"), count(r.Artifacts, "artifact", "artifacts"), millis(r.Elapsed))
			}
		}}
	})
}

// offline asks the running core or, when there is none, reads the data directory.
func offline[T any](ctx context.Context, a *app, online func(*control.Client) (T, error), direct func(context.Context, string) (T, error)) (T, error) {
	var zero T
	c, dir, err := a.running(ctx)
	if err == nil {
		return online(c)
	}
	if dir == "" || !fault.HasCode(err, fault.Unavailable) {
		return zero, err
	}
	if direct == nil {
		return zero, missing("reading a data directory without its core")
	}
	return direct(ctx, dir)
}

// verifyFault is what a report means for the command.
func verifyFault(r control.VerifyReport) error {
	if r.Code == "" {
		return nil
	}
	code := fault.Code(r.Code)
	if !code.Known() {
		code = fault.Unavailable
	}
	where := r.Stream
	if r.Seq > 0 {
		where = fmt.Sprintf("%s, event %d", r.Stream, r.Seq)
	}
	e := fault.New(code, "verify", where, "%s", r.Text)
	switch code {
	case fault.Altered, fault.Truncated:
		return e.WithNext("keep the data directory as it is, and compare it with a backup and with notes kept elsewhere")
	}
	return e.WithNext("reeve doctor")
}

func (a *app) cmdAnchor() *cobra.Command {
	c := &cobra.Command{
		Use:   "anchor",
		Short: "Sign where every stream ends, so that a cut end can be told later",
		Long: `Sign the heads of all streams as a note in the data directory. Keep copies of the notes
and the verifier key elsewhere: an end that is cut off later no longer fits them.`,
		Example: `  reeve anchor
  reeve anchor --json --jq .data.path
  cp "$(reeve anchor --fields path)" /somewhere/else/`,
	}
	completeFields(c, members(reflect.TypeFor[control.AnchorReport]()))
	return a.does(c, a.asks(func(ctx context.Context, c *control.Client, _ []string) answer {
		r, err := c.Anchor(ctx)
		if err != nil {
			return failed(err)
		}
		return answer{kind: "anchor", data: r, text: func(p printer) {
			p.pairs("note", r.Path, "key", r.Key, "streams", fmt.Sprint(r.Streams), "events", fmt.Sprint(r.Events))
			a.note("keep a copy of the note and the key elsewhere: beside the journal they protect little")
		}}
	}))
}

func (a *app) cmdDU() *cobra.Command {
	c := &cobra.Command{
		Use:   "du",
		Short: "Show what the data directory holds, in bytes",
		Long:  "Show what takes space in the data directory. Works with and without a running core and starts none.",
		Example: `  reeve du
  reeve du --json --jq .data.artifact_bytes
  reeve du --fields available_bytes`,
	}
	completeFields(c, members(reflect.TypeFor[control.Usage]()))
	return a.does(c, func(ctx context.Context, _ []string) answer {
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		u, err := offline(ctx, a, func(c *control.Client) (control.Usage, error) { return c.Usage(ctx) }, a.programs.Usage)
		if err != nil {
			return failed(err)
		}
		size := func(n int64) string { return fmt.Sprint(n) }
		if a.io.OutTTY {
			size = bytesText
		}
		return answer{kind: "usage", data: u, text: func(p printer) {
			p.pairs(
				"database", size(u.DatabaseBytes),
				"write-ahead log", size(u.WALBytes),
				"payloads", size(u.PayloadBytes),
				"artifacts", size(u.ArtifactBytes),
				"unpacked worker", size(u.RuntimeBytes),
				"available", size(u.AvailableBytes),
				"events", fmt.Sprint(u.Events),
				"artifact files", fmt.Sprint(u.Artifacts),
			)
		}}
	})
}
