package sandboxtest

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

func testPorts(s *suite) {
	p := s.caller("ports")
	s.destroy(p)
	s.make(p, "x", nil)
	h := s.open(p, "x")
	s.group(h, []groupTest{{"connect", testConnect}, {"half closed", testHalfClosed}})
}

// echo is a server that sends back what it gets, backwards, once it has all of it.
const echo = `import socket, sys, time
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    c, _ = s.accept()
    data = b""
    while part := c.recv(65536): data += part
    c.sendall(data[::-1])
    c.close()
`

func testConnect(u *use) {
	_, err := u.Connect(u.Context(), 4001, 0)
	refused(u.T, "a port on which nothing listens", err, fault.NotFound, "")
	ports, err := u.Listening(u.Context())
	if err != nil || len(ports) > 0 {
		u.Errorf("listening: %v, %v", ports, err)
	}
	p := u.start(process.Spec{Shell: "sleep 0.3; exec python3 -c '" + strings.ReplaceAll(echo, "'", `"`) + "' 4001"})
	conn, err := u.Connect(u.Context(), 4001, 20*time.Second) // which waits for it
	if err != nil {
		u.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		u.Error(err)
	}
	ports, err = u.Listening(u.Context())
	if err != nil || len(ports) != 1 || ports[0].String() != "127.0.0.1:4001" {
		u.Errorf("listening: %v, %v", ports, err)
	}
	if err := u.Kill(u.Context(), p.ID); err != nil {
		u.Error(err)
	}
}

func testHalfClosed(u *use) {
	p := u.start(process.Spec{Argv: []string{"python3", "-c", echo, "4002"}})
	u.until(u.follow(p.ID, 0), "listening")
	const size = 3 << 20
	var g sync.WaitGroup
	for range 3 {
		g.Go(func() {
			connecting, done := context.WithCancel(u.Context())
			conn, err := u.Connect(connecting, 4002, 0)
			done() // the context was for connecting
			if err != nil {
				u.Error(err)
				return
			}
			defer conn.Close()
			go func() {
				if _, err := conn.Write([]byte(strings.Repeat("x", size) + "y")); err != nil {
					u.Error(err)
				}
				if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					u.Error(err)
				}
			}()
			back, err := io.ReadAll(conn)
			if err != nil || len(back) != size+1 || back[0] != 'y' {
				u.Errorf("%d bytes came back, %v", len(back), err)
			}
		})
	}
	g.Wait()
	if err := u.Kill(u.Context(), p.ID); err != nil {
		u.Error(err)
	}
}

func testContexts(s *suite) {
	p := s.caller("contexts", func(p *tenant.Principal) { p.Key.Secrets = map[string]string{"TOKEN": "hidden-from-view"} })
	s.destroy(p)
	s.make(p, "x", nil)
	h := s.open(p, "x")
	all, err := h.Contexts()
	if err != nil {
		s.Fatal(err)
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, codecontext.Contexts)
	}{
		{"what code defined is there for the next", testState},
		{"errors", testCodeErrors},
		{"output", testCodeOutput},
		{"interrupted", testInterrupted},
		{"created, restarted, deleted", testContextLife},
	} {
		s.Run(test.name, func(t *testing.T) { test.run(t, all) })
	}
}

// outcome is all that a piece of code brought forth.
type outcome struct {
	*codecontext.Result
	text     [4]string
	displays []codecontext.Display
}

func tryCode(ctx context.Context, all codecontext.Contexts, id codecontext.ID, code string) (outcome, error) {
	var o outcome
	res, err := all.Run(ctx, id, codecontext.Request{Code: code, Timeout: 30 * time.Second, MaxOutput: 100_000}, func(e codecontext.Event) error {
		if e.Display != nil {
			o.displays = append(o.displays, *e.Display)
		}
		o.text[e.Stream] += string(e.Text)
		return nil
	})
	o.Result = res
	return o, err
}

func runCode(t *testing.T, all codecontext.Contexts, id codecontext.ID, code string) outcome {
	t.Helper()
	o, err := tryCode(t.Context(), all, id, code)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return o
}

func testState(t *testing.T, all codecontext.Contexts) {
	for _, test := range []struct {
		id             codecontext.ID
		set, get, want string
	}{
		{"python", "x = 40", "x + 2", `"42"`},
		{"node", "const x = 40", "x + 2", `"42"`},
		{"bash", "x=40; cd /tmp", `echo $((x+2)) "$PWD"`, "42 /tmp\n"},
	} {
		if o := runCode(t, all, test.id, test.set); o.Status != codecontext.OK {
			t.Fatalf("%s: %+v %+v %s", test.id, o.Result, o.Error, o.text)
		}
		o := runCode(t, all, test.id, test.get)
		got := o.text[process.Stdout]
		for _, d := range o.displays {
			if d.Result {
				got = string(d.Data["text/plain"])
			}
		}
		equal(t, string(test.id), got, test.want)
		if test.id == "bash" && (o.ExitCode == nil || *o.ExitCode != 0) {
			t.Errorf("Bash: %+v", o.Result)
		}
	}
}

