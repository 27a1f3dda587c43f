package contexts

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// rig is a sandbox on this machine, and its contexts.
type rig struct {
	t *testing.T
	c *Contexts
	u *Use
}

func newRig(t *testing.T, secrets ...string) *rig {
	t.Helper()
	covers, err := redact.New(redact.Config{Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, New(), &Use{Guest: newLocal(t), Sandbox: runtime.NewID(), Redactor: covers}}
}

// outcome is all that a run brought forth.
type outcome struct {
	*codecontext.Result
	stdout, stderr string
	displays       []*codecontext.Display
}

func (r *rig) try(ctx context.Context, id codecontext.ID, code string, timeout time.Duration) (*outcome, error) {
	o := &outcome{}
	res, err := r.c.Run(ctx, r.u, id, codecontext.Request{Code: code, Timeout: timeout, MaxOutput: 1 << 20}, func(e codecontext.Event) error {
		switch {
		case e.Display != nil:
			o.displays = append(o.displays, e.Display)
		case e.Stream == process.Stdout:
			o.stdout += string(e.Text)
		default:
			o.stderr += string(e.Text)
		}
		return nil
	})
	o.Result = res
	return o, err
}

func (r *rig) run(id codecontext.ID, code string) *outcome {
	r.t.Helper()
	o, err := r.try(r.t.Context(), id, code, 20*time.Second)
	if err != nil {
		r.t.Fatalf("%s: %v", code, err)
	}
	return o
}

// shown is a form of the value of the last expression.
func (o *outcome) shown(mime string) string {
	for _, d := range o.displays {
		if d.Result {
			return string(d.Data[mime])
		}
	}
	return ""
}

func TestStateStays(t *testing.T) {
	for _, test := range []struct {
		id                 codecontext.ID
		set, get, want, on string
	}{
		{"python", "x = 40", "x + 2", "42", "text/plain"},
		{"node", "const x = 40; const y = await 2", "x + y", "42", "text/plain"},
		{"node-00000001", "const x = 1", "const x = 42; x", "42", "text/plain"},
		{"bash", "x=40; cd /tmp", `echo $((x+2)) "$PWD"`, "42 /tmp\n", ""},
	} {
		t.Run(string(test.id), func(t *testing.T) {
			r := newRig(t)
			if !test.id.Implicit() {
				if _, err := r.c.start(t.Context(), r.u, test.id, ""); err != nil {
					t.Fatal(err)
				}
			}
			if o := r.run(test.id, test.set); o.Status != codecontext.OK {
				t.Fatalf("%+v %+v %s", o.Result, o.Error, o.stderr)
			}
			o := r.run(test.id, test.get)
			got := o.stdout
			if test.on != "" {
				got = strings.Trim(o.shown(test.on), `"`)
			}
			if got != test.want || o.Status != codecontext.OK {
				t.Errorf("%q, %+v %+v", got, o.Result, o.Error)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		id                      codecontext.ID
		code, name, value, line string
	}{
		{"python", "def f():\n    return 1 / 0\nf()", "ZeroDivisionError", "division by zero", "    return 1 / 0"},
		{"python", "def (", "SyntaxError", "", "def ("},
		{"python", "raise SystemExit(3)", "SystemExit", "3", "SystemExit: 3"},
		{"node", "function f() { return nope }\nf()", "ReferenceError", "nope is not defined", "<run"},
		{"node", "await Promise.reject(new TypeError('late'))", "TypeError", "late", "TypeError: late"},
	} {
		r := newRig(t)
		o := r.run(test.id, test.code)
		if o.Status != codecontext.Failed || o.Error == nil || o.Error.Name != test.name || !strings.Contains(o.Error.Value, test.value) {
			t.Errorf("%s: %+v %+v", test.code, o.Result, o.Error)
			continue
		}
		if trace := strings.Join(o.Error.Traceback, "\n"); !strings.Contains(trace, test.line) || strings.Contains(trace, "guest/hook") {
			t.Errorf("%s: its traceback is\n%s", test.code, trace)
		}
		if next := r.run(test.id, "1"); next.shown("text/plain") != `"1"` {
			t.Errorf("after %s: %+v", test.code, next.Result)
		}
	}
	r := newRig(t)
	if o := r.run("bash", "(exit 7)"); o.Status != codecontext.Failed || *o.ExitCode != 7 {
		t.Errorf("%+v", o.Result)
	}
	if o := r.run("bash", "if then"); o.Status != codecontext.Failed || !strings.Contains(o.stderr, "syntax error") {
		t.Errorf("%+v %s", o.Result, o.stderr)
	}
	if o := r.run("bash", "(return 5)"); o.Status != codecontext.Failed || *o.ExitCode != 5 {
		t.Errorf("%+v", o.Result)
	}
	if o := r.run("bash", "f() { (return 9); echo $?; }; f; ps -o pid= -s $$ | wc -l"); strings.Fields(o.stdout)[0] != "9" || strings.Fields(o.stdout)[1] > "4" {
		t.Errorf("%q", o.stdout)
	}
	if o := r.run("bash", "while :; do break 2; done; continue"); o.Status != codecontext.OK {
		t.Errorf("%+v %s", o.Result, o.stderr)
	}
}

func TestInterrupt(t *testing.T) {
	for _, test := range []struct {
		id   codecontext.ID
		code string
	}{
		{"python", "keep = 1\nprint('go', flush=True)\nwhile True: pass"},
		{"python", "keep = 1\nimport time\nprint('go')\ntime.sleep(100)"},
		{"python", "keep = 1\nimport asyncio\nprint('go')\nawait asyncio.sleep(100)"},
		{"node", "const keep = 1; console.log('go'); while (true);"},
		{"node", "const keep = 1; console.log('go'); await new Promise(() => {})"},
		{"node", "const keep = 1; console.log('go'); await 1; while (true);"},
		{"node", "const keep = 1; console.log('go'); await new Promise((r) => setTimeout(r, 100)); for (;;) await 1"},
		{"node", "const keep = 1; console.log('go'); setTimeout(() => { while (true); }, 10); await new Promise(() => {})"},
		{"node", "const keep = 1; console.log('go'); await 1; for (;;) try { for (;;); } catch {} finally { continue }"},
		{"bash", "keep=1; echo go; sleep 100; echo no"},
		{"bash", "keep=1; f() { while :; do sleep 1; done; }; echo go; f; echo no"},
		{"bash", "keep=1; echo go; while :; do :; done; echo no"},
		{"bash", "keep=1; echo go; (sleep 100; echo no); echo no"},
		{"bash", "keep=1; echo go; x=$( (sleep 100; echo no) ; echo no); echo no"},
		{"bash", "keep=1; echo go; sleep 100 | (cat; sleep 100; echo no) | cat"},
		{"bash", "keep=1; (trap '' INT; echo go; sleep 0.2; trap - INT; sleep 100; echo no); echo no"}, // loses the first
	} {
		t.Run(string(test.id), func(t *testing.T) {
			r := newRig(t)
			seen := ""
			res, err := r.c.Run(t.Context(), r.u, test.id, codecontext.Request{Code: test.code, Timeout: 20 * time.Second, MaxOutput: 1 << 20}, func(e codecontext.Event) error {
				seen += string(e.Text)
				if e.Display == nil && strings.TrimSpace(seen) == "go" {
					time.AfterFunc(50*time.Millisecond, func() { _ = r.c.Interrupt(t.Context(), r.u, test.id) })
				}
				return nil
			})
			if err != nil || res.Status != codecontext.Interrupted || strings.Contains(seen, "no") {
				t.Fatalf("%s: %+v, %v, %q", test.code, res, err, seen)
			}
			look := map[codecontext.ID]string{"python": "print(keep)", "node": "console.log(keep)", "bash": "echo $keep"}
			if o := r.run(test.id, look[test.id]); o.stdout != "1\n" || o.Status != codecontext.OK {
				t.Errorf("after %s: %q %+v", test.code, o.stdout, o.Result)
			}
		})
	}
}

func TestTimeoutAndGoing(t *testing.T) {
	r := newRig(t)
	if o, err := r.try(t.Context(), "python", "import time; time.sleep(100)", 300*time.Millisecond); err != nil || o.Status != codecontext.TimedOut || o.Exit != nil {
		t.Errorf("%+v, %v", o.Result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	if o, err := r.try(ctx, "python", "import time; time.sleep(100)", time.Minute); err != nil || o.Status != codecontext.Interrupted {
		t.Errorf("%+v, %v", o.Result, err)
	}
	if o := r.run("python", "6 * 7"); o.shown("text/plain") != `"42"` {
		t.Errorf("%+v", o.Result)
	}
}

func TestStubbornIsEnded(t *testing.T) {
	r := newRig(t)
	begun := filepath.Join(t.TempDir(), "begun")
	code := fmt.Sprintf("await 1; require('child_process').spawnSync('setsid', ['sh', '-c', 'touch %s; exec sleep 100'])", begun)
	for timeout := 200 * time.Millisecond; ; timeout *= 2 { // longer, where it is interrupted before it is stubborn
		o, err := r.try(t.Context(), "node", code, timeout)
		if err != nil || o.Status != codecontext.TimedOut {
			t.Fatalf("%+v, %v", o.Result, err)
		}
		if o.Exit != nil {
			break
		}
		if _, err := os.Stat(begun); err == nil || timeout > 10*time.Second {
			t.Fatalf("%+v, %v", o.Result, err)
		}
	}
	if _, err := r.try(t.Context(), "node", "1", time.Second); fault.KindOf(err) != fault.Conflict || err == nil {
		t.Errorf("in an ended context: %v", err)
	}
	if _, err := r.c.Restart(t.Context(), r.u, "node"); err != nil {
		t.Fatal(err)
	}
	if o := r.run("node", "typeof x"); o.shown("text/plain") != `"'undefined'"` {
		t.Errorf("%+v", o.Result)
	}
}

func TestExitEndsContext(t *testing.T) {
	r := newRig(t)
	o := r.run("bash", "echo bye; exit 4")
	if o.Status != codecontext.Ended || o.Exit == nil || o.Exit.Code != 4 || o.stdout != "bye\n" {
		t.Errorf("%+v %q", o.Result, o.stdout)
	}
}

func TestOneAtATime(t *testing.T) {
	r := newRig(t)
	begun := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		_, err := r.c.Run(t.Context(), r.u, "python", codecontext.Request{Code: "print(1)\nimport time; time.sleep(100)", Timeout: time.Minute, MaxOutput: 100}, func(codecontext.Event) error {
			select {
			case begun <- struct{}{}:
			default:
			}
			return nil
		})
		ended <- err
	}()
	<-begun
	if _, err := r.try(t.Context(), "python", "1", time.Second); fault.KindOf(err) != fault.Conflict || err == nil {
		t.Errorf("a second run: %v", err)
	}
	if o := r.run("bash", "echo other"); o.stdout != "other\n" {
		t.Errorf("another context: %+v", o.Result)
	}
	all, err := r.c.List(t.Context(), r.u)
	if err != nil || len(all) != 2 || all[0].ID != "python" || !all[0].Running || all[1].Running {
		t.Errorf("%+v, %v", all, err)
	}
	if err := r.c.Delete(t.Context(), r.u, "python"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := r.c.Get(t.Context(), r.u, "python"); fault.KindOf(err) != fault.NotFound || err == nil {
		t.Errorf("a deleted one: %v", err)
	}
}

func TestOutputIsBoundedAndCovered(t *testing.T) {
	r := newRig(t, "hunter2-secret")
	o := r.run("python", `import sys
s = "hunter2" + "-secret"
sys.stdout.write(s[:9]); sys.stdout.flush(); sys.stdout.write(s[9:])
display({"text/html": "<b>" + s + "</b>", "application/json": {"k": [s, 1]}, "text/" + s: "x"}, raw=True)
raise ValueError(s)`)
	all := o.stdout + string(o.displays[0].Data["text/html"]) + string(o.displays[0].Data["application/json"]) + o.Error.Value + strings.Join(o.Error.Traceback, "")
	if strings.Contains(all, "hunter2-secret") || o.stdout != redact.Marker || string(o.displays[0].Data["application/json"]) != `{"k":["[redacted]",1]}` {
		t.Errorf("%q", all)
	}
	if data := o.displays[0].Data; len(data) != 3 || string(data["text/"+redact.Marker]) != `"x"` {
		t.Errorf("its media types: %v", slices.Sorted(maps.Keys(data)))
	}
	o = r.run("python", `print("x" * (3 << 20)); 5`)
	if len(o.stdout) != 1<<20 || !o.StdoutTruncated || o.StdoutBytes != 3<<20+1 || o.shown("text/plain") != `"5"` {
		t.Errorf("%d bytes, %+v", len(o.stdout), o.Result)
	}
	o = r.run("python", "for i in range(1500): display(i)")
	if len(o.displays) != maxDisplays || !o.DisplaysTruncated {
		t.Errorf("%d displays", len(o.displays))
	}
	for code, note := range map[string]string{
		`"x" * (5 << 20)`: `"truncated":["text/plain"]`,
		`display({"text/html": "\x00" * (3 << 20)}, raw=True)`: `"omitted":["text/html"]`,
		`display({"text/html": "x" * (5 << 20)}, raw=True)`:    `"omitted":["text/html"]`,
	} {
		if o := r.run("python", code); o.Status != codecontext.OK || !strings.Contains(string(o.displays[0].Metadata), note) {
			t.Errorf("%s: %+v %s", code, o.Result, o.displays[0].Metadata)
		}
	}
}

func TestLyingInterpreter(t *testing.T) {
	for _, code := range []string{
		`import os; os.write(4, b"nonsense\n"); import time; time.sleep(60)`,
		`import os; os.write(4, b'{"id":1,"type":"done","status":"fine"}\n'); import time; time.sleep(60)`,
		"import os\nfor i in range(400): os.write(4, b'x' * 65536)\nimport time; time.sleep(60)",
	} {
		r := newRig(t)
		if o, err := r.try(t.Context(), "python", code, time.Minute); fault.KindOf(err) != fault.Conflict || err == nil {
			t.Errorf("%s: %+v, %v", code, o.Result, err)
		}
		if c, err := r.c.Get(t.Context(), r.u, "python"); err != nil || c.Exit == nil {
			if _, err := r.u.Guest.(*local).Wait(t.Context(), "context-python"); err != nil {
				t.Errorf("%+v, %v", c, err)
			}
		}
	}
}

func TestSinkThatFails(t *testing.T) {
	r := newRig(t)
	n := 0
	res, err := r.c.Run(t.Context(), r.u, "python", codecontext.Request{Code: "import time\nwhile True:\n  print(1)\n  time.sleep(.01)", Timeout: time.Minute, MaxOutput: 1 << 20}, func(codecontext.Event) error {
		n++
		return context.Canceled
	})
	if err != nil || res.Status != codecontext.Interrupted || n != 1 {
		t.Errorf("%+v, %v, %d", res, err, n)
	}
}

// TestInterruptsAgainAndAgain: what ends code that is busy leaves the context as it
// was, however often.
func TestInterruptsAgainAndAgain(t *testing.T) {
	r := newRig(t)
	for _, code := range []string{"await 1; while (true);", "while (true);", "await new Promise(() => {})", "await 1; while (true);", "while (true);", "setTimeout(() => { while (true); }, 0); await new Promise(() => {})"} {
		if o, err := r.try(t.Context(), "node", code, 100*time.Millisecond); err != nil || o.Status != codecontext.TimedOut || o.Exit != nil {
			t.Fatalf("%s: %+v, %v, %s", code, o.Result, err, o.stderr)
		}
		if o := r.run("node", "await new Promise((r) => setTimeout(r, 10, 6 * 7))"); o.shown("text/plain") != `"42"` || o.stderr != "" {
			t.Fatalf("after %s: %+v, %s", code, o.Result, o.stderr)
		}
	}
}

// TestInterruptThatNodeMisses: Node.js hears no SIGINT where code stops to be busy and begins
// to wait. What the host sends beside it ends the wait; and only the run's that it came in.
func TestInterruptThatNodeMisses(t *testing.T) {
	r := newRig(t)
	miss := func(code string) (*codecontext.Result, error) {
		seen := ""
		return r.c.Run(t.Context(), r.u, "node", codecontext.Request{Code: code, Timeout: 20 * time.Second, MaxOutput: 1 << 20}, func(e codecontext.Event) error {
			if seen += string(e.Text); strings.TrimSpace(seen) == "go" {
				if err := r.u.Guest.Signal(t.Context(), codecontext.ID("node").Process(), syscall.SIGURG, false); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
	}
	for _, code := range []string{
		"console.log('go'); await new Promise(() => {})",
		"await 1; console.log('go'); await new Promise(() => {})",
		"const since = Date.now(); console.log('go'); while (Date.now() - since < 50); await new Promise(() => {})",
		"await 1; console.log('go'); while (true);",
	} {
		if res, err := miss(code); err != nil || res.Status != codecontext.Interrupted {
			t.Errorf("%s: %+v, %v", code, res, err)
		}
	}
	if res, err := miss("await 1; console.log('go')"); err != nil || res.Status != codecontext.OK {
		t.Errorf("a run that ends by itself: %+v, %v", res, err)
	}
	const after = "await new Promise((r) => setTimeout(r, 600, 6 * 7))"
	if o := r.run("node", after); o.Status != codecontext.OK || o.shown("text/plain") != `"42"` {
		t.Errorf("the next one: %+v", o.Result)
	}
}

// TestInterruptOfWhatStarts: a context that is not ready yet runs no code, and stays.
func TestInterruptOfWhatStarts(t *testing.T) {
	for _, id := range []codecontext.ID{"python", "node", "bash"} {
		n := 0
		for range 10 { // until it was interrupted before it was ready
			if n = interruptStart(t, id); n > 0 {
				break
			}
		}
		if n == 0 {
			t.Errorf("%s was not interrupted", id)
		}
	}
}

// interruptStart interrupts a context until it is ready, and returns how often.
func interruptStart(t *testing.T, id codecontext.ID) (n int) {
	t.Helper()
	r := newRig(t)
	begun, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { sent <- n }()
		for starts := time.Now(); time.Since(starts) < 10*time.Second; {
			select {
			case <-begun:
				return
			case <-time.After(500 * time.Microsecond):
			}
			if r.c.Interrupt(t.Context(), r.u, id) == nil {
				n++
			}
		}
	}()
	begins := sync.OnceFunc(func() { close(begun) })
	res, err := r.c.Run(t.Context(), r.u, id, codecontext.Request{Code: "a=1", Timeout: 20 * time.Second, MaxOutput: 1 << 20}, func(codecontext.Event) error {
		begins()
		return nil
	})
	begins()
	if n = <-sent; err != nil || res.Exit != nil {
		t.Errorf("%s: %+v, %v after %d interrupts", id, res, err, n)
	}
	if o := r.run(id, "a=2"); o.Status != codecontext.OK {
		t.Errorf("%s, after that: %+v", id, o.Result)
	}
	return n
}
