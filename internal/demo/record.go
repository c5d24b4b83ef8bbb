package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/internal/control"
)

// Moment is one event of the session's stream in words.
type Moment struct {
	ID   int64  `json:"id"`
	Seq  int64  `json:"seq"`
	AtMS int64  `json:"at_ms"`
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// tell reads the session's stream and holds it against what the agent was told.
func (d *demo) tell(ctx context.Context) (string, error) {
	sessions, err := d.core.ListSessions(ctx)
	if err != nil {
		return "", err
	}
	if len(sessions) != 1 {
		return "", fmt.Errorf("there are %d sessions, the agent used one", len(sessions))
	}
	var rows []control.EventRow
	err = d.core.Events(ctx, control.EventQuery{Session: sessions[0].Session, Max: 1000}, func(r control.EventRow) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return "", err
	}
	begun := int64(0)
	open := map[string]bool{}
	count := map[string]int{}
	for i, r := range rows {
		m, err := moment(r, open)
		if err != nil {
			return "", err
		}
		if i == 0 {
			begun = r.AtMS
		}
		if r.Seq != int64(i+1) {
			return "", fmt.Errorf("event %d of the stream has sequence %d", i+1, r.Seq)
		}
		count[r.Kind]++
		d.report.Timeline = append(d.report.Timeline, m)
		d.printf("   %7.3fs  %-15s %s\n", float64(r.AtMS-begun)/1000, r.Kind, m.Text)
	}
	for kind, want := range map[event.Kind]int{
		event.SessionOpened: 1, event.KernelReset: 2, event.KernelLost: 1, event.CellStarted: cells, event.CellCompleted: cells,
		event.ActIntended: 1, event.ActFinished: 1, event.SendHeld: 1, event.SendApproved: 1, event.InputReceived: 1,
	} {
		if count[string(kind)] != want {
			return "", fmt.Errorf("the stream holds %d events %s, expected are %d", count[string(kind)], kind, want)
		}
	}
	return fmt.Sprintf("%d events: %d cells in 2 generations, each with its intent and one outcome", len(rows), cells),
		expect(len(open) == 0, "cells without an outcome: %v", open)
}

// cells is how many the agent runs in all.
const cells = 9

// moment says an event in words and keeps the books of open cells.
func moment(r control.EventRow, open map[string]bool) (Moment, error) {
	p, err := event.Decode(event.Kind(r.Kind), r.Version, r.Payload)
	if err != nil {
		return Moment{}, err
	}
	m := Moment{ID: r.ID, Seq: r.Seq, AtMS: r.AtMS, Kind: r.Kind}
	switch e := p.(type) {
	case event.SessionOpenedV1:
		m.Text = fmt.Sprintf("%s for %s %s", e.Session, e.By.Kind, e.By.Name)
	case event.KernelResetV1:
		m.Text = fmt.Sprintf("%s with Python %s, ready after %d ms", e.Generation, e.Python.Version, e.StartMS)
	case event.KernelLostV1:
		m.Text = fmt.Sprintf("%s: %s; %d names are gone", e.Generation, e.Cause.Text, len(e.Names)+e.NamesMore)
	case event.CellStartedV1:
		open[e.Cell] = true
		m.Text = fmt.Sprintf("%s %s: %s", e.Cell, e.Execution, firstLine(e.Code))
	case event.CellCompletedV2:
		if !open[e.Cell] {
			return m, fmt.Errorf("cell %s has an outcome without an intent", e.Cell)
		}
		delete(open, e.Cell)
		m.Text = fmt.Sprintf("%s %s after %d ms, %d bytes of output", e.Cell, e.Status, e.ElapsedMS, e.BytesTotal)
	case event.ActIntendedV1:
		m.Text = fmt.Sprintf("%s %s, permitted by %s", e.Act, e.Verb, strings.Join(e.Ruled.Rules, ", "))
	case event.ActFinishedV1:
		m.Text = fmt.Sprintf("%s %s, %d files changed", e.Act, e.Disposition, len(e.Files))
	case event.SendHeldV1:
		m.Text = fmt.Sprintf("%s: %s", e.Effect, e.Reason)
	case event.SendApprovedV1:
		m.Text = fmt.Sprintf("%s by %s %s", e.Effect, e.By.Kind, e.By.Name)
	case event.InputReceivedV1:
		m.Text = e.Text
	default:
		b, err := json.Marshal(p)
		if err != nil {
			return m, err
		}
		m.Text = string(b)
	}
	return m, nil
}

func firstLine(code *string) string {
	if code == nil {
		return "(kept as an artifact)"
	}
	line, rest, _ := strings.Cut(strings.TrimSpace(*code), "\n")
	if rest != "" {
		line += " …"
	}
	return line
}

func (d *demo) verify(ctx context.Context) (string, error) {
	v, err := d.core.Verify(ctx)
	if err != nil {
		return "", err
	}
	d.report.Verify = v
	return fmt.Sprintf("%d events: every digest follows from the one before it", v.Events),
		errors.Join(
			expect(v.Code == "", "%s: %s", v.Code, v.Text),
			expect(v.Events >= int64(len(d.report.Timeline)), "only %d of %d events were looked at", v.Events, len(d.report.Timeline)))
}

// stop ends the agent and the core and looks for what they may have left.
func (d *demo) stop(ctx context.Context) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var errs []error
	// The agent's server goes last: it is the core's parent and reaps it.
	defer func() {
		if d.agent != nil {
			err = errors.Join(err, d.agent.session.Close())
		}
	}()
	core, err := control.Reach(ctx, d.data)
	if err != nil {
		if d.core == nil {
			return "no core had been started", nil
		}
		return "", err
	}
	all, err := core.Processes(ctx)
	errs = append(errs, err, core.Shutdown(ctx, event.Actor{Kind: "operator", Name: "reeve demo", Surface: "control"}))
	for _, p := range append(all, control.Process{PID: core.Core().PID, Kind: "core"}) {
		errs = append(errs, gone(ctx, p))
	}
	return fmt.Sprintf("the core and the %d processes under it have ended", max(len(all)-1, 0)), errors.Join(errs...)
}

// gone waits until a process has ended.
func gone(ctx context.Context, p control.Process) error {
	for alive(p.PID) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s %d is still there", p.Kind, p.PID)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// alive tells a process that runs from one that only waits to be reaped.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) || runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
