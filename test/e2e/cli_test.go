package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/test/atolltest"
)

// TestCommandLine runs programs with atoll run, on a server and without one.
func TestCommandLine(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	s := shared(t)
	// Without a server of its own, the command uses the data folder beside it.
	alone := []string{"PATH=" + os.Getenv("PATH"), "ATOLL_DATA_DIR=" + s.Data, "ATOLL_IMAGE=" + atolltest.Image}
	remote := []string{"PATH=" + os.Getenv("PATH"), "ATOLL_BASE_URL=" + s.URL, "ATOLL_API_KEY=" + atolltest.Key}
	for _, c := range []struct {
		name, file, code string
		args             []string
		stdout, stderr   string // stderr is a part
		exit             int
	}{
		{"Python", "a.py", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", nil, "out\n", "err\n", 3},
		{"Node", "a.mjs", "console.log('out')", nil, "out\n", "", 0},
		{"Bash", "a.sh", "echo $X; kill -9 $$", []string{"--env", "X=1"}, "1\n", "", 137},
		{"standard input", "-", "console.log('in')", []string{"--language", "node"}, "in\n", "", 0},
		{"time-out", "a.py", "import time; print('so far', flush=True); time.sleep(60)", nil, "so far\n", "", 124},
		{"memory", "a.py", "b'x' * (1 << 30)", nil, "", "memory limit of 512 MiB exceeded", 137},
		{"bytes", "a.sh", "head -c 3000000 /dev/zero | tr '\\0' x", nil, repeat("x", 3e6), "", 0},
		{"no language", "a.txt", "x", nil, "", "language", 125},
		{"a registry's image", "a.py", "x", []string{"--image", "python:3.10"}, "", "python:3.10", 125},
		{"bad variable", "a.py", "x", []string{"--env", "PATH=/"}, "", "PATH", 125},
	} {
		for how, env := range map[string][]string{"alone": alone, "on a server": remote} {
			t.Run(strings.ReplaceAll(c.name+" "+how, " ", "_"), func(t *testing.T) {
				file := c.file
				if file != "-" {
					file = filepath.Join(t.TempDir(), c.file)
					if err := os.WriteFile(file, []byte(c.code), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				run := func(args ...string) (stdout, stderr string, exit int) {
					cmd := exec.CommandContext(t.Context(), binary, append(append([]string{"run"}, args...), file)...)
					if file == "-" {
						cmd.Stdin = strings.NewReader(c.code)
					}
					var out, errs bytes.Buffer
					cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
					if err := cmd.Run(); err != nil {
						if _, ok := errors.AsType[*exec.ExitError](err); !ok {
							t.Fatal(err)
						}
					}
					return out.String(), errs.String(), cmd.ProcessState.ExitCode()
				}
				args, says, times := c.args, c.stderr, c.name == "time-out"
				for timeout := 1; ; timeout *= 2 {
					if times { // from the program's start: one that is kept from its first line gets twice as much
						args, says = []string{"--timeout", fmt.Sprintf("%ds", timeout)}, fmt.Sprintf("timed out after %ds", timeout)
					}
					stdout, stderr, code := run(args...)
					late := times && timeout < 16 && stdout == ""
					if code != c.exit || stdout != c.stdout && !late || !strings.Contains(stderr, says) {
						t.Errorf("want exit code %d, %.100q and %q, got %d, %.200q and %q", c.exit, c.stdout, says, code, stdout, stderr)
					}
					if !late {
						break
					}
				}
			})
		}
	}
	s.Settle(t) // the commands' own sandboxes are gone
}

// TestCommandLineInterrupted checks that Ctrl-C ends a run and its sandbox, and
// that what kill -9 leaves is swept by the next command.
func TestCommandLineInterrupted(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=0"}})
	// run starts a command and returns once its program has written a line.
	run := func(code string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, "run", "--language", "bash", "-")
		cmd.Stdin = strings.NewReader("echo up\n" + code)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "ATOLL_DATA_DIR=" + s.Data}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(stdout, make([]byte, len("up\n"))); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	sandboxes := func(n int) {
		t.Helper()
		atolltest.Until(t, 20*time.Second, fmt.Sprintf("%d sandboxes exist", n), func() bool {
			return len(atolltest.Trace(s.Data).Sandboxes()) == n
		})
	}
	before, err := atolltest.Trace(s.Data).Find()
	if err != nil {
		t.Fatal(err)
	}
	interrupted := run("sleep 60")
	sandboxes(1)
	if err := interrupted.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = interrupted.Wait() // the exit code tells
	if code := interrupted.ProcessState.ExitCode(); code != 130 {
		t.Errorf("Ctrl-C ended it with %d, want 130", code)
	}
	sandboxes(0)

	killed := run("sleep 60")
	sandboxes(1)
	alive, err := atolltest.Trace(s.Data).Find()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // as it was told
	sandboxes(1)
	if err := run("true").Wait(); err != nil {
		t.Error(err)
	}
	sandboxes(0)
	for _, path := range alive.Cgroups {
		if _, err := os.Stat(path); err == nil && !slices.Contains(before.Cgroups, path) {
			t.Errorf("the control group %s is left", path)
		}
	}
}

// TestCommandsFindTheServer checks that the commands of a machine find its server
// by its data folder, on whatever port it listens, and take the key that each needs.
func TestCommandsFindTheServer(t *testing.T) {
	binary, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	s := atolltest.Start(t, atolltest.Options{NotReady: true, Env: []string{"ATOLL_DEV_KEY=", "ATOLL_POOL_SIZE=0", "XDG_STATE_HOME=" + state}})
	record := filepath.Join(s.Data, "server.json")
	if info, err := os.Stat(record); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the server's record: %v, %v", info, err)
	}
	try := func(env []string, args ...string) (string, int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "ATOLL_DATA_DIR=" + s.Data}, env...)
		out, err := cmd.CombinedOutput()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	devKey, err := os.ReadFile(filepath.Join(s.Data, "dev-key"))
	if err != nil {
		t.Fatal(err)
	}
	dev := "ATOLL_API_KEY=" + strings.TrimSpace(string(devKey))
	for _, c := range []struct {
		env  []string
		args string
		want string
	}{
		{nil, "tenant list", "operator"},
		{nil, "sandbox list", "NAME"},
		{[]string{"ATOLL_DATA_DIR=", "XDG_STATE_HOME=" + state}, "tenant list", "operator"}, // the last server that was started
		{[]string{dev, "ATOLL_BASE_URL=" + s.URL}, "sandbox list", "NAME"},
		{[]string{"ATOLL_BASE_URL=" + s.URL}, "sandbox list", "NAME"},
	} {
		if got, code := try(c.env, strings.Fields(c.args)...); code != 0 || !strings.Contains(got, c.want) {
			t.Errorf("atoll %s with %q: %d, %s", c.args, c.env, code, got)
		}
	}
	for _, command := range []string{"sandbox list", "tenant list"} {
		if got, code := try([]string{"ATOLL_API_KEY=sk-atoll-wrong"}, strings.Fields(command)...); code != 1 || !strings.Contains(got, "401") || !strings.Contains(got, "unset it") {
			t.Errorf("%s with a wrong key: %d, %s", command, code, got)
		}
	}
	if got, code := try([]string{dev}, "tenant", "list"); code != 1 || !strings.Contains(got, "403") || !strings.Contains(got, "unset it to use this machine's key (admin-key") {
		t.Errorf("a key that may not administer: %d, %s", code, got)
	}
	if got, code := try([]string{"ATOLL_BASE_URL=http://127.0.0.1:1"}, "tenant", "list"); code != 1 || !strings.Contains(got, "no key for http://127.0.0.1:1") {
		t.Errorf("another server: %d, %s", code, got)
	}
	hintAtNetwork(t, try)
	openNetwork(t, try)
	changeSetting(t, s.URL, try)
	s.Keep(t) // a killed server cleans nothing up
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, 10*time.Second, "the server ended", func() bool {
		got, code := try(nil, "tenant", "list")
		return code == 1 && strings.Contains(got, "no server uses the data folder "+s.Data)
	})
}

