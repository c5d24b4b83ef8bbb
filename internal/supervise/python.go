package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/reeve-run/reeve/event"
	"github.com/reeve-run/reeve/fault"
)

// oldestMinor is the first version 3.x that the worker runs on.
const oldestMinor = 11

// probeTime bounds one question to an interpreter. Launcher scripts of version
// managers take a good part of a second on a busy machine.
const probeTime = 15 * time.Second

const probeCode = `import sys
print(sys.executable)
print("%d.%d.%d" % sys.version_info[:3])
print(sys.implementation.cache_tag)`

// interpreter is what an interpreter says of itself.
type interpreter struct {
	path    string // behind any launcher script
	version string
	tag     string // in the names of its compiled files
}

// Probe runs the interpreter once and returns its real path (behind launcher
// scripts) and version; an interpreter that is missing or older than 3.11 is a
// fault with a hint. Give the path it found to Spec.Python: it starts faster.
func Probe(ctx context.Context, python string) (event.Python, error) {
	i, err := probe(ctx, python)
	if err != nil {
		return event.Python{}, err
	}
	return event.Python{Path: i.path, Version: i.version}, nil
}

func probe(ctx context.Context, python string) (interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-I", "-S", "-E", "-c", probeCode)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return interpreter{}, interpreterFault(err, python, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 {
		return interpreter{}, interpreterFault(fmt.Errorf("it answered %q", out), python, stderr.String())
	}
	i := interpreter{path: lines[0], version: lines[1], tag: lines[2]}
	major, rest, _ := strings.Cut(i.version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if n, err := strconv.Atoi(minor); err != nil || major != "3" || n < oldestMinor {
		return interpreter{}, interpreterFault(fmt.Errorf("it is version %s, older than 3.%d", i.version, oldestMinor), python, "")
	}
	return i, nil
}

func interpreterFault(err error, python, stderr string) error {
	f := fault.Wrap(err, fault.Unavailable, "run python", python)
	if errors.Is(err, exec.ErrNotFound) {
		f.Err, f.Message = nil, "no such program on PATH"
	}
	if text := strings.TrimSpace(stderr); text != "" {
		f.Message = fmt.Sprintf("it said %q", lastLines(event.Tail{Text: text}, 5))
	}
	return f.WithNext("install Python 3.%d or newer, or name one as worker.python in config.toml", oldestMinor)
}
