package attend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/fault"
	"github.com/atoll-run/atoll/internal/guest/attend"
	"github.com/atoll-run/atoll/internal/guest/attend/attendtest"
	"github.com/atoll-run/atoll/test/atolltest"
)

// start starts a process.
func start(t testing.TB, c *attend.Client, spec attend.ProcessSpec) attend.Process {
	t.Helper()
	p, err := c.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// follow reads output from a place on, until it holds a text.
func until(t testing.TB, o *attend.Output, text string) (got string, at attend.Seq) {
	t.Helper()
	for !strings.Contains(got, text) {
		c, err := o.Next()
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got, at = got+string(c.Data), c.Seq
	}
	return got, at
}

func follow(t testing.TB, c *attend.Client, id attend.ProcessID, after attend.Seq) *attend.Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	o, err := c.Follow(ctx, id, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func kind(t testing.TB, err error, want fault.Kind, text string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, kind %d; want kind %d and %q", err, fault.KindOf(err), want, text)
	}
}

func TestProcesses(t *testing.T) {
	s := attendtest.New(t)
	c := s.Dial(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *attend.Client)
	}{
		{"arguments are data", testArguments},
		{"what cannot start", testCannotStart},
		{"ends", testEnds},
		{"timeout", testTimeout},
		{"background", testBackground},
		{"input", testInput},
		{"signals", testSignals},
		{"control", testControl},
		{"converse", testConverse},
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

func testArguments(t *testing.T, c *attend.Client) {
	args := []string{"-n", "--", "a b", `"'\`, "line\nbreak", "$(id)", "\xff\xfe", "", "*", "ü"}
	spec := attend.ProcessSpec{Argv: append([]string{"python3", "-c", "import sys, os; sys.stdout.buffer.write(b'|'.join(os.fsencode(a) for a in sys.argv[1:]))"}, args...), Env: attendtest.Env}
	o, err := c.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.out[attend.Stdout] != strings.Join(args, "|") {
		t.Errorf("got %q", got.out)
	}
	for text, want := range map[string]string{
		"-x; echo no": "no\n", "echo 'a\"b' \"c'd\" \\$x": "a\"b c'd $x\n", "echo \xff": "\xff\n", "printf '%s\\n' \"$0\"": "bash\n",
		"[[ a == a ]] && echo bash": "bash\n", "": "", "  \n\n # only a comment": "",
	} {
		if got := run(t, c, text); got.out[attend.Stdout] != want {
			t.Errorf("%q said %q", text, got.out)
		}
	}
	spec = shell("echo $A-$B; pwd")
	spec.Env = append(slices.Clone(attendtest.Env), "A=1\n2", "B=\xfe", "EMPTY=")
	spec.Dir = "/tmp"
	o, err = c.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.out[attend.Stdout] != "1 2-\xfe\n/tmp\n" {
		t.Errorf("got %q", got.out)
	}
}

func testCannotStart(t *testing.T, c *attend.Client) {
	argv := func(a ...string) attend.ProcessSpec { return attend.ProcessSpec{Argv: a, Env: attendtest.Env} }
	dir := argv("true")
	dir.Dir = "/not/there"
	file := argv("true")
	file.Dir = "/etc/passwd"
	closed := argv("true")
	closed.Dir = "/root"
	id := argv("true")
	id.ID = "a/b"
	for name, try := range map[string]struct {
		spec attend.ProcessSpec
		kind fault.Kind
		text string
	}{
		"no program":    {argv("no-such-program"), fault.NotFound, "no-such-program"},
		"not a program": {argv("/etc/passwd"), fault.Forbidden, "/etc/passwd"},
		"a folder":      {argv("/etc"), fault.Forbidden, "/etc"},
		"NUL":           {argv("echo", "a\x00b"), fault.Invalid, "NUL"},
		"empty name":    {argv(""), fault.Invalid, "no program"},
		"no folder":     {dir, fault.NotFound, "working directory"},
		"no folder but": {file, fault.Invalid, "working directory"},
		"closed folder": {closed, fault.Forbidden, "/root"},
		"bad id":        {id, fault.Invalid, "id of 1 to 64"},
	} {
		_, err := c.Start(t.Context(), try.spec)
		t.Run(name, func(t *testing.T) { kind(t, err, try.kind, try.text) })
	}
	if _, err := c.Process(t.Context(), "not-there"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no process: %v", err)
	}
	if err := c.Signal(t.Context(), "not-there", syscall.SIGTERM, true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no process: %v", err)
	}
}

func testEnds(t *testing.T, c *attend.Client) {
	for text, want := range map[string]int{"exit 0": 0, "exit 77": 77, "kill -9 $$": 137, "kill -TERM $$": 143, "no-such-command": 127, "false": 1} {
		got := run(t, c, text)
		if got.Code != want || (want > 128) != (got.Signal != 0) || got.TimedOut || got.At.IsZero() {
			t.Errorf("%q ended with %+v", text, got.Exit)
		}
	}
	p := start(t, c, shell("head -c 1000 /dev/zero; head -c 500 /dev/zero >&2; exit 4"))
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
func sleepers(t testing.TB, c *attend.Client, arg string) string {
	t.Helper()
	return strings.TrimSpace(run(t, c, "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; echo; done 2>/dev/null | grep -c '^sleep "+arg+"'").out[attend.Stdout])
}

// appears waits for a process that nothing else tells of.
func appears(t testing.TB, c *attend.Client, arg string) {
	t.Helper()
	for range 200 {
		if sleepers(t, c, arg) != "0" {
			return
		}
	}
	t.Fatalf("there is no sleep %s", arg)
}

func testTimeout(t *testing.T, c *attend.Client) {
	spec := shell("trap '' TERM; echo begun; sh -c 'trap \"\" TERM; sleep 4711' & setsid sh -c 'sleep 4711 & wait' & sleep 4711")
	spec.Timeout = 300 * time.Millisecond
	begin := time.Now()
	o, err := c.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	got := all(t, o)
	if !got.TimedOut || got.Signal != syscall.SIGKILL || got.out[attend.Stdout] != "begun\n" || time.Since(begin) > 10*time.Second {
		t.Errorf("got %+v", got)
	}
	if n := sleepers(t, c, "4711"); n != "0" {
		t.Errorf("%s of its children live on", n)
	}
}

func testBackground(t *testing.T, c *attend.Client) {
	begin := time.Now()
	got := run(t, c, "sleep 4712 & (while :; do echo more; sleep 0.01; done) & echo started")
	if got.Code != 0 || !strings.HasPrefix(got.out[attend.Stdout], "started\n") && !strings.Contains(got.out[attend.Stdout], "started\n") || time.Since(begin) > 10*time.Second {
		t.Errorf("got %+v", got)
	}
	if n := sleepers(t, c, "4712"); n != "1" {
		t.Errorf("%s processes in the background", n)
	}
	run(t, c, "for f in /proc/[0-9]*; do p=${f#/proc/}; [ $p = $$ ] || [ $p = 1 ] || kill -9 $p; done 2>/dev/null; true")
}

func testInput(t *testing.T, c *attend.Client) {
	spec := attend.ProcessSpec{Argv: []string{"cat"}, Env: attendtest.Env, Input: true, Lossless: true}
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
	if got.out[attend.Stdout] != big || got.Code != 0 || got.dropped != 0 {
		t.Errorf("%d bytes came back, %d dropped, %+v", len(got.out[attend.Stdout]), got.dropped, got.Exit)
	}
	if _, err := c.Write(t.Context(), p.ID, []byte("x")); fault.KindOf(err) != fault.Conflict {
		t.Errorf("after the end: %v", err)
	}
	// Nobody reads: it is given up with its context, and the next one gets through.
	p = start(t, c, attend.ProcessSpec{Argv: []string{"sleep", "60"}, Env: attendtest.Env, Input: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Write(ctx, p.ID, []byte(big)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("to nobody: %v", err)
	}
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	none := start(t, c, attend.ProcessSpec{Argv: []string{"cat"}, Env: attendtest.Env})
	_, err := c.Write(t.Context(), none.ID, []byte("x"))
	kind(t, err, fault.Invalid, "without")
	if e, err := c.Wait(t.Context(), none.ID); err != nil || e.Code != 0 {
		t.Errorf("with no input it ends: %+v, %v", e, err)
	}
}

func testSignals(t *testing.T, c *attend.Client) {
	p := start(t, c, shell(`trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.05; done`))
	o := follow(t, c, p.ID, 0)
	until(t, o, "ready")
	if err := c.Signal(t.Context(), p.ID, syscall.SIGUSR1, false); err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.Code != 5 || got.out[attend.Stdout] != "\ngot it\n" && got.out[attend.Stdout] != "got it\n" {
		t.Errorf("got %+v", got)
	}
	kind(t, c.Signal(t.Context(), p.ID, syscall.SIGUSR1, false), fault.Conflict, "has ended")
	p = start(t, c, shell("sleep 4713 & sleep 4713"))
	kind(t, c.Signal(t.Context(), p.ID, 99, false), fault.Invalid, "no signal 99")
	if err := c.Signal(t.Context(), p.ID, syscall.SIGTERM, true); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Wait(t.Context(), p.ID); err != nil || e.Signal != syscall.SIGTERM {
		t.Errorf("%+v, %v", e, err)
	}
	if n := sleepers(t, c, "4713"); n != "0" {
		t.Errorf("%s of the group live on", n)
	}
}

// testControl: what was printed before an answer comes before it.
func testControl(t *testing.T, c *attend.Client) {
	const program = `
import os, sys
for line in os.fdopen(3):
    n = int(line)
    sys.stdout.write("x" * n); sys.stdout.flush()
    sys.stderr.write("e"); sys.stderr.flush()
    os.write(4, b"done %d\n" % n)
`
	p := start(t, c, attend.ProcessSpec{Argv: []string{"python3", "-c", program}, Env: attendtest.Env, Control: true, Lossless: true})
	o := follow(t, c, p.ID, 0)
	for _, n := range []int{1, 0, 70_000, 5, 900_000} {
		if _, err := c.WriteControl(t.Context(), p.ID, fmt.Appendln(nil, n)); err != nil {
			t.Fatal(err)
		}
		var out, errs int
		for answer := ""; !strings.HasSuffix(answer, "\n"); {
			chunk, err := o.Next()
			if err != nil {
				t.Fatal(err)
			}
			switch chunk.Stream {
			case attend.Stdout:
				out += len(chunk.Data)
			case attend.Stderr:
				errs += len(chunk.Data)
			case attend.Control:
				answer += string(chunk.Data)
				if out != n || errs != 1 {
					t.Fatalf("the answer %q came after %d and %d bytes", answer, out, errs)
				}
			}
		}
	}
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
}

func testConverse(t *testing.T, c *attend.Client) {
	const program = `
import os, sys
for line in os.fdopen(3):
    if line == "deaf\n":
        os.close(3)
        while True: pass
    os.write(1, b"x" * 70000)
    os.write(4, b"%d\n" % len(line))
`
	spec := attend.ProcessSpec{Argv: []string{"python3", "-c", program}, Env: attendtest.Env, Control: true, Lossless: true}
	p := start(t, c, spec)
	var at attend.Seq
	for _, n := range []int{1, 10, 300_000, 2} {
		o, err := c.Converse(t.Context(), p.ID, []byte(strings.Repeat("y", n-1)+"\n"), at)
		if err != nil {
			t.Fatal(err)
		}
		out, answer := 0, ""
		for !strings.HasSuffix(answer, "\n") {
			chunk, err := o.Next()
			if err != nil {
				t.Fatal(err)
			}
			at = chunk.Seq
			if chunk.Stream == attend.Control {
				answer += string(chunk.Data)
			} else {
				out += len(chunk.Data)
			}
		}
		o.Enough()
		o.Enough()
		if want := fmt.Sprintln(n); answer != want || out != 70000 {
			t.Fatalf("%d bytes of output, and the answer %q, where %q follows 70000", out, answer, want)
		}
		if _, err := o.Next(); err == nil {
			t.Error("there is output after enough of it")
		}
	}
	end := func(data string) error {
		t.Helper()
		o, err := c.Converse(t.Context(), p.ID, []byte(data), at)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = o.Next()
		}
		return err
	}
	o, err := c.Converse(t.Context(), p.ID, []byte("deaf\n"), at)
	if err != nil {
		t.Fatal(err)
	}
	o.Enough()
	var told error
	for told == nil || strings.Contains(told.Error(), "deadline") { // until it has closed its end
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		o, err := c.Converse(ctx, p.ID, []byte("more\n"), at)
		if err != nil {
			t.Fatal(err)
		}
		_, told = o.Next()
		cancel()
	}
	if fault.KindOf(told) != fault.Conflict {
		t.Errorf("a process that does not read gives %v", told)
	}
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if err := end("too late\n"); !errors.Is(err, io.EOF) {
		t.Errorf("a process that has ended gives %v", err)
	}
	_, err = c.Converse(t.Context(), start(t, c, shell("true")).ID, nil, 0)
	kind(t, err, fault.Invalid, "without what is to be written to")
}

func testCursors(t *testing.T, c *attend.Client) {
	p := start(t, c, shell("echo one; echo two >&2; echo three; sleep 0.2; echo four"))
	if _, err := c.Wait(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	whole := all(t, follow(t, c, p.ID, 0))
	if whole.out[attend.Stdout] != "one\nthree\nfour\n" || whole.out[attend.Stderr] != "two\n" {
		t.Errorf("got %+v", whole)
	}
	for at := range attend.Seq(20) {
		var got int
		o := follow(t, c, p.ID, at)
		for {
			chunk, err := o.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got += len(chunk.Data)
		}
		if want := max(0, 19-int(at)); got != want || o.Exit().Code != 0 {
			t.Errorf("from %d on: %d bytes, not %d", at, got, want)
		}
	}
	_, err := c.Follow(t.Context(), p.ID, -1)
	kind(t, err, fault.Invalid, "begins at 0")
}

func testDropped(t *testing.T, c *attend.Client) {
	spec := shell("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last")
	spec.Lossless = false
	p := start(t, c, spec)
	if _, err := c.Wait(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	got := all(t, follow(t, c, p.ID, 0))
	text := got.out[attend.Stdout]
	if got.dropped == 0 || int64(len(text))+got.dropped != 5_000_006 || !strings.HasSuffix(text, "x\nlast\n") || len(text) > attend.MaxRing {
		t.Errorf("%d bytes and %d dropped", len(text), got.dropped)
	}
	is, err := c.Process(t.Context(), p.ID)
	if err != nil || is.First != attend.Seq(got.dropped) || is.Last != 5_000_006 {
		t.Errorf("%+v, %v", is, err)
	}
}

func testLossless(t *testing.T, c *attend.Client) {
	o, err := c.Run(t.Context(), shell("for i in 1 2 3; do head -c 3000000 /dev/zero | tr '\\0' $i; head -c 1000000 /dev/zero >&2; done"))
	if err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, time.Minute, "much is written, while nobody reads", func() bool {
		p, err := c.Process(t.Context(), o.Process().ID)
		return err == nil && p.Last > attend.MaxRing/2
	})
	got := all(t, o)
	if len(got.out[attend.Stdout]) != 9_000_000 || len(got.out[attend.Stderr]) != 3_000_000 || got.dropped != 0 {
		t.Errorf("%d and %d bytes, %d dropped", len(got.out[0]), len(got.out[1]), got.dropped)
	}
	// It waits for its first reader, if it is told to.
	spec := shell("head -c 5000000 /dev/zero; echo end")
	spec.Patient = true
	p := start(t, c, spec)
	if got := all(t, follow(t, c, p.ID, 0)); len(got.out[attend.Stdout]) != 5_000_004 || got.dropped != 0 || got.Exit.Code != 0 {
		t.Errorf("%d bytes, %d dropped, %+v", len(got.out[attend.Stdout]), got.dropped, got.Exit)
	}
	// Its end does not wait for one.
	p = start(t, c, spec)
	if err := c.Kill(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Wait(t.Context(), p.ID); err != nil || e.Signal != syscall.SIGKILL {
		t.Errorf("%+v, %v", e, err)
	}
	// A reader that goes away does not hold the program up.
	o, err = c.Run(t.Context(), shell("head -c 9000000 /dev/zero; echo end >&2"))
	if err != nil {
		t.Fatal(err)
	}
	id := o.Process().ID
	if _, err := o.Next(); err != nil {
		t.Fatal(err)
	}
	o.Close()
	if e, err := c.Wait(t.Context(), id); err != nil || e.Code != 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

func testIdempotent(t *testing.T, c *attend.Client) {
	spec := shell("echo $$")
	spec.ID = attend.NewProcessID()
	first := start(t, c, spec)
	second := start(t, c, spec)
	if first.PID != second.PID {
		t.Errorf("started twice: %+v and %+v", first, second)
	}
	got := all(t, follow(t, c, spec.ID, 0))
	if strings.TrimSpace(got.out[attend.Stdout]) != fmt.Sprint(first.PID) {
		t.Errorf("got %+v", got)
	}
}

func testMany(t *testing.T, c *attend.Client) {
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

// testOutOfReach: programs cannot get at the attendant, nor where it goes.
func testOutOfReach(t *testing.T, c *attend.Client) {
	got := run(t, c, `pid=$(grep -lx attendant /proc/[0-9]*/comm | cut -d/ -f3)
[ -n "$pid" ] || echo "there is no attendant"
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
	if got.out[attend.Stdout] != "refused 13\n" {
		t.Errorf("a program could: %q, %q", got.out[0], got.out[1])
	}
}

func testOrphans(t *testing.T, c *attend.Client) {
	run(t, c, "for i in $(seq 30); do (setsid sh -c 'sleep 0.01' &); done; for i in $(seq 30); do sh -c 'sleep 0.01 & exit' ; done; true")
	atolltest.Until(t, 20*time.Second, "no zombie stays", func() bool {
		return strings.TrimSpace(run(t, c, "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l").out[attend.Stdout]) == "0"
	})
}

func testLimits(t *testing.T, c *attend.Client) {
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

func testTerminal(t *testing.T, c *attend.Client) {
	spec := attend.ProcessSpec{Argv: []string{"bash", "--norc", "-i"}, Env: append(slices.Clone(attendtest.Env), "TERM=xterm", "PS1=> "), Terminal: &attend.Size{Rows: 30, Columns: 100}, Lossless: true}
	p := start(t, c, spec)
	o := follow(t, c, p.ID, 0)
	until(t, o, "> ")
	type step struct{ send, want string }
	for _, s := range []step{
		{"stty size; tty; test -t 0 && test -t 1 && test -t 2 && echo ter'minal'\n", "terminal"},
		{"stty size\n", "30 100"},
		{"trap 'echo $(stty size) now' WINCH; echo tr'apped'\n", "trapped"},
	} {
		if _, err := c.Write(t.Context(), p.ID, []byte(s.send)); err != nil {
			t.Fatal(err)
		}
		until(t, o, s.want)
	}
	if err := c.Resize(t.Context(), p.ID, attend.Size{Rows: 50, Columns: 132}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), p.ID, []byte("\nstty size\n")); err != nil {
		t.Fatal(err)
	}
	until(t, o, "50 132")
	if _, err := c.Write(t.Context(), p.ID, []byte("sleep 4714; echo status $?\n")); err != nil {
		t.Fatal(err)
	}
	until(t, o, "4714")
	appears(t, c, "4714")
	if _, err := c.Write(t.Context(), p.ID, []byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), p.ID, []byte("echo st'ill'\n")); err != nil {
		t.Fatal(err)
	}
	got, _ := until(t, o, "still")
	if _, behind, _ := strings.Cut(got, "still"); !strings.Contains(behind, "> ") {
		until(t, o, "> ") // the end of input is for a shell that waits for some
	}
	if err := c.CloseInput(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.Signal != 0 {
		t.Errorf("got %+v", got)
	}
	if n := sleepers(t, c, "4714"); n != "0" {
		t.Errorf("Ctrl-C left %s", n)
	}
	kind(t, c.Resize(t.Context(), start(t, c, shell("true")).ID, attend.Size{}), fault.Invalid, "no terminal")
}

func testJobControl(t *testing.T, c *attend.Client) {
	spec := attend.ProcessSpec{Argv: []string{"bash", "--norc", "-i"}, Env: append(slices.Clone(attendtest.Env), "PS1=> "), Terminal: &attend.Size{Rows: 24, Columns: 80}, Lossless: true}
	p := start(t, c, spec)
	o := follow(t, c, p.ID, 0)
	until(t, o, "> ")
	say := func(text, want string) {
		t.Helper()
		if _, err := c.Write(t.Context(), p.ID, []byte(text)); err != nil {
			t.Fatal(err)
		}
		until(t, o, want)
	}
	say("sleep 4715\n", "4715")
	appears(t, c, "4715")
	say("\x1a", "Stopped")
	say("bg; jobs\n", "Running")
	say("kill %1; wait; echo ended:$?\n", "ended:")
	// What is in the foreground gets the group's signals.
	say("sleep 4716\n", "4716")
	appears(t, c, "4716")
	if err := c.Signal(t.Context(), p.ID, syscall.SIGINT, true); err != nil {
		t.Fatal(err)
	}
	until(t, o, "> ")
	say("echo al'ive'\n", "alive")
	say("exit 9\n", "exit")
	if got := all(t, o); got.Code != 9 {
		t.Errorf("got %+v", got)
	}
}
