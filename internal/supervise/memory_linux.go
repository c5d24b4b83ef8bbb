package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryWatch remembers how often the kernel had killed for memory when a worker
// began, in its control group and on the machine, so that a SIGKILL can be told
// from one that a person sent.
type memoryWatch struct {
	events  string // file of the group's counter; empty without a memory group
	limit   string // file of the group's limit
	group   int64  // counter at the beginning; -1 when it could not be read
	machine int64
}

const machineEvents = "/proc/vmstat"

// watchMemory reads the counters for a live process.
func watchMemory(pid int) memoryWatch {
	w := memoryWatch{group: -1, machine: oomKills(machineEvents)}
	w.events, w.limit = memoryGroup(pid)
	if w.events != "" {
		w.group = oomKills(w.events)
	}
	return w
}

// evidence says what points to the kernel's having killed for memory since.
func (w memoryWatch) evidence() (string, bool) {
	if now := oomKills(w.events); w.group >= 0 && now > w.group {
		text := fmt.Sprintf("%d process(es) of its control group were killed so", now-w.group)
		if limit, err := os.ReadFile(w.limit); err == nil {
			text += fmt.Sprintf(", whose limit is %s bytes (%s)", bytes.TrimSpace(limit), w.limit)
		}
		return text, true
	}
	if now := oomKills(machineEvents); w.machine >= 0 && now > w.machine {
		return fmt.Sprintf("%d process(es) of this machine were killed so since it started", now-w.machine), true
	}
	return "", false
}

// oomKills reads the counter oom_kill from a file of "name value" lines; -1 when
// it is not there.
func oomKills(path string) int64 {
	if path == "" {
		return -1
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "oom_kill" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	return -1
}

// memoryGroup finds the files of the memory control group of a process, in the
// first or the second version of control groups.
func memoryGroup(pid int) (events, limit string) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var pairs [][2]string
		switch {
		case parts[1] == "memory":
			dir := filepath.Join("/sys/fs/cgroup/memory", parts[2])
			pairs = [][2]string{{dir + "/memory.oom_control", dir + "/memory.limit_in_bytes"}}
		case parts[0] == "0" && parts[1] == "":
			for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
				dir := filepath.Join(root, parts[2])
				pairs = append(pairs, [2]string{dir + "/memory.events", dir + "/memory.max"})
			}
		}
		for _, pair := range pairs {
			if oomKills(pair[0]) >= 0 {
				return pair[0], pair[1]
			}
		}
	}
	return "", ""
}
