package host

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/artifact"
	"github.com/reeve-run/reeve/journal"
)

// maxRemembered bounds the digests that are remembered as sound, so that content
// that many events name is mostly read once; past it some is read again.
const maxRemembered = 1 << 14

// artifactCheck compares the artifacts that events name with their digests.
type artifactCheck struct {
	store   *artifact.Store
	sound   map[string]bool
	checked int64 // names, each as often as an event has it
	report  *journal.Report
}

// verifyArtifacts adds to the report every artifact that an event names and that
// is missing or altered, and returns how many it checked.
func verifyArtifacts(ctx context.Context, d dirs, store journal.Store, report *journal.Report) int64 {
	c := artifactCheck{store: artifact.In(d.artifacts), sound: map[string]bool{}, report: report}
	err := journal.Scan(ctx, store, func(e *journal.Stored) {
		sums, err := artifactsOf(e)
		if err != nil {
			c.found(journal.Finding{Code: fault.Unavailable, Stream: e.Stream, Seq: e.Seq, Text: "which artifacts it names cannot be read: " + err.Error()})
		}
		for _, sum := range sums {
			c.check(e, sum)
		}
	})
	if err != nil {
		c.found(journal.Finding{Code: fault.Unavailable, Text: "the artifacts of its events could not be checked: " + err.Error()})
	}
	return c.checked
}

// artifactsOf is the digests of the artifacts that an event names.
func artifactsOf(e *journal.Stored) (sums []string, err error) {
	switch event.Kind(e.Kind) {
	case event.CellStarted:
		var p struct {
			Code   *string `json:"code"`
			SHA256 string  `json:"code_sha256"`
		}
		if err = json.Unmarshal(e.Payload, &p); err == nil && p.Code == nil {
			sums = append(sums, p.SHA256)
		}
	case event.CellCompleted:
		var p struct {
			Artifacts []event.Artifact `json:"artifacts"`
			Spool     *event.Spool     `json:"spool"`
		}
		if err = json.Unmarshal(e.Payload, &p); err != nil {
			return nil, err
		}
		for _, a := range p.Artifacts {
			sums = append(sums, a.SHA256)
		}
		if p.Spool != nil && !slices.Contains(sums, p.Spool.SHA256) {
			sums = append(sums, p.Spool.SHA256)
		}
	case event.ActFinished:
		var p struct {
			Files []event.FileChange `json:"files"`
		}
		if err = json.Unmarshal(e.Payload, &p); err != nil {
			return nil, err
		}
		for _, f := range p.Files {
			for _, sum := range []*string{f.Before, f.After} {
				if sum != nil {
					sums = append(sums, *sum)
				}
			}
		}
	}
	return sums, err
}

func (c *artifactCheck) check(e *journal.Stored, sum string) {
	c.checked++
	if c.sound[sum] {
		return
	}
	r, err := c.store.Open(sum)
	if err == nil {
		err = r.Close()
	}
	switch fault.CodeOf(err) {
	case "":
		if len(c.sound) >= maxRemembered {
			clear(c.sound)
		}
		c.sound[sum] = true
	case fault.Unavailable:
		c.found(journal.Finding{Code: fault.Unavailable, Stream: e.Stream, Seq: e.Seq, Text: "artifact " + sum + " could not be checked: " + err.Error()})
	case fault.NotFound:
		c.found(journal.Finding{Code: fault.Altered, Stream: e.Stream, Seq: e.Seq, Text: "artifact " + sum + " is missing"})
	default:
		c.found(journal.Finding{Code: fault.Altered, Stream: e.Stream, Seq: e.Seq, Text: "artifact " + sum + " is altered: " + err.Error()})
	}
}

// found keeps the report's order, what is altered first, and its bound.
func (c *artifactCheck) found(f journal.Finding) {
	c.report.Total++
	all := c.report.Findings
	at := len(all)
	if f.Code == fault.Altered {
		if i := slices.IndexFunc(all, func(o journal.Finding) bool { return o.Code != fault.Altered }); i >= 0 {
			at = i
		}
	}
	all = slices.Insert(all, at, f)
	c.report.Findings = all[:min(len(all), journal.MaxFindings)]
}
