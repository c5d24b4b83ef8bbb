package supervise

import (
	"bytes"
	"context"
	"os"
	"strconv"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/supervise/shim"
)

// Strays lists processes that carry the marker of runtime in their environment:
// workers and what they started, of this core or of one that died. A process that
// cleared its environment is not among them.
func Strays(runtime string) ([]int, error) {
	all, err := shim.Processes()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "list processes", "")
	}
	var found []int
	for _, s := range marked(all, runtime) {
		found = append(found, s.PID)
	}
	return found, nil
}

// Sweep ends what workers of a dead core left running: processes that carry the
// marker of runtime in their environment, with all below them. Only the holder of
// the data directory's lock may call it, before it starts workers. It returns the
// processes it killed; what the workers left in runtime is for Remains.
func Sweep(ctx context.Context, runtime string) (killed []int, err error) {
	killed, left, err := shim.ReapAll(shim.Patience, func(all []shim.Proc) []shim.Proc {
		if ctx.Err() != nil {
			return nil
		}
		found := marked(all, runtime)
		roots := make([]int, len(found))
		for i, s := range found {
			roots[i] = s.PID
		}
		return append(found, shim.Below(all, roots...)...)
	})
	if err != nil {
		return killed, fault.Wrap(err, fault.Unavailable, "sweep workers", runtime)
	}
	if err := ctx.Err(); err != nil {
		return killed, fault.Wrap(err, fault.Cancelled, "sweep workers", runtime)
	}
	if len(left) > 0 {
		return killed, fault.New(fault.Unavailable, "sweep workers", runtime, "processes %v do not end", left).
			WithNext("end them by hand, then start again")
	}
	return killed, nil
}

// marked picks the processes with the marker. The environment of another user's
// process cannot be read, and it is none of ours.
func marked(all []shim.Proc, runtime string) []shim.Proc {
	want := []byte(Marker + "=" + runtime)
	self := os.Getpid()
	var found []shim.Proc
	for _, s := range all {
		if s.PID == self || s.State == 'Z' {
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID) + "/environ")
		if err != nil {
			continue
		}
		for entry := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(entry, want) {
				found = append(found, s)
				break
			}
		}
	}
	return found
}
