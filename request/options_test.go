package request_test

import (
	"strings"
	"testing"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/request"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "VD-003 VD-004 VD-083")
	for _, o := range []request.Options{{}, {Presentation: "human", PerOp: []string{"", "verbose"}, Format: "table", FormatPerOp: []string{"auto"}}} {
		if err := o.Check(2); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for says, o := range map[string]request.Options{
		"agent, verbose, human": {Presentation: "loud"},
		"json, auto, table":     {FormatPerOp: []string{"", "xml"}},
		"3 entries":             {PerOp: []string{"", "", ""}},
	} {
		if err := o.Check(2); fault.CodeOf(err) != fault.InvalidRequest || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %s", o, err, says)
		}
	}
	o := request.Options{PerOp: []string{"", "verbose"}}
	if o.PresentationOf(0, "stats") != request.Agent || o.PresentationOf(0, "get") != request.Verbose || o.PresentationOf(1, "stats") != request.Verbose || o.PresentationOf(9, "stats") != request.Agent {
		t.Error("the wrong presentation is chosen")
	}
	if err := request.CheckPlan([]string{"ops", "plan"}); err != nil {
		t.Error(err)
	}
	if err := request.CheckPlan([]string{"ops", "save_to"}); fault.CodeOf(err) != fault.InvalidRequest || !strings.Contains(err.Error(), "save_to") {
		t.Errorf("%v", err)
	}
}
