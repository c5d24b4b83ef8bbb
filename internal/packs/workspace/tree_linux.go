package workspace

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/internal/supervise/shim"
)

// endTree kills a program and everything below it.
func endTree(pid int) {
	// The group may be gone already; what left it is found by parentage.
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	all, err := shim.Processes()
	if err != nil {
		return // what remains is swept by its mark
	}
	for _, s := range shim.Below(all, pid) {
		_ = syscall.Kill(s.PID, syscall.SIGKILL) // it may have ended
	}
}

// sweep ends what a program left running, wherever it went, and says how many
// processes that were: those in its group and those that carry the act's mark. The
// core is a subreaper, so that what has lost its parent is reaped here.
func sweep(pid int, mark string) int {
	want := []byte(marker + "=" + mark)
	self, chosen := os.Getpid(), map[int]bool{}
	killed, _, err := shim.ReapAll(shim.Patience, func(all []shim.Proc) []shim.Proc {
		var found []shim.Proc
		for _, s := range all {
			if s.PID == self || s.State == 'Z' && s.PPID != self {
				continue
			}
			group, err := syscall.Getpgid(s.PID)
			if chosen[s.PID] || err == nil && group == pid || mark != "" && carries(s.PID, want) {
				chosen[s.PID] = true // dead ones carry no mark any more
				found = append(found, s)
			}
		}
		return found
	})
	if err != nil {
		return 0
	}
	return len(killed)
}

func carries(pid int, want []byte) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}

func signalName(s syscall.Signal) string { return unix.SignalName(s) }
