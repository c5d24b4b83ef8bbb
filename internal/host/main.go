package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/reeve-run/reeve/fault"
	"github.com/reeve-run/reeve/internal/config"
	"github.com/reeve-run/reeve/internal/supervise"
)

// Main is the life of the core of a data directory: it opens it, serves until ctx
// ends or a client asks for an end, and leaves it in order. settings are those
// given on the command line, by key. log is the core's log.
func Main(ctx context.Context, dir string, settings map[string]string, log io.Writer) error {
	sources := config.SystemSources(dir)
	sources.Flags = settings
	c, err := config.Load(sources)
	if err != nil {
		return err
	}
	if c.Core.Owner != 0 {
		owned, release, err := whileAlive(ctx, c.Core.Owner)
		if err != nil {
			return err
		}
		defer release()
		ctx = owned
	}
	shim, err := shimCommand()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return fault.Wrap(err, fault.Usage, "read setting", "log.level")
	}
	core, err := Open(ctx, Options{
		Dir: dir, Config: c, Shim: shim,
		Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return err
	}
	return errors.Join(core.Run(ctx), core.Close())
}

// shimCommand starts this very binary as a worker's parent, also when its file has
// been replaced or removed since.
func shimCommand() ([]string, error) {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", supervise.ShimCommand}, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "find own binary", "")
	}
	return []string{exe, supervise.ShimCommand}, nil
}
