package daemonclient_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// confined returns a client of a sandbox with permissions.
func confined(t *testing.T, p runtime.Permissions) *daemonclient.Client {
	t.Helper()
	s := clienttest.New(t, func(spec *runtime.Spec) { spec.Traces = p.Process.Traced() })
	if err := s.Guest.Confine(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return s.Dial(t)
}

func TestFilesAreUnderTheRules(t *testing.T) {
	c := confined(t, runtime.Permissions{Filesystem: runtime.FilesystemPolicy{
		Writable: []string{"/home/user", "/tmp"}, ReadOnly: []string{"/home/user/ref"}, Blocked: []string{"/opt", "/home/user/closed"},
	}})
	create(t, c, "/home/user/free", "x")
	create(t, c, "/tmp/free", "x")
	for _, path := range []string{"/home/user/ref/x", "/dev/shm2/x", "/var/tmp/x", "/home/user/closed/x", "/opt/x"} {
		if _, err := c.Create(t.Context(), path, file.CreateOptions{}, strings.NewReader("x")); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"/home/user/closed", "/opt"} {
		if _, err := c.List(t.Context(), path, file.ListOptions{}); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := run(t, c, "echo x > ref/x || echo x > /var/tmp/x || ls closed || ls /opt || echo held"); got.out[0] != "held\n" {
		t.Errorf("got %+v", got)
	}
}

func TestProgramsAreUnderTheRules(t *testing.T) {
	t.Run("no exec", func(t *testing.T) {
		c := confined(t, runtime.Permissions{Process: runtime.ProcessPolicy{NoExec: true}})
		if got := run(t, c, "echo builtin; ls / && echo listed; (echo forked)"); got.out[0] != "builtin\n" || !strings.Contains(got.out[1], "fork") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("blocked", func(t *testing.T) {
		c := confined(t, runtime.Permissions{Process: runtime.ProcessPolicy{BlockedCommands: []string{"dd", "rm -rf /"}}})
		got := run(t, c, "echo before; dd if=/dev/zero of=x count=1; echo after")
		if got.out[0] != "before\n" || !strings.Contains(got.Blocked, `"dd"`) || got.Code == 0 {
			t.Errorf("got %+v", got)
		}
		if got := run(t, c, "ls / | grep -c etc; rm -rf /tmp/x; echo well"); got.out[0] != "1\nwell\n" || got.Blocked != "" {
			t.Errorf("got %+v", got)
		}
		// In the background, when what started it has long ended.
		if got := run(t, c, "(sleep 0.3; dd if=/dev/zero of=x count=1; echo ran > proof) >/dev/null 2>&1 & echo away"); got.out[0] != "away\n" {
			t.Errorf("got %+v", got)
		}
		if got := run(t, c, "sleep 1; ls proof x"); got.Code == 0 {
			t.Errorf("it ran: %+v", got)
		}
	})
	t.Run("processes", func(t *testing.T) {
		c := confined(t, runtime.Permissions{Process: runtime.ProcessPolicy{MaxProcesses: 4}})
		if got := run(t, c, "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; jobs | wc -l; kill $(jobs -p)"); !strings.Contains(got.out[1], "fork") {
			t.Errorf("got %+v", got)
		}
		if got := run(t, c, "ls / | grep -c etc"); got.out[0] != "1\n" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		c := confined(t, runtime.Permissions{Process: runtime.ProcessPolicy{BlockedCommands: []string{"dd"}}})
		spec := process.Spec{Argv: []string{"sh", "-c", "test -t 0 && echo term; sleep 0.1; dd"}, Env: clienttest.Env, Terminal: &process.Size{Rows: 1, Columns: 1}, Control: true}
		o, err := c.Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, o); !strings.Contains(got.out[process.Terminal], "term") || got.Blocked == "" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestTheSupervisorStandsBack: where there is a guest daemon, programs are its own.
func TestTheSupervisorStandsBack(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	spec := initclient.RunSpec{Command: initclient.Command{Path: "/bin/true", Argv: []string{"true"}, Dir: "/"}}
	if _, err := s.Guest.Run(t.Context(), spec, nil); err == nil || !strings.Contains(err.Error(), "guest daemon") {
		t.Errorf("a run: %v", err)
	}
	if err := s.Guest.Warm(t.Context(), initclient.WarmSpec{Command: initclient.Command{Language: guesttest.Bash, Path: "/bin/bash", Argv: []string{"bash", "x"}, Dir: "/"}}); err == nil {
		t.Error("an interpreter was warmed")
	}
	if got := run(t, c, "echo well"); got.out[0] != "well\n" {
		t.Errorf("got %+v", got)
	}
	bare := clienttest.New(t, func(spec *runtime.Spec) { spec.Mounts = spec.Mounts[1:] })
	if err := bare.Cue(t.Context()); err == nil || !strings.Contains(err.Error(), daemonclient.Mountpoint) {
		t.Errorf("without a folder to meet in: %v", err)
	}
}

// detached starts processes that leave their session and their parent. Their command line is
// unique.
const detached = "setsid -f sleep 731; setsid setsid -f sleep 731; sleep 9"

// ruled lists process policies under which the guest starts programs in different ways.
var ruled = map[string]runtime.ProcessPolicy{
	"no rules": {}, "blocked": {BlockedCommands: []string{"dd"}}, "processes": {MaxProcesses: 30}, "root": {Root: true}, "root, counting": {Root: true, MaxProcesses: 30},
}

// TestDetachedProcessesEndWithTheirCommand checks that a command that times out also ends processes
// that called setsid, under every policy.
func TestDetachedProcessesEndWithTheirCommand(t *testing.T) {
	for name, rules := range ruled {
		t.Run(name, func(t *testing.T) {
			c := confined(t, runtime.Permissions{Process: rules})
			spec := shell(detached)
			spec.Timeout = time.Second
			o, err := c.Run(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if end := all(t, o); !end.TimedOut {
				t.Errorf("the command got %+v", end)
			}
			if got := run(t, c, "pgrep -fc '^sleep 731'").out[process.Stdout]; got != "0\n" {
				t.Errorf("there are left: %s", got)
			}
		})
	}
}

// TestDetachedProcessesEndWithTheirRun checks the same for programs that process 1 starts, while
// another run continues.
func TestDetachedProcessesEndWithTheirRun(t *testing.T) {
	for name, rules := range ruled {
		t.Run(name, func(t *testing.T) {
			s := clienttest.New(t, func(spec *runtime.Spec) { spec.Traces = rules.Traced() })
			if err := s.Guest.Confine(t.Context(), runtime.Permissions{Process: rules}); err != nil {
				t.Fatal(err)
			}
			bash := func(code string, timeout time.Duration) (string, initclient.Result) {
				var out strings.Builder
				spec := initclient.RunSpec{Timeout: timeout, OutputLimit: 1 << 10, Command: initclient.Command{
					Language: "bash", Path: "/bin/bash", Argv: []string{"bash", "-c", code}, Env: clienttest.Env, Dir: runtime.Home,
					Limits: initclient.Limits{OpenFiles: 100, Processes: 100},
				}}
				r, err := s.Guest.Run(t.Context(), spec, func(_ initclient.Stream, p []byte) { out.Write(p) })
				if err != nil {
					t.Error(err)
				}
				return out.String(), r
			}
			other := make(chan string, 1)
			go func() {
				said, _ := bash("until [ -e go ]; do sleep 0.05; done; echo went on", 30*time.Second)
				other <- said
			}()
			if _, r := bash(detached, time.Second); !r.TimedOut {
				t.Errorf("the run got %+v", r)
			}
			if said, _ := bash("pgrep -fc '^sleep 731'; touch go", 30*time.Second); said != "0\n" {
				t.Errorf("there are left: %s", said)
			}
			if said := <-other; said != "went on\n" {
				t.Errorf("the other run said %q", said)
			}
		})
	}
}
