package service

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// shellAnswer is what the tool shell returns.
type shellAnswer struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode int    `json:"exit_code"`
}

// TestKilledServerKeepsNamedSandboxes kills the server again and again while
// sandboxes work, and checks that none of them and nothing in them has ended.
func TestKilledServerKeepsNamedSandboxes(t *testing.T) {
	line := newSuccession(t)
	n := atolltest.Count(4, 30)
	name := func(i int) string { return "worker-" + strconv.Itoa(i) }
	for i := range n {
		var out shellAnswer
		line.tool("sandbox_create", map[string]any{"sandbox": name(i), "image": "default"}, nil)
		// A counter that holds its number in memory alone, and says it.
		line.tool("shell", map[string]any{"sandbox": name(i), "command": `cat > count.py <<'END'
import time
n = 0
while True:
    n += 1
    open("/home/user/count.new", "w").write(str(n))
    __import__("os").rename("/home/user/count.new", "/home/user/count")
    time.sleep(0.1)
END
nohup python3 count.py > /dev/null 2>&1 & echo $! > pid; until [ -s count ]; do sleep 0.05; done; cat pid`}, &out)
		if out.ExitCode != 0 {
			t.Fatalf("the counter of %s: %+v", name(i), out)
		}
	}
	seen := make([]int, n) // by the sandbox's own client
	pids := make([]string, n)
	var answers atomic.Int64
	read := func(i int) bool {
		var out shellAnswer
		if !line.tool("shell", map[string]any{"sandbox": name(i), "command": "kill -0 $(cat pid) && cat pid count"}, &out) {
			return false
		}
		answers.Add(1)
		pid, text, _ := strings.Cut(strings.TrimSpace(out.Stdout), "\n")
		count, err := strconv.Atoi(text)
		if out.ExitCode != 0 || err != nil || count < seen[i] || pids[i] != "" && pids[i] != pid {
			t.Errorf("%s counts %q after %d, as process %s after %s: %+v", name(i), text, seen[i], pid, pids[i], out)
		}
		seen[i], pids[i] = count, pid
		return true
	}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			for ctx.Err() == nil && read(i) {
			}
		})
	}
	kills := atolltest.Count(4, 50)
	for range kills {
		before := answers.Load()
		atolltest.Until(t, time.Minute, "calls are answered", func() bool { return answers.Load() >= before+2 || t.Failed() })
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond) // the load: it is killed at any moment
		line.next(syscall.SIGKILL)
	}
	stop()
	clients.Wait()
	for i := range n {
		before := seen[i]
		atolltest.Until(t, time.Minute, name(i)+" continues counting", func() bool { return read(i) && seen[i] > before || t.Failed() })
	}
	// One more end, by SIGTERM: it lets go of them as well.
	line.next(syscall.SIGTERM)
	for i := range n {
		read(i)
	}
	t.Logf("%d sandboxes, the server killed %d times, %d calls answered", n, kills, answers.Load())
}