func testCodeErrors(t *testing.T, all codecontext.Contexts) {
	o := runCode(t, all, "python", "1 / 0")
	if o.Status != codecontext.Failed || o.Error == nil || o.Error.Name != "ZeroDivisionError" || len(o.Error.Traceback) == 0 {
		t.Errorf("%+v, %+v", o.Result, o.Error)
	}
	if o = runCode(t, all, "bash", "exit 3"); o.Status != codecontext.Ended || o.Exit == nil || o.Exit.Code != 3 {
		t.Errorf("an interpreter that ended: %+v", o.Result)
	}
	_, err := tryCode(t.Context(), all, "bash", "true")
	refused(t, "one that has ended", err, fault.Conflict, "restart")
	_, err = tryCode(t.Context(), all, "python-00000000", "1")
	refused(t, "one that is not there", err, fault.NotFound, "not found in this sandbox")
	_, err = all.Get(t.Context(), "python-00000000")
	refused(t, "Get", err, fault.NotFound, "not found in this sandbox")
	refused(t, "Interrupt", all.Interrupt(t.Context(), "python-00000000"), fault.NotFound, "not found in this sandbox")
	_, err = all.Create(t.Context(), execution.Language("cobol"), "")
	refused(t, "a language", err, fault.Invalid, "must be one of")
	_, err = tryCode(t.Context(), all, "python", strings.Repeat("#", codecontext.MaxCode+1))
	refused(t, "too much", err, fault.TooLarge, "at most")
}

func testCodeOutput(t *testing.T, all codecontext.Contexts) {
	o := runCode(t, all, "python", `import os, sys
print("out", os.environ["TOKEN"]); print("err", file=sys.stderr); os.environ["TOKEN"]`)
	if o.text[process.Stdout] == "" || strings.Contains(o.text[process.Stdout], "hidden-from-view") || o.text[process.Stderr] != "err\n" {
		t.Errorf("its output is %q", o.text)
	}
	if len(o.displays) != 1 || strings.Contains(string(o.displays[0].Data["text/plain"]), "hidden-from-view") {
		t.Errorf("it shows %v", o.displays)
	}
	o = runCode(t, all, "python", `sys.stdout.buffer.write(b"\xff\x00" * 100_000)`)
	if got := o.text[process.Stdout]; len(got) != 100_000 || got[0] != 0xff || !o.StdoutTruncated || o.StdoutBytes != 200_000 {
		t.Errorf("%d bytes, %+v", len(got), o.Result)
	}
	full := errors.New("the client has gone")
	events := 0
	res, err := all.Run(t.Context(), "python", codecontext.Request{Code: "print(1, flush=True)\nimport time\ntime.sleep(60)", Timeout: time.Minute, MaxOutput: 1000}, func(e codecontext.Event) error {
		if events++; len(e.Text) > 0 {
			return full
		}
		return nil
	})
	if err == nil && res.Status != codecontext.Interrupted || err != nil && !errors.Is(err, full) || events != 2 {
		t.Errorf("a sink that fails: %+v, %v, after %d events", res, err, events)
	}
}

