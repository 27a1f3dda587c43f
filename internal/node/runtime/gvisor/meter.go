package gvisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// meter reads what a sandbox uses from its processes, where there is no control
// group to account it.
type meter struct {
	pid     int      // the sandbox's kernel
	server  int      // its file server, 0 for none
	memfds  []string // paths of the files that hold the programs' memory
	highest runtime.Usage
	cpuRead time.Time // when processor time was read
}

// cpuInterval is how old a figure of processor time may be. Memory is looked at
// far more often, and reading it takes microseconds; this takes a millisecond.
const cpuInterval = 200 * time.Millisecond

// tick is the unit of processor times in /proc: 100 are a second on every Linux.
const tick = 10 * time.Millisecond

// read returns the usage so far. Figures that only grow never shrink, whatever
// processes have ended meanwhile.
func (m *meter) read() (runtime.Usage, error) {
	memory, err := m.memory()
	if err != nil {
		return m.highest, err
	}
	m.highest.Memory = memory
	m.highest.PeakMemory = max(m.highest.PeakMemory, memory)
	if now := time.Now(); now.Sub(m.cpuRead) >= cpuInterval {
		m.cpuRead = now
		used := cpuTime(m.pid)
		if m.server != 0 {
			used += cpuTime(m.server)
		}
		m.highest.CPUSeconds = max(m.highest.CPUSeconds, used.Seconds())
	}
	return m.highest, nil
}

// memory adds up the kernel's own memory and that of its programs and their
// files, which lies in memfds. What the processes that run programs have mapped
// is the same once more. Unlike maps, both are cheap to read.
func (m *meter) memory() (int64, error) {
	own, err := anonymous(m.pid)
	if err != nil {
		return 0, err
	}
	if m.memfds == nil {
		if m.memfds, err = memfds(m.pid); err != nil {
			return 0, err
		}
	}
	sum := own
	if m.server != 0 {
		if its, err := anonymous(m.server); err == nil { // else it ended, and the sandbox is about to
			sum += its
		}
	}
	for _, path := range m.memfds {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return 0, err
		}
		sum += st.Blocks * 512
	}
	return sum, nil
}

// anonymous returns a process's private memory that no file backs: what is
// resident but for what is shared.
func anonymous(pid int) (int64, error) {
	path := procPath(pid, "statm")
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(data), &size, &resident, &shared); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if resident == 0 {
		return 0, errors.New("process " + strconv.Itoa(pid) + " has ended") // and was not reaped
	}
	return (resident - shared) * int64(os.Getpagesize()), nil
}

// memfds lists the memfds of a process. The kernel of a sandbox opens its own
// before it runs anything and keeps them.
func memfds(pid int) ([]string, error) {
	dir := procPath(pid, "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		target, err := os.Readlink(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if strings.HasPrefix(target, "/memfd:") {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// cpuTime returns the processor time of a process, of its descendants and of those of them
// that ended and were waited for. That of the last is rounded down to ticks; for the others
// nothing would be left of it where a sandbox has just begun.
func cpuTime(pid int) time.Duration {
	data, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return 0
	}
	sum := ownTime(pid)
	// The second field, the command in parentheses, may hold anything.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	const cutime, cstime = 13, 14
	if len(fields) <= cstime {
		return sum
	}
	for _, f := range fields[cutime : cstime+1] {
		n, _ := strconv.ParseInt(f, 10, 64)
		sum += time.Duration(n) * tick
	}
	// A process hangs from the thread that started it.
	lists, err := filepath.Glob(procPath(pid, "task/*/children"))
	if err != nil {
		return sum
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread ended
		}
		for f := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(f); err == nil {
				sum += cpuTime(child)
			}
		}
	}
	return sum
}

// ownTime returns the processor time of a process's threads, ended ones included, by the
// clock that it has for that: clock_getcpuclockid(3).
func ownTime(pid int) time.Duration {
	const scheduled = 2 // CPUCLOCK_SCHED of the kernel
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &now); err != nil {
		return 0 // it ended
	}
	return time.Duration(now.Nano())
}

func procPath(pid int, file string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + file
}
