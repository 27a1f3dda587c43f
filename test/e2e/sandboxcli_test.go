package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

var sandboxIDs = regexp.MustCompile(`\bsb-[0-9a-f]{16}\b`)

// console runs atoll sandbox in a session of its own.
type console struct {
	t       *testing.T
	program string
	env     []string
	session string
	group   string // another than sandbox
}

// try runs a command.
func (c *console) try(stdin []byte, args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	first := []string{"sandbox", "--session", c.session}
	if c.group != "" {
		first = []string{c.group}
	}
	cmd := exec.CommandContext(context.WithoutCancel(c.t.Context()), c.program, append(first, args...)...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			c.t.Fatal(err)
		}
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// do runs a command that must succeed, and returns what it wrote.
func (c *console) do(args ...string) string {
	c.t.Helper()
	stdout, stderr, code := c.try(nil, args...)
	if code != 0 {
		c.t.Fatalf("atoll sandbox %q ended with %d: %s", args, code, stderr)
	}
	return stdout
}

func newConsole(t *testing.T, s *atolltest.Server) *console {
	program, err := atolltest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "ATOLL_BASE_URL=" + s.URL, "ATOLL_API_KEY=" + atolltest.Key, "FROM_HERE=of here"}
	c := &console{t: t, program: program, env: env, session: "commands " + t.Name()}
	t.Cleanup(func() {
		if left := sandboxIDs.FindAllString(c.do("list"), -1); len(left) > 0 {
			c.do(append([]string{"rm"}, left...)...)
		}
	})
	return c
}

// TestSandboxCommandsTakeSizes checks that the flags of create limit a sandbox's CPU, memory and disk,
// and that the names of its variables may be lowercase.
func TestSandboxCommandsTakeSizes(t *testing.T) {
	c := newConsole(t, shared(t))
	if got := c.do("create", "small", "--cpu", "0.5", "--memory", "128MiB", "--disk", "16MiB", "--env", "lower_case=of the sandbox"); !strings.Contains(got, "128MiB") || !strings.Contains(got, "16MiB") {
		t.Errorf("create: %q", got)
	}
	for _, args := range [][]string{{"show", "small"}, {"list"}} {
		if got := c.do(args...); !strings.Contains(got, "0.5") || !strings.Contains(got, "128MiB") || !strings.Contains(got, "16MiB") {
			t.Errorf("%s: %q", args, got)
		}
	}
	if got := c.do("exec", "--env", "_another=of the process", "small", "--", "sh", "-c", `echo "$lower_case, $_another"`); got != "of the sandbox, of the process\n" {
		t.Errorf("its variables: %q", got)
	}
	for _, bad := range []struct{ args, says string }{
		{"--cpu 1000", "limits.cpu"}, {"--cpu 0", "limits.cpu"}, {"--memory 1TiB", "at most"}, {"--memory 1MiB", "memory"}, {"--disk 100TiB", "disk_size"}, {"--disk much", "is not a size"},
		{"--env 1a=b", "not starting with a digit"}, {"--env PATH=x", "reserved"},
	} {
		if _, stderr, code := c.try(nil, append([]string{"create", "refused"}, strings.Fields(bad.args)...)...); code == 0 || !strings.Contains(stderr, bad.says) {
			t.Errorf("%s: %d, %s", bad.args, code, stderr)
		}
	}
}

