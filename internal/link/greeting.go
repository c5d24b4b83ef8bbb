package link

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/configid"
)

// greeting is what one end tells of its configuration.
type greeting struct {
	id    string
	print configid.Print
	text  []byte // of print
}

func greetingOf(i configid.Identity) (g greeting, err error) {
	if g.id, err = i.ID(); err != nil {
		return g, err
	}
	if g.print, err = i.Print(); err != nil {
		return g, err
	}
	if g.text, err = json.Marshal(g.print); err != nil {
		return g, fault.Wrap(err, fault.Internal, "identify configuration", "")
	}
	return g, nil
}

// differ names the fields in which the peer's configuration is not what it should
// be, by diff. Equal ids spare the comparison.
func (g greeting) differ(h *hello, diff func(mine, theirs configid.Print) []string) ([]string, error) {
	if h.configID == g.id {
		return nil, nil
	}
	var theirs configid.Print
	if err := json.Unmarshal(h.config, &theirs); err != nil {
		return nil, fault.Wrap(err, fault.InvalidRequest, "read greeting", "config")
	}
	return diff(g.print, theirs), nil
}

// mismatch is the refusal for configurations that differ in fields, nil when there
// are none. It shows no value.
func mismatch(client string, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	e := fault.New(fault.Conflict, "greet", client, "the configurations of client and core differ in %s", strings.Join(slices.Compact(fields), ", ")).
		WithNext("restart the core so that it reads the settings again: reeve down, then reeve up")
	if slices.Contains(fields, "store") {
		// Stopping would hit a core that serves somebody else's directory.
		e.Next = "remove core.json from this data directory: it was copied, and leads to another directory's core"
	}
	return refused(e, ConfigMismatch)
}