// changeSetting checks that a running server applies a setting that a command stores.
func changeSetting(t *testing.T, url string, try func(env []string, args ...string) (string, int)) {
	t.Helper()
	const page = "https://app.example.com"
	allowed := func() string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", page)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.Header.Get("Access-Control-Allow-Origin")
	}
	for _, c := range []struct{ args, want string }{{"config set cors_origins " + page, page}, {"config unset cors_origins", ""}} {
		if got, code := try(nil, strings.Fields(c.args)...); code != 0 {
			t.Errorf("atoll %s: %d, %s", c.args, code, got)
		}
		atolltest.Until(t, 20*time.Second, "the server applied '"+c.args+"'", func() bool { return allowed() == c.want })
	}
}

// openNetwork checks that one command opens the network of this machine's development
// key, for sandboxes too.
func openNetwork(t *testing.T, try func(env []string, args ...string) (string, int)) {
	t.Helper()
	for _, c := range []struct {
		args string
		want []string
	}{
		{"sandbox create without", []string{"network  off"}},
		{"env set dev --allow pypi", append([]string{"1 sandbox gets this network when it is restarted: 'atoll sandbox restart NAME'"}, tenant.PresetHosts("pypi")...)},
		{"sandbox restart without", tenant.PresetHosts("pypi")},
		{"sandbox create with", tenant.PresetHosts("pypi")},
		{"env set dev --allow npm", tenant.PresetHosts("npm")},
		{"sandbox network with", slices.Concat(tenant.PresetHosts("npm"), tenant.PresetHosts("pypi"))},
		{"sandbox delete with without", []string{"deleted with"}},
	} {
		got, code := try(nil, strings.Fields(c.args)...)
		for _, want := range c.want {
			if code != 0 || !strings.Contains(got, want) {
				t.Errorf("atoll %s: %d, no %q in %s", c.args, code, want, got)
			}
		}
	}
}

