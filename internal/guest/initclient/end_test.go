package initclient_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
)

// A warmed Node that ends well says so before it does, with what it has used,
// in units of 10 us, which a kernel's count is by chance at most.
func TestNodeSaysThatItEnds(t *testing.T) {
	for range 4 {
		c := guesttest.Start(t).Dial(t)
		warm(t, c, guesttest.Warm(t, guesttest.Node))
		got := run(t, c, guesttest.Program(t, guesttest.Node, "console.log(1); process.on('exit', () => console.log(2))\n"))
		if got.stdout != "1\n2\n" || got.ExitCode != 0 || !got.Warm {
			t.Errorf("got %+v", got)
		}
		if got.CPU <= 0 || got.CPU%(10*time.Microsecond) != 0 || got.PeakRSS < 20<<20 || got.PeakRSS > 1<<30 {
			t.Errorf("it used %v and %d bytes", got.CPU, got.PeakRSS)
		}
	}
}

// So does a warmed Python that has what it takes, which came with version 3.14:
// an older one ends as it always did. Its CPU time is in units of 10 us then too.
func TestPythonSaysThatItEnds(t *testing.T) {
	for code, says := range map[string]bool{
		"import atexit, sys\natexit.register(print, sys.version_info >= (3, 14))\nprint(1)\n":                                 true,
		"import sys, threading, json, asyncio\nasyncio.run(asyncio.sleep(0))\nprint(1)\nprint(sys.version_info >= (3, 14))\n": true,
		"import sys, os\nos.system('true')\nprint(1)\nprint(sys.version_info >= (3, 14))\n":                                   false,
		"import sys\nprint(1)\nprint(sys.version_info >= (3, 14))\nsys.exit()\n":                                              false,
		"import sys, ctypes\nprint(1)\nprint(sys.version_info >= (3, 14))\n":                                                  false,
	} {
		// A kernel's count is in such units by chance once in ten times: where nothing is
		// said, one of 12 is not.
		quick, runs := 0, 0
		for runs < 4 || !says && quick == runs && runs < 12 {
			runs++
			c := guesttest.Start(t).Dial(t)
			warm(t, c, guesttest.Warm(t, guesttest.Python))
			got := run(t, c, guesttest.Program(t, guesttest.Python, code))
			says = says && got.stdout == "1\nTrue\n"
			if !strings.HasPrefix(got.stdout, "1\n") || got.ExitCode != 0 || !got.Warm || got.CPU <= 0 || got.PeakRSS < 5<<20 || got.PeakRSS > 1<<30 {
				t.Errorf("got %+v", got)
			}
			if got.CPU%(10*time.Microsecond) == 0 {
				quick++
			}
		}
		if quick == runs != says {
			t.Errorf("said %d of %d times that it ends: %q", quick, runs, code)
		}
	}
}

// forged is a program that goes on after it has said its last word.
const forged = "process.title = '\\x01\\x021000020000'; for (const fd of [1, 2]) require('fs').closeSync(fd); setInterval(() => {}, 1000)\n"

func TestForgedEnd(t *testing.T) {
	g := guesttest.Start(t)
	c := g.Dial(t)
	warm(t, c, guesttest.Warm(t, guesttest.Node))
	got := run(t, c, guesttest.Program(t, guesttest.Node, forged))
	if got.ExitCode != 0 || got.PeakRSS != 1<<10 || got.CPU != 20*time.Microsecond {
		t.Errorf("got %+v", got)
	}
	// Nothing of it is there any more when something else comes.
	warm(t, c, guesttest.Warm(t, guesttest.Bash))
	if names := g.Processes(t); !slices.Equal(names, []string{"bash"}) {
		t.Errorf("there are %q", names)
	}
}

// The word counts from warmed interpreters only.
func TestForgedEndOfColdRun(t *testing.T) {
	c := guesttest.Start(t).Dial(t)
	spec := guesttest.Program(t, guesttest.Node, forged)
	spec.Timeout = time.Second
	if got := run(t, c, spec); !got.TimedOut {
		t.Errorf("got %+v", got)
	}
}
