package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func testProcesses(s *suite) {
	p := s.caller("processes", func(p *tenant.Principal) {
		p.Environment.Env = map[string]string{"ENVIRONMENT": "e", "KEY": "e", "OWN": "e", "SPEC": "e"}
		p.Key.Env = map[string]string{"KEY": "k", "OWN": "k", "SPEC": "k"}
		p.Environment.Limits.Processes, p.Environment.Limits.OpenFiles = 100, 200
	})
	s.destroy(p)
	s.make(p, "x", &sandbox.Spec{Env: map[string]string{"OWN": "o", "SPEC": "o"}})
	h := s.open(p, "x")
	s.group(h, []groupTest{
		{"arguments and variables are bytes", testArguments},
		{"variables and limits of the sandbox", testEnviron},
		{"what cannot start", testCannotStart},
		{"how it ends", testEnds},
		{"a timeout ends all it started", testTimeout},
		{"input", testInput},
		{"followed from a cursor", testCursor},
		{"followed by many", testFollowers},
		{"what is not kept is counted", testDropped},
		{"lossless", testLossless},
		{"started once by its id", testStartedOnce},
		{"going away does not end it", testGoingAway},
		{"signals", testSignals},
		{"kill and discard", testKill},
		{"conversation", testConverse},
		{"terminal", testTerminal},
		{"many at once", testMany},
	})
}

