// Package guesttest runs atoll-guest without a sandbox runtime, as process 1 of
// a process and a mount namespace over the host's own files, so that a test of
// the conversation with it needs nothing but root.
package guesttest

import (
	"bytes"
	"context"
	_ "embed"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/guest/confine"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/test/check"
)

// RootVariable names another root filesystem than the host's for the tests.
const RootVariable = "ATOLL_TEST_ROOTFS"

//go:embed root.sh
var rootScript string

// Guest is a running atoll-guest.
type Guest struct {
	Channel runtime.Channel
	PID     int // of the guest, as the host counts
}

var build struct {
	once sync.Once
	path string
	err  error
}

// Binary builds atoll-guest, once per test process, and returns its path.
func Binary(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		dir, err := os.MkdirTemp("", "atoll-guest")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "atoll-guest")
		_, file, _, _ := goruntime.Caller(0)
		cmd := exec.Command("go", "build", "-trimpath", "-o", build.path, "./cmd/atoll-guest")
		cmd.Dir = filepath.Join(filepath.Dir(file), "../../..")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = &buildError{err, out}
		}
	})
	if build.err != nil {
		t.Fatalf("build atoll-guest: %v", build.err)
	}
	return build.path
}

// CleanUp removes what Binary built. TestMain calls it last.
func CleanUp() {
	if build.path != "" {
		os.RemoveAll(filepath.Dir(build.path))
	}
}

type buildError struct {
	err error
	out []byte
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + string(e.out) }

// Start starts a guest over a fresh writable layer, and ends it with the test.
func Start(t testing.TB) *Guest {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test makes namespaces and mounts: run it as root")
	}
	dir, err := os.MkdirTemp("", "guest") // t.TempDir has the test's name, and mount options no commas
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	hooks := filepath.Join(dir, "atoll")
	must(t, os.MkdirAll(hooks, 0o755))
	for name, data := range guest.Files() {
		must(t, os.WriteFile(filepath.Join(hooks, name), data, 0o644))
	}
	// A link, not a copy: a process forked while this one still had a copy open
	// for writing would keep it from being executed.
	must(t, os.Link(Binary(t), filepath.Join(hooks, "atoll-guest")))
	must(t, os.Link(Binary(t), filepath.Join(hooks, filepath.Base(confine.Self))))

	g := &Guest{Channel: runtime.Channel{ToGuest: fifo(t, dir, "to"), FromGuest: fifo(t, dir, "from")}}
	base := os.Getenv(RootVariable)
	if base == "" {
		base = "/"
	}
	cmd := exec.Command("/bin/sh", "-c", rootScript, "sh", base, hooks, filepath.Join(dir, "mnt"))
	must(t, os.Mkdir(filepath.Join(dir, "mnt"), 0o755))
	in, err := os.OpenFile(filepath.Join(dir, "to"), os.O_RDWR, 0)
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(dir, "from"), os.O_RDWR, 0)
	must(t, err)
	defer out.Close()
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &said
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	goruntime.LockOSThread() // Pdeathsig means this thread's death
	must(t, cmd.Start())
	g.PID = cmd.Process.Pid
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		goruntime.UnlockOSThread()
		if said.Len() > 0 {
			t.Logf("guest said: %s", said.Bytes())
		}
	})
	return g
}

// Dial dials the guest; the Client is closed with the test.
func (g *Guest) Dial(t testing.TB) *initclient.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := initclient.Dial(ctx, g.Channel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Root is the guest's root folder, as the host sees it.
func (g *Guest) Root() string { return filepath.Join("/proc", strconv.Itoa(g.PID), "root") }

// Processes lists the guest's processes but itself, zombies included, by name.
func (g *Guest) Processes(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(g.Root(), "proc"))
	must(t, err)
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || e.Name() == "1" {
			continue
		}
		if comm, err := os.ReadFile(filepath.Join(g.Root(), "proc", e.Name(), "comm")); err == nil {
			names = append(names, strings.TrimSpace(string(comm)))
		}
	}
	return names
}

