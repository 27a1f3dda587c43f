package initclient_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/test/atolltest"
)

// start returns a guest and a client of it.
func start(t *testing.T) (*guesttest.Guest, *initclient.Client) {
	t.Helper()
	g := guesttest.Start(t)
	return g, g.Dial(t)
}

// alone waits until the guest is the only process.
func alone(t *testing.T, g *guesttest.Guest, but ...string) {
	t.Helper()
	var left []string
	for range 500 {
		left = slices.DeleteFunc(g.Processes(t), func(name string) bool { return slices.Contains(but, name) })
		if len(left) == 0 {
			return
		}
		<-time.After(10 * time.Millisecond) // another process's end gives no signal here
	}
	t.Errorf("still there: %v", left)
}

// healthy runs a program that needs all that matters.
func healthy(t *testing.T, c *initclient.Client) {
	t.Helper()
	if got := run(t, c, guesttest.Program(t, guesttest.Bash, "echo well")); got.stdout != "well\n" || got.ExitCode != 0 {
		t.Errorf("the next program got %+v", got)
	}
}

func bash(t *testing.T, code string) initclient.RunSpec {
	return guesttest.Program(t, guesttest.Bash, code)
}

func TestTimeoutEndsEverything(t *testing.T) {
	for name, code := range map[string]string{
		"ignores SIGTERM":    "trap '' TERM INT HUP; echo x; while :; do sleep 1; done",
		"children":           "sleep 60 & sleep 60 | sleep 60 & echo x; sleep 60",
		"daemon":             "(setsid sleep 61 >/dev/null 2>&1 &) ; (setsid setsid bash -c 'trap \"\" TERM; sleep 62') & echo x; sleep 60",
		"stopped":            "echo x; kill -STOP $$",
		"closed its streams": "echo x; exec >&- 2>&-; sleep 60",
		"fork bomb":          "echo x; exec 2>/dev/null; f() { f | f & }; f; sleep 60",
	} {
		t.Run(name, func(t *testing.T) {
			g, c := start(t)
			spec := bash(t, code)
			// On a busy machine a program may be ended before its first word: it gets twice
			// as long then.
			for spec.Timeout = time.Second; ; spec.Timeout *= 2 {
				began := time.Now()
				got := run(t, c, spec)
				if !got.TimedOut || got.Signal != 9 || got.ExitCode != 137 {
					t.Errorf("got %+v", got)
				}
				if d := time.Since(began); d > spec.Timeout+9*time.Second {
					t.Errorf("took %v", d)
				}
				alone(t, g)
				healthy(t, c)
				if got.stdout == "x\n" {
					break
				}
				if got.stdout != "" || spec.Timeout > 30*time.Second {
					t.Fatalf("got %+v", got)
				}
			}
		})
	}
}

