package work

import (
	"fmt"
	"strconv"

	"github.com/reeve-run/reeve/canon"
)

// ResultProtocol is the protocol that the summary of a result names.
const ResultProtocol = "developer/v8-result"

// Summary is what a successful operation returns beside its own words (DV-240): the
// batch it appended, and how the work stands. It has four members and no other; a hint
// at the next step is a sibling of it (DV-412).
type Summary struct {
	Scope   ScopeID // empty when nothing was appended
	Events  []EventID
	Runtime Runtime
}

// Summary is that of a branch after the batch was stored; the batch is nil when nothing
// was appended.
func (b *Branch) Summary(stored *Batch) Summary {
	s := Summary{Runtime: b.Runtime()}
	if stored != nil {
		s.Scope = stored.scope
		for _, e := range stored.entries {
			s.Events = append(s.Events, e.Event)
		}
	}
	return s
}

// Append writes the summary as canonical JSON.
func (s Summary) Append(b []byte) []byte {
	b = appendIDs(append(b, `{"eventIds":`...), s.Events)
	b = append(b, `,"protocol":"`+ResultProtocol+`","runtime":{"reroutePending":`...)
	b = strconv.AppendBool(b, s.Runtime.RerouteDue)
	b = append(append(b, `,"state":"`...), s.Runtime.State...)
	b = strconv.AppendBool(append(b, `","verificationPending":`...), s.Runtime.VerifyDue)
	return append(appendQuoted(append(b, `},"workScopeId":`...), s.Scope), '}')
}

// Complete reports whether an evaluator may say that the work is done (DV-242).
func (s Summary) Complete() bool {
	return s.Runtime.State == Idle && !s.Runtime.RerouteDue && !s.Runtime.VerifyDue
}

// ParseSummary reads the details of a result as an evaluator does. Details of another
// protocol, or that are no object, are not ours: ours is false and there is no error. An
// evaluator of developer results must then fail, for nothing says that work stands idle
// (DV-412).
func ParseSummary(details canon.Value) (s Summary, ours bool, err error) {
	named, _ := details.Member("protocol")
	if protocol, _ := named.Text(); protocol != ResultProtocol {
		return Summary{}, false, nil
	}
	defer func() {
		if err != nil {
			s = Summary{}
		}
	}()
	if err := exactly(details, "result", "protocol", "workScopeId", "eventIds", "runtime"); err != nil {
		return s, true, err
	}
	scope, _ := details.Member("workScopeId")
	if text, ok := scope.Text(); ok && text != "" {
		s.Scope = ScopeID(text)
	} else if !scope.IsNull() {
		return s, true, fmt.Errorf("read result: workScopeId is neither null nor an identifier")
	}
	events, _ := details.Member("eventIds")
	if events.Kind() != canon.Array {
		return s, true, fmt.Errorf("read result: eventIds is no array")
	}
	for i, e := range events.Items() {
		text, _ := e.Text()
		if canon.Trim(text) == "" {
			return s, true, fmt.Errorf("read result: eventIds[%d] is blank or no string", i)
		}
		s.Events = append(s.Events, EventID(text))
	}
	runtime, _ := details.Member("runtime")
	s.Runtime, err = parseRuntime(runtime)
	return s, true, err
}

func parseRuntime(v canon.Value) (r Runtime, err error) {
	if err := exactly(v, "runtime", "state", "reroutePending", "verificationPending"); err != nil {
		return r, err
	}
	state, _ := v.Member("state")
	text, _ := state.Text()
	if r.State = Standing(text); !r.State.known() {
		return r, fmt.Errorf("read result: runtime state %q is none of the five", text)
	}
	reroute, _ := v.Member("reroutePending")
	verify, _ := v.Member("verificationPending")
	var ok1, ok2 bool
	r.RerouteDue, ok1 = reroute.Bool()
	r.VerifyDue, ok2 = verify.Bool()
	if !ok1 || !ok2 {
		return r, fmt.Errorf("read result: a debt flag is no boolean")
	}
	if (r.RerouteDue || r.VerifyDue) && !r.State.carriesDebt() {
		return r, fmt.Errorf("read result: a debt cannot be pending when the state is %s", r.State)
	}
	return r, nil
}

// exactly checks that an object has these members and no other.
func exactly(v canon.Value, what string, names ...string) error {
	if v.Kind() != canon.Object || v.Len() != len(names) {
		return fmt.Errorf("read result: %s has not exactly the members %q", what, names)
	}
	for _, name := range names {
		if _, there := v.Member(name); !there {
			return fmt.Errorf("read result: %s has no member %q", what, name)
		}
	}
	return nil
}
