package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestTimeout checks the answer to programs that do not end in time, however
// they go about it.
func TestTimeout(t *testing.T) {
	for _, c := range []struct{ name, language, code, stdout, stderr string }{
		{"sleep", atolltest.Python, "import time\nprint('so far', flush=True)\ntime.sleep(60)", "so far\n", ""},
		{"unflushed", atolltest.Python, "import time\nprint('lost')\ntime.sleep(60)", "", ""},
		{"both streams", atolltest.Bash, "echo o; echo e >&2; sleep 60", "o\n", "e\n"},
		{"busy", atolltest.Python, "print('so far', flush=True)\nwhile True: pass", "so far\n", ""},
		{"busy in C", atolltest.Python, "print('so far', flush=True)\n10 ** 10 ** 8", "so far\n", ""},
		{"busy Node", atolltest.Node, "console.log('so far'); while (true);", "so far\n", ""},
		{"timer", atolltest.Node, "console.log('so far'); setInterval(() => {}, 1000)", "so far\n", ""},
		{"ignored signals", atolltest.Python, "import signal, time\nfor s in signal.valid_signals():\n  try: signal.signal(s, signal.SIG_IGN)\n  except OSError: pass\nprint('so far', flush=True)\nwhile True: time.sleep(1)", "so far\n", ""},
		{"trap", atolltest.Bash, "trap '' TERM INT HUP; trap 'echo no' EXIT; echo so far; while :; do sleep 1; done", "so far\n", ""},
		{"grandchildren", atolltest.Bash, "echo so far; sh -c 'sh -c \"sleep 60; echo no\" & wait' & wait", "so far\n", ""},
		{"other sessions", atolltest.Bash, "echo so far; setsid sleep 60 & setsid setsid sh -c 'while :; do sleep 1; done' & wait", "so far\n", ""},
		{"stopped", atolltest.Bash, "echo so far; kill -STOP $$", "so far\n", ""},
		{"waiting for a FIFO", atolltest.Bash, "echo so far; mkfifo f; cat f", "so far\n", ""},
		{"waiting for a lock", atolltest.Python, "import threading\nprint('so far', flush=True)\nl = threading.Lock(); l.acquire(); l.acquire()", "so far\n", ""},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			var r *atolltest.Result
			timeout := 1
			for ; ; timeout *= 2 { // for one that was kept from its first line for so long
				r = shared(t).Run(t, atolltest.Program{Language: c.language, Code: c.code, Timeout: timeout})
				if c.stdout == "" || r.Stdout != "" || timeout > 10 {
					break
				}
			}
			reason := fmt.Sprintf("execution timed out after %ds", timeout)
			if r.Status != http.StatusGatewayTimeout || r.Success || r.ExitCode != -1 || r.Reason() != reason || r.Message != reason || r.Code != "gateway_timeout" {
				t.Errorf("want HTTP 504 that says why, got %v", r)
			}
			if r.Stdout != c.stdout || r.Stderr != c.stderr {
				t.Errorf("want the output so far, %q and %q, got %v", c.stdout, c.stderr, r)
			}
			if limit := time.Duration(timeout) * time.Second; r.Elapsed < limit || r.Elapsed > limit+3*time.Second {
				t.Errorf("a time-out of %v took %v", limit, r.Elapsed)
			}
		})
	}
}

// TestTimeoutWithMuchOutput checks that what was written before the end of time
// is there, up to the cut.
func TestTimeoutWithMuchOutput(t *testing.T) {
	r := shared(t).Run(t, atolltest.Program{Language: atolltest.Bash, Code: "yes 0123456789abcdef", Timeout: 3})
	if r.Status != http.StatusGatewayTimeout || len(r.Stdout) != 10*mib || !r.StdoutTruncated || r.ExitCode != -1 {
		t.Error(r)
	}
}

// TestTimeoutStartsWithTheProgram checks that nothing but the program's own time
// counts, when sandboxes must be made first.
func TestTimeoutStartsWithTheProgram(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=0"}})
	r := s.Run(t, atolltest.Program{Code: "import time, pandas\ntime.sleep(0.7)\nprint('done')", Timeout: 5})
	if r.Status != http.StatusOK || r.Stdout != "done\n" {
		t.Error(r)
	}
}
