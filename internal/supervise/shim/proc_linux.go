package shim

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Proc is what reeve needs of /proc/<pid>/stat.
type Proc struct {
	PID, PPID, Session int
	State              byte // R, S, Z, … as the kernel writes it
}

// Stat reads one process; false when it is gone.
func Stat(pid int) (Proc, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Proc{}, false
	}
	// The command name is in parentheses and may hold anything, also parentheses.
	end := len(raw) - 1
	for end >= 0 && raw[end] != ')' {
		end--
	}
	fields := words(raw[end+1:], 4)
	if end < 0 || len(fields) < 4 {
		return Proc{}, false
	}
	ppid, errP := strconv.Atoi(fields[1])
	session, errS := strconv.Atoi(fields[3])
	if errP != nil || errS != nil {
		return Proc{}, false
	}
	return Proc{PID: pid, PPID: ppid, Session: session, State: fields[0][0]}, true
}

// words splits at blanks, at most n words.
func words(raw []byte, n int) []string {
	var found []string
	begin := -1
	for i := 0; i <= len(raw) && len(found) < n; i++ {
		blank := i == len(raw) || raw[i] == ' ' || raw[i] == '\n'
		switch {
		case blank && begin >= 0:
			found = append(found, string(raw[begin:i]))
			begin = -1
		case !blank && begin < 0:
			begin = i
		}
	}
	return found
}

// Processes lists every process this one may see.
func Processes() ([]Proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []Proc
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := Stat(pid); ok {
			all = append(all, s)
		}
	}
	return all, nil
}

// Below returns the descendants of the given roots in all, roots not included.
func Below(all []Proc, roots ...int) []Proc {
	children := make(map[int][]Proc, len(all))
	for _, s := range all {
		children[s.PPID] = append(children[s.PPID], s)
	}
	var found []Proc
	for queue := roots; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			found = append(found, c)
			queue = append(queue, c.PID)
		}
	}
	return found
}

// ReapAll kills every process that pick chooses and reaps those that are children
// of this one, again and again until pick chooses none or limit has passed: each
// death can hand us children that were not there before. It returns those it
// killed and those that are left.
func ReapAll(limit time.Duration, pick func(all []Proc) []Proc) (killed, left []int, err error) {
	seen := make(map[int]bool)
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		all, err := Processes()
		if err != nil {
			return sortedKeys(seen), nil, err
		}
		chosen := pick(all)
		if len(chosen) == 0 {
			return sortedKeys(seen), nil, nil
		}
		left = left[:0]
		for _, s := range chosen {
			left = append(left, s.PID)
			if s.State == 'Z' {
				if s.PPID == os.Getpid() {
					reap(s.PID)
				}
				continue
			}
			// ESRCH means that it ended meanwhile; EPERM leaves it in left.
			if syscall.Kill(s.PID, syscall.SIGKILL) == nil {
				seen[s.PID] = true
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
