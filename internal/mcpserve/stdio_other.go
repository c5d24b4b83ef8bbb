//go:build unix && !linux

package mcpserve

import (
	"os"

	"golang.org/x/sys/unix"
)

// ClaimStdout returns the standard output of the process under a descriptor that
// no child inherits, and points descriptor 1 at standard error: from then on
// nothing but the holder of the returned file can reach the client.
func ClaimStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	out := os.NewFile(uintptr(fd), "mcp-stdout")
	if err := unix.Dup2(2, 1); err != nil {
		return nil, os.NewSyscallError("dup2", err)
	}
	return out, nil
}

// stdio is the client's end of this process. Here no client is handed to a newer
// binary: an input cannot be left without taking from it.
func stdio() (*lines, *handed, error) {
	out, err := ClaimStdout()
	if err != nil {
		return nil, nil, err
	}
	return &lines{in: os.Stdin, out: out}, nil, nil
}
