package proctree

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestKillWhileForking kills programs in the moment in which they start others, in
// sessions of their own: none may be left.
func TestKillWhileForking(t *testing.T) {
	mark := fmt.Sprint("ATOLL_KILL_TEST=", os.Getpid())
	for i := range 40 {
		cmd := exec.Command("bash", "-c", "echo; for i in 1 2 3 4 5 6 7 8; do setsid sleep 60 & done; wait")
		cmd.Env = append(os.Environ(), mark)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadByte()
		time.Sleep(time.Duration(i) * 100 * time.Microsecond) // the load: it is killed at any moment
		Kill(cmd.Process.Pid, 0)
		cmd.Wait()
	}
	atolltest.Until(t, 5*time.Second, "none is left", func() bool { return len(marked(mark)) == 0 })
}

// marked lists the processes that have a variable in their environment.
func marked(variable string) (pids []string) {
	for _, name := range Processes() {
		env, err := os.ReadFile(filepath.Join("/proc", name, "environ"))
		if err == nil && strings.Contains(string(env), variable) {
			pids = append(pids, name)
		}
	}
	return pids
}

// TestKillFindsAMark: a process that has left session and parent behind is killed by its
// mark. A process of another command survives.
func TestKillFindsAMark(t *testing.T) {
	marks := OpenMarks()
	begin := func(variable string) (*exec.Cmd, uint64) {
		cmd := exec.Command("bash", "-c", "setsid setsid -f sleep 60; echo; sleep 60")
		cmd.Env = append(os.Environ(), variable)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		mark, err := marks.During(cmd.Start)
		if err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadByte()
		return cmd, mark
	}
	stays, goes := fmt.Sprint("ATOLL_MARK_TEST=stays", os.Getpid()), fmt.Sprint("ATOLL_MARK_TEST=goes", os.Getpid())
	other, first := begin(stays)
	cmd, second := begin(goes)
	if first == 0 || first == second || markOf(os.Getpid()) == second {
		t.Fatalf("the marks are %d and %d, and this process has %d", first, second, markOf(os.Getpid()))
	}
	Kill(cmd.Process.Pid, second)
	cmd.Wait()
	atolltest.Until(t, 5*time.Second, "none is left of the command", func() bool { return len(marked(goes)) == 0 })
	if left := marked(stays); len(left) != 2 {
		t.Errorf("of the other command %q are left", left)
	}
	Kill(other.Process.Pid, first)
	other.Wait()
	atolltest.Until(t, 5*time.Second, "none is left of the other", func() bool { return len(marked(stays)) == 0 })
}
