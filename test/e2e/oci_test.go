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
