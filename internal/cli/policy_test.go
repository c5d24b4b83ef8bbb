package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const everybody = `@id("all")
@reason("everything")
permit (principal, action, resource);
`

// A policy that could keep a landing from being recorded is warned of; one that
// could not is not.
func TestPolicyTestWarnsOfWhatStopsALanding(t *testing.T) {
	t.Attr("requirement", "VD-202")
	t.Parallel()
	for name, c := range map[string]struct{ rule, want string }{
		"open": {"", ""},
		"forbidden in one circumstance": {`@id("unattended")
@reason("nobody looks")
forbid (principal is Client, action == Action::"developer_record_landing", resource)
when { !context.origin.attended && context.work.discipline == "enforced" };`, `refuse developer_record_landing to a client`},
		"limited": {`@id("slowly")
@reason("not so fast")
@rate_limit("1/1m")
permit (principal is Session, action in Effect::"record", resource);`, `rule "slowly" can hold up developer_record_landing of a session (rate_limit)`},
		"held": {`@id("ask")
@reason("ask first")
@hold("a landing")
permit (principal is Session, action == Action::"developer_record_landing", resource);`, `rule "ask" can hold up developer_record_landing of a session (hold)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "p.cedar")
			if err := os.WriteFile(file, []byte(everybody+c.rule), 0o600); err != nil {
				t.Fatal(err)
			}
			status, out, errs := shell{dir: t.TempDir()}.run(t.Context(), "policy", "test", file, "--jq", ".data.warnings[]")
			if status != 0 {
				t.Fatalf("status %d: %s", status, errs)
			}
			if c.want == "" && out != "" || !strings.Contains(out, c.want) {
				t.Errorf("warnings %q, want %q", out, c.want)
			}
		})
	}
}
