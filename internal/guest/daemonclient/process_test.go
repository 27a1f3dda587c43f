package daemonclient_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// start starts a process.
func start(t testing.TB, c *daemonclient.Client, spec process.Spec) process.Info {
	t.Helper()
	p, err := c.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func kind(t testing.TB, err error, want fault.Kind, text string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, kind %d; want kind %d and %q", err, fault.KindOf(err), want, text)
	}
}

func TestProcesses(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *daemonclient.Client)
	}{
		{"arguments are data", testArguments},
		{"what cannot start", testCannotStart},
		{"ends", testEnds},
		{"timeout", testTimeout},
		{"detached", testDetached},
		{"background", testBackground},
		{"input", testInput},
		{"signals", testSignals},
		{"control", testControl},
		{"converse", testConverse},
		{"enough", testEnough},
		{"cursors", testCursors},
		{"dropped", testDropped},
		{"lossless", testLossless},
		{"idempotent", testIdempotent},
		{"many", testMany},
		{"out of reach", testOutOfReach},
		{"orphans", testOrphans},
		{"limits", testLimits},
		{"terminal", testTerminal},
		{"job control", testJobControl},
		{"killed together", testKilledTogether},
		{"fork bomb", testForkBomb},
		{"pipe", testPipe},
		{"end largest", testEndLargest},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, c) })
	}
	list, err := c.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Exit == nil {
			t.Errorf("process %q runs on", p.Argv)
		}
	}
}