// The languages by the names that commands have.
const (
	Python = string(language.Python)
	Node   = string(language.Node)
	Bash   = string(language.Bash)
)

// Env is what a program's variables are when a request adds none.
var Env = []string{
	"PATH=/home/user/.local/bin:/usr/local/bin:/usr/bin:/bin",
	"HOME=/home/user", "USER=user", "LOGNAME=user", "SHELL=/bin/bash", "LANG=C.UTF-8",
}

// Command returns the command of a language's interpreter.
func Command(t testing.TB, of string) initclient.Command {
	t.Helper()
	c := initclient.Command{Language: of, Env: Env, Dir: runtime.Home, Limits: initclient.Limits{Processes: 256, OpenFiles: 1024}}
	l := language.Get(language.Name(of))
	if l.Name == "" {
		t.Fatalf("no interpreter of %q", of)
	}
	c.Path, c.Argv = "/usr/bin/"+l.Programs[0], []string{l.Programs[0], l.File}
	return c
}

// Warm returns what makes a language's interpreter wait.
func Warm(t testing.TB, of string) initclient.WarmSpec {
	t.Helper()
	spec := initclient.WarmSpec{Command: Command(t, of)}
	if language.Get(language.Name(of)).Site {
		spec.Site = "/usr/lib/python3/dist-packages"
	}
	return spec
}

// Program returns the run of a program, warm if possible.
func Program(t testing.TB, language, code string) initclient.RunSpec {
	t.Helper()
	c := Command(t, language)
	return initclient.RunSpec{
		Command:     c,
		Files:       []initclient.File{{Path: runtime.Home + "/" + c.Argv[1], Mode: 0o644, Data: []byte(code)}},
		Warm:        true,
		Timeout:     30 * time.Second,
		OutputLimit: 10 << 20,
	}
}

// Bare runs a program in the guest's namespaces without the guest: as its user,
// in the same folder, with the same variables. It returns what a shell would
// see, the status being 128+n when signal n ended the program.
func (g *Guest) Bare(t testing.TB, spec initclient.RunSpec) (stdout, stderr []byte, code int) {
	t.Helper()
	must(t, g.Dial(t).Close()) // it is up
	root := g.Root()
	for _, f := range spec.Files {
		path := filepath.Join(root, f.Path)
		if dir := filepath.Dir(path); dir != filepath.Join(root, runtime.Home) {
			must(t, os.MkdirAll(dir, 0o755))
			must(t, os.Chown(dir, runtime.UID, runtime.GID))
		}
		must(t, os.WriteFile(path, f.Data, f.Mode))
		must(t, os.Chown(path, runtime.UID, runtime.GID))
	}
	args := []string{"--target", strconv.Itoa(g.PID), "--pid", "--mount", "--uts", "--ipc", "--root", "--wd",
		"setpriv", "--reuid=1000", "--regid=1000", "--groups=1000", "--no-new-privs", "--inh-caps=-all",
		"prlimit", "--nproc=256", "--nofile=1024", "--core=0",
		"env", "-i", "--chdir=" + spec.Dir}
	args = append(args, spec.Env...)
	args = append(args, "setsid", "--wait")
	args = append(args, spec.Argv...)
	// What this process may have inherited is not for the program.
	must(t, unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC))
	cmd := exec.Command("nsenter", args...)
	o, e := reopenable(t), reopenable(t)
	cmd.Stdout, cmd.Stderr = o.w, e.w
	must(t, cmd.Start())
	o.w.Close()
	e.w.Close()
	var wait sync.WaitGroup
	wait.Go(func() { stdout = o.all() })
	wait.Go(func() { stderr = e.all() })
	wait.Wait()
	cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return stdout, stderr, 128 + int(status.Signal())
	}
	return stdout, stderr, status.ExitStatus()
}

func fifo(t testing.TB, dir, name string) *os.File {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, syscall.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

var must = check.Must
