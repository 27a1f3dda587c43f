package state

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiscardTakesWhatThereIsRoomFor checks that a process with much to say on
// its standard error neither waits nor dies.
func TestDiscardTakesWhatThereIsRoomFor(t *testing.T) {
	f, err := Discard()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sh", "-c", "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero >&2; exit 3")
	cmd.Stderr = f
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Error(err)
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK == 0 || flags&unix.O_ACCMODE != unix.O_RDWR {
		t.Errorf("flags %#o, %v", flags, err)
	}
}
