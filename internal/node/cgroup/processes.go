package cgroup

import (
	"os"
	"strconv"
	"strings"
)

// Processes lists the processes in the group, as far as they are of this
// process's PID namespace, and without this process: a thread of it is listed
// while it starts one.
func (g *Group) Processes() (pids []int, err error) {
	data, err := os.ReadFile(g.Procs()[0])
	for line := range strings.Lines(string(data)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}
