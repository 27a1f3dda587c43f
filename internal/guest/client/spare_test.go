package client_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/client"
	"github.com/atoll-run/atoll/internal/guest/client/clienttest"
)

// outcome is what a caller sees of a command.
type outcome struct {
	Stdout, Stderr string
	Exit           process.Exit
}

func outcomeOf(t testing.TB, o process.Output) (out outcome) {
	t.Helper()
	for {
		chunk, err := o.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Stream == process.Stderr {
			out.Stderr += string(chunk.Data)
		} else {
			out.Stdout += string(chunk.Data)
		}
	}
	out.Exit = o.Exit()
	out.Exit.At, out.Exit.CPU, out.Exit.PeakRSS = time.Time{}, 0, 0
	return out
}

func perform(t testing.TB, c *client.Client, spec process.Spec) (outcome, int) {
	t.Helper()
	o, err := c.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return outcomeOf(t, o), o.Info().PID
}

// spares lists the shells that wait for a command.
func spares(t testing.TB, c *client.Client) (pids []int) {
	t.Helper()
	const look = `
import glob
for f in glob.glob("/proc/[0-9]*/environ"):
    try:
        with open(f, "rb") as e, open(f[:-7] + "cmdline", "rb") as a:
            if b"BASH_ENV=/proc/self/fd/3\0" in e.read() and b"--\0        " in a.read(): print(f.split("/")[2])
    except OSError: pass`
	out, _ := perform(t, c, process.Spec{Argv: []string{"python3", "-c", look}, Env: clienttest.Env})
	if out.Exit.Code != 0 {
		t.Fatalf("looking for a spare shell: %+v", out)
	}
	for _, f := range strings.Fields(out.Stdout) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// aSpare waits for a spare shell.
func aSpare(t testing.TB, c *client.Client) int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if pids := spares(t, c); len(pids) > 0 {
			return pids[0]
		}
	}
	t.Fatal("no shell was started ahead")
	return 0
}

