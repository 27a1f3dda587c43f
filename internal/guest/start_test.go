package guest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
)

func TestReadAtStart(t *testing.T) {
	for _, c := range []struct {
		language, name string
		want           bool
	}{
		{guest.Python, "PYTHONHASHSEED", true}, {guest.Python, "TZ", true}, {guest.Python, "OMP_NUM_THREADS", true},
		{guest.Python, "LC_ALL", true}, {guest.Python, "MALLOC_ARENA_MAX", true}, {guest.Python, "LD_PRELOAD", true},
		{guest.Python, "NODE_OPTIONS", false}, {guest.Python, "API_KEY", false}, {guest.Python, "MY_PYTHON", false},
		{guest.Node, "NODE_OPTIONS", true}, {guest.Node, "UV_THREADPOOL_SIZE", true}, {guest.Node, "PYTHONPATH", false},
		{guest.Node, "TZ", true}, {guest.Node, "NODES", false}, {guest.Node, "FORCE_COLOR", true},
		{guest.Bash, "BASH_ENV", true}, {guest.Bash, "SECONDS", true}, {guest.Bash, "IFS", true}, {guest.Bash, "SHELLOPTS", true},
		{guest.Bash, "API_KEY", false}, {"", "LD_LIBRARY_PATH", true}, {"", "X", false},
	} {
		if got := guest.ReadAtStart(c.language, c.name); got != c.want {
			t.Errorf("%s reads %s: %t", c.language, c.name, got)
		}
	}
}

func TestFilesAreThere(t *testing.T) {
	files := guest.Files()
	for _, name := range []string{"warm.py", "warm.cjs", "warm.bash"} {
		if len(files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
}

// As many variables as a request may have, and more than a pipe holds.
func TestManyVariables(t *testing.T) {
	for _, language := range []string{guest.Python, guest.Node, guest.Bash} {
		for _, size := range []int{1000, 4000} {
			_, c := start(t)
			warm(t, c, guesttest.Warm(t, language))
			spec := guesttest.Program(t, language, map[string]string{
				guest.Python: "import os\nprint(sum(len(v) for k, v in os.environ.items() if k.startswith('VAR')))\n",
				guest.Node:   "console.log(Object.entries(process.env).filter(([k]) => k.startsWith('VAR')).reduce((n, [, v]) => n + v.length, 0))\n",
				guest.Bash:   "n=0; for v in ${!VAR*}; do ((n += ${#v} ? ${#VAR_0} : 0)); done; echo $n\n",
			}[language])
			spec.Env = slices.Clone(spec.Env)
			for i := range 50 {
				spec.Env = append(spec.Env, fmt.Sprintf("VAR_%d=%s", i, strings.Repeat("v", size)))
			}
			got := run(t, c, spec)
			if got.stdout != fmt.Sprintln(50*size) || got.stderr != "" || got.Warm != (size == 1000) {
				t.Errorf("%s, %d bytes each: %.300s %.300s %+v", language, size, got.stdout, got.stderr, got.Result)
			}
		}
	}
}
