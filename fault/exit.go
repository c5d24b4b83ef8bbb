package fault

import "slices"

// Exit statuses of the command line. They are part of the interface: scripts
// branch on them.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitNoRight     = 4
	ExitConflict    = 5
	ExitDenied      = 6
	ExitHeld        = 7
	ExitBudget      = 8
	ExitFindings    = 9
	ExitUnknown     = 10
	ExitUnavailable = 11
	ExitWorkerLost  = 12
	ExitInterrupted = 130
	ExitTerminated  = 143
)

var exits = map[Code]int{
	InvalidRequest:  ExitUsage,
	UnknownMethod:   ExitUsage,
	ScopeExpired:    ExitConflict,
	RequestLimit:    ExitBudget,
	Denied:          ExitDenied,
	GateUnavailable: ExitUnavailable,
	NotFound:        ExitNotFound,
	Conflict:        ExitConflict,
	StaleEpoch:      ExitConflict,
	StaleGeneration: ExitConflict,
	LimitExceeded:   ExitUsage,
	Timeout:         ExitBudget,
	Cancelled:       ExitInterrupted,
	Unavailable:     ExitUnavailable,
	Internal:        ExitFailed,
	Ambiguous:       ExitUsage,
	SecretDetected:  ExitDenied,
	AuditObligation: ExitUnavailable,
	Unknown:         ExitUnknown,
	Usage:           ExitUsage,
	Unauthorized:    ExitNoRight,
	Held:            ExitHeld,
	CellFailed:      ExitFailed,
	WorkerLost:      ExitWorkerLost,
	Altered:         ExitFindings,
	Truncated:       ExitFindings,
	Findings:        ExitFindings,
	StoreFull:       ExitUnavailable,
}

// Codes returns every code, sorted by its text.
func Codes() []Code {
	all := make([]Code, 0, len(exits))
	for c := range exits {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}

// Exit is the process exit status for the code; a code that is not in the
// closed set counts as a plain failure.
func (c Code) Exit() int {
	if c == "" {
		return ExitDone
	}
	if n, ok := exits[c]; ok {
		return n
	}
	return ExitFailed
}

// Known reports whether c is one of the closed set.
func (c Code) Known() bool {
	_, ok := exits[c]
	return ok
}
