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
