package atolltest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// KillSandbox ends the main process of the sandbox that has a folder, one of Sandboxes.
func KillSandbox(t testing.TB, folder string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "sandbox.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rec struct{ Pid int }
	if err := json.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(rec.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	for { // it is not our child, but a pidfd can be read at its end
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Minute.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || err != nil {
			t.Fatalf("process %d does not end: %v", rec.Pid, err)
		}
		return
	}
}
