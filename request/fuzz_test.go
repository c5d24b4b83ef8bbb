package request_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
)

func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		if text := v.text(); len(text) < 4096 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := request.Parse(text)
		if err != nil {
			var e *request.ParseError
			if !errors.As(err, &e) || e.Code == "" || e.Offset > len(text) || fault.CodeOf(err) != fault.InvalidRequest {
				t.Fatalf("refused without code or with a wild place: %#v", err)
			}
			return
		}
		wellFormed(t, r)
		// What was parsed, written as JSON, says the same again.
		if r.Mode != request.Chain && len(r.Units) == len(r.Ops) {
			again, err := request.Parse(asJSON(r))
			if err != nil {
				var e *request.ParseError
				// The JSON form counts its envelope as depth, may be longer, and has
				// no way to write a string that looks like a reference.
				if errors.As(err, &e) && (e.Code == request.NestingTooDeep || e.Code == request.InputTooLarge || e.Code == request.PrevInJSON) {
					return
				}
				t.Fatalf("%s\nas JSON: %v", text, err)
			}
			if a, b := asJSON(r), asJSON(again); a != b {
				t.Fatalf("%s\nbecame %s", a, b)
			}
		}
	})
}

// wellFormed checks what holds of every parsed request.
func wellFormed(t *testing.T, r *request.Request) {
	t.Helper()
	next := 0
	for _, u := range r.Units {
		if u.Start != next || u.End <= u.Start {
			t.Fatalf("units %v do not partition %d operations", r.Units, len(r.Ops))
		}
		next = u.End
	}
	if next != len(r.Ops) || next < 1 || next > request.MaxOps {
		t.Fatalf("units %v over %d operations", r.Units, len(r.Ops))
	}
	for _, op := range r.Ops {
		for i, a := range op.Args {
			if i > 0 && op.Args[i-1].Name >= a.Name {
				t.Fatalf("arguments of %s are not sorted: %q, %q", op.Tool, op.Args[i-1].Name, a.Name)
			}
			if !json.Valid(a.Value.AppendJSON(nil)) {
				t.Fatalf("argument %q is written as %q", a.Name, a.Value.AppendJSON(nil))
			}
		}
	}
}

func asJSON(r *request.Request) string {
	b := []byte{'['}
	for i, op := range r.Ops {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"tool":`...)
		b = request.OfString(op.Tool).AppendJSON(b)
		b = append(b, `,"args":`...)
		b = append(request.OfObject(op.Args...).AppendJSON(b), '}')
	}
	return string(append(b, ']'))
}
