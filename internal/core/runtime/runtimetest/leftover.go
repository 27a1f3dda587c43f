package runtimetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// groupName is a name for the control groups of a state folder.
func groupName(state string) string {
	sum := sha256.Sum256([]byte(state))
	return "atolltest-" + hex.EncodeToString(sum[:6])
}

// holders returns the processes, other than this one, that belong to a state
// folder or a sandbox's part of it: those that have one of its files open or
// name it on their command line.
func holders(t testing.TB, folder string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(line), folder) || hasOpen(e.Name(), folder) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func hasOpen(pid, folder string) bool {
	dir := filepath.Join("/proc", pid, "fd")
	fds, _ := os.ReadDir(dir)
	for _, fd := range fds {
		if target, _ := os.Readlink(filepath.Join(dir, fd.Name())); strings.HasPrefix(target, folder+"/") {
			return true
		}
	}
	return false
}

// leftovers lists what belongs to sandboxes of the fixture: processes, mounts,
// control groups, files. A process that names the state folder itself, and has nothing
// in it open, is the runtime's: see checkClosed.
func (f *fixture) leftovers(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, pid := range holders(t, f.state) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), f.state+"\x00") && !strings.Contains(string(line), f.state+"/") && !hasOpen(strconv.Itoa(pid), f.state) {
			continue
		}
		found = append(found, fmt.Sprintf("process %d: %q", pid, line))
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, f.state) {
			found = append(found, "mount: "+line)
		}
	}
	if f.groups != nil {
		groups, err := f.groups.List()
		must(t, err)
		for _, g := range groups {
			found = append(found, "control group: "+g)
		}
	}
	entries, err := os.ReadDir(f.state)
	must(t, err)
	for _, e := range entries {
		if runtime.ID(e.Name()).Valid() {
			found = append(found, "folder: "+e.Name())
		}
	}
	return found
}

// settling is how long what has been killed may take to be gone. A process that
// is not our child is reaped by another process.
const settling = 3 * time.Second

// checkEmpty fails the test if anything of a sandbox is left.
func (f *fixture) checkEmpty(t testing.TB) {
	t.Helper()
	var left []string
	poll(func() bool { left = f.leftovers(t); return len(left) == 0 })
	for _, what := range left {
		t.Errorf("left behind: %s", what)
	}
	infos, err := f.runtime.List(t.Context())
	if t.Context().Err() == nil && err != nil || len(infos) > 0 {
		t.Errorf("List after the end: %v, %v", infos, err)
	}
}

// checkClosed fails the test if a process of a closed runtime is left.
func (f *fixture) checkClosed(t testing.TB) {
	t.Helper()
	for _, pid := range holders(t, f.state) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		t.Errorf("left behind by a closed runtime: process %d: %q", pid, line)
	}
}

// poll asks until the answer is yes or settling has passed.
func poll(done func() bool) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(settling); !done() && time.Now().Before(end); {
		<-tick.C
	}
}

// descriptors returns what this process has open, by number.
func descriptors(t testing.TB) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	open := map[string]string{}
	for _, e := range entries {
		// The folder that was just read is among them, and gone.
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open[e.Name()] = target
		}
	}
	return open
}

// checkDescriptors fails the test if more is open than before.
func checkDescriptors(t testing.TB, before map[string]string) {
	t.Helper()
	var after map[string]string
	poll(func() bool { after = descriptors(t); return len(after) <= len(before) })
	if len(after) <= len(before) {
		return
	}
	for fd, target := range after {
		if before[fd] != target {
			t.Errorf("descriptor %s is still open: %s", fd, target)
		}
	}
}
