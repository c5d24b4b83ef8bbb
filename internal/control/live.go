package control

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/reeve-run/reeve/fault"
)

// backlog is how many progress items wait for a slow reader before output is
// dropped from its live view; the result has it all the same.
const backlog = 256

type outcome struct {
	result CellResult
	err    error
}

// execute answers with one envelope, or to a client that accepts an event stream
// with progress and then the envelope. A client that hangs up interrupts its cell.
func (s *Server) execute(w http.ResponseWriter, r *http.Request) {
	req, err := decode[ExecuteRequest](r)
	if err != nil {
		fail(w, err)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		answer("cell_result", func(r *http.Request) (any, error) {
			return s.service.Execute(r.Context(), req, nil)
		})(w, r)
		return
	}
	live := make(chan CellProgress, backlog)
	done := make(chan outcome, 1)
	go func() { done <- s.run(r.Context(), req, live) }()
	s.relay(newStream(w), live, done)
}

// run calls the service with a progress function that never blocks. Once a piece of
// output did not fit no later one is sent, so that what a reader saw live is always
// the beginning of the whole.
func (s *Server) run(ctx context.Context, req ExecuteRequest, live chan<- CellProgress) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("panic in a control call", "path", "/v1/cells", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			o.err = fault.New(fault.Internal, "run cell", "", "panic: %v", v).WithNext("read core.log in the data directory")
		}
	}()
	cut := false
	o.result, o.err = s.service.Execute(ctx, req, func(p CellProgress) {
		if cut && p.Kind == "output" {
			return
		}
		select {
		case live <- p:
		default:
			cut = cut || p.Kind == "output"
		}
	})
	return o
}

func (s *Server) relay(st *stream, live <-chan CellProgress, done <-chan outcome) {
	tick := time.NewTicker(s.heartbeat)
	defer tick.Stop()
	var lost error // the reader has gone: nothing more is sent, the outcome is awaited
	note := func(err error) {
		if lost == nil {
			lost = err
		}
	}
	for {
		select {
		case p := <-live:
			if lost == nil {
				note(st.send(0, sseProgress, p))
			}
		case <-tick.C:
			if lost == nil {
				note(st.beat())
			}
		case o := <-done:
			for len(live) > 0 && lost == nil {
				note(st.send(0, sseProgress, <-live))
			}
			if lost == nil {
				note(st.send(0, sseAnswer, envelope("cell_result", o.result, o.err)))
			}
			return
		}
	}
}

func envelope(kind string, data any, err error) Envelope {
	if err != nil {
		return Failure(err)
	}
	e, err := Success(kind, data)
	if err != nil {
		return Failure(err)
	}
	return e
}

// events streams rows and then an envelope. A follower gets rows until it hangs up
// or the core stops.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r)
	if err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := r.Context().Value(streamKey{}).(context.Context)
	if q.Follow {
		defer context.AfterFunc(stop, cancel)()
	}
	st := newStream(w)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		tick := time.NewTicker(s.heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if st.beat() != nil {
					cancel()
					return
				}
			}
		}
	}()
	err = s.service.Events(ctx, q, func(e EventRow) error { return st.send(e.ID, "", e) })
	if q.Follow && stop.Err() != nil {
		err = fault.New(fault.Unavailable, "follow events", "", "the core is stopping").Retryable()
	}
	cancel()
	<-beating
	_ = st.send(0, sseAnswer, envelope("events", accepted{}, err)) // the reader may have gone
}

// encode writes q as the query of its address.
func (q EventQuery) encode() string {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	flag := func(name string, on bool) {
		if on {
			v.Set(name, "true")
		}
	}
	count := func(name string, n int64) {
		if n != 0 {
			v.Set(name, fmt.Sprint(n))
		}
	}
	count("after_id", q.AfterID)
	count("max", int64(q.Max))
	set("stream", q.Stream)
	set("session", q.Session)
	set("grep", q.Grep)
	flag("failed", q.Failed)
	flag("tail", q.Tail)
	flag("follow", q.Follow)
	for _, k := range q.Kinds {
		v.Add("kind", k)
	}
	for _, k := range q.Not {
		v.Add("not", k)
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	return v.Encode()
}

// parseQuery is the inverse of encode. A Last-Event-ID header, sent by browsers
// that reconnect, takes the place of after_id.
func parseQuery(r *http.Request) (q EventQuery, err error) {
	if err := known(r, "after_id", "max", "stream", "session", "grep", "failed", "tail", "follow", "kind", "not", "since"); err != nil {
		return q, err
	}
	v := r.URL.Query()
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		v.Set("after_id", id)
	}
	q = EventQuery{Stream: v.Get("stream"), Session: v.Get("session"), Grep: v.Get("grep"), Kinds: v["kind"], Not: v["not"]}
	if q.AfterID, err = number(v, "after_id"); err != nil {
		return q, err
	}
	max, err := number(v, "max")
	if err != nil {
		return q, err
	}
	q.Max = int(max)
	for name, to := range map[string]*bool{"failed": &q.Failed, "tail": &q.Tail, "follow": &q.Follow} {
		switch v.Get(name) {
		case "", "false":
		case "true":
			*to = true
		default:
			return q, fault.New(fault.InvalidRequest, "read query", name, "%q is neither true nor false", v.Get(name))
		}
	}
	if since := v.Get("since"); since != "" {
		if q.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			return q, fault.Wrap(err, fault.InvalidRequest, "read query", "since")
		}
	}
	return q, nil
}
