//go:build !linux

package workspace

import (
	"os/exec"
	"syscall"
)

func start(cmd *exec.Cmd, p *program, path string) (<-chan ending, func(), error) {
	return direct(cmd, p, path)
}

// endTree kills a program and its group.
func endTree(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// sweep ends what is left of a program's group. What has left the group is not found
// on this system.
func sweep(pid int, _ string) int {
	if syscall.Kill(-pid, syscall.SIGKILL) == nil {
		return 1
	}
	return 0
}

func signalName(s syscall.Signal) string { return s.String() }
