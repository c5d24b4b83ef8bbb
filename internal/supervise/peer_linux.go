package supervise

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// peerOf reads the credentials the kernel noted when the peer connected.
func peerOf(c *net.UnixConn) (pid int, uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, 0, err
	}
	if credErr != nil {
		return 0, 0, credErr
	}
	return int(cred.Pid), cred.Uid, nil
}

// cpuTime is the processor time of a live process, all its threads, without its
// children. It costs one system call.
func cpuTime(pid int) (time.Duration, bool) {
	// The kernel's numbering of per-process clocks: inverted pid, and clock 2,
	// which counts scheduled time.
	clock := int32(^pid)<<3 | 2
	var ts unix.Timespec
	if unix.ClockGettime(clock, &ts) != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
