package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Living returns the main processes of the sandboxes in a state folder, without
// owning it; none when there is no such folder. Any of them may end, and others
// begin, at any time.
func Living(path string) ([]int, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if !e.IsDir() || !runtime.ID(e.Name()).Valid() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(path, e.Name(), recordFile))
		if err != nil {
			continue // it is being made or removed
		}
		var r Record
		if json.Unmarshal(data, &r) != nil || r.Pid <= 1 {
			continue
		}
		if Lives(r.Pid, r.Start) {
			pids = append(pids, r.Pid)
		}
	}
	return pids, nil
}

// WithArgument returns the processes one of whose arguments begins with prefix.
// It looks at every process of the machine, which takes milliseconds.
func WithArgument(prefix string) []int {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if HasArgument(pid, prefix) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// HasArgument reports whether one of a process's arguments begins with prefix.
func HasArgument(pid int, prefix string) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false // it has ended
	}
	for arg := range strings.SplitSeq(string(line), "\x00") {
		if strings.HasPrefix(arg, prefix) {
			return true
		}
	}
	return false
}

// StartTime returns when a process started, in clock ticks since boot.
func StartTime(pid int) (uint64, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// Lives reports whether the process of that pid and start time has not ended.
// One that was not reaped yet has.
func Lives(pid int, start uint64) bool {
	fields, err := stat(pid)
	return err == nil && fields[19] == strconv.FormatUint(start, 10) && fields[0] != "Z" && fields[0] != "X"
}

// leads reports whether the process of a record exists and is not a thread that took
// over its number.
func leads(r Record) bool {
	if !Lives(r.Pid, r.Start) {
		return false
	}
	// A thread is reachable below /proc, but not as a task of its own number.
	status, err := os.ReadFile("/proc/" + strconv.Itoa(r.Pid) + "/status")
	return err == nil && strings.Contains(string(status), "\nTgid:\t"+strconv.Itoa(r.Pid)+"\n")
}

// stat returns the fields of a process's stat file from its state on.
func stat(pid int) ([]string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	// The second field, the command in parentheses, may hold anything.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("process %d: its stat file has %d fields", pid, len(fields))
	}
	return fields, nil
}
