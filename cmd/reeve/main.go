// Command reeve is one binary with several lives: the command line, the core of a
// data directory, the MCP front end, and the parent of a worker. main tells them
// apart, hands signals on as a context, and puts behind the command line what it may
// not import. It is the only place that ends the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/reeve-run/reeve/internal/cli"
	// A worker's parent must start fast: this import runs it, when the command says so,
	// before the rest of the binary is initialised.
	_ "github.com/reeve-run/reeve/internal/supervise/shim/early"
)

func main() { os.Exit(run()) }

// run returns the exit status.
func run() int {
	ctx, stop := signals()
	defer stop()
	return cli.Run(ctx, os.Args[1:], stdio(), programs())
}

// signals ends the context at the first signal, with the signal as its cause, and
// the process at the second.
func signals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case s := <-ch:
				number, _ := s.(syscall.Signal)
				if n > 0 {
					os.Exit(128 + int(number))
				}
				cancel(cli.Signal{Number: number})
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		cancel(nil)
	}
}

func stdio() cli.Stdio {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/" // the working directory is gone: sessions are then the root's
	}
	return cli.Stdio{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: terminal(os.Stdin), OutTTY: terminal(os.Stdout), ErrTTY: terminal(os.Stderr),
		Env: os.Getenv, WorkDir: dir, Width: width(),
	}
}

func terminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

func width() int {
	if w, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil && w.Col > 0 {
		return int(w.Col)
	}
	n, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
