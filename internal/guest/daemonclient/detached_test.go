package daemonclient_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

// detaches starts programs that leave the session and the parent of their command.
const detaches = `ulimit -x 7 2>/dev/null; setsid -f sleep %[1]s; setsid -f env -i setsid -f sh -c 'sleep %[1]s & exec sleep %[1]s'; echo begun; sleep %[1]s`

// testDetached: a command that is ended takes along what has left its session, and nothing
// that an earlier command left in the background.
func testDetached(t *testing.T, c *daemonclient.Client) {
	run(t, c, "setsid -f sleep 4741; setsid sleep 4741 & sleep 0.1")
	for what, end := range map[string]func(t *testing.T, spec process.Spec){
		"timeout": func(t *testing.T, spec process.Spec) {
			spec.Timeout = time.Second
			if e, err := c.Wait(t.Context(), start(t, c, spec).ID); err != nil || !e.TimedOut {
				t.Errorf("it ended with %+v, %v", e, err)
			}
		},
		"kill": func(t *testing.T, spec process.Spec) {
			p := start(t, c, spec)
			until(t, follow(t, c, p.ID, 0), "begun")
			if err := c.Kill(t.Context(), p.ID); err != nil {
				t.Error(err)
			}
		},
		"discard with a terminal": func(t *testing.T, spec process.Spec) {
			spec.Terminal = &process.Size{Rows: 1, Columns: 80}
			p := start(t, c, spec)
			until(t, follow(t, c, p.ID, 0), "begun")
			if err := c.Discard(t.Context(), p.ID); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			end(t, process.Spec{Shell: fmt.Sprintf(detaches, "4742"), Env: clienttest.Env})
			disappears(t, c, "4742")
		})
	}
	if got := sleepers(t, c, "4741"); got != "2" {
		t.Errorf("of 2 programs that an earlier command left, %s run", got)
	}
	run(t, c, "pkill -f '^sleep 4741'")
}

// testForkBomb: KillAll frees a sandbox of programs that start others without end, and
// leaves its files.
func testForkBomb(t *testing.T, c *daemonclient.Client) {
	run(t, c, "echo kept >bombed")
	start(t, c, process.Spec{Shell: "echo begun; bomb() { setsid sh -c 'sleep 4744' & bomb | bomb & }; bomb 2>/dev/null", Env: clienttest.Env})
	time.Sleep(300 * time.Millisecond) // the load: it is killed as it grows
	if err := c.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	disappears(t, c, "4744")
	if got := run(t, c, "cat bombed; rm bombed"); got.out[process.Stdout] != "kept\n" || got.Code != 0 {
		t.Errorf("after it: %+v", got)
	}
}

// testPipe: a program that waits to open a named pipe goes on waiting after it was stopped.
func testPipe(t *testing.T, c *daemonclient.Client) {
	for what, ends := range map[string]string{"reader": "cat p; %s; echo through >p", "writer": "sh -c 'echo through >p'; %s; cat p"} {
		waits, then, _ := strings.Cut(ends, "; %s; ")
		got := run(t, c, "rm -f p; mkfifo p; set -m; ("+waits+"; echo ended $?) & sleep 0.2; kill -STOP -- -$!; sleep 0.1; kill -CONT -- -$!; sleep 0.1; "+then+"; wait; rm p")
		if out := got.out[process.Stdout]; !strings.Contains(out, "through\n") || !strings.Contains(out, "ended 0\n") {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// TestRulesHoldDetachedPrograms: a tracer reports on what is left of a command, also after
// another command was killed.
func TestRulesHoldDetachedPrograms(t *testing.T) {
	c := confined(t, runtime.Permissions{Process: runtime.ProcessPolicy{BlockedCommands: []string{"dd"}}})
	run(t, c, "setsid -f sh -c 'sleep 1; exec dd if=/dev/zero of=proof count=1'")
	p := start(t, c, process.Spec{Shell: fmt.Sprintf(detaches, "4743"), Env: clienttest.Env})
	until(t, follow(t, c, p.ID, 0), "begun")
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	disappears(t, c, "4743")
	if got := run(t, c, "sleep 2; ls"); strings.Contains(got.out[0], "proof") {
		t.Errorf("a blocked command ran: %+v", got)
	}
}