// hintAtNetwork checks that a command in a sandbox gets the same network hint as a run, and that the
// error for a mistyped preset, host or image suggests the intended one.
func hintAtNetwork(t *testing.T, try func(env []string, args ...string) (string, int)) {
	t.Helper()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"sandbox", "create", "offline"}, 0, "offline"},
		{[]string{"sandbox", "exec", "offline", "--", "curl", "-sS", "https://pypi.org"}, 6, "then 'atoll sandbox restart offline'"},
		{[]string{"env", "set", "dev", "--allow", "pipy"}, 1, "did you mean the preset pypi"},
		{[]string{"env", "set", "dev", "--allow", "github"}, 1, `did you mean "github.com"`},
		{[]string{"sandbox", "create", "old", "--image", "python:3.10"}, 0, "atoll image import python:3.10"},
		{[]string{"sandbox", "list"}, 0, "atoll image import python:3.10"},
		{[]string{"sandbox", "delete", "offline", "old"}, 0, "deleted offline"},
	} {
		if got, code := try(nil, c.args...); code != c.code || !strings.Contains(got, c.want) {
			t.Errorf("atoll %q: %d, not %d with %q: %s", c.args, code, c.code, c.want, got)
		}
	}
}

// TestSecondInterrupt checks that a server waits for what runs after one Ctrl-C,
// and does not after another.
func TestSecondInterrupt(t *testing.T) {
	s := atolltest.Start(t, atolltest.Options{Env: []string{"ATOLL_POOL_SIZE=0", "ATOLL_SHUTDOWN_GRACE=60s"}})
	go func() {
		_, _ = s.Execute(context.WithoutCancel(t.Context()), atolltest.Program{Code: "import time; time.sleep(60)"})
	}()
	atolltest.Until(t, 20*time.Second, "the program runs", func() bool { return len(atolltest.Trace(s.Data).Sandboxes()) == 1 })
	if err := s.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// It says so while it waits for the program, and long after another SIGINT could be of the
	// same Ctrl-C.
	atolltest.Until(t, 20*time.Second, "it tells what another Ctrl-C does", func() bool { return strings.Contains(s.Log(), "another Ctrl-C ends at once") })
	if err := s.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := s.Wait(ctx)
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 130 {
		t.Errorf("it ended with %v, want the exit code 130 at once", err)
	}
	// The next server sweeps what it left, and need not wait for the program.
	atolltest.Start(t, atolltest.Options{Data: s.Keep(t), NotReady: true, Env: []string{"ATOLL_SHUTDOWN_GRACE=1s"}})
}