// TestSandboxCommands goes through what atoll sandbox can do with a sandbox.
func TestSandboxCommands(t *testing.T) {
	c := newConsole(t, shared(t))
	if got := c.do("create", "one", "--env", "GREETING=hello there"); !strings.Contains(got, "running") {
		t.Errorf("create: %q", got)
	}
	vars := filepath.Join(t.TempDir(), "vars")
	if err := os.WriteFile(vars, []byte("# of a program\nA=1\n\nB=two words\r\nFROM_HERE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		stdin          string
		args           []string
		stdout, stderr string
		code           int
	}{
		{"", []string{"one", "--", "sh", "-c", `echo "$GREETING" "$0" "$1"; echo e >&2; exit 3`, "a b", "-c"}, "hello there a b -c\n", "e\n", 3},
		{"", []string{"--env", "GREETING=hi", "--workdir", "/tmp", "one", "sh", "-c", "echo $GREETING; pwd"}, "hi\n/tmp\n", "", 0},
		{repeat("in", 2e6), []string{"--stdin", "one", "--", "cat"}, repeat("in", 2e6), "", 0},
		{"", []string{"one", "--", "sh", "-c", "kill -TERM $$"}, "", "", 143},
		{"", []string{"--timeout", "200ms", "one", "--", "sleep", "60"}, "", "timed out", 124},
		{"", []string{"one", "--", "no-such-program"}, "", "no such file", 127},
		{"", []string{"one", "--", "/etc/passwd"}, "", "permission denied", 126},
		{"", []string{"--workdir", "/nowhere", "one", "--", "true"}, "", "working directory", 1},
		{"", []string{"-e", "FROM_HERE", "-e", "UNSET_HERE", "one", "--", "sh", "-c", "echo $FROM_HERE, ${UNSET_HERE-unset}"}, "of here, unset\n", "", 0},
		{"", []string{"--env-file", vars, "-e", "A=3", "one", "--", "sh", "-c", "echo $A $B $FROM_HERE"}, "3 two words of here\n", "", 0},
		{"", []string{"-t", "one", "--", "tty"}, "/dev/pts/0\r\n", "", 0},
		{"", []string{"-t", "one", "--", "true"}, "", "", 0},
		{"", []string{"-t", "one", "--", "no-such-program"}, "", "no such file", 127},
		{"", []string{"-d", "-t", "one", "--", "true"}, "", "--detach cannot be combined", 2},
		{"", []string{"one", "--workdir", "/tmp", "pwd"}, "", "put flags of exec before NAME", 2},
		{"", []string{"two", "--", "true"}, "", `there is no sandbox "two"`, 1},
	} {
		stdout, stderr, code := c.try([]byte(want.stdin), append([]string{"exec"}, want.args...)...)
		if stdout != want.stdout || !strings.Contains(stderr, want.stderr) || code != want.code {
			t.Errorf("exec %q: %d, %d bytes %.100q, %q", want.args, code, len(stdout), stdout, stderr)
		}
	}

	for _, args := range [][]string{{"-it", "one", "--", "sh"}, {"one", "-it", "--", "sh"}} { // as docker has it, and kubectl
		stdout, stderr, code := c.try([]byte("echo typed $((1 + 1)); exit 5\n"), append([]string{"exec"}, args...)...)
		if !strings.Contains(stdout, "typed 2\r\n") || stderr != "" || code != 5 {
			t.Errorf("exec %q: %d, %q, %q", args, code, stdout, stderr)
		}
	}

	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "in/deep"), 0o755), os.WriteFile(filepath.Join(dir, "in/deep/-x y"), []byte("there"), 0o750), os.Symlink("deep/-x y", filepath.Join(dir, "in/link"))); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := c.try(nil, "cp", pipe, "one:x"); code != 1 || !strings.Contains(stderr, "is a pipe") {
		t.Errorf("a pipe: %d, %s", code, stderr)
	}
	c.do("cp", filepath.Join(dir, "in"), "one:tree")
	if got := c.do("exec", "one", "--", "sh", "-c", "stat -c %a tree/deep/*; cat tree/link"); got != "750\nthere" {
		t.Errorf("copied in: %q", got)
	}
	c.do("cp", "one:", filepath.Join(dir, "home"))
	if got, err := os.ReadFile(filepath.Join(dir, "home/tree/link")); err != nil || string(got) != "there" {
		t.Errorf("copied out: %q, %v", got, err)
	}
	if got := c.do("cp", "one:tree/link", "-"); got != "there" {
		t.Errorf("to stdout: %q", got)
	}

	id := strings.TrimSpace(c.do("exec", "--detach", "one", "--", "sh", "-c", "echo begun; exec python3 -m http.server 8200"))
	atolltest.Until(t, 30*time.Second, "the server listens", func() bool { return strings.Contains(c.do("ports", "one"), "8200") })
	if got := c.do("logs", "one", id); got != "begun\n" {
		t.Errorf("logs: %q", got)
	}
	if got := c.do("top", "one"); !strings.Contains(got, id) || !strings.Contains(got, "running") {
		t.Errorf("processes: %q", got)
	}
	short := strings.TrimSpace(c.do("exec", "-d", "one", "--", "sh", "-c", "echo first; sleep 1; printf last"))
	if got := c.do("logs", "-f", "one", short); got != "first\nlast" {
		t.Errorf("followed: %q", got)
	}
	if got := c.do("logs", "one"); got != id+" | begun\n"+short+" | first\n"+short+" | last\n" {
		t.Errorf("the logs of all: %q", got)
	}
	if got := c.do("fork", "one", "--count", "2"); !strings.Contains(got, "one-1") || !strings.Contains(got, "one-2") {
		t.Errorf("fork: %q", got)
	}
	if got := c.do("exec", "one-2", "--", "curl", "-s", "http://127.0.0.1:8200/tree/link"); got != "there" {
		t.Errorf("the copy's server answers %q", got)
	}
	if got := c.do("sleep", "one"); !strings.Contains(got, "sleeping (disk)") {
		t.Errorf("sleep: %q", got)
	}
	if stdout, stderr, code := c.try([]byte("tty; exit 7\n"), "shell", "one"); code != 7 || !strings.Contains(stdout, "/dev/pts/") {
		t.Errorf("shell: %d, %q, %q", code, stdout, stderr)
	}
	stdout, stderr, code := c.try(nil, "rm", "one", "three", "one-1")
	if code != 1 || stdout != "deleted one\ndeleted one-1\n" || !strings.Contains(stderr, `there is no sandbox "three"`) {
		t.Errorf("rm: %d, %q, %q", code, stdout, stderr)
	}
	if got := sandboxIDs.FindAllString(c.do("list"), -1); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
	c.do("create", "two")
	c.do("exec", "two", "--", "sh", "-c", "mkdir -p from/deep; echo f >from/deep/file; mkfifo pipe")
	c.do("cp", "two:from", "one-2:to")
	c.do("cp", "two:from", "one-2:to") // which is a folder now
	c.do("cp", "two:from/.", "one-2:to")
	if got := c.do("exec", "one-2", "--", "sh", "-c", "cd to; find . -type f | sort"); got != "./deep/file\n./from/deep/file\n" {
		t.Errorf("copied across: %q", got)
	}
	if _, stderr, code := c.try(nil, "cp", "two:none", "one-2:x"); code != 1 || !strings.Contains(stderr, "no such file") {
		t.Errorf("cp of nothing: %d, %s", code, stderr)
	}
	if _, stderr, code := c.try(nil, "cp", "two:from", "three:x"); code != 1 || !strings.Contains(stderr, `there is no sandbox "three"`) {
		t.Errorf("cp to nowhere: %d, %s", code, stderr)
	}

	c.do("sleep", "two")
	if got := c.do("show", "two"); !strings.Contains(got, "sleeping") {
		t.Errorf("show: %q", got)
	}
	if got := c.do("wake", "two"); !strings.Contains(got, "running") {
		t.Errorf("wake: %q", got)
	}
	victim := strings.TrimSpace(c.do("exec", "-d", "two", "--", "sleep", "600"))
	if got := c.do("kill", "-s", "TERM", "two", victim); got != "sent TERM to "+victim+"\n" {
		t.Errorf("kill: %q", got)
	}
	if _, _, code := c.try(nil, "logs", "-f", "two", victim); code != 0 {
		t.Errorf("the killed process's log: %d", code)
	}
	if got := c.do("top", "two", "-o", "json"); !strings.Contains(got, `"exit_code": 143`) {
		t.Errorf("killed: %s", got)
	}
	c.do("exec", "two", "--", "setsid", "-f", "sleep", "4751")
	if got := c.do("kill", "--all", "two"); got != "killed every program in two\n" {
		t.Errorf("kill --all: %q", got)
	}
	if stdout, _, _ := c.try(nil, "exec", "two", "--", "pgrep", "-fc", "^sleep 4751"); stdout != "0\n" {
		t.Errorf("after kill --all %s programs are left", stdout)
	}
	if got := c.do("network", "two"); !strings.HasPrefix(got, "network  off") {
		t.Errorf("network: %q", got)
	}
	url := c.do("preview", "two", "8000")
	if got := c.do("preview", "two"); !strings.Contains(got, strings.TrimSpace(url)) {
		t.Errorf("previews: %q has no %q", got, url)
	}
	c.do("preview", "--close", "two", "8000")
	if got := c.complete("rm", "tw"); got != "two" {
		t.Errorf("completes to %q", got)
	}
	if got := c.complete("logs", "two", ""); got != victim {
		t.Errorf("completes to %q", got)
	}
	if got := strings.Fields(c.do("ps", "-q")); len(got) != 2 {
		t.Errorf("ps -q: %q", got)
	}
	c.do("rm", "-f", "two", "three")
	if got := c.do("rm", "--all"); got != "deleted one-2\n" {
		t.Errorf("rm --all: %q", got)
	}
}

// complete returns what a shell is offered for the last argument.
func (c *console) complete(args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.program, append([]string{"__complete", "sandbox", "--session", c.session}, args...)...)
	cmd.Env = c.env
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	names, _, _ := strings.Cut(string(out), "\n:")
	return names
}
