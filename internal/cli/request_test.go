package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/internal/control"
)

// asked is a core whose verb plane answers one body.
type asked struct {
	control.Service
	body string
	got  control.RequestCall
}

func (c *asked) Request(_ context.Context, r control.RequestCall) (control.RequestAnswer, error) {
	c.got = r
	return control.RequestAnswer{Body: control.Raw(c.body)}, nil
}

func answered(entries ...string) string {
	return fmt.Sprintf(`{"results":[%s],"summary":{"total":%d,"succeeded":0,"failed":0,"aborted":0},"status":"partial"}`, strings.Join(entries, ","), len(entries))
}

func failedEntry(code, disposition string) string {
	return fmt.Sprintf(`{"ok":false,"tool":"v","op_index":0,"domain_disposition":%q,"error":{"kind":"k","message":"m","domain_disposition":%q,"code":%q,"act":"act_1","retryable":false}}`,
		disposition, disposition, code)
}

// The exit status is that of the worst entry, and whatever may have taken effect is
// unknown, of whatever it failed.
func TestRequestStatusIsOfTheWorstEntry(t *testing.T) {
	t.Parallel()
	const ok, aborted = `{"ok":true,"tool":"v","op_index":0,"result":1}`, `{"ok":false,"tool":"v","op_index":1,"aborted":true,"domain_disposition":"not_committed"}`
	none := "not_committed"
	for name, c := range map[string]struct {
		entries []string
		status  int
	}{
		"all good":             {[]string{ok, ok}, 0},
		"held":                 {[]string{ok, failedEntry("held", none)}, 7},
		"denied over held":     {[]string{failedEntry("held", none), failedEntry("permission_denied", none)}, 6},
		"failed over denied":   {[]string{failedEntry("permission_denied", none), failedEntry("internal", none)}, 1},
		"the failure's own":    {[]string{failedEntry("not_found", none), aborted}, 3},
		"unknown over all":     {[]string{failedEntry("internal", none), failedEntry("timeout", "unknown")}, 10},
		"unknown, if it fails": {[]string{failedEntry("internal", "unknown")}, 10},
		"committed all the same": {[]string{
			failedEntry("audit_obligation", "committed")}, 11},
		"a code nobody knows": {[]string{failedEntry("strange", none)}, 1},
		"of the transport": {[]string{
			`{"ok":false,"tool":"v","op_index":0,"domain_disposition":"not_committed","error":{"kind":"substitution_error","message":"m","reason":"path_not_found"}}`}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := &asked{body: answered(c.entries...)}
			status, out, _ := serve(t, core).run(t.Context(), "request", "v()", "--json")
			if status != c.status {
				t.Errorf("status %d, want %d\n%s", status, c.status, out)
			}
			if e := envelope(t, out); e.OK != (c.status == 0) || len(e.Data) < 10 {
				t.Errorf("the envelope has no entries, or says otherwise than the status: %s", out)
			}
			if core.got.By.Kind != "operator" || core.got.By.Surface != "cli" || core.got.Agent || core.got.Session == "" || core.got.Presentation != "verbose" {
				t.Errorf("asked as %+v", core.got)
			}
		})
	}
}

// Members that this command line does not know reach the reader of --json.
func TestRequestKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	core := &asked{body: answered(`{"ok":true,"tool":"v","op_index":0,"result":{"n":12345678901234567890},"usage":{"tokens":3}}`)}
	_, out, _ := serve(t, core).run(t.Context(), "request", "v()", "--json")
	for _, want := range []string{`"usage":{"tokens":3}`, `12345678901234567890`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
}

// What a verb answers is printed by its shape, and cannot steer a terminal.
func TestRequestShowsResultsByShape(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`"plain \u001b[31m"`: "plain \\x1b[31m\n",
		`{"items":[{"b":1,"a":"x\ty"},{"b":null,"c":true}],"count":2}`: "1\tx y\t\n\t\ttrue\n",
		`{"b":1,"a":null,"text":"l1\nl2"}`:                             "b\t1\n\n--- text\nl1\nl2\n",
		`[1,2]`:                                                        "[1,2]\n",
		`[]`:                                                           "[]\n",
	} {
		core := &asked{body: answered(`{"ok":true,"tool":"v","op_index":0,"result":` + result + `}`)}
		_, out, errs := serve(t, core).run(t.Context(), "request", "v()")
		if out != want {
			t.Errorf("%s is shown as %q, want %q (%s)", result, out, want, errs)
		}
	}
}
