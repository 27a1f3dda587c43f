package rootless_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/app/localserver"
	"github.com/atoll-run/atoll/internal/core/runtime/runtimetest"
	"github.com/atoll-run/atoll/internal/node/rootless/rootlesstest"
)

// install gives a user all of Atoll.
func install(t *testing.T, u *rootlesstest.User) (atoll string) {
	t.Helper()
	for _, name := range []string{"atoll", "atoll-runsc", "atoll-guest", "atoll-guestd", "gvisor-bin/gvisor_sentry"} {
		u.Give(t, runtimetest.Binary(t, name), filepath.Join("bin", name))
	}
	return filepath.Join(u.Home, "bin", "atoll")
}

// eachKind runs a test with subordinate users and without, and checks that
// nothing of the user is left running.
func eachKind(t *testing.T, test func(t *testing.T, u *rootlesstest.User, atoll string)) {
	for _, ids := range []rootlesstest.Ids{rootlesstest.Subordinate, rootlesstest.Alone} {
		t.Run(ids.String(), func(t *testing.T) {
			t.Parallel() // each has a home of its own, and mostly waits
			u := rootlesstest.New(t, ids)
			test(t, u, install(t, u))
			awaitNone(t, u)
		})
	}
}

// awaitNone fails the test if the user's processes do not end by themselves.
func awaitNone(t *testing.T, u *rootlesstest.User) {
	t.Helper()
	var left []string
	// The programs' own time would end them later.
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if left = u.Processes(t); len(left) == 0 {
			return
		}
	}
	t.Errorf("left behind: %q", left)
}

// TestRun: input, output, the exit code and a signal pass between the caller and
// the process inside.
func TestRun(t *testing.T) {
	eachKind(t, func(t *testing.T, u *rootlesstest.User, atoll string) {
		cmd := u.Command(t, atoll, "run", "--image", "host", "--language", "bash", "-")
		cmd.Stdin = strings.NewReader("id -u; echo problem >&2; exit 7\n")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // its exit code is looked at
		if cmd.ProcessState.ExitCode() != 7 || out.String() != "1000\n" || errs.String() != "problem\n" {
			t.Errorf("%v, stdout %q, stderr %q", cmd.ProcessState, out.String(), errs.String())
		}

		cmd = u.Command(t, atoll, "run", "--image", "host", "--cpu", "0.5", "--language", "bash", "-")
		cmd.Stdin = strings.NewReader("true")
		said, _ := cmd.CombinedOutput() // its exit code is looked at
		if cmd.ProcessState.ExitCode() != 125 || !strings.Contains(string(said), "0.5 cores cannot be held without control groups") {
			t.Errorf("%v: %s", cmd.ProcessState, said)
		}

		// The program says that it runs; then the caller is told to end.
		cmd = u.Command(t, atoll, "run", "--image", "host", "--language", "bash", "-")
		cmd.Stdin = strings.NewReader("echo here; sleep 60\n")
		line, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 5)
		if _, err := line.Read(buf); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its exit code is looked at
		if cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("after SIGTERM: %v", cmd.ProcessState)
		}
	})
}

// TestKilledServer: a server that starts after one was killed removes what that
// one left, however far it had got.
func TestKilledServer(t *testing.T) {
	eachKind(t, func(t *testing.T, u *rootlesstest.User, atoll string) {
		first := serve(t, u, atoll)
		first.kill(t, unix.SIGKILL)
		if len(u.Processes(t)) == 0 {
			t.Error("no sandbox outlived its server; this test then shows nothing")
		}
		second := serve(t, u, atoll)
		second.kill(t, unix.SIGTERM)
		if code := second.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the second server ended with %d", code)
		}
		awaitNone(t, u)
		data := filepath.Join(u.Home, dataDir)
		for _, pattern := range []string{"state/*/sb-*", "rootless/[0-9]*"} {
			if left, err := filepath.Glob(filepath.Join(data, pattern)); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		}
	})
}

// dataDir is the server's, in its user's home.
const dataDir = ".local/share/atoll"

type server struct{ *exec.Cmd }

// serve starts a server and returns when it can run code.
func serve(t *testing.T, u *rootlesstest.User, atoll string) *server {
	t.Helper()
	s := &server{u.Command(t, atoll, "serve", "--image", "host", "--listen", "127.0.0.1:0", "--on-exit", "destroy")}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	s.Stderr = log
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		found, err := localserver.Find(filepath.Join(u.Home, dataDir))
		if err != nil {
			continue
		}
		answer, err := http.Get(found.URL + "/readyz")
		if err != nil {
			continue
		}
		_ = answer.Body.Close() // nothing was read
		if answer.StatusCode == http.StatusOK {
			return s
		}
	}
	said, _ := os.ReadFile(log.Name()) // for the message only
	t.Fatalf("the server is not ready: %s", said)
	return nil
}

func (s *server) kill(t *testing.T, how unix.Signal) {
	t.Helper()
	if err := s.Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait() // its exit code is looked at
}
