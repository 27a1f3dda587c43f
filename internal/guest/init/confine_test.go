package guestinit

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

func TestLongestRuleDecides(t *testing.T) {
	s := &supervisor{rules: wire.ConfineMessage{
		Listed: true, Writable: []string{"/home/user", "/tmp/a/b", "/tmp/x"}, ReadOnly: []string{"/home/user/ref", "/tmp/a", "/tmp/x"}, Blocked: []string{"/root"},
	}}
	for path, want := range map[string]bool{
		"/": false, "/home": false, "/home/user": true, "/home/user2": false, "/home/user/x": true, "/home/user/ref": false, "/home/user/ref/x": false,
		"/home/user/reference": true, "/tmp": false, "/tmp/a": false, "/tmp/a/b": true, "/tmp/a/b/c": true, "/tmp/a/bc": false, "/tmp/x": false,
	} {
		if s.mayWrite(path) != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
	if s.exempt("/home/user") || !s.exempt("/dev/shm") || !s.exempt("/root") || !s.exempt("/proc") {
		t.Error("what is the sandbox's own is told wrongly")
	}
	s.rules.ReadOnly = append(s.rules.ReadOnly, "/dev/shm")
	if s.exempt("/dev/shm") || !s.exempt("/dev") {
		t.Error("a rule on /dev/shm is not seen")
	}
	s.rules = wire.ConfineMessage{ReadOnly: []string{"/usr"}}
	if !s.mayWrite("/") || s.mayWrite("/usr/bin") {
		t.Error("without a list of what is writable everything else must be")
	}
}

// TestNamespacesStay refuses what would start programs outside of the namespaces that there are.
func TestNamespacesStay(t *testing.T) {
	s := &supervisor{own: &namespaces{}}
	if err := s.confine(&wire.ConfineMessage{NoExec: true}); err != errConfined || s.confined {
		t.Errorf("rules are answered with %v", err)
	}
	if err := s.startDaemon(&wire.StartDaemonMessage{}); err != errHasRuns {
		t.Errorf("a guest daemon is answered with %v", err)
	}
}

func TestMountTable(t *testing.T) {
	got := parseMounts("1 0 0:1 / / rw - overlay none rw\n2 1 0:2 / /tmp/a\\040b\\134 ro,nosuid,noexec - tmpfs none rw\nshort\n")
	want := []mountPoint{{path: "/"}, {path: `/tmp/a b\`, flags: unix.MS_NOSUID | unix.MS_NOEXEC}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzMountTable(f *testing.F) {
	f.Add("1 0 0:1 / /a\\040b rw,nosuid - x y z\n")
	f.Add("\\")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range parseMounts(text) {
			if m.path == "" {
				t.Errorf("%q has a mount without a path", text)
			}
		}
	})
}