func testArguments(u *use) {
	args := []string{"--", "a b", `"'\`, "line\nbreak", "$(id)", "\xff\xfe", "", "*", "ü"}
	print := "import sys, os; sys.stdout.buffer.write(b'|'.join(os.fsencode(a) for a in sys.argv[1:]))"
	out := u.run(process.Spec{Argv: append([]string{"python3", "-c", print}, args...)})
	equal(u.T, "arguments", out.text[process.Stdout], strings.Join(args, "|"))
	out = u.run(process.Spec{Shell: "printf '%s' \"$A-$B-\xfd\"; pwd >&2", Env: []string{"A=1\n2=3", "B=\xfe"}, Dir: "/tmp"})
	equal(u.T, "variables", out.text[process.Stdout], "1\n2=3-\xfe-\xfd")
	equal(u.T, "directory", out.text[process.Stderr], "/tmp\n")
	big := strings.Repeat("x", 100_000)
	if out = u.run(process.Spec{Argv: []string{"sh", "-c", "printf %s \"$1\" | wc -c", "sh", big}}); out.text[0] != "100000\n" {
		u.Errorf("a long argument: %q", out.text)
	}
	p := u.start(process.Spec{Argv: []string{"true", "\xff"}})
	if is, err := u.Process(u.Context(), p.ID); err != nil || len(is.Argv) != 2 || is.Argv[1] != "\xff" || is.Dir != "/home/user" {
		u.Errorf("described as %+v, %v", is, err)
	}
}

func testEnviron(u *use) {
	out := u.run(process.Spec{Shell: "echo $ENVIRONMENT $KEY $OWN $SPEC; ulimit -u; ulimit -Hn; id -u; pwd", Env: []string{"SPEC=s"}})
	equal(u.T, "what a program has", out.text[process.Stdout], "e k o s\n100\n200\n1000\n/home/user\n")
	p := u.start(process.Spec{Argv: []string{"sh", "-c", "echo $OWN"}})
	equal(u.T, "by Start", u.rest(u.follow(p.ID, 0)).text[process.Stdout], "o\n")
}

func testCannotStart(u *use) {
	for name, try := range map[string]struct {
		spec process.Spec
		kind fault.Kind
		text string
	}{
		"no program":    {process.Spec{Argv: []string{"no-such-program"}}, fault.NotFound, "no-such-program"},
		"not a program": {process.Spec{Argv: []string{"/etc/passwd"}}, fault.Forbidden, "/etc/passwd"},
		"NUL":           {process.Spec{Argv: []string{"echo", "a\x00b"}}, fault.Invalid, "NUL"},
		"no folder":     {process.Spec{Shell: "true", Dir: "/not/there"}, fault.NotFound, "working directory"},
		"bad id":        {process.Spec{Shell: "true", ID: "a/b"}, fault.Invalid, "id of 1 to 64"},
	} {
		_, err := u.Start(u.Context(), try.spec)
		refused(u.T, name, err, try.kind, try.text)
		_, err = u.Guest.Run(u.Context(), try.spec)
		refused(u.T, name+", by Run", err, try.kind, try.text)
	}
	const none = process.ID("not-there")
	_, err := u.Process(u.Context(), none)
	refused(u.T, "Process", err, fault.NotFound, "")
	_, err = u.Follow(u.Context(), none, 0)
	refused(u.T, "Follow", err, fault.NotFound, "")
	_, err = u.Wait(u.Context(), none)
	refused(u.T, "Wait", err, fault.NotFound, "")
	_, err = u.Write(u.Context(), none, []byte("x"))
	refused(u.T, "Write", err, fault.NotFound, "")
	refused(u.T, "Signal", u.Signal(u.Context(), none, syscall.SIGTERM, true), fault.NotFound, "")
	refused(u.T, "Kill", u.Kill(u.Context(), none), fault.NotFound, "")
}

func testEnds(u *use) {
	for text, want := range map[string]int{"exit 0": 0, "exit 77": 77, "kill -9 $$": 137, "kill -TERM $$": 143, "no-such-command": 127} {
		got := u.run(process.Spec{Shell: text}).exit
		if got.Code != want || (want > 128) != (got.Signal != 0) || got.TimedOut || got.Together || got.At.IsZero() {
			u.Errorf("%q ended with %+v", text, got)
		}
	}
	// It works for several of the kernel's ticks of 10 ms: it counts those that it is seen at.
	p := u.start(process.Spec{Shell: "for i in $(seq 50000); do :; done; head -c 1000 /dev/zero; head -c 500 /dev/zero >&2; exit 4"})
	e, err := u.Wait(u.Context(), p.ID)
	if err != nil || e.Code != 4 || e.CPU <= 0 || e.PeakRSS <= 0 || time.Since(e.At) > time.Minute {
		u.Errorf("Wait: %+v, %v", e, err)
	}
	is, err := u.Process(u.Context(), p.ID)
	if err != nil || is.Exit == nil || is.Exit.Code != 4 || is.Written != [4]int64{1000, 500} || is.Last != 1500 || is.PID <= 1 || time.Since(is.Started) > time.Minute {
		u.Errorf("Process: %+v, %v", is, err)
	}
	o, err := u.Guest.Run(u.Context(), process.Spec{Shell: "true"})
	if err != nil {
		u.Fatal(err)
	}
	u.rest(o)
	eventually(u.T, "one whose end Run has told is forgotten", func() bool {
		_, err := u.Process(u.Context(), o.Info().ID)
		return fault.KindOf(err) == fault.NotFound && err != nil
	})
	begun := time.Now()
	if out := u.run(process.Spec{Shell: "sleep 1000 & echo $!"}); out.exit.Code != 0 || time.Since(begun) > 20*time.Second {
		u.Errorf("one that leaves a process with its output behind: %+v", out)
	}
}

func testTimeout(u *use) {
	for timeout := 300 * time.Millisecond; ; timeout *= 2 { // for one that has not begun by then
		out := u.run(process.Spec{Shell: "trap '' TERM; echo begun; setsid sh -c 'sleep 4711 & wait' & sleep 4711", Timeout: timeout})
		if !out.exit.TimedOut || out.exit.Signal != syscall.SIGKILL {
			u.Errorf("got %+v", out)
		}
		eventually(u.T, "none of its children lives", func() bool { return u.sleeping("4711") == "0" })
		switch said := out.text[process.Stdout]; {
		case said == "begun\n":
			return
		case said != "" || timeout > 10*time.Second:
			u.Fatalf("after %s it has said %q", timeout, said)
		}
	}
}

func testInput(u *use) {
	p := u.start(process.Spec{Argv: []string{"cat"}, Input: true, Lossless: true})
	o := u.follow(p.ID, 0)
	if n, err := u.Write(u.Context(), p.ID, []byte("hello\n")); n != 6 || err != nil {
		u.Fatal(n, err)
	}
	u.until(o, "hello\n")
	big := strings.Repeat("0123456789\xff\x00cdef", 100_000) // more than pipe and ring hold
	done := make(chan error, 1)
	go func() {
		_, err := u.Write(u.Context(), p.ID, []byte(big))
		if err == nil {
			err = u.CloseInput(u.Context(), p.ID)
		}
		done <- err
	}()
	out := u.rest(o)
	if err := <-done; err != nil || out.text[process.Stdout] != big || out.dropped != 0 {
		u.Errorf("%d bytes came back, %d dropped, %v", len(out.text[process.Stdout]), out.dropped, err)
	}
	_, err := u.Write(u.Context(), p.ID, []byte("x"))
	refused(u.T, "after the end", err, fault.Conflict, "")

	p = u.start(process.Spec{Argv: []string{"sleep", "60"}, Input: true})
	ctx, cancel := context.WithTimeout(u.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := u.Write(ctx, p.ID, []byte(big)); !errors.Is(err, context.DeadlineExceeded) {
		u.Errorf("input that is not read: %v", err)
	}
	if err := u.Discard(u.Context(), p.ID); err != nil {
		u.Error(err)
	}
	p = u.start(process.Spec{Argv: []string{"cat"}})
	_, err = u.Write(u.Context(), p.ID, []byte("x"))
	refused(u.T, "without an input", err, fault.Invalid, "without")
}

func testCursor(u *use) {
	p := u.start(process.Spec{Shell: "for i in $(seq 100); do echo line $i; done; echo last >&2; read x; echo more", Input: true})
	said, at := u.until(u.follow(p.ID, 0), "last\n")
	cut := process.Seq(strings.Index(said, "line 50\n"))
	if again, _ := u.until(u.follow(p.ID, cut), "last\n"); !strings.HasPrefix(again, "line 50\n") || strings.Count(again, "\n") != 52 {
		u.Errorf("from line 50 on: %q", again)
	}
	is, err := u.Process(u.Context(), p.ID)
	if err != nil || is.First != 0 || is.Last != at {
		u.Errorf("it has %d to %d, not up to %d; %v", is.First, is.Last, at, err)
	}
	o := u.follow(p.ID, at)
	if _, err := u.Write(u.Context(), p.ID, []byte("\n")); err != nil {
		u.Fatal(err)
	}
	equal(u.T, "what came later", u.rest(o).text[process.Stdout], "more\n")
	after := u.rest(u.follow(p.ID, at)) // it is kept
	equal(u.T, "once more", after.text[process.Stdout], "more\n")
	if after.exit.Code != 0 || after.exit.At.IsZero() {
		u.Errorf("its end is told as %+v", after.exit)
	}
}

func testFollowers(u *use) {
	p := u.start(process.Spec{Shell: "read x; for i in $(seq 2000); do echo $i; done", Input: true, Lossless: true})
	var g sync.WaitGroup
	for range 3 {
		o := u.follow(p.ID, 0)
		g.Go(func() {
			if out := u.rest(o); strings.Count(out.text[0], "\n") != 2000 || out.dropped != 0 {
				u.Errorf("one has seen %d lines, %d bytes were dropped", strings.Count(out.text[0], "\n"), out.dropped)
			}
		})
	}
	gone := u.follow(p.ID, 0)
	if err := gone.Close(); err != nil { // it does not keep the others
		u.Error(err)
	}
	if err := u.CloseInput(u.Context(), p.ID); err != nil {
		u.Error(err)
	}
	g.Wait()
}

func testDropped(u *use) {
	const size = 4 << 20
	p := u.start(process.Spec{Shell: fmt.Sprintf("head -c %d /dev/zero; echo end", size)})
	if _, err := u.Wait(u.Context(), p.ID); err != nil {
		u.Fatal(err)
	}
	is, err := u.Process(u.Context(), p.ID)
	if err != nil || is.Written[0] != size+4 || is.First == 0 || is.Last != size+4 {
		u.Errorf("%+v, %v", is, err)
	}
	out := u.rest(u.follow(p.ID, 0))
	if got := int64(len(out.text[0])); out.dropped == 0 || out.dropped+got != size+4 || !strings.HasSuffix(out.text[0], "end\n") {
		u.Errorf("%d bytes came, %d were dropped", got, out.dropped)
	}
}

func testLossless(u *use) {
	const size = 6 << 20
	o, err := u.Guest.Run(u.Context(), process.Spec{Shell: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size), Lossless: true})
	if err != nil {
		u.Fatal(err)
	}
	if _, err := o.Next(); err != nil {
		u.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // in which it would write much more than is kept
	if is, err := u.Process(u.Context(), o.Info().ID); err != nil || is.Exit != nil || is.Written[0] >= size {
		u.Errorf("it did not wait: %+v, %v", is, err)
	}
	first := o.Info().Last
	out := u.rest(o)
	if out.dropped != 0 || out.exit.Code != 0 || len(out.text[0]) >= size || first != 0 {
		u.Errorf("%d bytes were dropped, %+v", out.dropped, out.exit)
	}
	p := u.start(process.Spec{Shell: fmt.Sprintf("head -c %d /dev/zero; echo end", 4<<20), Lossless: true, Patient: true})
	eventually(u.T, "it writes before there is a reader", func() bool {
		is, err := u.Process(u.Context(), p.ID)
		return err == nil && is.Written[0] > 0
	})
	if out := u.rest(u.follow(p.ID, 0)); out.dropped != 0 || len(out.text[0]) != 4<<20+4 {
		u.Errorf("a patient one: %d bytes came, %d were dropped", len(out.text[0]), out.dropped)
	}
}

func testStartedOnce(u *use) {
	id := process.NewID()
	var g sync.WaitGroup
	for range 5 {
		g.Go(func() {
			if p, err := u.Start(u.Context(), process.Spec{ID: id, Shell: "echo ran >> once; sleep 60"}); err != nil || p.ID != id {
				u.Errorf("%+v, %v", p, err)
			}
		})
	}
	g.Wait()
	eventually(u.T, "it has run", func() bool { return u.shell("cat once 2>/dev/null | wc -l") == "1" })
	if err := u.Discard(u.Context(), id); err != nil {
		u.Error(err)
	}
}

func testGoingAway(u *use) {
	ctx, cancel := context.WithCancel(u.Context())
	o, err := u.Guest.Run(ctx, process.Spec{Shell: "echo begun; until [ -e go ]; do sleep 0.05; done; echo on", Lossless: true})
	if err != nil {
		u.Fatal(err)
	}
	u.until(o, "begun\n")
	cancel()
	if _, err := o.Next(); !errors.Is(err, context.Canceled) {
		u.Errorf("its output ends with %v", err)
	}
	o.Close()
	u.shell("touch go")
	equal(u.T, "it continues", u.rest(u.follow(o.Info().ID, 0)).text[0], "begun\non\n")

	o = u.follow(u.start(process.Spec{Shell: "sleep 60"}).ID, 0)
	time.AfterFunc(50*time.Millisecond, func() { o.Close() })
	if _, err := o.Next(); err == nil {
		u.Error("an output that was closed continues")
	}
	if is, err := u.Process(u.Context(), o.Info().ID); err != nil || is.Exit != nil {
		u.Errorf("its process: %+v, %v", is, err)
	}
	ctx, cancel = context.WithTimeout(u.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := u.Wait(ctx, o.Info().ID); !errors.Is(err, context.DeadlineExceeded) {
		u.Errorf("Wait ends with %v", err)
	}
	if err := u.Discard(u.Context(), o.Info().ID); err != nil {
		u.Error(err)
	}
}

func testSignals(u *use) {
	p := u.start(process.Spec{Shell: `trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.05; done`})
	o := u.follow(p.ID, 0)
	u.until(o, "ready")
	if err := u.Signal(u.Context(), p.ID, syscall.SIGUSR1, false); err != nil {
		u.Fatal(err)
	}
	if out := u.rest(o); out.exit.Code != 5 || !strings.Contains(out.text[0], "got it\n") {
		u.Errorf("got %+v", out)
	}
	refused(u.T, "after the end", u.Signal(u.Context(), p.ID, syscall.SIGUSR1, false), fault.Conflict, "has ended")
	p = u.start(process.Spec{Shell: "sleep 4713 & echo ready; wait"})
	u.until(u.follow(p.ID, 0), "ready")
	refused(u.T, "no signal", u.Signal(u.Context(), p.ID, 99, false), fault.Invalid, "no signal 99")
	if err := u.Signal(u.Context(), p.ID, syscall.SIGTERM, true); err != nil {
		u.Fatal(err)
	}
	if e, err := u.Wait(u.Context(), p.ID); err != nil || e.Signal != syscall.SIGTERM {
		u.Errorf("%+v, %v", e, err)
	}
	if out := u.run(process.Spec{Argv: []string{"python3", "-c", stoppedLeader}}); out.text[0] != "0 9\n" {
		u.Errorf("a stopped leader of a session, of whose group another leaves: %+v", out)
	}
}

// stoppedLeader prints what becomes of a session's stopped leader when another process leaves
// its group, and of what signal it dies: it stays stopped, and dies of the one it is sent.
const stoppedLeader = `import os, signal
r, w = os.pipe()
leader = os.fork()
if leader == 0:
    os.setsid()
    if os.fork() == 0:
        os.kill(os.getppid(), signal.SIGSTOP)
        while open("/proc/%d/stat" % os.getppid()).read().split()[2] != "T": pass
        os.setsid()
        os.write(w, b"x")
        os._exit(0)
    while True: signal.pause()
os.read(r, 1)
changed, _ = os.waitpid(leader, os.WNOHANG | os.WCONTINUED)
os.kill(leader, signal.SIGKILL)
print(changed, os.waitpid(leader, 0)[1])`

func testKill(u *use) {
	p := u.start(process.Spec{Shell: "echo x; setsid sh -c 'sleep 4712' & sleep 4712"})
	u.until(u.follow(p.ID, 0), "x")
	if err := u.Kill(u.Context(), p.ID); err != nil {
		u.Fatal(err)
	}
	if e, err := u.Wait(u.Context(), p.ID); err != nil || e.Signal != syscall.SIGKILL || e.Code != 137 || e.Together {
		u.Errorf("killed: %+v, %v", e, err)
	}
	eventually(u.T, "what it started ends", func() bool { return u.sleeping("4712") == "0" })
	refused(u.T, "killed again", u.Kill(u.Context(), p.ID), fault.Conflict, "has ended")
	for range 2 { // one that has ended, and one that runs
		if err := u.Discard(u.Context(), p.ID); err != nil {
			u.Error(err)
		}
		if _, err := u.Process(u.Context(), p.ID); fault.KindOf(err) != fault.NotFound || err == nil {
			u.Errorf("discarded: %v", err)
		}
		p = u.start(process.Spec{Shell: "sleep 60"})
	}
	if err := u.Discard(u.Context(), p.ID); err != nil {
		u.Error(err)
	}
	u.start(process.Spec{Shell: "true"})
	all, err := u.Processes(u.Context())
	if err != nil || len(all) == 0 {
		u.Errorf("%v, %v", all, err)
	}
	for i, each := range all {
		if each.ID == p.ID || i > 0 && each.Started.Before(all[i-1].Started) {
			u.Errorf("%d of %d: %+v", i, len(all), each)
		}
	}
}

func testConverse(u *use) {
	// It answers each line with a line of its own, and a blank one's end says that this was all.
	p := u.start(process.Spec{Argv: []string{"python3", "-uc", `import os
r = os.fdopen(3, "rb"); w = os.fdopen(4, "wb", 0)
for line in r:
    print("heard", line)
    w.write(b"<" + line.rstrip() + b"> \n")
`}, Control: true, Lossless: true})
	var at process.Seq
	for i := range 3 {
		said := fmt.Sprintf("line %d\xff", i)
		o, err := u.Converse(u.Context(), p.ID, []byte(said+"\n"), at)
		if err != nil {
			u.Fatal(err)
		}
		var control bytes.Buffer
		for {
			c, err := o.Next()
			if errors.Is(err, process.ErrEnough) {
				break
			}
			if err != nil {
				u.Fatalf("%d: %v", i, err)
			}
			if at = c.Seq; c.Stream == process.Control {
				control.Write(c.Data)
			}
		}
		o.Enough()
		o.Close()
		equal(u.T, "the answer", control.String(), "<"+said+"> \n")
	}
	if err := u.Kill(u.Context(), p.ID); err != nil {
		u.Error(err)
	}
	if out := u.rest(u.follow(p.ID, 0)); strings.Count(out.text[process.Stdout], "heard") != 3 {
		u.Errorf("it said %q", out.text)
	}
}

func testTerminal(u *use) {
	p := u.start(process.Spec{Argv: []string{"bash", "--norc", "-i"}, Env: []string{"TERM=xterm", "PS1=> "}, Terminal: &process.Size{Rows: 30, Columns: 100}, Lossless: true})
	o := u.follow(p.ID, 0)
	if !o.Info().Terminal {
		u.Error("it is not said to have a terminal")
	}
	u.until(o, "> ")
	write := func(text string) {
		u.Helper()
		if _, err := u.Write(u.Context(), p.ID, []byte(text)); err != nil {
			u.Fatal(err)
		}
	}
	// say has the shell do something, and waits for what comes of it and the next prompt.
	say := func(text, want string) {
		u.Helper()
		write(text)
		for said := ""; ; {
			more, _ := u.until(o, "")
			said += more
			if _, after, found := strings.Cut(said, want); found && strings.Contains(after, "> ") {
				return
			}
		}
	}
	say("stty size; test -t 0 && test -t 1 && test -t 2 && echo ter'minal'\n", "terminal")
	if err := u.Resize(u.Context(), p.ID, process.Size{Rows: 50, Columns: 132}); err != nil {
		u.Fatal(err)
	}
	say("stty size\n", "50 132")
	write("sleep 60\n")
	eventually(u.T, "something runs in the foreground", func() bool { return u.sleeping("60") == "1" })
	if err := u.Signal(u.Context(), p.ID, syscall.SIGINT, true); err != nil {
		u.Error(err)
	}
	eventually(u.T, "it ends", func() bool { return u.sleeping("60") == "0" })
	say("echo st'ill'\n", "still") // the end of input is for a shell that waits for some
	if err := u.CloseInput(u.Context(), p.ID); err != nil {
		u.Error(err)
	}
	if out := u.rest(o); out.exit.Signal != 0 || out.text[process.Stdout] != "" {
		u.Errorf("got %+v", out)
	}
	for want, env := range map[string][]string{"xterm-256color": nil, "dumb": {"TERM=dumb"}} {
		p := u.start(process.Spec{Shell: `printf %s "$TERM"`, Env: env, Terminal: &process.Size{Rows: 2, Columns: 9}})
		equal(u.T, "TERM", u.rest(u.follow(p.ID, 0)).text[process.Terminal], want)
	}
	refused(u.T, "without a terminal", u.Resize(u.Context(), u.start(process.Spec{Shell: "true"}).ID, process.Size{}), fault.Invalid, "no terminal")
}

func testMany(u *use) {
	var g sync.WaitGroup
	for i := range 20 {
		g.Go(func() {
			o, err := u.Guest.Run(u.Context(), process.Spec{Shell: fmt.Sprintf("echo %d; echo e%d >&2; exit %d", i, i, i)})
			if err != nil {
				u.Error(err)
				return
			}
			if out := u.rest(o); out.exit.Code != i || out.text[0] != fmt.Sprintln(i) || out.text[1] != fmt.Sprintf("e%d\n", i) {
				u.Errorf("%d: %+v", i, out)
			}
		})
	}
	g.Wait()
}

// sleeping says how many processes "sleep arg" there are.
func (u *use) sleeping(arg string) string {
	u.Helper()
	return u.shell("grep -al 'slee[p].'" + arg + " /proc/[0-9]*/cmdline 2>/dev/null | wc -l")
}