// TestSpareShell: a command sees the same in a shell that was started ahead as in
// one of its own.
func TestSpareShell(t *testing.T) {
	c := clienttest.New(t).Dial(t)
	perform(t, c, shell("true"))
	own := []string{"EMPTY=", "GREETING=it's \"me\"\nand $HOME `x` \\ \x01\x7f\xff", "lower_case=1", "PIP_NO_CACHE_DIR=1"}
	var long strings.Builder
	for i := range 300 {
		fmt.Fprintf(&long, "x%d=%d; ", i, i)
	}
	for _, command := range []string{
		"true", "false", "", "# nothing", "exit 7", "echo out; echo err >&2; exit 3", "kill -9 $$", "kill -TERM $$", "exec sleep 0", "exec nothing-of-the-kind",
		"echo 'it''s' \"$GREETING\" | od -c", "printf '%s\\0' a 'b c' $'\\n' | od -c", "if", "echo 'open", "echo $((1/0))", "echo )", "f() { return 4; }; f", "set -e; false; echo no",
		"set -u; echo $nothing", "cd /nowhere", "cd /tmp; pwd; echo $OLDPWD", "echo $0 $# $- $_ $SHLVL", "echo $BASH_EXECUTION_STRING", "echo ${BASH_EXECUTION_STRING+set}", "echo \"$_\"; echo \"$_\"",
		"set -o", "shopt", "trap", "trap 'echo bye' EXIT; exit 2", "trap 'echo term' TERM; kill $$; echo on", "sleep 0 & wait; echo $?", "(exit 5) & wait $!; echo $?", "echo $LINENO\necho $LINENO",
		"echo $SECONDS $((SECONDS < 2))", "test $RANDOM != $RANDOM; echo $?", "env | sort", "export -p", "export -p | wc -l", "declare -p EMPTY GREETING lower_case PATH HOME", "declare -F", "alias", "ulimit -a", "umask",
		"ls -l /proc/self/fd | sed 's/.* \\([0-9]* ->\\) \\([a-z/]*\\).*/\\1 \\2/' | sort", "ls /proc/$$/fd | tr '\\n' ' '", "grep -v -E '^(Pid|Tgid|PPid|Ngid|NSpid|NStgid|VmPeak|VmSize|VmRSS|VmHWM|VmData|Rss.*|voluntary.*|nonvol.*|Threads|FDSize|Sig.*):' /proc/$$/status",
		"cat /proc/$$/limits", "readlink /proc/$$/exe /proc/$$/cwd", "tr '\\0' '\\n' < /proc/$$/cmdline | sed -n 1,4p", "cut -d' ' -f 2-3,7-9 /proc/$$/stat; echo", "ps -o args= -p $$ | sed 's/ *$//'", "echo $PPID", "[ $(ps -o sid= -p $$) = $$ ]; echo $?",
		"type -a ls; hash", "echo ${BASH_VERSINFO[0]} $BASH_SUBSHELL ${#FUNCNAME[@]} ${#BASH_SOURCE[@]} ${#BASH_LINENO[@]}", "caller; echo $?", "read x; echo \"$? <$x>\"", "cat", "history | wc -l", "jobs", "dirs", "locale 2>/dev/null",
		"bash -c 'echo $SHLVL $PPID' | cut -d' ' -f1", "sh -c 'env' | sort", "python3 -c 'import os; print(sorted(os.environ))'", "python3 -c 'import signal; print([s for s in range(1, 32) if signal.getsignal(s) == signal.SIG_IGN], signal.pthread_sigmask(0, []))'",
		"echo " + strings.Repeat("x", 7000), long.String() + "echo $x299", "declare -p | grep -v -E ' (BASHPID|BASH_ARGC|BASH_ARGV|BASH_ARGV0|BASH_LINENO|BASH_SOURCE|BASH_ENV|EPOCH.*|PIPESTATUS|PPID|RANDOM|SECONDS|SRANDOM|_)(=|$)'", "nohup true; echo $?", "mkfifo f; echo hi > f & cat f; rm f",
		"\xff\xfe; echo $?", "echo a \\\n b", "coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} x; echo $x", "exec 3>&1; echo three >&3", "echo x >&3", "source /dev/stdin <<< 'echo sourced $1' ", "echo ${*} ${@}", "wait; echo $?", "suspend; echo $?",
		"printf '%(%Y)T\\n' -1 | grep -c 20", "let x=1; echo $? $x", "unset HOME; cd; echo $?", "PATH=; ls; echo $?", "printenv BASH_ENV; echo $?", "test -t 0 -o -t 1; echo $?", "set -- a b; echo $1; shift; echo $1", "getopts ab o; echo $? $OPTIND", "echo *", "shopt -s extglob; echo !(x)", "[[ x =~ (x) ]]; echo ${BASH_REMATCH[1]}",
	} {
		for _, env := range [][]string{clienttest.Env, slices.Concat(clienttest.Env, own)} {
			spec := shell(command)
			spec.Env, spec.Timeout = env, 30*time.Second
			ordinary := spec
			ordinary.Shell, ordinary.Argv = "", []string{"bash", "-c", "--", command}
			want, _ := perform(t, c, ordinary)
			spare := aSpare(t, c)
			got, pid := perform(t, c, spec)
			if pid != spare {
				t.Errorf("%.60q ran in %d, while %d was waiting", command, pid, spare)
			}
			for _, o := range []*outcome{&want, &got} {
				o.Stderr = strings.ReplaceAll(o.Stderr, strconv.Itoa(pid), "PID")
			}
			if got != want {
				t.Errorf("%.200q with %d variables\n got %.3000q\nwant %.3000q", command, len(env), fmt.Sprint(got), fmt.Sprint(want))
			}
		}
	}
}

