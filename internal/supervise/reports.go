package supervise

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// reports is what the shim has said. Each field is set before the channel that
// stands under it is closed.
type reports struct {
	pid     int // Python's; 0 when it could not be started
	failure string
	started chan struct{}

	known   bool // whether Python's end was reported
	status  syscall.WaitStatus
	peakKB  int64 // largest resident size of Python
	exited  chan struct{}
	cleared bool // whether the shim saw the last descendant go
	left    int
	ended   chan struct{} // the shim says no more
}

func (r *reports) init() {
	r.started, r.exited, r.ended = make(chan struct{}), make(chan struct{}), make(chan struct{})
}

// read follows the shim's reports until their end and closes f. exited stays open
// when Python's end was never reported.
func (r *reports) read(f *os.File) {
	defer f.Close()
	var once bool
	start := func() {
		if !once {
			once = true
			close(r.started)
		}
	}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		var status uint32
		var killed int
		switch word {
		case "pid":
			if _, err := fmt.Sscan(rest, &r.pid); err == nil {
				start()
			}
		case "fail":
			r.failure = rest
		case "exit":
			if _, err := fmt.Sscan(rest, &status, &r.peakKB); err == nil && !r.known {
				r.known, r.status = true, syscall.WaitStatus(status)
				close(r.exited)
			}
		case "gone":
			_, err := fmt.Sscan(rest, &killed, &r.left)
			r.cleared = err == nil
		}
	}
	start()
	close(r.ended)
}
