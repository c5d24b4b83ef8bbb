package host

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/fault"
)

// look is how often, in ms, the wait for the owner's end looks whether it is still
// wanted.
const look = 500

// whileAlive ends the context it returns with the process pid, or with ctx. The
// process is held by a descriptor, so that another one of its number is not taken
// for it.
func whileAlive(ctx context.Context, pid int) (context.Context, func(), error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		e := fault.Wrap(err, fault.Unavailable, "run core for process", fmt.Sprint(pid))
		if errors.Is(err, unix.ESRCH) {
			e.Message, e.Err = "it has ended", nil
		}
		return nil, nil, e
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		defer unix.Close(fd)
		for ctx.Err() == nil {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, look)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-done }, nil
}
