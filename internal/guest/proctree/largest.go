package proctree

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Largest finds the process with the most resident memory, apart from process 1 and
// the caller. lineage holds the processes and sessions that it belongs to: itself, its
// session, its parents and their sessions. pid is 0 if there is no other process.
func Largest() (pid int, rss int64, lineage map[int]bool) {
	all := map[int]task{}
	self := os.Getpid()
	for _, name := range Processes() {
		id, err := strconv.Atoi(name)
		if err != nil || id == 1 || id == self {
			continue
		}
		t, ok := readTask(name)
		if !ok {
			continue
		}
		all[id] = t
		if pid == 0 || t.rss > rss {
			pid, rss = id, t.rss
		}
	}
	lineage = map[int]bool{}
	for id := pid; !lineage[id]; {
		t, ok := all[id]
		if !ok {
			break
		}
		lineage[id], lineage[t.session] = true, true
		id = t.parent
	}
	return pid, rss * int64(unix.Getpagesize()), lineage
}