func testInterrupted(t *testing.T, all codecontext.Contexts) {
	begun := make(chan struct{}, 1)
	run := func(ctx context.Context, timeout time.Duration) (*codecontext.Result, error) {
		return all.Run(ctx, "python", codecontext.Request{Code: "print('begun', flush=True)\nimport time\ntime.sleep(60)", Timeout: timeout, MaxOutput: 1000}, func(e codecontext.Event) error {
			if len(e.Text) > 0 {
				select {
				case begun <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}
	runCode(t, all, "python", "kept = 1")
	type ended struct {
		res *codecontext.Result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := run(t.Context(), time.Minute)
		done <- ended{res, err}
	}()
	<-begun
	if c, err := all.Get(t.Context(), "python"); err != nil || !c.Running || c.Exit != nil {
		t.Errorf("it is %+v, %v", c, err)
	}
	_, err := tryCode(t.Context(), all, "python", "1")
	refused(t, "a second one", err, fault.Conflict, "running code")
	if err := all.Interrupt(t.Context(), "python"); err != nil {
		t.Error(err)
	}
	if e := <-done; e.err != nil || e.res.Status != codecontext.Interrupted {
		t.Errorf("interrupted: %+v, %v", e.res, e.err)
	}
	if res, err := run(t.Context(), 200*time.Millisecond); err != nil || res.Status != codecontext.TimedOut {
		t.Errorf("timed out: %+v, %v", res, err)
	}
	for len(begun) > 0 {
		<-begun
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if res, err := run(ctx, time.Minute); err == nil && res.Status != codecontext.Interrupted {
		t.Errorf("its caller gone: %+v, %v", res, err)
	}
	eventually(t, "the context takes code again", func() bool {
		o, err := tryCode(t.Context(), all, "python", "print(kept)")
		return err == nil && o.text[process.Stdout] == "1\n"
	})
}

func testContextLife(t *testing.T, all codecontext.Contexts) {
	c, err := all.Create(t.Context(), execution.Python, "/tmp")
	if err != nil || c.ID.Language() != execution.Python || c.Dir != "/tmp" || c.Running || c.Exit != nil || time.Since(c.Started) > time.Minute {
		t.Fatalf("%+v, %v", c, err)
	}
	if o := runCode(t, all, c.ID, "x = 1; import os; print(os.getcwd())"); o.text[process.Stdout] != "/tmp\n" {
		t.Errorf("it is in %q", o.text)
	}
	list, err := all.List(t.Context())
	if err != nil || len(list) < 2 || list[len(list)-1].ID != c.ID {
		t.Errorf("there are %v, %v", list, err)
	}
	again, err := all.Restart(t.Context(), c.ID)
	if err != nil || again.ID != c.ID || again.Dir != "/tmp" {
		t.Errorf("restarted: %+v, %v", again, err)
	}
	if o := runCode(t, all, c.ID, "x"); o.Status != codecontext.Failed {
		t.Errorf("after the restart x is there: %+v", o)
	}
	if err := all.Delete(t.Context(), c.ID); err != nil {
		t.Error(err)
	}
	_, err = all.Get(t.Context(), c.ID)
	refused(t, "deleted", err, fault.NotFound, "not found in this sandbox")
}

// testUse: what a Handle knows of its sandbox's use.
func testUse(s *suite) {
	var first *tenant.Principal
	p := s.caller("use", func(p *tenant.Principal) {
		first = p
		p.Plan.MaxSandboxDisk = 32 << 20
		p.Environment.Secrets = map[string]string{"SHARED": "of-the-environment"}
		p.Key.Secrets = map[string]string{"OWN": "of-the-first-key"}
	})
	s.destroy(p)
	s.make(p, "x", nil)
	h := s.open(p, "x")
	u := &use{s.T, h.Guest(), h}
	equal(s.T, "before", u.shell("echo $OWN"), "of-the-first-key")

	second := s.caller("use-2", func(q *tenant.Principal) {
		q.Tenant, q.Environment, q.Plan = first.Tenant, first.Environment, first.Plan
		q.Key.Secrets = map[string]string{"OWN": "of-the-second-key"}
	})
	other := s.open(second, "x")
	set, err := other.Redactor(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	covered := string(set.Bytes([]byte("a of-the-environment b of-the-first-key c of-the-second-key d")))
	if strings.Contains(covered, "of-the") || !strings.HasPrefix(covered, "a ") || !strings.HasSuffix(covered, " d") {
		s.Errorf("another key's use shows %q", covered)
	}
	reached, err := s.Node.Reach(s.Context(), h.Sandbox().ID)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := reached.Redactor(s.Context()); err == nil {
		s.Error("a use without a key knows the secrets")
	}
	if _, err := reached.Contexts(); err == nil {
		s.Error("a use without a key runs code")
	}
	reached.CountBytes(1000)
	reached.Close()

	if why := h.Stopped(s.Context()); why != nil {
		s.Errorf("its programs were ended: %v", why)
	}
	background := u.start(process.Spec{Shell: "sleep 60"})
	out := u.run(process.Spec{Shell: "while :; do head -c 4194304 /dev/zero; sleep 0.05; done > f"})
	refused(s.T, "Killed", h.Killed(s.Context(), out.exit), fault.Exhausted, "32 MiB")
	refused(s.T, "Stopped", h.Stopped(s.Context()), fault.Exhausted, "32 MiB")
	if f, ok := errors.AsType[*fault.Error](h.Killed(s.Context(), out.exit)); !ok || f.Dimension != "sandbox_disk" {
		s.Errorf("the limit is not named: %+v", f)
	}
	after := s.open(p, "x")
	if why := after.Stopped(s.Context()); why != nil {
		s.Errorf("a later use: %v", why)
	}
	exit, err := after.Guest().Wait(s.Context(), background.ID) // its end may be noted a moment later
	if err != nil || !exit.Together {
		s.Fatalf("what ran beside it: %+v, %v", exit, err)
	}
	refused(s.T, "what ran beside it", after.Killed(s.Context(), exit), fault.Exhausted, "32 MiB")
	if why := after.Killed(s.Context(), process.Exit{Code: 137, Signal: 9, At: time.Now()}); why != nil {
		s.Errorf("one that was killed otherwise: %v", why)
	}

	// Another caller ends it while it is used.
	waiting := (&use{s.T, after.Guest(), after}).start(process.Spec{Shell: "sleep 60"})
	o := (&use{s.T, after.Guest(), after}).follow(waiting.ID, 0)
	if _, err := s.Node.Destroy(s.Context(), p, "s", "x"); err != nil {
		s.Fatal(err)
	}
	if _, err := o.Next(); !errors.Is(err, process.ErrGone) {
		s.Errorf("an output of a destroyed sandbox: %v", err)
	}
	for _, h := range []sandbox.Handle{h, after} {
		select {
		case <-h.Done():
		case <-time.After(20 * time.Second):
			s.Error("a handle of a destroyed sandbox is not done")
		}
	}
	if _, err := after.Guest().Stat(s.Context(), "f"); !errors.Is(err, process.ErrGone) {
		s.Errorf("a file of a destroyed sandbox: %v", err)
	}
}
