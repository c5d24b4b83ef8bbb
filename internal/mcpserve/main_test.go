package mcpserve_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/reeve-run/reeve/internal/control"
	"github.com/reeve-run/reeve/internal/mcpserve"
	"github.com/reeve-run/reeve/internal/reevetest"
)

// noisyEnv turns the test binary into an MCP server whose core does everything
// that a library at fault might do to standard output.
const noisyEnv = "REEVE_TEST_NOISY_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(noisyEnv) != "" {
		err := mcpserve.Stdio(context.Background(), mcpserve.Options{
			Dial: func(context.Context) (control.Service, error) { return noisy{newMemory()}, nil }, Workspace: "/",
			Log: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	status := reevetest.Main(m)
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

type noisy struct{ *memory }

func (n noisy) Execute(ctx context.Context, r control.ExecuteRequest, progress func(control.CellProgress)) (control.CellResult, error) {
	fmt.Println("a stray print")
	os.Stdout.WriteString("{\"half a line")
	if r.Code == "panic" {
		panic("on purpose")
	}
	return n.memory.Execute(ctx, r, progress)
}

func (n noisy) Status(context.Context) (control.Status, error) {
	fmt.Println("another")
	panic("on purpose too")
}
