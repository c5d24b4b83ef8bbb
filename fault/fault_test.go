package fault_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/reeve-run/reeve/fault"
)

func TestTextSaysOperationSubjectMessageCause(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*fault.Error{
		`append "session/s": head moved`:            fault.New(fault.Conflict, "append", "session/s", "head moved"),
		`append "session/s": EOF`:                   fault.Wrap(io.EOF, fault.Unavailable, "append", "session/s"),
		`read config: line 3 is not a setting: EOF`: {Code: fault.Usage, Op: "read config", Message: "line 3 is not a setting", Err: io.EOF},
		`open "a\nb"`: {Code: fault.Internal, Op: "open", Subject: "a\nb"},
		"conflict":    fault.Of(fault.Conflict),
	} {
		if got := e.Error(); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	}
}

func TestCodesSurviveWrapping(t *testing.T) {
	t.Parallel()
	inner := fault.New(fault.StoreFull, "commit", "", "no space").WithNext("make room").Retryable()
	outer := fault.Wrap(fmt.Errorf("while writing: %w", inner), fault.Unavailable, "run cell", "c")
	if fault.CodeOf(outer) != fault.Unavailable {
		t.Errorf("outermost code %s", fault.CodeOf(outer))
	}
	for code, want := range map[fault.Code]bool{fault.Unavailable: true, fault.StoreFull: true, fault.Conflict: false} {
		if fault.HasCode(outer, code) != want {
			t.Errorf("HasCode(%s) is %v", code, !want)
		}
	}
	if outer.Next != "make room" || !outer.Retry {
		t.Errorf("the cause's hint was lost: next %q, retry %v", outer.Next, outer.Retry)
	}
	if errors.Is(outer, fault.New(fault.Unavailable, "run cell", "c", "")) {
		t.Error("an error with more than a code matches by its code alone")
	}
	if fault.CodeOf(io.EOF) != fault.Internal || fault.CodeOf(nil) != "" {
		t.Error("a foreign error is not internal, or nil has a code")
	}
}

// The closed list is CP-043 with the additions of CP-134 and reeve's own; each code
// has an exit status, and only no code at all is success.
func TestCodesAreClosedAndHaveExitStatuses(t *testing.T) {
	t.Parallel()
	t.Attr("requirement", "CP-134")
	demanded := strings.Fields(`invalid_request unknown_method scope_expired request_limit denied gate_unavailable not_found
		conflict stale_epoch stale_generation limit_exceeded timeout cancelled unavailable internal
		ambiguous secret_detected audit_obligation unknown`)
	codes := fault.Codes()
	if !slices.IsSorted(codes) {
		t.Errorf("codes are not sorted: %v", codes)
	}
	for _, text := range demanded {
		if !slices.Contains(codes, fault.Code(text)) {
			t.Errorf("%s is missing", text)
		}
	}
	for _, c := range codes {
		if !c.Known() || c.Exit() == fault.ExitDone {
			t.Errorf("%s: known %v, exit %d", c, c.Known(), c.Exit())
		}
	}
	for c, want := range map[fault.Code]int{"": 0, "no_such_code": 1, fault.NotFound: 3, fault.Denied: 6, fault.Unknown: 10, fault.WorkerLost: 12, fault.Altered: 9, fault.Truncated: 9, fault.Unavailable: 11} {
		if got := c.Exit(); got != want {
			t.Errorf("%q: exit %d, want %d", c, got, want)
		}
	}
	if fault.Code("no_such_code").Known() {
		t.Error("an unknown code is known")
	}
}