func TestBackgroundDoesNotHoldTheResult(t *testing.T) {
	g, c := start(t)
	began := time.Now()
	got := run(t, c, bash(t, "echo before; (until [ -e /tmp/go ]; do sleep 0.02; done; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; echo ok >/tmp/done; exec sleep 60) & exit 3"))
	if got.stdout != "before\n" || got.ExitCode != 3 || time.Since(began) > 5*time.Second {
		t.Errorf("got %+v after %v", got, time.Since(began))
	}
	if err := os.WriteFile(filepath.Join(g.Root(), "tmp/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// It may go on to write more than a pipe holds.
	for range 500 {
		if _, err := os.Stat(filepath.Join(g.Root(), "tmp/done")); err == nil {
			healthy(t, c)
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Error("the background process did not get to its end")
}

func TestFlood(t *testing.T) {
	_, c := start(t)
	const size = 100 << 20
	code := "head -c 104857600 /dev/zero; head -c 1000 /dev/zero >&2"
	t.Run("dropped", func(t *testing.T) {
		spec := bash(t, code)
		spec.OutputLimit = 1 << 20
		got := run(t, c, spec)
		if got.StdoutBytes != size || len(got.stdout) != 1<<20 || got.StderrBytes != 1000 || len(got.stderr) != 1000 {
			t.Errorf("passed %d of %d, and %d of %d", len(got.stdout), got.StdoutBytes, len(got.stderr), got.StderrBytes)
		}
	})
	t.Run("passed on", func(t *testing.T) {
		spec := bash(t, code)
		spec.OutputLimit = 1 << 40
		var n int64
		began := time.Now()
		res, err := c.Run(t.Context(), spec, func(s initclient.Stream, p []byte) {
			if s == initclient.Stdout {
				n += int64(len(p))
			}
		})
		if err != nil || n != size || res.StdoutBytes != size {
			t.Errorf("passed %d, %+v, %v", n, res, err)
		}
		t.Logf("%.0f MB/s", size/1e6/time.Since(began).Seconds())
	})
	t.Run("nothing wanted", func(t *testing.T) {
		spec := bash(t, "echo x; echo y >&2")
		spec.OutputLimit = 0
		if got := run(t, c, spec); got.stdout != "" || got.StdoutBytes != 2 || got.StderrBytes != 2 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestManyTinyWrites(t *testing.T) {
	_, c := start(t)
	warm(t, c, guesttest.Warm(t, guesttest.Python))
	got := run(t, c, guesttest.Program(t, guesttest.Python, "import os\nfor i in range(1000000): os.write(1 + i % 2, b'x')\n"))
	if got.StdoutBytes != 500000 || len(got.stdout) != 500000 || got.StderrBytes != 500000 || got.ExitCode != 0 {
		t.Errorf("%d, %d: %+v", len(got.stdout), len(got.stderr), got.Result)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	g, c := start(t)
	// Far more processes than the limit, one by one, all left to process 1.
	got := run(t, c, bash(t, "for i in $(seq 1500); do (true & ) ; done; echo end"))
	if got.stdout != "end\n" || got.stderr != "" {
		t.Errorf("got %.300q", got.stdout+got.stderr)
	}
	alone(t, g)
}

func TestGuestIsOutOfReach(t *testing.T) {
	_, c := start(t)
	got := run(t, c, bash(t, `
kill -9 -1 2>/dev/null
kill -9 1 2>&1
ls /proc/1/fd /proc/1/root/ 2>&1
cat /proc/1/mem /proc/1/environ 2>&1
echo x 2>&1 >/proc/1/fd/1
rm -rf /.atoll 2>/dev/null; ls /.atoll
`))
	if strings.Contains(got.stdout, "fd/0") || !strings.Contains(got.stdout, "warm.py") || strings.Count(got.stdout, "ermi") < 4 {
		t.Errorf("got %s", got.stdout)
	}
	healthy(t, c)
	got = run(t, c, guesttest.Program(t, guesttest.Python, "import os, subprocess\np = subprocess.Popen(['sleep', '60'])\nos.kill(-1, 9)\nprint('alive', p.wait())\n"))
	if got.stdout != "alive -9\n" {
		t.Errorf("got %+v", got)
	}
	healthy(t, c)
}

func TestPlantedFiles(t *testing.T) {
	for name, plant := range map[string]string{
		"link to a file":   "ln -sf target main.py",
		"link to nothing":  "ln -sf /tmp/new main.py",
		"hard link":        "rm -f main.py; ln target main.py",
		"pipe":             "mkfifo main.py",
		"open by a writer": "echo 'print(2)' >main.py; exec 9>>main.py; (sleep 0.3; echo 'print(3)' >&9) & true",
	} {
		t.Run(name, func(t *testing.T) {
			g, c := start(t)
			target := filepath.Join(g.Root(), "home/user/target")
			if err := os.WriteFile(target, []byte("kept"), 0o666); err != nil {
				t.Fatal(err)
			}
			os.Chown(target, 1000, 1000)
			warm(t, c, guesttest.Warm(t, guesttest.Python))
			if got := run(t, c, bash(t, plant)); got.ExitCode != 0 {
				t.Fatalf("planting: %+v", got)
			}
			if got := run(t, c, guesttest.Program(t, guesttest.Python, "print(1)\n")); got.stdout != "1\n" {
				t.Errorf("got %+v", got)
			}
			if b, _ := os.ReadFile(target); string(b) != "kept" {
				t.Errorf("the target holds %q", b)
			}
			if _, err := os.Lstat(filepath.Join(g.Root(), "tmp/new")); err == nil {
				t.Error("the link was followed")
			}
		})
	}
	t.Run("linked folder", func(t *testing.T) {
		g, c := start(t)
		run(t, c, bash(t, "ln -s /etc sub"))
		spec := bash(t, "echo ran")
		spec.Files = append(spec.Files, initclient.File{Path: "/home/user/sub/planted", Mode: 0o644, Data: []byte("x")})
		_, err := c.Run(t.Context(), spec, nil)
		if !errors.Is(err, initclient.ErrNotStarted) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Lstat(filepath.Join(g.Root(), "etc/planted")); err == nil {
			t.Error("a file was made in /etc")
		}
		healthy(t, c)
	})
	t.Run("folder in the way", func(t *testing.T) {
		_, c := start(t)
		run(t, c, bash(t, "mkdir main.py"))
		_, err := c.Run(t.Context(), guesttest.Program(t, guesttest.Python, "print(1)"), nil)
		if !errors.Is(err, initclient.ErrNotStarted) || !strings.Contains(err.Error(), "main.py") {
			t.Errorf("got %v", err)
		}
	})
}

func TestFiles(t *testing.T) {
	g, c := start(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	spec := bash(t, "ls -ln a/b/c tool; ./tool")
	spec.Files = append(spec.Files,
		initclient.File{Path: "/home/user/a/b/c", Mode: 0o666, Data: big},
		initclient.File{Path: "/home/user/tool", Mode: 0o755, Data: []byte("#!/bin/sh\necho tool\n")},
		initclient.File{Path: "/tmp/empty", Mode: 0o600})
	got := run(t, c, spec)
	if !strings.Contains(got.stdout, "-rw-rw-rw- 1 1000 1000") || !strings.HasSuffix(got.stdout, "tool\n") {
		t.Errorf("got %+v", got)
	}
	if b, err := os.ReadFile(filepath.Join(g.Root(), "home/user/a/b/c")); !bytes.Equal(b, big) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	spec.Files = []initclient.File{{Path: "relative", Mode: 0o644}}
	if _, err := c.Run(t.Context(), spec, nil); !errors.Is(err, initclient.ErrNotStarted) {
		t.Errorf("a relative path gave %v", err)
	}
}

func TestKill(t *testing.T) {
	g, c := start(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		spec := bash(t, "trap 'echo term; exit 5' TERM; (setsid sleep 63) & echo ready; while :; do sleep 0.05; done")
		spec.ID = initclient.NewRunID()
		ready := make(chan struct{})
		var once bool
		var out strings.Builder
		go func() {
			<-ready
			if err := c.Kill(t.Context(), spec.ID, sig); err != nil {
				t.Error(err)
			}
		}()
		res, err := c.Run(t.Context(), spec, func(s initclient.Stream, p []byte) {
			if s == initclient.Stdout {
				out.Write(p)
			}
			if !once {
				once = true
				close(ready)
			}
		})
		switch {
		case err != nil:
			t.Error(err)
		case sig == syscall.SIGTERM && (res.ExitCode != 5 || out.String() != "ready\nterm\n"):
			t.Errorf("TERM: %+v %q", res, out.String())
		case sig == syscall.SIGKILL && (res.ExitCode != 137 || res.Signal != 9 || res.TimedOut):
			t.Errorf("KILL: %+v %q", res, out.String())
		}
	}
	alone(t, g)
	if err := c.Kill(t.Context(), 12345, syscall.SIGTERM); err == nil {
		t.Error("a run that is not was killed")
	}
}

// One run's end leaves the others alone, and takes all of its own along.
func TestRunsSideBySide(t *testing.T) {
	for name, rules := range map[string]runtime.ProcessPolicy{
		"no rules": {}, "blocked": {BlockedCommands: []string{"dd"}}, "processes": {MaxProcesses: 30}, "root": {Root: true},
	} {
		t.Run(name, func(t *testing.T) { sideBySide(t, rules, func(*initclient.RunSpec) {}) })
	}
	// Without vfork, the process takes the user's id before process 1 can mark it.
	t.Run("forked", func(t *testing.T) {
		sideBySide(t, runtime.ProcessPolicy{}, func(r *initclient.RunSpec) { r.Limits.OpenFiles = 0 })
	})
}

func sideBySide(t *testing.T, rules runtime.ProcessPolicy, change func(*initclient.RunSpec)) {
	g, c := start(t)
	if err := c.Confine(t.Context(), runtime.Permissions{Process: rules}); err != nil {
		t.Fatal(err)
	}
	long := bash(t, "")
	long.Files, long.Argv = nil, []string{"bash", "-c", "echo begun; until [ -e /tmp/go ]; do sleep 0.01; done; echo long"}
	change(&long)
	short := long
	short.Argv = []string{"bash", "-c", "setsid -f env -i setsid sleep 66; (sleep 64 &); setsid bash -c 'sleep 65; true' & sleep 60"}
	short.Timeout = 300 * time.Millisecond
	begun, ended := make(chan struct{}), make(chan outcome, 1)
	go func() {
		var out strings.Builder
		res, err := c.Run(t.Context(), long, func(_ initclient.Stream, p []byte) {
			if out.Len() == 0 {
				close(begun)
			}
			out.Write(p)
		})
		if err != nil {
			t.Error(err)
		}
		ended <- outcome{Result: res, stdout: out.String()}
	}()
	atolltest.Heard(t, begun, "the long run begins")
	if got := run(t, c, short); !got.TimedOut {
		t.Errorf("the short run got %+v", got)
	}
	if err := os.WriteFile(filepath.Join(g.Root(), "tmp/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := atolltest.Heard(t, ended, "the long run ends"); got.stdout != "begun\nlong\n" || got.ExitCode != 0 {
		t.Errorf("the long run got %+v", got)
	}
	alone(t, g)
}

func TestRefusals(t *testing.T) {
	_, c := start(t)
	spec := bash(t, "echo x")
	spec.Path = "/nothing"
	if _, err := c.Run(t.Context(), spec, nil); !errors.Is(err, initclient.ErrNotStarted) {
		t.Errorf("no interpreter: %v", err)
	}
	spec = bash(t, "echo x")
	spec.Dir = "/nothing"
	if _, err := c.Run(t.Context(), spec, nil); !errors.Is(err, initclient.ErrNotStarted) {
		t.Errorf("no folder: %v", err)
	}
	w := guesttest.Warm(t, guesttest.Python)
	w.Preload = []string{"nosuchmodule"}
	var refusal *initclient.Error
	if err := c.Warm(t.Context(), w); !errors.As(err, &refusal) || !strings.Contains(refusal.Msg, "nosuchmodule") {
		t.Errorf("no module: %v", err)
	}
	w.Preload = []string{`x"); import os #`}
	if err := c.Warm(t.Context(), w); !errors.As(err, &refusal) {
		t.Errorf("no module's name: %v", err)
	}
	w = guesttest.Warm(t, guesttest.Node)
	w.Path = "/usr/bin/false"
	if err := c.Warm(t.Context(), w); !errors.As(err, &refusal) || !strings.Contains(refusal.Msg, "ended before") {
		t.Errorf("no interpreter: %v", err)
	}
	healthy(t, c)
}

func TestCancel(t *testing.T) {
	_, c := start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	spec := bash(t, "echo x; sleep 0.3; echo y; sleep 60")
	spec.ID = initclient.NewRunID()
	_, err := c.Run(ctx, spec, func(initclient.Stream, []byte) { cancel(why) })
	if !errors.Is(err, why) {
		t.Fatalf("got %v", err)
	}
	// It goes on, until it is killed.
	if err := c.Kill(t.Context(), spec.ID, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	healthy(t, c)
}

func TestWarmFallsBack(t *testing.T) {
	g, c := start(t)
	for name, change := range map[string]func(*initclient.RunSpec){
		"not allowed":  func(s *initclient.RunSpec) { s.Warm = false },
		"other option": func(s *initclient.RunSpec) { s.Argv = slices.Insert(slices.Clone(s.Argv), 1, "-B") },
		"other folder": func(s *initclient.RunSpec) { s.Dir = "/tmp"; s.Argv = []string{"python3", "/home/user/main.py"} },
		"user packages": func(s *initclient.RunSpec) {
			s.Files = append(s.Files, initclient.File{Path: "/home/user/.local/lib/python3/x", Mode: 0o644})
		},
	} {
		warm(t, c, guesttest.Warm(t, guesttest.Python))
		spec := guesttest.Program(t, guesttest.Python, "print(1)\n")
		change(&spec)
		if got := run(t, c, spec); got.stdout != "1\n" || got.Warm {
			t.Errorf("%s: %+v", name, got)
		}
		os.RemoveAll(filepath.Join(g.Root(), "home/user/.local"))
	}
	alone(t, g)
}

// An interpreter that was killed before it came to its program has run nothing,
// however late it is to die of it.
func TestWarmDies(t *testing.T) {
	for language, it := range map[string]struct{ name, file, code string }{
		guesttest.Python: {"python3", "main.py", "print(1)\n"},
		guesttest.Node:   {"node", "main.js", "console.log(1)\n"},
		guesttest.Bash:   {"bash", "main.sh", "echo 1\n"},
	} {
		t.Run(language, func(t *testing.T) {
			_, c := start(t)
			sh := func(code string) initclient.RunSpec {
				spec := guesttest.Program(t, guesttest.Bash, "")
				spec.Language, spec.Path, spec.Files, spec.Argv = "", "/bin/sh", nil, []string{"sh", "-c", code}
				return spec
			}
			started := func(when string) {
				t.Helper()
				got := run(t, c, guesttest.Program(t, language, it.code))
				if got.stdout != "1\n" || got.stderr != "" || got.Warm || got.ExitCode != 0 {
					t.Errorf("%s: %+v", when, got)
				}
			}
			warm(t, c, guesttest.Warm(t, language))
			run(t, c, sh("pkill -9 -x "+it.name))
			started("killed while it waited")

			warm(t, c, guesttest.Warm(t, language))
			run(t, c, sh("rm "+it.file+"; pkill -STOP -x "+it.name))
			killed := make(chan struct{})
			go func() {
				defer close(killed)
				c.Run(t.Context(), sh("until [ -e "+it.file+" ]; do sleep 0.01; done; sleep 0.1; pkill -9 -x "+it.name), nil)
			}()
			started("killed while the program was there")
			<-killed
		})
	}
}

func TestReseed(t *testing.T) {
	_, c := start(t)
	w := guesttest.Warm(t, guesttest.Python)
	w.Preload = []string{"random", "json"}
	warm(t, c, w)
	if err := c.Reseed(t.Context(), initclient.Reseed{Hostname: "fork"}); err != nil {
		t.Fatal(err)
	}
	got := run(t, c, guesttest.Program(t, guesttest.Python, "import random, socket, sys\nprint(socket.gethostname(), 'json' in sys.modules, 0 <= random.random() < 1)\n"))
	if got.stdout != "fork True True\n" || !got.Warm {
		t.Errorf("got %+v", got)
	}
	numbers := map[string]bool{}
	for range 3 {
		if err := c.Reseed(t.Context(), initclient.Reseed{MachineID: "0123456789abcdef0123456789abcdef"}); err != nil {
			t.Fatal(err)
		}
		got := run(t, c, bash(t, "cat /etc/machine-id "+initclient.GenerationFile))
		id, number, _ := strings.Cut(got.stdout, "\n")
		if id != "0123456789abcdef0123456789abcdef" || len(number) != 33 || numbers[number] {
			t.Errorf("a restored guest has %q", got.stdout)
		}
		numbers[number] = true
	}
	warm(t, c, guesttest.Warm(t, guesttest.Bash))
	a := run(t, c, bash(t, "echo $RANDOM $RANDOM $RANDOM\n"))
	if len(strings.Fields(a.stdout)) != 3 || !a.Warm {
		t.Errorf("got %+v", a)
	}
}
