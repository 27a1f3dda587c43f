package service

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
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

// callTool calls a tool of a session until a server answers.
func callTool(t *testing.T, server func() *atolltest.Server, tool string, input map[string]any, into any) (ok bool) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		s := server()
		a, err := s.Call(t.Context(), atolltest.Key, http.MethodPost, "/v1/sessions/kills/tools/"+tool, input, nil)
		if err == nil && a.Status == http.StatusOK {
			if into == nil {
				return true
			}
			if err := json.Unmarshal(a.Body, into); err != nil {
				t.Errorf("%v: %s", err, a.Body)
				return false
			}
			return true
		}
		if err == nil && a.Status != http.StatusBadGateway && a.Status != http.StatusServiceUnavailable {
			t.Errorf("%s of %v: %d %s\n%s", tool, input["sandbox"], a.Status, a.Body, s.Log())
			return false
		}
		if time.Now().After(deadline) {
			t.Errorf("%s of %v is not answered: %v", tool, input["sandbox"], err)
			return false
		}
		time.Sleep(20 * time.Millisecond) // no server answers while it starts
	}
}

// TestKilledServerKeepsNamedSandboxes kills the server again and again while
// sandboxes work, and checks that none of them and nothing in them has ended.
func TestKilledServerKeepsNamedSandboxes(t *testing.T) {
	settings := []string{"ATOLL_ON_EXIT=detach", "ATOLL_POOL_SIZE=0"}
	s := atolltest.Start(t, atolltest.Options{Env: settings})
	data := s.Keep(t)
	var mu sync.Mutex
	current := s
	server := func() *atolltest.Server { mu.Lock(); defer mu.Unlock(); return current }

	t.Cleanup(func() { // whatever has failed
		_ = server().Signal(syscall.SIGKILL)
		_ = server().Wait(context.Background())
		if last, err := atolltest.Launch(context.Background(), atolltest.Options{Data: data, Env: []string{"ATOLL_ON_EXIT=destroy", "ATOLL_POOL_SIZE=0"}}); err == nil {
			err = last.Close()
			if err != nil {
				t.Error(err)
			}
		}
	})

	n := atolltest.Count(4, 30)
	name := func(i int) string { return "worker-" + strconv.Itoa(i) }
	for i := range n {
		var out shellAnswer
		callTool(t, server, "sandbox_create", map[string]any{"sandbox": name(i), "image": "default"}, nil)
		// A counter that holds its number in memory alone, and says it.
		callTool(t, server, "shell", map[string]any{"sandbox": name(i), "command": `cat > count.py <<'END'
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
		if !callTool(t, server, "shell", map[string]any{"sandbox": name(i), "command": "kill -0 $(cat pid) && cat pid count"}, &out) {
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
		if err := server().Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = server().Wait(t.Context()) // it was killed
		next, err := atolltest.Launch(t.Context(), atolltest.Options{Data: data, Env: settings, NotReady: true})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		current = next
		mu.Unlock()
	}
	stop()
	clients.Wait()
	for i := range n {
		before := seen[i]
		atolltest.Until(t, time.Minute, name(i)+" goes on counting", func() bool { return read(i) && seen[i] > before || t.Failed() })
	}
	// One more end, by SIGTERM: it lets go of them as well.
	last := server()
	if err := last.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := last.Wait(t.Context()); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	end, err := atolltest.Launch(t.Context(), atolltest.Options{Data: data, Env: []string{"ATOLL_ON_EXIT=destroy", "ATOLL_POOL_SIZE=0"}})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	current = end
	mu.Unlock()
	for i := range n {
		read(i)
	}
	if err := end.Close(); err != nil { // with all of them
		t.Errorf("%v\n%s", err, end.Log())
	}
	if err := atolltest.Trace(data).Gone(context.Background()); err != nil {
		t.Error(err)
	}
	t.Logf("%d sandboxes, the server killed %d times, %d calls answered", n, kills, answers.Load())
}
