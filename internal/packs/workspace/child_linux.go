package workspace

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/reeve-run/reeve/internal/supervise/shim"
)

// start starts a program below a shim, so that nothing it starts can leave: what
// loses its parent becomes the shim's child, whatever its group and environment.
func start(cmd *exec.Cmd, p *program, path string) (<-chan ending, func(), error) {
	if len(p.shim) == 0 {
		return direct(cmd, p, path)
	}
	fds, ours, err := shimPipes()
	if err != nil {
		return nil, nil, err
	}
	control, report := ours[0], ours[1]
	// The null device is no directory: this shim has no place to leave its mark.
	args := append(append(p.shim[:len(p.shim):len(p.shim)], os.DevNull, path), p.argv[1:]...)
	cmd.Path, cmd.Args, cmd.ExtraFiles = p.shim[0], args, fds
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	for _, f := range fds {
		_ = f.Close() // the shim has its own
	}
	if err != nil {
		_, _ = control.Close(), report.Close()
		return nil, nil, err
	}
	ended := make(chan ending, 1)
	go func() {
		defer func() { _ = control.Close() }() // nothing was buffered
		ended <- follows(cmd, report, p.mark)
	}()
	return ended, func() {
		if _, err := control.Write([]byte{shim.Kill}); err != nil {
			_ = cmd.Process.Kill() // it is gone, or as good as gone
			return
		}
		time.AfterFunc(shim.Patience+runGrace/4, func() {
			_ = cmd.Process.Kill() // an error means that it has ended, as it should
		})
	}, nil
}

// shimPipes are the descriptors of a shim in their order, and our ends: to order and
// to hear.
func shimPipes() (fds, ours []*os.File, err error) {
	orders, control, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	report, reports, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, orders.Close(), control.Close())
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, errors.Join(err, orders.Close(), control.Close(), report.Close(), reports.Close())
	}
	return []*os.File{orders, reports, null}, []*os.File{control, report}, nil
}

// follows hears a shim out. When it was killed what it leaves is swept from here.
func follows(cmd *exec.Cmd, report *os.File, mark string) ending {
	var pid, left int
	var status uint32
	var failed string
	var exited, gone bool
	for lines := bufio.NewScanner(report); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "pid":
			_, _ = fmt.Sscan(rest, &pid) // stays 0 for what is no number
		case "exit":
			_, err := fmt.Sscan(rest, &status)
			exited = err == nil
		case "gone":
			_, err := fmt.Sscan(rest, &left)
			gone = err == nil
		case "fail":
			failed = rest
		}
	}
	_ = report.Close()
	err := nonExit(cmd.Wait())
	e := ending{status: syscall.WaitStatus(status), swept: left, err: err}
	if pid > 0 && !gone {
		e.swept += sweep(pid, mark)
	}
	switch {
	case failed != "":
		e.err, e.unbegun = errors.New(failed), true
	case !exited:
		e.err = errors.Join(errors.New("its parent was killed, and with it the program"), err)
	}
	return e
}
