package confine

import (
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		rule string
		is   Execution
		want bool
	}{
		{"shutdown", Execution{"/usr/sbin/shutdown", "/usr/sbin/shutdown", []string{"shutdown", "now"}}, true},
		{"shutdown", Execution{"/usr/bin/systemctl", "/sbin/shutdown", []string{"x"}}, true}, // a link
		{"shutdown", Execution{"/tmp/x", "/tmp/x", []string{"shutdown"}}, true},              // argv[0]
		{"shutdown", Execution{"/usr/sbin/shutdown (deleted)", "/tmp/x", []string{"x"}}, true},
		{"shutdown", Execution{"/tmp/x", "/tmp/x", []string{"/tmp/x"}}, false}, // a copy
		{"shutdown", Execution{"/usr/bin/echo", "/usr/bin/echo", []string{"echo", "shutdown"}}, false},
		{"shutdown", Execution{"/usr/sbin/shutdown-later", "", []string{"shutdown-later"}}, false},
		{"/usr/bin/dd", Execution{"/usr/bin/dd", "/usr/bin/dd", []string{"dd"}}, true},
		{"/usr/bin/dd", Execution{"/opt/dd", "/opt/dd", []string{"dd"}}, false},
		{"rm -rf /", Execution{"/usr/bin/rm", "/usr/bin/rm", []string{"rm", "-rf", "/"}}, true},
		{"rm -rf /", Execution{"/usr/bin/rm", "/usr/bin/rm", []string{"/bin/rm", "-rf", "/", "--no-preserve-root"}}, true},
		{"rm -rf /", Execution{"/usr/bin/rm", "/usr/bin/rm", []string{"rm", "-rf", "/tmp"}}, false},
		{"rm -rf /", Execution{"/usr/bin/rm", "/usr/bin/rm", []string{"rm", "-rf"}}, false},
		{"rm -rf /", Execution{"/usr/bin/rm", "/usr/bin/rm", []string{"rm", "-r", "-f", "/"}}, false},
		{"deploy", Execution{"/usr/bin/dash", "/home/user/deploy", []string{"/bin/sh", "/home/user/deploy", "x"}}, true}, // a script
		{"deploy x", Execution{"/usr/bin/dash", "./deploy", []string{"/bin/sh", "-e", "./deploy", "x"}}, true},
		{"deploy", Execution{"/usr/bin/dash", "/usr/bin/dash", []string{"sh", "deploy"}}, false}, // its text is read, it is not executed
		{"wget", Execution{"/bin/busybox", "/bin/busybox", []string{"busybox", "wget", "http://x"}}, true},
		{"wget", Execution{"/bin/busybox", "/bin/busybox", []string{"busybox", "echo", "wget"}}, false},
		{"rm -rf /", Execution{"/bin/coreutils", "/bin/coreutils", []string{"coreutils", "--coreutils-prog=rm", "-rf", "/"}}, true},
		{"dd", Execution{"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2", []string{"ld", "--library-path", "/x", "/usr/bin/dd"}}, true},
		{"dd", Execution{"/usr/bin/env", "/usr/bin/env", []string{"env", "dd"}}, false}, // env executes it, which is another exec
		{"dd", Execution{"/memfd:x (deleted)", "/proc/self/fd/3", []string{"dd"}}, true},
		{"dd", Execution{"/memfd:x (deleted)", "", nil}, false},
	} {
		command, ok := ParseCommand(c.rule)
		if !ok || command.Matches(c.is) != c.want {
			t.Errorf("%q and %+v: want %v", c.rule, c.is, c.want)
		}
	}
	if _, ok := ParseCommand(" \t "); ok {
		t.Error("white space is a command")
	}
}

func TestScript(t *testing.T) {
	for _, c := range []struct {
		is   Execution
		comm string
		want string
	}{
		{Execution{"/usr/bin/dash", "/bin/sh", []string{"/bin/sh", "/tmp/tool", "x"}}, "tool", "/tmp/tool"},
		{Execution{"/usr/bin/env", "/usr/bin/env", []string{"/usr/bin/env", "python3", "./a-name-that-is-long"}}, "a-name-that-is-", "./a-name-that-is-long"},
		{Execution{"/usr/bin/dash", "/tmp/tool", []string{"/bin/sh", "/tmp/tool"}}, "tool", "/tmp/tool"},
		{Execution{"/usr/bin/dd", "/bin/dd", []string{"dd", "/bin/sh"}}, "dd", "/bin/dd"},
		{Execution{"/usr/bin/dd", "/bin/dd", nil}, "x", "/bin/dd"},
	} {
		if c.is.script(c.comm); c.is.Name != c.want {
			t.Errorf("got %+v, want %s", c.is, c.want)
		}
	}
}

func FuzzCommand(f *testing.F) {
	f.Add("rm -rf /", "/usr/bin/rm", "rm", "rm\x00-rf\x00/")
	f.Add("dd", "/lib/ld-linux.so.2", "", "ld\x00-x\x00dd")
	f.Add("x", "/bin/busybox", "", "")
	f.Fuzz(func(t *testing.T, rule, file, name, argv string) {
		c, ok := ParseCommand(rule)
		if !ok {
			return
		}
		e := Execution{file, name, strings.Split(argv, "\x00")}
		c.Matches(e)
		// Whatever is executed, by its own name and with the rule's own arguments.
		words := strings.Fields(rule)
		if !c.Matches(Execution{words[0], words[0], words}) {
			t.Errorf("%q does not match itself", rule)
		}
	})
}
