// Package proctree ends a process with everything it has started, inside a sandbox.
package proctree

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxScans bounds how often Kill and KillAll look for processes. Each generation of
// children takes one scan; the rest are waits of scanPause for a process to stop, or to
// end, 50 ms in all.
const (
	maxScans  = 256
	scanPause = 200 * time.Microsecond
)

// Kill kills the process that is root, every process of its session, every one that
// descends from it, and every one with its mark, which Marks gave it; 0 is no mark. They
// are stopped first, so that none is born unseen. Without a mark, a process that has left
// both session and parent behind escapes.
func Kill(root int, mark uint64) {
	doomed := map[int]bool{root: true}
	unix.Kill(root, unix.SIGSTOP)
	// A stop signal takes effect some time after it is sent. So a scan may miss a child
	// that is forked until then, and only one that began when all had stopped is the last.
	stopped := false
	for range maxScans {
		found, all := stopMore(doomed, mark)
		if stopped && !found {
			break
		}
		if stopped = all && !found; !stopped && !found {
			time.Sleep(scanPause)
		}
	}
	unix.Kill(root, unix.SIGKILL) // first, because the end of the others would make it go on
	for pid := range doomed {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// KillAll kills every process of the sandbox but process 1 and the caller. The kernel
// sends the signal to one after the other of those it has found, and what one forks before
// its turn comes is not among them: so it is sent again until there is none. It fails if
// there are always more.
func KillAll() error {
	var ended map[string]bool // all that the scan before found, if none of them was alive
	for range maxScans {
		if err := unix.Kill(-1, unix.SIGKILL); err != nil && err != unix.ESRCH {
			return err
		}
		found := Processes()
		// One that was born while a scan read what it had found is new to the next.
		if ended != nil && !slices.ContainsFunc(found, func(name string) bool { return !ended[name] }) {
			return nil
		}
		if ended = nil; slices.ContainsFunc(found, alive) {
			time.Sleep(scanPause)
			continue
		}
		ended = map[string]bool{}
		for _, name := range found {
			ended[name] = true
		}
	}
	return errors.New("there are always more")
}

// alive reports whether a name of /proc is that of a process that has not ended, other than
// process 1 and the caller.
func alive(name string) bool {
	if pid, err := strconv.Atoi(name); err != nil || pid == 1 || pid == os.Getpid() {
		return false
	}
	_, ok := readTask(name)
	return ok
}

// stopMore stops and adds the processes that have the mark, or whose parent or session is
// among the doomed. It reports whether there were any, and whether all that were doomed before
// have stopped or ended.
func stopMore(doomed map[int]bool, mark uint64) (found, stopped bool) {
	stopped = true
	self := os.Getpid()
	var tasks []task
	for _, name := range Processes() {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 || pid == self {
			continue
		}
		if t, ok := readTask(name); ok {
			t.pid, t.marked = pid, mark != 0 && markOf(pid) == mark
			tasks = append(tasks, t)
			stopped = stopped && (!doomed[pid] || t.stopped)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, t := range tasks {
			if !doomed[t.pid] && (t.marked || doomed[t.parent] || doomed[t.session]) {
				doomed[t.pid], grown, found = true, true, true
				unix.Kill(t.pid, unix.SIGSTOP)
			}
		}
	}
	return found, stopped
}

// A task is a process as its stat describes it.
type task struct {
	pid, parent, session int
	stopped              bool  // by a signal or a tracer
	marked               bool  // it has the mark that is looked for
	rss                  int64 // pages
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

// readTask reads what a process's stat says, without its pid. It fails for zombies.
func readTask(pid string) (t task, ok bool) {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return task{}, false
	}
	defer unix.Close(fd)
	var buf [512]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return task{}, false
	}
	return parse(string(buf[:n]))
}

// rssField is the place of the resident pages in a stat, counted from the state.
const rssField = 21

// parse reads the text of a process's stat, of which the process chooses the name:
// that stands in brackets and may hold anything, brackets included.
func parse(s string) (t task, ok bool) {
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 4 || f[0] == "Z" || f[0] == "X" {
		return task{}, false
	}
	parent, e1 := strconv.Atoi(f[1])
	session, e2 := strconv.Atoi(f[3])
	t = task{parent: parent, session: session, stopped: f[0] == "T" || f[0] == "t"}
	if len(f) > rssField {
		t.rss, _ = strconv.ParseInt(f[rssField], 10, 64) // 0 is the answer for what does not say
	}
	return t, e1 == nil && e2 == nil
}
