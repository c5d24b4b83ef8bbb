package cli

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"

	"github.com/reeve-run/reeve/fault"
)

// checkJQ refuses an expression before anything is done for it.
func (a *app) checkJQ() error {
	if a.set.jq == "" {
		return nil
	}
	q, err := gojq.Parse(a.set.jq)
	if err == nil {
		_, err = gojq.Compile(q)
	}
	if err != nil {
		return fault.New(fault.Usage, "read arguments", "--jq "+a.set.jq, "%s", err)
	}
	return nil
}

// printJQ prints what the expression makes of v: texts bare, the rest as JSON.
func (a *app) printJQ(v jsontext.Value) error {
	const op = "apply --jq"
	q, err := gojq.Parse(a.set.jq)
	if err != nil {
		return fault.Wrap(err, fault.Usage, op, a.set.jq)
	}
	var in any
	d := stdjson.NewDecoder(bytes.NewReader(v))
	d.UseNumber() // an id may be larger than a float keeps
	if err := d.Decode(&in); err != nil {
		return fault.Wrap(err, fault.Internal, op, a.set.jq)
	}
	results := q.Run(in)
	for {
		r, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := r.(error); ok {
			return fault.Wrap(err, fault.Usage, op, a.set.jq)
		}
		if s, ok := r.(string); ok {
			fmt.Fprintln(a.io.Out, s)
			continue
		}
		b, err := gojq.Marshal(r)
		if err != nil {
			return fault.Wrap(err, fault.Internal, op, a.set.jq)
		}
		fmt.Fprintf(a.io.Out, "%s\n", b)
	}
}
