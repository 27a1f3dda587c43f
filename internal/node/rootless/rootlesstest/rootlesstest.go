// Package rootlesstest runs programs as an ordinary user of this machine that
// exists for them alone, with or without subordinate ids, so that tests run by
// root can be of use to people who are not.
package rootlesstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/test/check"
)

// UID is the user. No account of a real machine should have it.
const UID = 12345

// Range is the first of the subordinate ids, and how many there are.
var Range = [2]int{3_000_000, 65536}

// Ids says what the user may map.
type Ids bool

const (
	Subordinate Ids = true  // /etc/subuid and /etc/subgid grant a range
	Alone       Ids = false // nothing but the user
)

func (i Ids) String() string {
	if i {
		return "Subordinate"
	}
	return "Alone"
}

// stageVariable tells a copy of the test program what to become.
const stageVariable = "ATOLL_ROOTLESSTEST"

// stage is what the copy does before it becomes the program: it puts files of
// its own in the place of some in /etc, seen by no other process.
type stage struct {
	Files map[string]string // what to mount, by where
	Path  string
}

// Main has to be called by TestMain before anything else: in the process that
// Command starts it becomes the program and does not return.
func Main() {
	text := os.Getenv(stageVariable)
	if text == "" {
		return
	}
	fmt.Fprintln(os.Stderr, "rootlesstest:", become(text))
	os.Exit(1)
}

func become(text string) error {
	var s stage
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	for target, source := range s.Files {
		if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount over %s: %w", target, err)
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(UID); err != nil {
		return err
	}
	if err := syscall.Setuid(UID); err != nil {
		return err
	}
	if err := os.Unsetenv(stageVariable); err != nil {
		return err
	}
	return syscall.Exec(s.Path, os.Args, os.Environ())
}

// User is an ordinary user with a home of its own.
type User struct {
	Home  string
	files map[string]string
}

// New makes a user. The test must be run by root; the user's processes have to
// end before it does.
func New(t testing.TB, ids Ids) *User {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root can become another user: run the tests as root, as CI does")
	}
	dir := t.TempDir()
	reachable(t, dir)
	u := &User{Home: filepath.Join(dir, "home"), files: map[string]string{}}
	must(t, os.Mkdir(u.Home, 0o700))
	must(t, os.Chown(u.Home, UID, UID))
	grant := ""
	if ids == Subordinate {
		grant = fmt.Sprintf("atolltest:%d:%d\n", Range[0], Range[1])
	}
	for target, add := range map[string]string{
		"/etc/passwd": fmt.Sprintf("atolltest:x:%d:%d::%s:/bin/sh\n", UID, UID, u.Home),
		"/etc/group":  fmt.Sprintf("atolltest:x:%d:\n", UID),
		"/etc/subuid": grant,
		"/etc/subgid": grant,
	} {
		text, err := os.ReadFile(target)
		if err != nil && target == "/etc/passwd" || os.IsNotExist(err) {
			t.Fatalf("%v: tests put another file in its place for their own eyes, so there has to be one", err)
		}
		path := filepath.Join(dir, filepath.Base(target))
		must(t, os.WriteFile(path, append(text, add...), 0o644))
		u.files[target] = path
	}
	return u
}

// reachable lets others pass through the folders of a temporary one.
func reachable(t testing.TB, dir string) {
	for p := dir; p != filepath.Clean(os.TempDir()) && p != "/"; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		must(t, err)
		must(t, os.Chmod(p, info.Mode().Perm()|0o055))
	}
}

// Give copies a file, such as a program, into the user's home and returns the
// copy's path. Where tests are built, users have no access.
func (u *User) Give(t testing.TB, from, name string) string {
	t.Helper()
	info, err := os.Stat(from)
	must(t, err)
	data, err := os.ReadFile(from)
	must(t, err)
	to := filepath.Join(u.Home, name)
	for dir := filepath.Dir(to); dir != u.Home; dir = filepath.Dir(dir) {
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.Chown(dir, UID, UID))
	}
	must(t, os.WriteFile(to, data, info.Mode().Perm()))
	must(t, os.Chown(to, UID, UID))
	return to
}

// Command returns a command of the user, in a home and with little else in its
// environment.
func (u *User) Command(t testing.TB, path string, args ...string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(stage{Files: u.files, Path: path})
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args = append([]string{path}, args...)
	cmd.Dir = u.Home
	cmd.Env = []string{
		stageVariable + "=" + string(text), "HOME=" + u.Home, "USER=atolltest", "LOGNAME=atolltest", "TMPDIR=" + u.Home,
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	// Private to it: Go sees to that for an unshared mount namespace.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return cmd
}

// Processes returns what the user and its subordinate users have running that
// has to do with the user's home.
func (u *User) Processes(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	var found []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		info, err := os.Stat(filepath.Join("/proc", e.Name(), "ns")) // owned by the user whatever is dumpable
		if err != nil {
			continue // it has ended
		}
		uid := int(info.Sys().(*syscall.Stat_t).Uid) //nolint:forcetypeassert // Linux
		if uid != UID && (uid < Range[0] || uid >= Range[0]+Range[1]) {
			continue
		}
		if line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && strings.Contains(string(line), u.Home) {
			found = append(found, e.Name()+" "+string(line))
		}
	}
	return found
}

var must = check.Must
