package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestOCIRuntime runs programs under crun: warm ones, ones with preloads, which
// it cannot restore and boots instead, and ones that reach for too much.
func TestOCIRuntime(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_RUNTIME=oci", "ATOLL_POOL_SIZE=1"}})
	attempts(t, s, object{"process": object{"allow_exec": false}}, []tried{
		{"no exec", atolltest.Python, "import os, threading\nt = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\ntry: os.fork()\nexcept OSError as e: print(e.errno)", "thread\n1\n", 0, ""},
	})
	attempts(t, s, object{"process": object{"blocked_commands": []string{"dd"}, "max_processes": 3}}, []tried{
		{"blocked command", atolltest.Bash, "dd --version; echo after", "", 137, `"dd"`},
		{"processes", atolltest.Python, "import os, time\nn = 0\ntry:\n  while n < 9:\n    if os.fork() == 0: time.sleep(20); os._exit(0)\n    n += 1\nexcept OSError as e: print(n, e.errno)", "2 11\n", 0, ""},
	})
	// Here the guest may not mount, so nothing is run rather than without the rules.
	r := runAs(t, s, confined(t, s, object{"filesystem": object{"writable_paths": []string{"/tmp"}}}), atolltest.Program{Language: atolltest.Bash, Code: "echo ran"})
	if r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Message, "permissions of this environment cannot be enforced") {
		t.Errorf("rules on paths: %v", r)
	}
	for _, c := range []struct {
		name, language, code, stdout string
		exit                         int
		reason                       string
	}{
		{"Python", atolltest.Python, "import os; print(os.getuid(), os.getcwd(), __name__)", "1000 /home/user __main__\n", 0, ""},
		{"preloads", atolltest.Python, "import pandas; print(pandas.DataFrame({'a': [1, 2]}).a.sum())", "3\n", 0, ""},
		{"Node", atolltest.Node, "console.log(process.getuid(), require('os').networkInterfaces().eth0)", "1000 undefined\n", 0, ""},
		{"Bash", atolltest.Bash, "echo a | tr a b; touch /usr/x 2>/dev/null || echo refused", "b\nrefused\n", 0, ""},
		{"memory", atolltest.Python, "x = bytearray(2 << 30)", "", 137, "memory limit"},
		{"disk", atolltest.Bash, "head -c 1G /dev/zero > big || echo full; exit 3", "full\n", 3, "disk"},
		{"exit code", atolltest.Bash, "kill -TERM $$", "", 143, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.Run(t, atolltest.Program{Language: c.language, Code: c.code})
			reason := ""
			if r.Error != nil {
				reason = *r.Error
			}
			if r.Status != http.StatusOK || r.Stdout != c.stdout || r.ExitCode != c.exit || !strings.Contains(reason, c.reason) {
				t.Errorf("want %q, %d and %q, got %v", c.stdout, c.exit, c.reason, r)
			}
		})
	}
}