// TestSpareShellIsNotUsed where it could not be what was asked for.
func TestSpareShellIsNotUsed(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	perform(t, c, shell("mkdir -p here"))
	for name, change := range map[string]func(*process.Spec){
		"input":               func(s *process.Spec) { s.Input = true },
		"control":             func(s *process.Spec) { s.Control = true },
		"a terminal":          func(s *process.Spec) { s.Terminal = &process.Size{Rows: 5, Columns: 5} },
		"a long command":      func(s *process.Spec) { s.Shell = strings.Repeat(" ", 8<<10) + s.Shell },
		"another folder":      func(s *process.Spec) { s.Dir = "/tmp" },
		"a variable of bash":  func(s *process.Spec) { s.Env = append(s.Env, "BASH_XTRACEFD=2") },
		"a function":          func(s *process.Spec) { s.Env = append(s.Env, "BASH_FUNC_f%%=() { :; }") },
		"no name":             func(s *process.Spec) { s.Env = append(s.Env, "a-b=1") },
		"the same name twice": func(s *process.Spec) { s.Env = append(s.Env, "PATH=/bin") },
		"another PATH":        func(s *process.Spec) { s.Env = []string{"PATH=/bin:/usr/bin", "HOME=/home/user"} },
		"a preload":           func(s *process.Spec) { s.Env = append(s.Env, "LD_DEBUG=unused") },
		"a locale":            func(s *process.Spec) { s.Env = append(s.Env, "LC_ALL=C") },
		"fewer open files":    func(s *process.Spec) { s.Limits.OpenFiles = 100 },
	} {
		perform(t, c, shell("true"))
		spare := aSpare(t, c)
		spec := shell("true")
		spec.Env = slices.Clone(spec.Env)
		change(&spec)
		o, err := c.Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if o.Info().PID == spare {
			t.Errorf("%s: the shell that was started ahead was used", name)
		}
		if out := outcomeOf(t, o); out.Exit.Code != 0 {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// TestSpareShellEnds: one that was killed, and one whose folder has become another,
// are replaced, and none is there once the host has gone.
func TestSpareShellEnds(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	perform(t, c, shell("true"))
	for _, command := range []string{"kill -9 %d", "kill -STOP %d; kill -9 %d"} {
		pid := aSpare(t, c)
		perform(t, c, process.Spec{Argv: []string{"bash", "-c", strings.ReplaceAll(command, "%d", strconv.Itoa(pid))}, Env: clienttest.Env})
		if out, used := perform(t, c, shell("echo on")); out.Stdout != "on\n" || used == pid {
			t.Errorf("after %q: %+v in %d", command, out, used)
		}
	}
	in := shell("echo x > made; ls")
	in.Dir = "/home/user/there"
	perform(t, c, shell("mkdir there"))
	perform(t, c, in)
	aSpare(t, c)
	perform(t, c, process.Spec{Argv: []string{"sh", "-c", "mv there gone; mkdir there"}, Env: clienttest.Env})
	aSpare(t, c)
	perform(t, c, in)
	if out, _ := perform(t, c, shell("cat there/made")); out.Stdout != "x\n" {
		t.Errorf("a command ran in a folder that had another name by then: %+v", out)
	}
	aSpare(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = s.Dial(t)
	if left := spares(t, c); len(left) > 0 {
		t.Errorf("the shells %v wait, though the host was away", left)
	}
}

// TestSpareShellCountsAsOne of the processes that are allowed, at most.
func TestSpareShellCountsAsOne(t *testing.T) {
	c := clienttest.New(t, func(s *runtime.Spec) { s.Limits.Processes = 20 }).Dial(t)
	for range 5 {
		perform(t, c, shell("true"))
		aSpare(t, c)
		perform(t, c, shell("true"))
		aSpare(t, c)
		if all := spares(t, c); len(all) != 1 {
			t.Errorf("the shells %v wait", all)
		}
	}
	if all, err := c.Processes(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("the host is told of %v, %v", all, err)
	}
}
