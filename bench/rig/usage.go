package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/app/config"
)

// clockTick is the unit of /proc/stat and /proc/<pid>/stat on every Linux.
const clockTick = 10 * time.Millisecond

// CPUTime returns how long the machine's cores have worked since it started,
// all of them together.
func CPUTime() (time.Duration, error) {
	worked, _, err := cpuTimes()
	return worked, err
}

// Stolen returns how long the host of this machine has given its cores to others
// while there was work for them here, since it started; 0 where it does not tell.
func Stolen() (time.Duration, error) {
	_, stolen, err := cpuTimes()
	return stolen, err
}

func cpuTimes() (worked, stolen time.Duration, err error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	return parseCPUTimes(string(data))
}

func parseCPUTimes(stat string) (worked, stolen time.Duration, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for i, f := range fields[1:9] { // user nice system idle iowait irq softirq steal
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		switch took := time.Duration(ticks) * clockTick; i {
		case 3, 4:
		case 7:
			stolen = took
		default:
			worked += took
		}
	}
	return worked, stolen, nil
}

// Busy returns the share of all cores that was in use during d.
func Busy(ctx context.Context, d time.Duration, cores int) (float64, error) {
	before, err := CPUTime()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(d):
	}
	after, err := CPUTime()
	return float64(after-before) / float64(time.Since(begun)) / float64(cores), err
}

// Usage is what one sandbox costs.
type Usage struct {
	Pool      string // kind, such as "default/python+preloads"
	PSS       int64  // bytes: each address space counted once, shared pages divided by those that share them
	Processes int
	Spaces    int           // address spaces of the processes
	Group     string        // folder of its control group; "" where there is none
	CPU       time.Duration // that it has used so far, from that group
}

// Sandboxes returns the usage of every sandbox of the server.
func (s *Server) Sandboxes() ([]Usage, error) {
	records, err := filepath.Glob(filepath.Join(config.DefaultStateDir(s.Data), "server", "sb-*", "sandbox.json"))
	if err != nil {
		return nil, err
	}
	procs, err := processes()
	if err != nil {
		return nil, err
	}
	var all []Usage
	for _, path := range records {
		var record struct {
			Spec struct{ Labels map[string]string }
			Pid  int
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &record); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		id := filepath.Base(filepath.Dir(path))
		u := Usage{Pool: record.Spec.Labels["pool"]}
		pids := members(procs, id, record.Pid)
		if u.Processes = len(pids); u.Processes == 0 {
			return nil, fmt.Errorf("sandbox %s has no process", id)
		}
		if u.PSS, u.Spaces, err = memoryOf(pids); err != nil {
			return nil, err
		}
		u.Group, u.CPU = readGroup(procs[record.Pid].groups, id)
		all = append(all, u)
	}
	return all, nil
}

// process is one process of this machine.
type process struct {
	parent int
	groups string // its /proc/<pid>/cgroup
}

func processes() (map[int]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		groups, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cgroup"))
		if err != nil {
			continue // it has ended
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		// "pid (name) state ppid …", and a name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		all[pid] = process{parent: parent, groups: string(groups)}
	}
	return all, nil
}

// members returns the processes of a sandbox: those in a control group named
// after it, and the descendants of its main process.
func members(all map[int]process, id string, main int) []int {
	var pids []int
	for pid, p := range all {
		in := strings.Contains(p.groups, "/"+id+"\n") || strings.Contains(p.groups, "/"+id+"/")
		for up := pid; !in && up > 1; up = all[up].parent {
			in = up == main
		}
		if in {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// readGroup returns the control group of a sandbox that accounts for CPU, and
// what that has used, given the groups of one of its processes.
func readGroup(groups, id string) (dir string, cpu time.Duration) {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || filepath.Base(parts[2]) != id {
			continue
		}
		for _, c := range append(strings.Split(parts[1], ","), "") {
			dir = filepath.Join("/sys/fs/cgroup", c, parts[2])
			if used, err := groupCPU(dir); err == nil {
				return dir, used
			}
		}
	}
	return "", 0
}
