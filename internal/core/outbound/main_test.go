package outbound

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// own is a public address of the machine that the tests run on.
const own = "203.0.113.1"

// TestMain runs the tests in a network namespace of their own, where the machine
// has a public address.
func TestMain(m *testing.M) {
	if os.Getenv("OUTBOUND_TEST_MACHINE") == "" {
		runtime.LockOSThread() // a program begins in the namespace of the thread that starts it
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), "OUTBOUND_TEST_MACHINE=1"))
		}
		fmt.Fprintln(os.Stderr, "make a machine:", err)
		os.Exit(1)
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "replace", own + "/24", "dev", "lo"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ip %v: %v: %s\n", args, err, out)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
