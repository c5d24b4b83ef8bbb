package host

import (
	"bytes"
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/durable"
	"github.com/reeve-run/reeve/journal"
)

// defaultRows is how many events are shown when nobody says.
const defaultRows = 200

// Events implements control.Records. A follower reads pages at its own pace and
// holds nothing while it waits; for it the end of ctx is no error.
func (c *Core) Events(ctx context.Context, q control.EventQuery, row func(control.EventRow) error) error {
	if q.Session != "" {
		if q.Stream != "" && q.Stream != stream(q.Session) {
			return fault.New(fault.InvalidRequest, "read events", q.Session, "stream %q is not that session's", q.Stream)
		}
		q.Stream = stream(q.Session)
	}
	most := q.Max
	if most <= 0 {
		most = defaultRows
	}
	after := int64(0) // of the stream, when one is named, else of the store
	if q.Stream == "" {
		after = q.AfterID
	}
	if q.Tail {
		rows, end, err := c.tail(ctx, q, after, most)
		for _, e := range rows {
			if err := row(eventRow(e)); err != nil {
				return err
			}
		}
		if err != nil || !q.Follow {
			return err
		}
		after = end
	}
	return c.forward(ctx, q, after, most, row)
}

// forward shows the events after a place, for a follower also those to come.
func (c *Core) forward(ctx context.Context, q control.EventQuery, after int64, most int, row func(control.EventRow) error) error {
	for shown := 0; ; {
		grown := c.watch.grown()
		for e, err := range c.eventsAfter(ctx, q.Stream, after) {
			if err != nil && q.Follow && ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			after = place(q, e)
			if !selects(q, e) {
				continue
			}
			if err := row(eventRow(e)); err != nil {
				return err
			}
			if shown++; !q.Follow && shown >= most {
				return nil
			}
		}
		if !q.Follow {
			return nil
		}
		select {
		case <-grown:
		case <-c.stopping:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// tail finds the last events that q selects, in order, and the place of the last
// one it looked at. It looks back over ever longer spans until there are enough.
func (c *Core) tail(ctx context.Context, q control.EventQuery, floor int64, most int) (rows []journal.Stored, end int64, err error) {
	if end, err = c.lastPlace(ctx, q.Stream); err != nil {
		return nil, floor, err
	}
	for span := int64(4 * most); ; span *= 8 {
		from := max(floor, end-span)
		last := from
		rows = rows[:0]
		for e, err := range c.eventsAfter(ctx, q.Stream, from) {
			if err != nil {
				return nil, floor, err
			}
			last = place(q, e)
			if selects(q, e) {
				rows = append(rows, e)
			}
			if len(rows) >= 2*most { // keep memory to what is shown
				rows = append(rows[:0], rows[len(rows)-most:]...)
			}
		}
		if len(rows) >= most || from == floor {
			return rows[max(0, len(rows)-most):], max(last, floor), nil
		}
	}
}

// lastPlace is where the stream ends, or the store when none is named.
func (c *Core) lastPlace(ctx context.Context, stream string) (int64, error) {
	var end int64
	for h, err := range journal.AllHeads(ctx, c.store) {
		switch {
		case err != nil:
			return 0, err
		case stream == "":
			end = max(end, h.ID)
		case h.Stream == stream:
			return h.Seq, nil
		}
	}
	return end, nil
}

// place is an event's place in what q reads.
func place(q control.EventQuery, e journal.Stored) int64 {
	if q.Stream != "" {
		return e.Seq
	}
	return e.ID
}

func (c *Core) eventsAfter(ctx context.Context, stream string, after int64) iter.Seq2[journal.Stored, error] {
	if stream == "" {
		return journal.All(ctx, c.store, after)
	}
	return journal.Stream(ctx, c.store, stream, after)
}

func eventRow(e journal.Stored) control.EventRow {
	return control.EventRow{
		ID: e.ID, Stream: e.Stream, Seq: e.Seq, Kind: e.Kind, Version: e.Version, AtMS: e.AtMS,
		Digest: e.Digest.String(), Payload: control.Raw(e.Payload),
	}
}

func selects(q control.EventQuery, e journal.Stored) bool {
	switch {
	case e.ID <= q.AfterID:
	case len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Kind):
	case slices.Contains(q.Not, e.Kind):
	case !q.Since.IsZero() && e.AtMS < q.Since.UnixMilli():
	case q.Grep != "" && !bytes.Contains(e.Payload, []byte(q.Grep)):
	case q.Failed && !failed(e):
	default:
		return true
	}
	return false
}

// failed reports whether the event tells of something that went wrong.
func failed(e journal.Stored) bool {
	switch event.Kind(e.Kind) {
	case event.KernelLost:
		return true
	case event.CellCompleted:
		var p struct {
			Status event.CellStatus `json:"status"`
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return true
		}
		return p.Status != event.CellOK && p.Status != event.CellYielded
	case event.ActUnknown:
		return true
	case event.ActFinished:
		var p struct {
			OK bool `json:"ok"`
		}
		return json.Unmarshal(e.Payload, &p) != nil || !p.OK
	case event.AuditDispatch:
		var p struct {
			Outcome event.AuditOutcome `json:"outcome"`
		}
		return json.Unmarshal(e.Payload, &p) != nil || p.Outcome == event.AuditError || p.Outcome == event.AuditDenied
	default:
		return false
	}
}

// Artifact implements control.Records.
func (c *Core) Artifact(_ context.Context, sum string) (io.ReadCloser, error) {
	r, err := c.artifacts.Open(sum)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Usage implements control.Records.
func (c *Core) Usage(ctx context.Context) (control.Usage, error) { return usage(ctx, c.dirs, c.store) }

func usage(ctx context.Context, d dirs, store journal.Store) (control.Usage, error) {
	var u control.Usage
	if informer, ok := store.(journal.Informer); ok {
		info, err := informer.Info(ctx)
		if err != nil {
			return u, err
		}
		u.Events, u.PayloadBytes, u.DatabaseBytes, u.WALBytes = info.Events, info.PayloadBytes, info.FileBytes, info.WALBytes
	}
	var err error
	if u.Artifacts, u.ArtifactBytes, err = treeSize(d.artifacts); err != nil {
		return u, err
	}
	if _, u.RuntimeBytes, err = treeSize(d.python); err != nil {
		return u, err
	}
	u.AvailableBytes, err = durable.Free(d.root)
	return u, err
}

// treeSize counts the files below dir and their bytes. A dir that does not exist
// has none.
func treeSize(dir string) (count, size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if os.IsNotExist(err) { // gone while we looked
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			count, size = count+1, size+info.Size()
		}
		return err
	})
	if err != nil {
		return 0, 0, fault.Wrap(err, fault.Unavailable, "measure", dir)
	}
	return count, size, nil
}

// Status implements control.Lifecycle.
func (c *Core) Status(ctx context.Context) (control.Status, error) {
	s := control.Status{
		Version: control.Version, PID: os.Getpid(), Dir: c.dirs.root, Socket: c.socket, StartedAtMS: c.started.UnixMilli(),
		Epoch: c.host.Incarnation, Isolation: "off", Unrecorded: c.unrecorded.Load(), LastRecovery: c.recovered,
	}
	for _, l := range c.allLanes() {
		l.mu.Lock()
		if l.worker != nil {
			s.Workers++
		}
		for _, t := range l.cellTasks() {
			if t.execution == "" {
				s.Queued++
			} else {
				s.Running++
			}
		}
		l.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, storeAnswer)
	defer cancel()
	c.storage(ctx, &s)
	return s, nil
}

// storeAnswer is how long status waits for the store: a page about the core must
// come also when the store hangs.
const storeAnswer = 500 * time.Millisecond

func (c *Core) storage(ctx context.Context, s *control.Status) {
	informer, ok := c.store.(journal.Informer)
	if !ok {
		s.Store = control.Storage{Engine: "unknown", State: "ok"}
		return
	}
	type answer struct {
		info     journal.Info
		sessions int
		err      error
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		if a.info, a.err = informer.Info(ctx); a.err == nil {
			a.sessions, a.err = c.countSessions(ctx)
		}
		got <- a
	}()
	select {
	case a := <-got:
		if a.err != nil {
			s.Store = control.Storage{State: "failed", Reason: a.err.Error()}
			return
		}
		s.Events, s.Sessions = a.info.Events, a.sessions
		s.Store = control.Storage{
			Engine: a.info.Engine, Synchronous: a.info.Synchronous, State: a.info.State, Reason: a.info.Problem, WALBytes: a.info.WALBytes,
		}
	case <-ctx.Done():
		s.Store = control.Storage{State: "failed", Reason: "it has not answered for " + storeAnswer.String()}
	}
}

func (c *Core) countSessions(ctx context.Context) (int, error) {
	n := 0
	for _, err := range journal.Records(ctx, c.store, journal.Query{Kind: recordSession, State: stateOpen}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Shutdown implements control.Lifecycle.
func (c *Core) Shutdown(_ context.Context, by event.Actor) error {
	c.beginStop(validActor(by))
	return nil
}
