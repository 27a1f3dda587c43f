// Package proctree ends a process with everything it has started, inside a sandbox.
package proctree

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Kill kills the process that is root, every process of its session and every
// one that descends from it. They are stopped first: once a parent has died
// nothing tells its children apart from others', and none may be born unseen. A
// process that has left both session and parent behind escapes.
func Kill(root int) {
	doomed := map[int]bool{root: true}
	unix.Kill(root, unix.SIGSTOP)
	for range 16 {
		if !stopMore(doomed) {
			break
		}
	}
	unix.Kill(root, unix.SIGKILL) // or what it hears when the others go would end it
	for pid := range doomed {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// stopMore stops and adds the processes whose parent or session is among the
// doomed, and reports whether there were any.
func stopMore(doomed map[int]bool) bool {
	type task struct{ pid, parent, session int }
	var tasks []task
	for _, name := range Processes() {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 {
			continue
		}
		if parent, session, ok := lineage(name); ok {
			tasks = append(tasks, task{pid, parent, session})
		}
	}
	found := false
	for grown := true; grown; {
		grown = false
		for _, t := range tasks {
			if !doomed[t.pid] && (doomed[t.parent] || doomed[t.session]) {
				doomed[t.pid], grown, found = true, true, true
				unix.Kill(t.pid, unix.SIGSTOP)
			}
		}
	}
	return found
}

// Processes lists the numeric names of /proc, and a few others.
func Processes() (names []string) {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// lineage reads a process's parent and session; zombies have no say any more.
func lineage(pid string) (parent, session int, ok bool) {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, false
	}
	defer unix.Close(fd)
	var buf [512]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return 0, 0, false
	}
	return parse(string(buf[:n]))
}

// parse reads the text of a process's stat, of which the process chooses the name:
// that stands in brackets and may hold anything, brackets included.
func parse(s string) (parent, session int, ok bool) {
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 4 || f[0] == "Z" || f[0] == "X" {
		return 0, 0, false
	}
	parent, e1 := strconv.Atoi(f[1])
	session, e2 := strconv.Atoi(f[3])
	return parent, session, e1 == nil && e2 == nil
}
