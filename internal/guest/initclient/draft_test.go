package initclient_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// TestTheFileOfAProgramWaitsForIt: it is there, empty, as soon as an interpreter waits, and
// what runs instead of the program does not find it.
func TestTheFileOfAProgramWaitsForIt(t *testing.T) {
	g, c := start(t)
	warm(t, c, guesttest.Warm(t, guesttest.Python))
	st, err := os.Stat(filepath.Join(g.Root(), runtime.Home, "main.py"))
	if err != nil || st.Size() > 0 || st.Mode() != 0o644 {
		t.Errorf("while the interpreter waits, its program's file is %v, %v", st, err)
	}
	if got := run(t, c, bash(t, "ls -A ~\n")); got.stdout != "main.sh\n" {
		t.Errorf("another program finds %q: %+v", got.stdout, got)
	}
	const code = "import os\nprint(open(__file__).read() == os.environ['CODE'], sorted(os.listdir()))\n"
	spec := guesttest.Program(t, guesttest.Python, code)
	spec.Env = append(spec.Env, "CODE="+code)
	if got := run(t, c, spec); !got.Warm || got.stdout != "True ['main.py', 'main.sh']\n" {
		t.Errorf("after it: %+v", got)
	}
}

// TestPackagesThatComeWithAProgram: an interpreter that has looked for packages at home
// before they were there is not the program's.
func TestPackagesThatComeWithAProgram(t *testing.T) {
	_, c := start(t)
	warm(t, c, guesttest.Warm(t, guesttest.Python))
	spec := guesttest.Program(t, guesttest.Python, "print(1)")
	spec.Files = append(spec.Files, initclient.File{Path: runtime.Home + "/.local/lib/python3.99/x.py", Mode: 0o644})
	if got := run(t, c, spec); got.Warm || got.stdout != "1\n" {
		t.Errorf("%+v", got)
	}
}
