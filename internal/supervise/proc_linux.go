package supervise

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// procStat is what reeve needs of /proc/<pid>/stat.
type procStat struct {
	pid, ppid, session int
	state              byte
}

// statOf reads one process; false when it is gone.
func statOf(pid int) (procStat, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The command name is in parentheses and may hold anything, also parentheses.
	end := bytes.LastIndexByte(raw, ')')
	if end < 0 {
		return procStat{}, false
	}
	fields := bytes.Fields(raw[end+1:])
	if len(fields) < 4 {
		return procStat{}, false
	}
	ppid, errP := strconv.Atoi(string(fields[1]))
	session, errS := strconv.Atoi(string(fields[3]))
	if errP != nil || errS != nil {
		return procStat{}, false
	}
	return procStat{pid: pid, ppid: ppid, session: session, state: fields[0][0]}, true
}

// processes lists every process this one may see.
func processes() ([]procStat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []procStat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := statOf(pid); ok {
			all = append(all, s)
		}
	}
	return all, nil
}

// below returns the descendants of the given roots in all, roots not included.
func below(all []procStat, roots ...int) []procStat {
	children := make(map[int][]procStat, len(all))
	for _, s := range all {
		children[s.ppid] = append(children[s.ppid], s)
	}
	var found []procStat
	for queue := roots; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			found = append(found, c)
			queue = append(queue, c.pid)
		}
	}
	return found
}

// reapAll kills every process that pick chooses and reaps those that are children
// of this one, again and again until pick chooses none or limit has passed: each
// death can hand us children that were not there before. It returns those it
// killed and those that are left.
func reapAll(limit time.Duration, pick func(all []procStat) []procStat) (killed, left []int, err error) {
	seen := make(map[int]bool)
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		all, err := processes()
		if err != nil {
			return sortedKeys(seen), nil, err
		}
		chosen := pick(all)
		if len(chosen) == 0 {
			return sortedKeys(seen), nil, nil
		}
		left = left[:0]
		for _, s := range chosen {
			left = append(left, s.pid)
			if s.state == 'Z' {
				if s.ppid == os.Getpid() {
					reap(s.pid)
				}
				continue
			}
			// ESRCH means that it ended meanwhile; EPERM leaves it in left.
			if syscall.Kill(s.pid, syscall.SIGKILL) == nil {
				seen[s.pid] = true
			}
		}
		if time.Now().After(deadline) {
			return sortedKeys(seen), left, nil
		}
		time.Sleep(pause)
	}
}

// reap collects a dead child, if it is one.
func reap(pid int) {
	for {
		_, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR {
			return
		}
	}
}

func sortedKeys(set map[int]bool) []int { return slices.Sorted(maps.Keys(set)) }
