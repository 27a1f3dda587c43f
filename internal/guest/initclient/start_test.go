package initclient_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
)

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
	for _, language := range []string{guesttest.Python, guesttest.Node, guesttest.Bash} {
		for _, size := range []int{1000, 4000} {
			_, c := start(t)
			warm(t, c, guesttest.Warm(t, language))
			spec := guesttest.Program(t, language, map[string]string{
				guesttest.Python: "import os\nprint(sum(len(v) for k, v in os.environ.items() if k.startswith('VAR')))\n",
				guesttest.Node:   "console.log(Object.entries(process.env).filter(([k]) => k.startsWith('VAR')).reduce((n, [, v]) => n + v.length, 0))\n",
				guesttest.Bash:   "n=0; for v in ${!VAR*}; do ((n += ${#v} ? ${#VAR_0} : 0)); done; echo $n\n",
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
