package fault_test

import (
	"testing"

	"github.com/reeve-run/reeve/fault"
)

func TestNearestName(t *testing.T) {
	t.Parallel()
	known := []string{"worker.python", "worker.start_timeout", "limits.queue"}
	for name, want := range map[string]struct {
		near   string
		likely bool
	}{
		"worker.pyhton": {"worker.python", true},
		"limits.queue":  {"limits.queue", true},
		"limit.queues":  {"limits.queue", true},
		"colour":        {"worker.python", false},
		"x":             {"limits.queue", false},
	} {
		if near, likely := fault.Nearest(name, known); near != want.near || likely != want.likely {
			t.Errorf("%q: %q %v, want %q %v", name, near, likely, want.near, want.likely)
		}
	}
	if near, likely := fault.Nearest("x", nil); near != "" || likely {
		t.Errorf("among none: %q %v", near, likely)
	}
}
