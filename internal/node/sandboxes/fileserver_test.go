package sandboxes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/test/atolltest"
)

// fileServer is the process of the host that serves a sandbox's files, 0 for none.
func fileServer(id runtime.ID) int {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(line), "runsc-gofer") && strings.Contains(string(line), string(id)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}

// exhaust leaves a process no descriptor beyond those that it has open.
func exhaust(t *testing.T, pid int) {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(len(open)), Max: uint64(len(open))}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// TestAnExhaustedFileServerIsReplaced: a sandbox whose file server has no descriptor left
// says so, then sleeps and wakes with its files and processes. One of these waits to open a
// pipe, and goes on waiting.
func TestAnExhaustedFileServerIsReplaced(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	p := m.caller("a")
	sb := m.ensure(p, "s", "one", nil)
	m.shell(p, "s", "one", "echo kept >~/kept; sleep 1000 >/dev/null 2>&1 & echo $! >~/pid; mkfifo ~/pipe; cat ~/pipe >~/through 2>&1 & sleep 0.2")
	before := fileServer(sb.ID)
	if before == 0 {
		t.Fatal("the sandbox has no file server")
	}
	h := m.use(p, "one")
	exhaust(t, before)
	var err error
	for i := 0; i < 100 && err == nil; i++ { // some descriptors may be about to close
		_, err = h.Guest().Create(t.Context(), fmt.Sprintf("/home/user/new%d", i), file.CreateOptions{}, strings.NewReader("x"))
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Conflict || f.Code != process.TooManyFiles || !strings.Contains(f.Msg, "End programs that hold files open") {
		t.Errorf("a write without a free descriptor: %v", err)
	}
	h.Close()
	atolltest.Until(t, 30*time.Second, "the exhausted process has ended", func() bool {
		return errors.Is(unix.Kill(before, 0), unix.ESRCH)
	})
	if got := m.shell(p, "s", "one", "cat ~/kept; cat /proc/$(cat ~/pid)/comm; echo new >~/new && cat ~/new; echo piped >~/pipe; until [ -s ~/through ]; do sleep 0.05; done; cat ~/through"); got != "kept\nsleep\nnew\npiped" {
		t.Errorf("it has %q", got)
	}
}
