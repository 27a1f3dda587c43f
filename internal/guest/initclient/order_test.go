package initclient_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// TestWhatIsWrittenFirstComesFirst: the first output of a warmed program waits for its end, and is
// passed on before what the program writes to its other output meanwhile.
func TestWhatIsWrittenFirstComesFirst(t *testing.T) {
	for _, end := range []string{"", "import time; time.sleep(0.05)\n"} {
		for _, c := range []struct{ code, want string }{
			{"print(1, flush=True); print(2, file=sys.stderr, flush=True)\n", "out err"},
			{"print(1, file=sys.stderr, flush=True); print(2, flush=True)\n", "err out"},
		} {
			// Which of two outputs came first is lost when both are there before process 1 looks, as
			// on a loaded machine: most tries are right at once.
			got := ""
			for n := 0; n < 10 && got != c.want; n++ {
				g := guesttest.Start(t).Dial(t)
				warm(t, g, guesttest.Warm(t, guesttest.Python))
				var order []string
				// A wait lets process 1 see the first output by itself.
				code := "import sys, time\n" + strings.Replace(c.code, "; ", "; time.sleep(0.0005); ", 1) + end
				if _, err := g.Run(t.Context(), guesttest.Program(t, guesttest.Python, code), func(s initclient.Stream, _ []byte) {
					order = append(order, map[bool]string{true: "out", false: "err"}[s == initclient.Stdout])
				}); err != nil {
					t.Fatal(err)
				}
				got = strings.Join(order, " ")
			}
			if got != c.want {
				t.Errorf("%q comes as %q ten times", c.code+end, got)
			}
		}
	}
}
