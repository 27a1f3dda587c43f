package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/test/atolltest"
)

// TestVariables checks that a program finds the request's variables, also those
// that its interpreter reads as it starts.
func TestVariables(t *testing.T) {
	long := strings.Repeat("é", 4096)
	for _, c := range []struct {
		name, language, code, stdout string
		env                          map[string]string
	}{
		{"Python", atolltest.Python, "import os; print(os.environ['A_1'], os.getenv('EMPTY'), os.popen('echo $A_1').read())", "v w  v w\n\n", map[string]string{"A_1": "v w", "EMPTY": ""}},
		{"Python bytes", atolltest.Python, "import os; print(os.environb[b'A'], os.environ['A'])", "b'\\xc3\\xa9\\n\"' é\n\"\n", map[string]string{"A": "é\n\""}},
		{"Python long", atolltest.Python, "import os; print(len(os.environ['A']))", "4096\n", map[string]string{"A": long}},
		{"PYTHONUTF8 and WARNINGS", atolltest.Python, "import sys; print(sys.flags.utf8_mode, sys.warnoptions)", "1 ['error']\n", map[string]string{"PYTHONUTF8": "1", "PYTHONWARNINGS": "error"}},
		{"PYTHONHASHSEED", atolltest.Python, "print(hash('a') == hash('a'), __import__('sys').flags.hash_randomization)", "True 0\n", map[string]string{"PYTHONHASHSEED": "0"}},
		{"PYTHONPATH", atolltest.Python, "import sys; print(sys.path[:2])", "['/home/user', '/opt/x']\n", map[string]string{"PYTHONPATH": "/opt/x"}},
		{"PYTHONOPTIMIZE", atolltest.Python, "assert False\nprint(__debug__)", "False\n", map[string]string{"PYTHONOPTIMIZE": "1"}},
		{"PYTHONDONTWRITEBYTECODE", atolltest.Python, "import sys; print(sys.dont_write_bytecode)", "True\n", map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}},
		{"PYTHONUNBUFFERED", atolltest.Python, "import sys, os; sys.stdout.write('x'); os._exit(0)", "x", map[string]string{"PYTHONUNBUFFERED": "1"}},
		{"PYTHONIOENCODING", atolltest.Python, "import sys; print(sys.stdout.encoding)", "iso8859-1\n", map[string]string{"PYTHONIOENCODING": "latin-1"}},
		{"OMP_NUM_THREADS", atolltest.Python, "import numpy, os; print(os.environ['OMP_NUM_THREADS'], len(os.listdir('/proc/self/task')))", "1 1\n", map[string]string{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}},
		{"TZ in Python", atolltest.Python, "import time, datetime; print(time.tzname, datetime.datetime.fromtimestamp(0))", "('JST', 'JST') 1970-01-01 09:00:00\n", map[string]string{"TZ": "Asia/Tokyo"}},
		{"LC_ALL in Python", atolltest.Python, "import locale; print(locale.setlocale(locale.LC_ALL))", "C\n", map[string]string{"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}},
		{"Node", atolltest.Node, "console.log(process.env.A, process.env.EMPTY === '', require('child_process').execSync('echo $A').toString())", "é true é\n\n", map[string]string{"A": "é", "EMPTY": ""}},
		{"NODE_OPTIONS", atolltest.Node, "console.log(process.execArgv, require('v8').getHeapStatistics().heap_size_limit < 200e6)", "[] true\n", map[string]string{"NODE_OPTIONS": "--max-old-space-size=64"}},
		{"NODE_ENV", atolltest.Node, "console.log(process.env.NODE_ENV)", "production\n", map[string]string{"NODE_ENV": "production"}},
		{"NODE_PATH", atolltest.Node, "console.log(module.constructor.globalPaths.includes('/opt/n'))", "true\n", map[string]string{"NODE_PATH": "/opt/n"}},
		{"TZ in Node", atolltest.Node, "console.log(new Date(0).getHours())", "9\n", map[string]string{"TZ": "Asia/Tokyo"}},
		{"Bash", atolltest.Bash, "echo \"$A|${EMPTY-unset}|$Q\"; sh -c 'echo $A'; declare -p A", "é x||'\"$(echo no)`\n\né x\ndeclare -x A=\"é x\"\n", map[string]string{"A": "é x", "EMPTY": "", "Q": "'\"$(echo no)`\n"}},
		{"TZ in Bash", atolltest.Bash, "date -d @0 +%H; printf '%(%H)T\\n' 0", "09\n09\n", map[string]string{"TZ": "Asia/Tokyo"}},
		{"BASH_ENV", atolltest.Bash, "echo $BASH_ENV", "/home/user/none\n", map[string]string{"BASH_ENV": "/home/user/none"}},
		{"SHELLOPTS", atolltest.Bash, "false\necho no", "", map[string]string{"SHELLOPTS": "errexit"}},
		{"LD_PRELOAD of nothing", atolltest.Bash, "echo $LD_LIBRARY_PATH", "/opt/lib\n", map[string]string{"LD_LIBRARY_PATH": "/opt/lib"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := shared(t).Run(t, atolltest.Program{Language: c.language, Code: c.code, Env: c.env})
			exit := 0
			if c.name == "SHELLOPTS" {
				exit = 1
			}
			if r.Status != http.StatusOK || r.Stdout != c.stdout || r.ExitCode != exit {
				t.Errorf("want %q, got %v", c.stdout, r)
			}
		})
	}
}

// TestNothingOfTheServer checks that what belongs to the server and to the
// request's record does not reach the program.
func TestNothingOfTheServer(t *testing.T) {
	r := shared(t).Run(t, atolltest.Program{
		Language: atolltest.Bash, Code: "env; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '; set",
		Metadata: map[string]string{"customer": "of-the-record-alone"}, Env: map[string]string{"GIVEN": "1"},
	})
	for _, secret := range []string{"HOST_SECRET", "of-the-server-alone", "of-the-record-alone", atolltest.Key, "ATOLL_", "runsc", "sb-"} {
		if strings.Contains(r.Stdout, secret) {
			t.Errorf("the program sees %q:\n%s", secret, r.Stdout)
		}
	}
	if !strings.Contains(r.Stdout, "GIVEN=1") {
		t.Error(r)
	}
}
