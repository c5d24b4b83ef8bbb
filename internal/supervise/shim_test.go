package supervise_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/internal/supervise"
)

// TestShimComesBeforeTheRest: as a shim, the binary initialises next to nothing. A
// new import of package shim can undo that, and each start of a worker pays for it.
func TestShimComesBeforeTheRest(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], supervise.ShimCommand)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "not by hand") {
		t.Fatalf("a shim without a core: %v\n%s", err, out)
	}
	var initialised []string
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "init "); ok {
			name, _, _ := strings.Cut(rest, " ")
			initialised = append(initialised, name)
		}
	}
	const most = 30
	if n := len(initialised); n == 0 || n > most {
		t.Errorf("%d packages were initialised first, at most %d should be: %q", n, most, initialised)
	}
}