func testArguments(t *testing.T, c *daemonclient.Client) {
	args := []string{"-n", "--", "a b", `"'\`, "line\nbreak", "$(id)", "\xff\xfe", "", "*", "ü"}
	spec := process.Spec{Argv: append([]string{"python3", "-c", "import sys, os; sys.stdout.buffer.write(b'|'.join(os.fsencode(a) for a in sys.argv[1:]))"}, args...), Env: clienttest.Env}
	o, err := c.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.out[process.Stdout] != strings.Join(args, "|") {
		t.Errorf("got %q", got.out)
	}
	for text, want := range map[string]string{
		"-x; echo no": "no\n", "echo 'a\"b' \"c'd\" \\$x": "a\"b c'd $x\n", "echo \xff": "\xff\n", "printf '%s\\n' \"$0\"": "bash\n",
		"[[ a == a ]] && echo bash": "bash\n", "": "", "  \n\n # only a comment": "",
	} {
		if got := run(t, c, text); got.out[process.Stdout] != want {
			t.Errorf("%q said %q", text, got.out)
		}
	}
	spec = shell("echo $A-$B; pwd")
	spec.Env = append(slices.Clone(clienttest.Env), "A=1\n2", "B=\xfe", "EMPTY=")
	spec.Dir = "/tmp"
	o, err = c.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.out[process.Stdout] != "1 2-\xfe\n/tmp\n" {
		t.Errorf("got %q", got.out)
	}
}

func testCannotStart(t *testing.T, c *daemonclient.Client) {
	argv := func(a ...string) process.Spec { return process.Spec{Argv: a, Env: clienttest.Env} }
	dir := argv("true")
	dir.Dir = "/not/there"
	file := argv("true")
	file.Dir = "/etc/passwd"
	closed := argv("true")
	closed.Dir = "/root"
	id := argv("true")
	id.ID = "a/b"
	for name, try := range map[string]struct {
		spec process.Spec
		kind fault.Kind
		code string
		text string
	}{
		"no program":    {argv("no-such-program"), fault.NotFound, process.NoProgram, "no-such-program"},
		"not a program": {argv("/etc/passwd"), fault.Forbidden, process.NoExecutable, "/etc/passwd"},
		"a folder":      {argv("/etc"), fault.Forbidden, process.NoExecutable, "/etc"},
		"NUL":           {argv("echo", "a\x00b"), fault.Invalid, "", "NUL"},
		"empty name":    {argv(""), fault.Invalid, "", "no program"},
		"no folder":     {dir, fault.NotFound, "", "working directory"},
		"no folder but": {file, fault.Invalid, "", "working directory"},
		"closed folder": {closed, fault.Forbidden, "", "/root"},
		"bad id":        {id, fault.Invalid, "", "id of 1 to 64"},
	} {
		_, err := c.Start(t.Context(), try.spec)
		t.Run(name, func(t *testing.T) {
			kind(t, err, try.kind, try.text)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != try.code {
				t.Errorf("the code is %+v, want %q", f, try.code)
			}
		})
	}
	if _, err := c.Process(t.Context(), "not-there"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no process: %v", err)
	}
	if err := c.Signal(t.Context(), "not-there", syscall.SIGTERM, true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no process: %v", err)
	}
}

func testEnds(t *testing.T, c *daemonclient.Client) {
	for text, want := range map[string]int{"exit 0": 0, "exit 77": 77, "kill -9 $$": 137, "kill -TERM $$": 143, "no-such-command": 127, "false": 1} {
		got := run(t, c, text)
		if got.Code != want || (want > 128) != (got.Signal != 0) || got.TimedOut || got.At.IsZero() {
			t.Errorf("%q ended with %+v", text, got.Exit)
		}
	}
	// gVisor counts processor time in ticks of 10 ms.
	p := start(t, c, shell("head -c 1000 /dev/zero; head -c 500 /dev/zero >&2; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 4"))
	e, err := c.Wait(t.Context(), p.ID)
	if err != nil || e.Code != 4 || e.CPU <= 0 || e.PeakRSS <= 0 {
		t.Errorf("Wait: %+v, %v", e, err)
	}
	is, err := c.Process(t.Context(), p.ID)
	if err != nil || is.Exit == nil || is.Exit.Code != 4 || is.Written != [4]int64{1000, 500} || is.Last != 1500 || is.PID <= 1 {
		t.Errorf("Process: %+v, %v", is, err)
	}
	if err := c.Forget(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Process(t.Context(), p.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("forgotten: %v", err)
	}
	long := start(t, c, shell("sleep 60"))
	kind(t, c.Forget(t.Context(), long.ID), fault.Conflict, "kill it first")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Wait(ctx, long.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait with a deadline: %v", err)
	}
	if err := c.Kill(t.Context(), long.ID); err != nil {
		t.Error(err)
	}
	if e, err := c.Wait(t.Context(), long.ID); err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("killed: %+v, %v", e, err)
	}
	kind(t, c.Kill(t.Context(), long.ID), fault.Conflict, "has ended")
}

// sleepers counts the processes with an argument.
func sleepers(t testing.TB, c *daemonclient.Client, arg string) string {
	t.Helper()
	return strings.TrimSpace(run(t, c, "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null | grep -c '^sleep "+arg+"'").out[process.Stdout])
}

// appears waits for a process that nothing else tells of.
func appears(t testing.TB, c *daemonclient.Client, arg string) {
	t.Helper()
	atolltest.Until(t, 20*time.Second, "there is a sleep "+arg, func() bool { return sleepers(t, c, arg) != "0" })
}

// disappears waits for the ends of all of them.
func disappears(t testing.TB, c *daemonclient.Client, arg string) {
	t.Helper()
	atolltest.Until(t, 20*time.Second, "there is no sleep "+arg, func() bool { return sleepers(t, c, arg) == "0" })
}

func testTimeout(t *testing.T, c *daemonclient.Client) {
	spec := shell("trap '' TERM; sh -c 'trap \"\" TERM; sleep 4711' & setsid sh -c 'sleep 4711 & wait' & echo begun; sleep 4711")
	// On a busy machine it may be ended before its first word: it gets twice as long then.
	for spec.Timeout = 300 * time.Millisecond; ; spec.Timeout *= 2 {
		begin := time.Now()
		o, err := c.Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		got := all(t, o)
		if !got.TimedOut || got.Signal != syscall.SIGKILL || time.Since(begin) > spec.Timeout+9*time.Second {
			t.Errorf("got %+v", got)
		}
		disappears(t, c, "4711")
		if got.out[process.Stdout] == "begun\n" {
			return
		}
		if got.out[process.Stdout] != "" || spec.Timeout > time.Minute {
			t.Fatalf("got %+v", got)
		}
	}
}

func testBackground(t *testing.T, c *daemonclient.Client) {
	begin := time.Now()
	got := run(t, c, "sleep 4712 & (while :; do echo more; sleep 0.01; done) & echo started")
	if got.Code != 0 || !strings.HasPrefix(got.out[process.Stdout], "started\n") && !strings.Contains(got.out[process.Stdout], "started\n") || time.Since(begin) > 10*time.Second {
		t.Errorf("got %+v", got)
	}
	appears(t, c, "4712")
	if n := sleepers(t, c, "4712"); n != "1" {
		t.Errorf("%s processes in the background", n)
	}
	run(t, c, "for f in /proc/[0-9]*; do p=${f#/proc/}; [ $p = $$ ] || [ $p = 1 ] || kill -9 $p; done 2>/dev/null; true")
}

func testInput(t *testing.T, c *daemonclient.Client) {
	spec := process.Spec{Argv: []string{"cat"}, Env: clienttest.Env, Input: true, Lossless: true}
	p := start(t, c, spec)
	o := follow(t, c, p.ID, 0)
	if n, err := c.Write(t.Context(), p.ID, []byte("hello\n")); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	until(t, o, "hello\n")
	// More than pipe and ring hold: it goes on as it is read.
	big := strings.Repeat("0123456789abcdef", 200_000)
	done := make(chan error, 1)
	go func() {
		_, err := c.Write(t.Context(), p.ID, []byte(big))
		if err == nil {
			err = c.CloseInput(t.Context(), p.ID)
		}
		done <- err
	}()
	got := all(t, o)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got.out[process.Stdout] != big || got.Code != 0 || got.dropped != 0 {
		t.Errorf("%d bytes came back, %d dropped, %+v", len(got.out[process.Stdout]), got.dropped, got.Exit)
	}
	if _, err := c.Write(t.Context(), p.ID, []byte("x")); fault.KindOf(err) != fault.Conflict {
		t.Errorf("after the end: %v", err)
	}
	// The output is not read: it is given up with its context, and the next one gets through.
	p = start(t, c, process.Spec{Argv: []string{"sleep", "60"}, Env: clienttest.Env, Input: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Write(ctx, p.ID, []byte(big)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a reader: %v", err)
	}
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	none := start(t, c, process.Spec{Argv: []string{"cat"}, Env: clienttest.Env})
	_, err := c.Write(t.Context(), none.ID, []byte("x"))
	kind(t, err, fault.Invalid, "without")
	if e, err := c.Wait(t.Context(), none.ID); err != nil || e.Code != 0 {
		t.Errorf("with no input it ends: %+v, %v", e, err)
	}
}

func testSignals(t *testing.T, c *daemonclient.Client) {
	p := start(t, c, shell(`trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.05; done`))
	o := follow(t, c, p.ID, 0)
	until(t, o, "ready")
	if err := c.Signal(t.Context(), p.ID, syscall.SIGUSR1, false); err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.Code != 5 || got.out[process.Stdout] != "\ngot it\n" && got.out[process.Stdout] != "got it\n" {
		t.Errorf("got %+v", got)
	}
	kind(t, c.Signal(t.Context(), p.ID, syscall.SIGUSR1, false), fault.Conflict, "has ended")
	p = start(t, c, shell("sleep 4713 & echo ready; exec sleep 4713"))
	o = follow(t, c, p.ID, 0)
	until(t, o, "ready") // under gVisor a signal to a group may miss what is just being forked
	kind(t, c.Signal(t.Context(), p.ID, 99, false), fault.Invalid, "no signal 99")
	if err := c.Signal(t.Context(), p.ID, syscall.SIGTERM, true); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Wait(t.Context(), p.ID); err != nil || e.Signal != syscall.SIGTERM {
		t.Errorf("%+v, %v", e, err)
	}
	disappears(t, c, "4713") // the other one of the group, whose end nothing else tells of
}

func testMany(t *testing.T, c *daemonclient.Client) {
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			o, err := c.Run(t.Context(), shell(fmt.Sprintf("echo %d; echo e%d >&2; exit %d", i, i, i)))
			if err != nil {
				t.Error(err)
				return
			}
			if got := all(t, o); got.Code != i || got.out[0] != fmt.Sprintln(i) || got.out[1] != fmt.Sprintf("e%d\n", i) {
				t.Errorf("%d: %+v", i, got)
			}
		})
	}
	wait.Wait()
}

// testOutOfReach: programs cannot get at the guest daemon, nor where it goes.
func testOutOfReach(t *testing.T, c *daemonclient.Client) {
	got := run(t, c, `pid=$(grep -lx atoll-guestd /proc/[0-9]*/comm | cut -d/ -f3)
[ -n "$pid" ] || echo "there is no guest daemon"
kill -9 $pid && echo killed; kill -STOP $pid && echo stopped
ls /.attend && echo listed; cat /proc/$pid/environ && echo read; ls /proc/$pid/fd && echo saw; ls /proc/$pid/root/ && echo entered
python3 - $pid <<'E'
import ctypes, os, socket, sys
pid = int(sys.argv[1])
for name in ("mem", "maps"):
    try:
        open(f"/proc/{pid}/{name}", "rb").read(10); print(name)
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, pid, 0, 0) == 0: print("traced")
try:
    os.listdir(f"/proc/{pid}/task")
    for tid in os.listdir(f"/proc/{pid}/task"):
        if libc.syscall(234, pid, int(tid), 19) == 0: print("stopped a thread")
except OSError: pass
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("/.attend/host"); print("connected")
except OSError as e: print("refused", e.errno)
E`)
	if got.out[process.Stdout] != "refused 13\n" {
		t.Errorf("a program could: %q, %q", got.out[0], got.out[1])
	}
}

func testOrphans(t *testing.T, c *daemonclient.Client) {
	run(t, c, "for i in $(seq 30); do (setsid sh -c 'sleep 0.01' &); done; for i in $(seq 30); do sh -c 'sleep 0.01 & exit' ; done; true")
	atolltest.Until(t, 20*time.Second, "no zombie stays", func() bool {
		return strings.TrimSpace(run(t, c, "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l").out[process.Stdout]) == "0"
	})
}

func testKilledTogether(t *testing.T, c *daemonclient.Client) {
	before := start(t, c, process.Spec{Shell: "kill -9 $$", Env: clienttest.Env})
	if e, err := c.Wait(t.Context(), before.ID); err != nil || e.Signal != syscall.SIGKILL || e.Together {
		t.Errorf("one that had ended: %+v, %v", e, err)
	}
	p := start(t, c, process.Spec{Shell: "sleep 1000 & sleep 1000", Env: clienttest.Env})
	for range 2 { // the second changes nothing of what is known
		if err := c.KillAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := c.Wait(t.Context(), p.ID); err != nil || e.Signal != syscall.SIGKILL || !e.Together {
		t.Errorf("one that ran: %+v, %v", e, err)
	}
	before, err := c.Process(t.Context(), before.ID)
	if err != nil || before.Exit == nil || before.Exit.Together {
		t.Errorf("one that had ended, after it: %+v, %v", before, err)
	}
}

// testEndLargest: of two programs and what they have started, the one process is ended that
// has the most memory.
func testEndLargest(t *testing.T, c *daemonclient.Client) {
	small := start(t, c, process.Spec{Shell: "sleep 1000", Env: clienttest.Env})
	hog := `python3 -c "
import time
a = bytearray(64 << 20)
print('up', flush=True)
time.sleep(1000)"; exit $?`
	o, err := c.Run(t.Context(), process.Spec{Shell: hog, Env: clienttest.Env})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Next(); err != nil {
		t.Fatal(err)
	}
	if size, err := c.EndLargest(t.Context()); err != nil || size < 64<<20 || size > 128<<20 {
		t.Errorf("%d bytes, %v", size, err)
	}
	if got := all(t, o); got.Code != 137 || got.Signal != 0 || !got.OutOfMemory || got.Together {
		t.Errorf("its parent ended with %+v", got)
	}
	if is, err := c.Process(t.Context(), small.ID); err != nil || is.Exit != nil {
		t.Errorf("the other: %+v, %v", is.Exit, err)
	}
	if err := c.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Wait(t.Context(), small.ID); err != nil || e.OutOfMemory || !e.Together {
		t.Errorf("the other ended with %+v, %v", e, err)
	}
}

func testLimits(t *testing.T, c *daemonclient.Client) {
	if got := run(t, c, "ulimit -Sn; ulimit -u; ulimit -c; grep NoNewPrivs /proc/self/status").out[0]; got != "1024\n256\n0\nNoNewPrivs:\t1\n" {
		t.Errorf("limits are %q", got)
	}
	spec := shell("ulimit -Hn; ulimit -n 2000")
	spec.Limits.OpenFiles = 1024
	o, err := c.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.out[0] != "1024\n" || got.Code == 0 {
		t.Errorf("got %+v", got)
	}
}
